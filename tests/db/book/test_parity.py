"""The stored ledger against the rules alone: equal answers to any sequence of commands."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.core.command import CreateAccount
from gpucredits.core.heartbeat import BeatResult
from gpucredits.core.reasons import Refused
from support.books.parity import PATHS, Players, Shadow
from support.scenes.scene import Scene, play

STEPS = 60


@pytest.mark.parametrize("seed", range(6))
def test_the_stored_ledger_agrees_with_the_rules(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Loading only what a command touches never changes an answer, batches and time included."""
    shadow, players = Shadow(), Players(seed)
    shadow.take_part(monkeypatch)

    async def act(stage: Scene) -> None:
        await stage.do(CreateAccount(path="acme"))
        for path in PATHS[1:3]:
            await stage.do(CreateAccount(path=path))
        for _ in range(STEPS):
            commands = [players.command(shadow.now) for _ in range(players.dice.randrange(1, 4))]
            beats = [(1, players.beat()) for _ in range(players.dice.randrange(8))]
            reported = asyncio.create_task(stage.ledger.beat(beats))
            for outcome in await asyncio.gather(*(stage.do(command) for command in commands)):
                players.note(outcome)
            for answer in await reported:
                assert isinstance(answer, BeatResult | Refused), answer
            if players.dice.random() < 0.3:
                await stage.advance(players.dice.choice([0.5, 3, 20, 90]))
        assert shadow.decided > STEPS
        await stage.assert_sound()

    play(database, act)
