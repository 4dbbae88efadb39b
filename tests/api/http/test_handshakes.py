"""Handshakes are bounded in number and in time, and HTTP behind them is as bounded as without TLS.

The server here is the product's door and protocol in uvicorn around an application that says hello.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn

from gpucredits.api.http.connections import BoundedConnection
from gpucredits.api.transport.bounds import Connected, ConnectionBounds
from gpucredits.api.transport.context import TlsFiles, server_context
from gpucredits.api.transport.door import TlsDoor
from gpucredits.cli.server.serve import UvicornServer
from support.servers.certificates import TestAuthority, make_authority
from support.waiting import HANGS_S, until

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answer every request."""
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


class Place:
    """A server in a thread, and what it knows of its connections."""

    def __init__(self, authority: TestAuthority, bounds: ConnectionBounds) -> None:
        self.authority = authority
        self.connected = Connected()
        self.refused: list[str] = []
        shown = authority.sign("server", "server")
        files = TlsFiles(
            certificate=shown.certificate, key=shown.key, client_ca=authority.file, everybody=True
        )
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        door = TlsDoor(
            self.listener,
            server_context(files),
            bounds=bounds,
            connected=self.connected,
            shut_out=lambda _, why: self.refused.append(why),
        )
        made: Any = partial(BoundedConnection, bounds=bounds, connected=self.connected)
        options = uvicorn.Config(
            hello, http=cast("Any", made), lifespan="off", access_log=False, log_config=None
        )
        self.server = UvicornServer(options, door)
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.run(self.server.serve(sockets=[self.listener]))

    def connect(self) -> socket.socket:
        """A connection that has not begun its handshake."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_S)

    def tls(self) -> ssl.SSLSocket:
        """A connection of a node."""
        context = self.authority.client(self.authority.sign("node", "gpu-7"))
        return context.wrap_socket(self.connect(), server_hostname="127.0.0.1")


@contextmanager
def place(folder: Path, **bounds: Any) -> Iterator[Place]:
    """A server that is ended with the test."""
    made = Place(make_authority(folder / "ca"), ConnectionBounds(**bounds))
    made.thread.start()
    try:
        yield made
    finally:
        made.server.should_exit = True
        made.thread.join(HANGS_S)
        assert not made.thread.is_alive()


def answer(caller: socket.socket) -> tuple[int, bytes]:
    """The status and body of what comes; 0 when the server hangs up without a word."""
    known = b""
    while b"\r\n\r\n" not in known:
        try:
            more = caller.recv(65_536)
        except ConnectionResetError:
            more = b""
        if not more:
            return 0, known
        known += more
    head, _, body = known.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


def hangs_up(caller: socket.socket) -> bool:
    """Whether the server ends the connection; waits for it."""
    try:
        return caller.recv(1) == b""
    except ConnectionResetError:
        return True


def test_requests_go_through_the_door(tmp_path: Path) -> None:
    """Two on one connection, and whoever has gone is no longer counted."""
    with place(tmp_path) as at:
        with at.tls() as caller:
            for _ in range(2):
                caller.sendall(GET + b"\r\n")
                assert answer(caller)[0] == 200
            assert at.connected.in_all == 1
            assert at.connected.handshakes == 0
        until(lambda: at.connected.in_all == 0)
        assert not at.connected.by_address


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (GET + b"x-a: " + b"a" * 20_000 + b"\r\n\r\n", 431, "head_too_large"),
        (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n", 414, "target_too_long"),
        (GET + b"host: other\r\n\r\n", 400, "malformed_request"),
        (GET, 408, "too_slow"),
    ],
    ids=["head", "target", "header twice", "slow head"],
)
def test_bounds_hold_behind_the_door(tmp_path: Path, sent: bytes, status: int, reason: str) -> None:
    """What a head may be, and how long it may take, is as without TLS."""
    with place(tmp_path, head_s=0.3) as at, at.tls() as caller:
        caller.sendall(sent)
        told, body = answer(caller)
        assert (told, json.loads(body)["reason"]) == (status, reason)


def test_a_handshake_that_takes_too_long_is_broken_off(tmp_path: Path) -> None:
    """Whether nothing comes or half a greeting; those who shake hands are served meanwhile."""
    with place(tmp_path, handshake_s=0.5) as at, at.connect() as silent, at.connect() as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00\x01")
        until(lambda: at.connected.handshakes == 2)
        assert hangs_up(silent)
        assert hangs_up(slow)
        until(lambda: at.connected.in_all == at.connected.handshakes == 0)
        with at.tls() as caller:
            caller.sendall(GET + b"\r\n")
            assert answer(caller)[0] == 200
        assert at.refused == []


@pytest.mark.parametrize("bound", ["handshakes", "per_address", "connections"])
def test_handshakes_are_bounded_in_number(tmp_path: Path, bound: str) -> None:
    """Those beyond the bound are shut out at once; when one has gone, another comes in."""
    with place(tmp_path, handshake_s=HANGS_S, **{bound: 2}) as at:
        first, second = at.connect(), at.connect()
        with first, second:
            until(lambda: at.connected.handshakes == 2)
            with at.connect() as third:
                assert hangs_up(third)
            assert at.connected.turned_away == 1
            first.close()
            until(lambda: at.connected.handshakes == 1)
            with at.tls() as caller:
                caller.sendall(GET + b"\r\n")
                assert answer(caller)[0] == 200


def test_a_client_without_a_certificate_is_shut_out(tmp_path: Path) -> None:
    """Where every client needs one; garbage is shut out too, and is nobody's certificate."""
    with place(tmp_path) as at:
        with at.connect() as plain:
            plain.sendall(GET + b"\r\n")
            assert answer(plain)[0] in (0, 400)
        context = at.authority.client()
        with at.connect() as raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as caller:
            assert is_shut_out(caller)
        until(lambda: at.refused)
        assert at.refused == ["peer did not return a certificate"]


def is_shut_out(caller: ssl.SSLSocket) -> bool:
    """Whether a request is not answered; the client hears of it when it sends or when it reads."""
    try:
        caller.sendall(GET + b"\r\n")
        return caller.recv(10) == b""
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return True


def test_a_stop_breaks_handshakes_off(tmp_path: Path) -> None:
    """A server that is told to stop does not wait for a client that says nothing."""
    with place(tmp_path, handshake_s=HANGS_S) as at:
        silent = at.connect()
        until(lambda: at.connected.handshakes == 1)
        at.server.should_exit = True
        assert hangs_up(silent)
        silent.close()
