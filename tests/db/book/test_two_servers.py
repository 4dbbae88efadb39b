"""Two servers on one database, neither of which knows what the other has changed."""

from __future__ import annotations

import asyncio

import pytest

from gpucredits.core.command import Command, Reserve
from gpucredits.service.write.batch_record import Request
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.book import book_cache
from support.books.parity import PATHS, Players
from support.scenes.scene import Scene, play
from support.waiting import HANGS_S

STEPS = 50


@pytest.mark.parametrize("is_remembered", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_whoever_decides_decides_on_what_is_true(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int, is_remembered: bool
) -> None:
    """Commands and heartbeats by chance, on either server: every rule of the ledger holds.

    Also when each of them forgets at once that there is another, and never locks first.
    """
    monkeypatch.setattr(book_cache, "CONTESTED_S", HANGS_S if is_remembered else 0.0)
    players = Players(seed)
    dice = players.dice

    async def act(stage: Scene) -> None:
        await stage.fund(*PATHS)
        other = Ledger(stage.pool)
        servers = (stage.ledger, other)

        async def do(command: Command, number: int) -> None:
            request = Request(command, f"{seed}-{number}", repr(command).encode(), "tester")
            outcome = await dice.choice(servers).submit("acme", request)
            players.note(outcome)
            if dice.random() < 0.2:  # a repeat, perhaps at the other server
                assert await dice.choice(servers).submit("acme", request) == outcome

        try:
            for step in range(STEPS):
                now = await stage.pool.fetchval("SELECT ledger_now()")
                commands = [players.command(now) for _ in range(dice.randrange(4))]
                commands.append(Reserve(**players.reserve(dice.choice(PATHS))))
                beats = [[(1, players.beat()) for _ in range(6)] for _ in servers]
                await asyncio.gather(
                    *(do(command, step * 10 + at) for at, command in enumerate(commands)),
                    *(server.beat(some) for server, some in zip(servers, beats, strict=True)),
                )
                if step % 5 == 0:
                    await stage.advance(dice.choice([0.5, 3, 20]))
        finally:
            await other.stop()
        assert stage.ledger.cache.is_contested([1]) == is_remembered

    play(database, act)
