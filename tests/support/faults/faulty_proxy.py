"""A proxy that loses, breaks and delays: what a network does to a request, on demand.

It stands between a client and a real server, notes every request that reaches it, and does to each
what the next planned fault says; without a plan it passes requests on.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import urlsplit

from support.waiting import HANGS_S

SOCKET_TIMEOUT_S = HANGS_S
CRLF2 = b"\r\n\r\n"
RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # linger for no time: close by a reset


class Fault(Enum):
    """What becomes of one request."""

    SWALLOW_REPLY = auto()  # it is served, and the connection closes without a word
    HANG = auto()  # it is served, and nothing comes until the client gives up
    RESET = auto()  # it is not served: the connection is reset once the request was read
    HALF_REPLY = auto()  # it is served, and half of the answer arrives
    CUT_REQUEST = auto()  # half of it is passed on, and both connections close
    BUSY = auto()  # 503 in the server's own words, and it is not served
    LIMITED = auto()  # 429, and it is not served
    BAD_GATEWAY = auto()  # 502 in nobody's words, and it is not served
    TWICE = auto()  # it is served, and served again; the second answer arrives
    LATE = auto()  # the connection closes, and it is served after all others (``deliver_late``)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that reached the proxy."""

    method: str
    target: str
    key: str | None
    body: bytes


@dataclass(slots=True)
class FaultyProxy:
    """The proxy's plan and what it saw."""

    url: str = ""
    retry_after: str = "0"
    plan: deque[Fault] = field(default_factory=deque)
    seen: list[Seen] = field(default_factory=list)
    lost: list[bytes] = field(default_factory=list)  # bodies of the replies that were swallowed
    late: list[bytes] = field(default_factory=list)  # requests that wait for their delivery
    chance: Callable[[str], Fault | None] | None = None  # what else becomes of a target

    def deliver_late(self, upstream_url: str) -> int:
        """Serve what was held back, the last first; how much that was."""
        upstream = urlsplit(upstream_url)
        held, self.late = self.late, []
        for request in reversed(held):
            ask((upstream.hostname or "", upstream.port or 80), request)
        return len(held)

    @property
    def keys(self) -> list[str | None]:
        """The idempotency keys of the requests in order."""
        return [request.key for request in self.seen]


@contextmanager
def faulty_proxy(upstream_url: str) -> Iterator[FaultyProxy]:
    """Run a proxy before a server."""
    upstream = urlsplit(upstream_url)
    proxy = FaultyProxy()
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        address = (upstream.hostname or "", upstream.port or 80)
        threads: list[threading.Thread] = []

        def accept() -> None:
            while not done.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                thread = threading.Thread(target=serve, args=(proxy, connection, address, done))
                threads.append(thread)
                thread.start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield proxy
        finally:
            done.set()
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for thread in threads:
                thread.join()


def serve(
    proxy: FaultyProxy, connection: socket.socket, upstream: tuple[str, int], done: threading.Event
) -> None:
    """Serve the one request of a connection."""
    connection.settimeout(SOCKET_TIMEOUT_S)
    with connection, suppress(OSError):
        request = read_request(connection)
        if not request:
            return
        proxy.seen.append(seen(request))
        fault = proxy.plan.popleft() if proxy.plan else None
        if fault is None and proxy.chance is not None:
            fault = proxy.chance(proxy.seen[-1].target)
        match fault:
            case Fault.LATE:
                proxy.late.append(request)
            case Fault.TWICE:
                ask(upstream, request)
                pass_back(proxy, connection, ask(upstream, request), fault, done)
            case Fault.RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            case Fault.BUSY:
                body = b'{"title":"Service Unavailable","status":503,"reason":"busy"}'
                connection.sendall(reply("503 Service Unavailable", proxy.retry_after, body))
            case Fault.LIMITED:
                connection.sendall(reply("429 Too Many Requests", proxy.retry_after, b""))
            case Fault.BAD_GATEWAY:
                connection.sendall(reply("502 Bad Gateway", proxy.retry_after, b"<h1>502</h1>"))
            case Fault.CUT_REQUEST:
                cut(upstream, request)
            case _:
                pass_back(proxy, connection, ask(upstream, request), fault, done)


def pass_back(
    proxy: FaultyProxy,
    connection: socket.socket,
    answer: bytes,
    fault: Fault | None,
    done: threading.Event,
) -> None:
    """Give the client as much of the answer as the fault leaves."""
    match fault:
        case Fault.SWALLOW_REPLY:
            proxy.lost.append(answer.partition(CRLF2)[2])
        case Fault.HANG:
            until_closed(connection, done)
        case Fault.HALF_REPLY:
            connection.sendall(answer[: len(answer) - 20])
        case _:
            connection.sendall(answer)


def cut(upstream: tuple[str, int], request: bytes) -> None:
    """Send the head and half of the body, and hang up."""
    body = request.partition(CRLF2)[2]
    with socket.create_connection(upstream, timeout=SOCKET_TIMEOUT_S) as server:
        server.sendall(request[: len(request) - len(body) // 2])


def read_request(connection: socket.socket) -> bytes:
    """Head and body of one request."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(header(head, "content-length") or 0)
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def seen(request: bytes) -> Seen:
    """What is worth remembering of a request."""
    head, _, body = request.partition(b"\r\n\r\n")
    method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
    return Seen(method, target, header(head, "idempotency-key"), body)


def header(head: bytes, name: str) -> str | None:
    """The value of a header."""
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.decode("latin-1").partition(":")
        if found.lower() == name:
            return value.strip()
    return None


def ask(upstream: tuple[str, int], request: bytes) -> bytes:
    """The server's whole reply, on a connection that ends with it."""
    head, _, rest = request.partition(b"\r\n")
    lines = [head, b"Connection: close"]
    fields, _, body = rest.partition(b"\r\n\r\n")
    lines += [line for line in fields.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    with socket.create_connection(upstream, timeout=SOCKET_TIMEOUT_S) as server:
        server.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        answer = b""
        while part := server.recv(65_536):
            answer += part
    return answer


def reply(status: str, retry_after: str, body: bytes) -> bytes:
    """A reply of the proxy's own."""
    head = (
        f"HTTP/1.1 {status}\r\nRetry-After: {retry_after}\r\nContent-Length: {len(body)}\r\n"
        "Content-Type: application/problem+json\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def until_closed(connection: socket.socket, done: threading.Event) -> None:
    """Wait until the client gives up, or the test is over."""
    connection.settimeout(0.05)
    while not done.is_set():
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            continue
