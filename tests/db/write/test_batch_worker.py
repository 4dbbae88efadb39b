"""Connections that die while nobody uses them: whoever comes next does not notice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg

from gpucredits.core.command import Issue
from gpucredits.core.outcome import Granted
from gpucredits.service.write.batch import CommandJob
from gpucredits.store.database.connection import Connection
from support.scenes.scene import CREDIT, Scene, play
from support.waiting import HANGS_S

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""


async def ended(connection: Connection) -> None:
    """Wait until the driver knows that a connection has ended."""
    async with asyncio.timeout(HANGS_S):
        with suppress(asyncpg.InterfaceError):  # the pool has taken it back
            while not connection.is_closed():  # noqa: ASYNC110  # nobody is told of it
                await asyncio.sleep(0.01)


def test_the_first_batches_after_a_restart_are_carried_out(database: str) -> None:
    """Every idle worker has a connection that the database has ended; each makes a new one."""

    async def act(stage: Scene) -> None:
        workers = [*stage.ledger.commands.idle, *stage.ledger.heartbeats.idle]
        names = [f"org{number}" for number in range(len(workers))]
        await stage.fund(*names, credits_each=0)
        held = [await worker._connected() for worker in workers]
        admin = await asyncpg.connect(database)
        await admin.execute(TERMINATE)
        await admin.close()
        await asyncio.gather(*map(ended, held))
        jobs = []
        loop = asyncio.get_running_loop()
        for name in names:
            request = stage.request(Issue(account=name, amount=CREDIT))
            org_id = await stage.ledger.org_id(name)
            assert org_id is not None
            jobs.append(CommandJob(org_id, [request], loop.create_future(), queued_at=loop.time()))
        await asyncio.gather(
            *(worker.serve([job]) for worker, job in zip(workers, jobs, strict=True))
        )
        assert [type((await job.answer)[0]) for job in jobs] == [Granted] * len(jobs)

    play(database, act)
