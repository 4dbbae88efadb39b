"""Callers who hang up before their whole body has arrived: nothing of it is carried out."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from gpucredits.app import Config, running
from support.servers.asgi import GONE, ask
from support.servers.http import Caller, RunningServer, fresh_name, problem
from support.waiting import HANGS_S, until

USED = {"used_ms": 540_000}
BODY = json.dumps(USED).encode()


@pytest.fixture
def lease(admin: Caller, org: str, gpu_type: str) -> str:
    """A lease that has run for nine minutes, of which a minute was reported."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    wanted = {"account": org, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 600}
    number = admin.made("/v1/reservations", wanted)["reservation_id"]
    admin.advance(540)
    beat = {"reservation_id": number, "seq": 1, "used_ms": 60_000}
    admin.made("/v1/heartbeats", {"beats": [beat]})
    return str(number)


def hang_up(server: RunningServer, path: str, *, key: str, sent: bytes) -> int:
    """Announce a body, send only some of it, and go; the status that nobody was told."""
    request_id = fresh_name("hang-up-")
    lines = [
        f"POST {path} HTTP/1.1",
        "host: localhost",
        f"authorization: Bearer {server.admin_secret}",
        f"idempotency-key: {key}",
        f"x-request-id: {request_id}",
        "content-type: application/json",
        f"content-length: {len(BODY)}",
    ]
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=HANGS_S) as caller:
        caller.sendall("\r\n".join([*lines, "", ""]).encode() + sent)
    log = server.data_dir / "server.log"

    def told() -> int | None:
        lines = [line for line in log.read_text().splitlines() if f'"{request_id}"' in line]
        return int(json.loads(lines[0])["status"]) if lines else None

    return until(told) or 0


@pytest.mark.parametrize("sent", [b"", BODY[: len(BODY) // 2]], ids=["headers only", "half"])
@pytest.mark.parametrize("act", ["settle", "cancel"])
def test_who_hangs_up_before_the_body_is_there_has_done_nothing(
    server: RunningServer, admin: Caller, lease: str, act: str, sent: bytes
) -> None:
    """The lease runs on as it did, and the same key then does what was meant."""
    path, key = f"/v1/reservations/{lease}", fresh_name("key-")
    before = admin.read(path)
    assert hang_up(server, f"{path}:{act}", key=key, sent=sent) == 400
    after = admin.read(path)
    assert (after["state"], after["settled"]) == ("active", before["settled"])
    assert admin.made(f"{path}:settle", USED, key=key)["used_ms"] == 540_000


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    """A message with some of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize(
    "messages",
    [
        [GONE],
        [part(BODY, more=True), GONE],
        [part(BODY[:5], more=True), GONE],
        [part(b"", more=False)],
        [part(b"", more=True), part(b"", more=False)],
        [part(BODY + b" ", more=False)],
    ],
)
def test_a_body_that_is_not_all_there_settles_nothing(
    database: str, data_dir: Path, messages: list[dict[str, Any]]
) -> None:
    """Neither without a message nor with other bytes than were announced; then the key is new."""

    async def act() -> None:
        async with running(
            Config(data_dir=data_dir, database_url=database, test_clock=True)
        ) as app:

            async def made(path: str, body: Any) -> Any:
                status, answer = await ask(app, path, body, fresh_name("key-"))
                assert status in (200, 201), answer
                return answer

            await made("/v1/prices", {"gpu_type": "h100", "credits_per_gpu_hour": "36"})
            await made("/v1/accounts", {"path": "acme"})
            await made("/v1/credits/issue", {"account": "acme", "amount": "100"})
            wanted = {"account": "acme", "job_id": "j", "gpu_type": "h100", "window_seconds": 600}
            lease = (await made("/v1/reservations", wanted))["reservation_id"]
            await made("/v1/test/clock", {"advance_seconds": 900})
            settle = f"/v1/reservations/{lease}:settle"
            status, answer = await ask(app, settle, USED, "the-key", messages)
            assert (status, answer["reason"]) == (400, "malformed_request")
            status, answer = await ask(app, settle, USED, "the-key")
            assert (status, answer["settled"]) == (200, "5.4")

    asyncio.run(act())


def test_an_empty_body_that_was_meant_settles_what_was_reported(admin: Caller, lease: str) -> None:
    """Without a body, and with none announced, the last report stands."""
    assert admin.made(f"/v1/reservations/{lease}:settle")["used_ms"] == 60_000
    again = admin.post(f"/v1/reservations/{lease}:settle")
    assert problem(again)[0] == 409
