"""What a connection may send before it is a request, how long it may take, and how many there are.

The server here is the product's protocol in uvicorn around an application that says what it was
asked; bounds of time are short, so that nobody waits for them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gpucredits.api.http.connections import BoundedConnection
from gpucredits.api.transport.bounds import Connected, ConnectionBounds
from support.waiting import until

GET = b"GET /echo HTTP/1.1\r\nhost: localhost\r\n"
BOUNDS = ConnectionBounds(head_s=60.0, idle_s=60.0, unread_s=0.3)
IMPATIENT = ConnectionBounds(head_s=0.3, idle_s=60.0)  # for heads that are never whole


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the headers that the application saw, at length, late or unread if so asked."""
    more = scope["path"] != "/unread"
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        more = message.get("more_body", False)
    if scope["path"] == "/held":  # until the caller has gone; the answer is then for nobody
        await receive()
    seen = [[name.decode(), value.decode()] for name, value in scope["headers"]]
    body = json.dumps(seen).encode()
    if scope["path"] == "/large":
        body = b"x" * 50_000_000
    length = str(len(body)).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
    )
    await send({"type": "http.response.body", "body": body})


class Place:
    """A server in a thread, and what it knows of its connections."""

    def __init__(self, bounds: ConnectionBounds, protocol: Any, keep_alive_s: int) -> None:
        self.connected = Connected()
        made = protocol
        if protocol is BoundedConnection:
            made = partial(BoundedConnection, bounds=bounds, connected=self.connected)
        self.server = uvicorn.Server(
            uvicorn.Config(
                echo,
                http=made,
                lifespan="off",
                access_log=False,
                log_config=None,
                port=0,
                timeout_keep_alive=keep_alive_s,
            )
        )
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.run(self.server.serve(sockets=[self.listener]))

    def connect(self) -> socket.socket:
        """A new connection, whose caller waits long enough on any machine."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


@contextmanager
def place(
    bounds: ConnectionBounds = BOUNDS, protocol: Any = BoundedConnection, keep_alive_s: int = 60
) -> Iterator[Place]:
    """A server that is ended with the test."""
    made = Place(bounds, protocol, keep_alive_s)
    made.thread.start()
    try:
        yield made
    finally:
        made.server.should_exit = True
        made.thread.join(60)
        assert not made.thread.is_alive()


@pytest.fixture(scope="module")
def bounded() -> Iterator[Place]:
    """The product's protocol."""
    with place() as made:
        yield made


def ask(at: Place, *parts: bytes) -> tuple[int, bytes, bool]:
    """Send parts one by one; the status and body of the answer, and whether the server hung up."""
    with at.connect() as caller:
        for part in parts:
            try:
                caller.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
        return answer(caller)


def answer(caller: socket.socket) -> tuple[int, bytes, bool]:
    """Read one answer, and see whether the server hangs up behind it."""
    known = b""
    while b"\r\n\r\n" not in known:
        more = receive(caller)
        if not more:
            return 0, known, True
        known += more
    head, _, body = known.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
    while len(body) < int(lines[b"content-length"]):
        body += receive(caller)
    if lines.get(b"connection") == b"close":
        assert receive(caller) == b""
        return status, body, True
    return status, body, False


def receive(caller: socket.socket) -> bytes:
    """What comes next; nothing when the server has hung up, whichever way."""
    try:
        return caller.recv(65_536)
    except ConnectionResetError:
        return b""


def reason(body: bytes) -> str:
    """Why not."""
    return str(json.loads(body)["reason"])


def test_an_ordinary_request_is_served_and_its_connection_kept(bounded: Place) -> None:
    """A head within its bounds, in one piece or two, and a second request after it."""
    with bounded.connect() as caller:
        caller.sendall(GET + b"x-a: 1\r\n\r\n")
        assert answer(caller)[::2] == (200, False)
        caller.sendall(GET[:10])
        caller.sendall(GET[10:] + b"\r\n")
        assert answer(caller)[::2] == (200, False)


@pytest.mark.parametrize(
    ("parts", "status", "why"),
    [
        ([GET, b"x-a: " + b"a" * 20_000 + b"\r\n\r\n"], 431, "head_too_large"),
        ([GET, b"x-a: ", *[b"a" * 5_000] * 8], 431, "head_too_large"),
        ([GET + b"x-a: b\r\n" * 100 + b"\r\n"], 431, "head_too_large"),
        ([b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n"], 414, "target_too_long"),
        ([GET + b"authorization: a\r\nauthorization: b\r\n\r\n"], 400, "malformed_request"),
        ([GET + b"Idempotency-Key: a\r\nidempotency-key: a\r\n\r\n"], 400, "malformed_request"),
        ([GET + b"content-length: 0\r\ncontent-length: 0\r\n\r\n"], 400, "malformed_request"),
        ([GET + b"host: other\r\n\r\n"], 400, "malformed_request"),
        ([b"nonsense\r\n\r\n"], 400, "malformed_request"),
        ([GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"], 400, "malformed_request"),
        ([GET + b"transfer-encoding: gzip, chunked\r\n\r\n"], 400, "malformed_request"),
    ],
    ids=[
        "one long header",
        "a header without end",
        "many headers",
        "a long path",
        "two keys",
        "two idempotency keys",
        "two lengths",
        "two hosts",
        "no HTTP",
        "another protocol",
        "another encoding",
    ],
)
def test_heads_beyond_their_bounds_end_the_connection(
    bounded: Place, parts: list[bytes], status: int, why: str
) -> None:
    """Too large, too many, twice, or not HTTP: a problem that says which, and no connection."""
    told, body, closed = ask(bounded, *parts)
    assert (told, reason(body), closed) == (status, why, True)


TRAILED = (
    b"POST /echo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer mine\r\n"
    b"transfer-encoding: chunked\r\ntrailer: authorization\r\n\r\n"
    b"2\r\n{}\r\n0\r\nauthorization: Bearer another\r\n\r\n"
)


def test_trailers_never_become_headers(bounded: Place) -> None:
    """A header after a chunked body is refused, in one piece with the request or after it."""
    for parts in ([TRAILED], [TRAILED[:-30], TRAILED[-30:]]):
        status, body, closed = ask(bounded, *parts)
        assert (status, reason(body), closed) == (400, "malformed_request", True)


def test_without_the_bounds_a_trailer_is_taken_for_a_header() -> None:
    """The control: the protocol underneath lets a trailer override the key, and takes any head."""
    with place(protocol=HttpToolsProtocol) as plain:
        status, body, _ = ask(plain, TRAILED)
        assert status == 200
        assert ["authorization", "Bearer another"] in json.loads(body)
        assert ask(plain, GET + b"x-a: " + b"a" * 100_000 + b"\r\n\r\n")[0] == 200


def test_a_chunked_body_without_trailers_is_taken(bounded: Place) -> None:
    """Chunks alone are fine."""
    status, _, _ = ask(bounded, TRAILED.replace(b"authorization: Bearer another\r\n", b""))
    assert status == 200


def test_who_does_not_finish_a_head_is_not_waited_for() -> None:
    """A half-sent head is answered 408 after its time, and the connection closed."""
    with place(IMPATIENT) as quick:
        told, body, closed = ask(quick, GET)
    assert (told, reason(body), closed) == (408, "too_slow", True)


def test_a_head_that_trickles_in_buys_no_time() -> None:
    """One byte after the other is sent for longer than a head may take; then it is 408."""
    with place(IMPATIENT) as quick, quick.connect() as caller:
        trickle = itertools.chain(GET + b"x-a: ", itertools.repeat(ord("a"), 1_000))
        with suppress(BrokenPipeError, ConnectionResetError):
            for byte in trickle:  # at least 20 s of it
                caller.sendall(bytes([byte]))
                if select.select([caller], [], [], 0.02)[0]:
                    break
            else:
                pytest.fail("the head was waited for as long as it trickled in")
        told, body, closed = answer(caller)
        assert (told, reason(body), closed) == (408, "too_slow", True)


@pytest.mark.parametrize("before", [b"", GET + b"\r\n"], ids=["at first", "after an answer"])
def test_empty_lines_buy_no_time(before: bytes) -> None:
    """A connection that has sent nothing but line ends is idle, and ends as one."""
    bounds = ConnectionBounds(idle_s=0.2)
    with place(bounds, keep_alive_s=1) as quick, quick.connect() as caller:
        if before:
            caller.sendall(before)
            assert answer(caller)[::2] == (200, False)
        caller.sendall(b"\r\n\r\n")
        assert receive(caller) == b""


CHUNKED = GET.replace(b"GET", b"POST") + b"transfer-encoding: chunked\r\n\r\n"


def test_the_frame_of_a_body_is_bounded(bounded: Place) -> None:
    """Extensions of chunks are not part of a body, and have a bound of their own."""
    told, body, closed = ask(bounded, CHUNKED + b"2;", *[b"a" * 65_536] * 40)
    assert (told, reason(body), closed) == (400, "malformed_request", True)
    assert ask(bounded, CHUNKED + b"2;a=b\r\n{}\r\n0\r\n\r\n")[0] == 200


def test_requests_ahead_of_their_answers_are_bounded_and_never_mixed_up(
    bounded: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Too many end the connection; no request gets another's answer, and nothing is a traceback."""
    held = GET.replace(b"/echo", b"/held") + b"\r\n"
    with bounded.connect() as caller:
        caller.sendall(held * 40)
        assert answer(caller) == (0, b"", True)
    with bounded.connect() as caller:
        caller.sendall(held + b"nonsense\r\n\r\n")
        assert answer(caller) == (0, b"", True)
    for _ in range(2):
        with bounded.connect() as caller:
            caller.sendall(held * 3)
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with bounded.connect() as caller:
        caller.sendall((GET + b"\r\n") * 5)
        known = b""
        while known.count(b"HTTP/1.1 200 OK") < 5:
            more = receive(caller)
            assert more
            known += more
    assert until(lambda: bounded.connected.in_all == 0)
    assert ask(bounded, GET + b"\r\n")[0] == 200
    assert "Traceback" not in caplog.text


def test_who_sends_nothing_is_hung_up_on() -> None:
    """An idle connection ends by itself, also one that has never sent a byte."""
    with place(ConnectionBounds(idle_s=0.2)) as quick, quick.connect() as caller:
        assert receive(caller) == b""


def test_who_does_not_read_is_hung_up_on(bounded: Place) -> None:
    """An answer that nobody reads is not kept for ever."""
    with bounded.connect() as caller:
        caller.sendall(GET.replace(b"/echo", b"/large") + b"\r\n")
        assert until(lambda: bounded.connected.in_all == 0)


UNREAD = GET.replace(b"GET /echo", b"POST /unread")


def test_who_is_answered_early_can_read_the_answer(bounded: Place) -> None:
    """The rest of a body is thrown away, and the connection serves the next request."""
    with bounded.connect() as caller:
        caller.sendall(UNREAD + b"content-length: 300000\r\n\r\n" + b"a" * 300_000)
        assert answer(caller)[::2] == (200, False)
        caller.sendall(GET + b"\r\n")
        assert answer(caller)[::2] == (200, False)


def test_a_body_that_was_not_wanted_is_not_read_for_ever(bounded: Place) -> None:
    """Whoever is answered before the body is whole has a bound of bytes, and of time."""
    with bounded.connect() as caller:
        caller.sendall(UNREAD + b"content-length: 100000000\r\n\r\nabc")
        assert answer(caller)[0] == 200
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(1_000):
                caller.sendall(b"a" * 65_536)
        assert receive(caller) == b""
    with place(ConnectionBounds(rest_s=0.2)) as quick, quick.connect() as caller:
        caller.sendall(UNREAD + b"content-length: 100\r\n\r\nabc")
        assert answer(caller)[0] == 200
        assert receive(caller) == b""


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (ConnectionBounds(connections=3), "The server has 3"),
        (ConnectionBounds(per_address=3), "Your address has 3"),
    ],
    ids=["in all", "per address"],
)
def test_there_are_only_so_many_connections(bounds: ConnectionBounds, said: str) -> None:
    """The fourth is told so and closed; when one of the three goes, the next is served."""
    with place(bounds) as small:
        callers = [small.connect() for _ in range(3)]
        assert until(lambda: small.connected.in_all == 3)
        with small.connect() as fourth:
            status, body, closed = answer(fourth)
            assert (status, reason(body), closed) == (503, "too_many_connections", True)
            assert said in json.loads(body)["detail"]
        callers.pop().close()
        assert until(lambda: small.connected.in_all == 2)
        assert ask(small, GET + b"\r\n")[0] == 200
        for each in callers:
            each.close()
        assert until(lambda: not small.connected.by_address)


def test_one_huge_header_holds_up_nobody(bounded: Place) -> None:
    """While one connection sends megabytes of a header it is cut off; others are served."""
    sent = 0
    with bounded.connect() as caller:
        caller.sendall(GET + b"x-a: ")
        try:
            for _ in range(1_000):
                caller.sendall(b"a" * 65_536)
                sent += 65_536
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert ask(bounded, GET + b"\r\n")[0] == 200
    assert sent < 64_000_000
