"""How answers are written: long ones when it is their turn, short ones at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpucredits.api.ledger import heartbeats
from gpucredits.app import Config, running
from gpucredits.service.write.batch import long_step
from support.servers.asgi import ask


def test_only_a_long_answer_waits_for_its_turn(
    database: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node with few leases is told about them at once; one with many asks for a long step."""
    asked: list[int] = []

    async def seen() -> None:
        asked.append(1)
        await long_step()

    monkeypatch.setattr(heartbeats, "long_step", seen)

    async def act() -> list[int]:
        counts = []
        async with running(Config(data_dir=data_dir, database_url=database)) as app:
            for size in (1, heartbeats.ANSWERED_AT_ONCE, heartbeats.ANSWERED_AT_ONCE + 1):
                asked.clear()
                beat = {"reservation_id": "rsv_1_1", "seq": 1, "used_ms": 0}
                status, answer = await ask(app, "/v1/heartbeats", {"beats": [beat] * size}, "key")
                assert (status, len(answer["results"])) == (200, size)
                counts.append(len(asked))
        return counts

    assert asyncio.run(act()) == [0, 0, 1]
