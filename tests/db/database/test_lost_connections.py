"""Connections that are ended under way: callers are told, and the ledger is soon well again."""

from __future__ import annotations

import asyncio
import itertools

import asyncpg

from gpucredits.core.command import Issue
from gpucredits.core.outcome import Granted, Outcome
from gpucredits.store.database.errors import Unavailable
from support.scenes.scene import CREDIT, Scene, play
from support.waiting import HANGS_S


def test_a_lost_connection_is_unavailable_and_then_well_again(database: str) -> None:
    """Callers whose commit was cut off are told to retry; the same key then completes."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        outcomes: list[Outcome] = []
        lost = 0

        async def keep_issuing(writer: int) -> None:
            nonlocal lost
            for number in itertools.count():
                if number >= 15 and lost:
                    return
                while True:
                    try:
                        outcomes.append(
                            await stage.do(
                                Issue(account="acme", amount=CREDIT), key=f"{writer}-{number}"
                            )
                        )
                        break
                    except Unavailable:
                        lost += 1

        async def cut() -> None:
            admin = await asyncpg.connect(database, timeout=HANGS_S)
            while not lost:
                await admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            await admin.close()

        async with asyncio.timeout(HANGS_S):
            await asyncio.gather(*(keep_issuing(writer) for writer in range(8)), cut())
        assert {type(each) for each in outcomes} == {Granted}
        assert len(outcomes) >= 8 * 15
        assert (await stage.balance()).available == len(outcomes) * CREDIT

    play(database, act)
