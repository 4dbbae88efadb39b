"""The textbook behind HTTP: ``python -m gpucredits_bench.contestants.bare_server SPEC``.

Owns: a bare ASGI application on uvicorn, httptools and uvloop, as ours has, without a framework,
a log or a throttle. It checks the key, reads and writes JSON, and speaks the paths of a reserve
and of a settle, so that one load generator drives all contestants.
"""

from __future__ import annotations

import gc
import hmac
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import asyncpg
import msgspec
import uvicorn
import uvloop

from gpucredits.core.money import format_credits
from gpucredits_bench.contestants.admission_textbook import (
    Admissions,
    Calls,
    RefusedAdmissionError,
    Statements,
)
from gpucredits_bench.contestants.floor import Floor
from gpucredits_bench.contestants.same_rows import SameRows
from gpucredits_bench.traffic.admitting import PATH
from gpucredits_bench.traffic.exchange import HOST

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Kind = Literal["statements", "calls", "floor", "same_rows"]


class BareSpec(msgspec.Struct, kw_only=True):
    """Which textbook, on which database, for whoever has the token."""

    kind: Kind
    database_url: str
    token: str
    connections: int


class Reserving(msgspec.Struct, kw_only=True):
    """The body of a reserve."""

    account: str
    job_id: str
    gpu_type: str
    gpu_count: int
    node: str
    window_seconds: int


class Settling(msgspec.Struct, kw_only=True):
    """The body of a settle."""

    seq: int
    used_ms: int


class Bare:
    """The ASGI application."""

    def __init__(self, admissions: Admissions, token: str) -> None:
        self._admissions = admissions
        self._authorization = f"Bearer {token}".encode()
        self._reserving = msgspec.json.Decoder(Reserving)
        self._settling = msgspec.json.Decoder(Settling)
        self._encoder = msgspec.json.Encoder()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        if hmac.compare_digest(headers.get(b"authorization", b""), self._authorization):
            status, answer = await self._answer(scope["path"], headers, await body_of(receive))
        else:
            status, answer = 401, {"reason": "unauthenticated"}
        body = self._encoder.encode(answer)
        reply = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": reply})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, path: str, headers: dict[bytes, bytes], body: bytes
    ) -> tuple[int, dict[str, Any]]:
        key = headers.get(b"idempotency-key", b"").decode()
        try:
            if path == PATH:
                asked = self._reserving.decode(body)
                window_ms = asked.window_seconds * 1_000
                number, hold = await self._admissions.reserve(
                    asked.account, asked.job_id, asked.gpu_type, asked.gpu_count, window_ms, key
                )
                told = {"reservation_id": number, "state": "active", "held": format_credits(hold)}
                return 201, told
            number = path.removeprefix(f"{PATH}/").removesuffix(":settle")
            used = self._settling.decode(body)
            due = await self._admissions.settle(number, used.used_ms, key)
        except RefusedAdmissionError:
            return 402, {"reason": "refused"}
        told = {"reservation_id": number, "state": "settled", "settled": format_credits(due)}
        return 200, told


async def body_of(receive: Receive) -> bytes:
    """The whole body."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


async def serve(spec: BareSpec) -> None:
    """Listen on a free port, say which, and serve until the process is asked to end."""
    way, close = await way_of(spec)
    config = uvicorn.Config(
        Bare(way, spec.token), lifespan="off", proxy_headers=False, access_log=False,
        log_level="warning", server_header=False, http="httptools",
    )  # fmt: skip
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)  # as ours
    listener = socket.create_server((HOST, 0), backlog=1024)
    sys.stdout.write(f'{{"port":{listener.getsockname()[1]}}}\n')
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[listener])
    await close()


async def way_of(spec: BareSpec) -> tuple[Admissions, Callable[[], Awaitable[None]]]:
    """What writes, and how it is closed; the floor and the same rows need one connection."""
    if spec.kind == "same_rows":
        rows = await SameRows.connect(spec.database_url)
        return rows, rows.close
    if spec.kind == "floor":
        floor = await Floor.connect(spec.database_url)
        return floor, floor.close
    pool = await asyncpg.create_pool(
        spec.database_url, min_size=spec.connections, max_size=spec.connections
    )
    return Statements(pool) if spec.kind == "statements" else Calls(pool), pool.close


def main() -> None:
    """Serve one spec."""
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=BareSpec)
    uvloop.run(serve(spec))


if __name__ == "__main__":
    main()
