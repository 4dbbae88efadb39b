"""HTTP/1.1 as bytes: the least that a load generator needs, so that the server is what is measured.

Owns: writing requests, cutting answers out of a stream, and a blocking line for timing one request
at a time. Only keep-alive and Content-Length are spoken, and only to this machine.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, Self, cast

import msgspec

HOST = "127.0.0.1"
ANSWER_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_S = 60.0
HEAD_END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"


class ExchangeError(Exception):
    """The server answered something else than it should have."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server listens, and the key to speak to it with."""

    port: int
    token: str

    def head(self, path: str, *, method: str = "POST") -> bytes:
        """A request up to the value of its Content-Length."""
        return (
            f"{method} {path} HTTP/1.1\r\nhost: {HOST}:{self.port}\r\n"
            f"authorization: Bearer {self.token}\r\ncontent-type: application/json\r\n"
        ).encode("ascii")

    def request(self, path: str, body: bytes, *, key: str = "", method: str = "POST") -> bytes:
        """A whole request; writes other than heartbeats need a key."""
        keyed = f"idempotency-key: {key}\r\n".encode("ascii") if key else b""
        return b"%b%bcontent-length: %d\r\n\r\n%b" % (
            self.head(path, method=method),
            keyed,
            len(body),
            body,
        )


class Stream:
    """Bytes as they come in, cut into answers."""

    __slots__ = ("_buffer", "_needed", "_start", "_status")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = -1
        self._start = 0
        self._status = 0

    def feed(self, data: bytes) -> tuple[int, bytes] | None:
        """Take in bytes; (status, body) when they complete an answer."""
        buffer = self._buffer
        buffer += data
        if self._needed < 0:
            end = buffer.find(HEAD_END)
            if end < 0:
                return None
            head = bytes(buffer[: end + 2]).lower()
            self._status = int(head[9:12])
            place = head.find(LENGTH)
            if place < 0:
                raise ExchangeError("an answer came without a Content-Length")
            line_end = head.find(b"\r\n", place + 2)
            length = int(head[place + len(LENGTH) : line_end])
            if length > ANSWER_BYTES_MAX:
                raise ExchangeError(f"an answer of {length} bytes is beyond reason")
            self._start = end + len(HEAD_END)
            self._needed = self._start + length
        if len(buffer) < self._needed:
            return None
        body = bytes(buffer[self._start : self._needed])
        del buffer[: self._needed]
        self._needed = -1
        return self._status, body


class Peer(asyncio.Protocol):
    """One keep-alive connection in an event loop; whoever inherits says what an answer causes."""

    def __init__(self) -> None:
        self._stream = Stream()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The line is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one but in name

    def data_received(self, data: bytes) -> None:
        """Bytes came in."""
        answer = self._stream.feed(data)
        if answer is not None:
            self.answered(*answer)

    def answered(self, status: int, body: bytes) -> None:
        """An answer is complete."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is None:
            raise ExchangeError("the line is not open")
        self._transport.write(data)

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


class Line:
    """One keep-alive connection that blocks: for seeding, and for timing without an event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket = socket.create_connection((HOST, target.port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = Stream()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and wait for its answer."""
        self._socket.sendall(request)
        while True:
            data = self._socket.recv(256 * 1024)
            if not data:
                raise ExchangeError("the server hung up")
            answer = self._stream.feed(data)
            if answer is not None:
                return answer

    def call(self, path: str, body: object, *, key: str = "", method: str = "POST") -> Any:
        """Send JSON, expect success, and give back the answer's JSON."""
        encoded = msgspec.json.encode(body)
        status, answer = self.exchange(self._target.request(path, encoded, key=key, method=method))
        if not 200 <= status < 300:
            said = answer[:500].decode(errors="replace")
            raise ExchangeError(f"{method} {path} was answered {status}: {said}")
        return msgspec.json.decode(answer)
