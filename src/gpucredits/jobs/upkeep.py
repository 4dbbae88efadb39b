"""Keeps the database in order: seals entries, stores sums, refreshes statistics, forgets.

Several servers may run each of these jobs; each tick does a bounded piece of work.
"""

from __future__ import annotations

from typing import Final

from gpucredits.core.bounds import DAY_US, MINUTE_US
from gpucredits.jobs.pace import Paced
from gpucredits.metering.standing import ReadersStanding
from gpucredits.store.access.retention import forget_answers, forget_decisions
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.statistics import analyze_grown
from gpucredits.store.dispatch.queue import forget_ended
from gpucredits.store.ledger.blocks import orgs_unsealed, seal
from gpucredits.store.ledger.history import orgs_behind, take_snapshots
from gpucredits.store.metering.events import count_stuck, trim


class Sealer(Paced):
    """Seals entries in hash-chained blocks, so that a changed or missing row shows.

    The orgs that are furthest behind come first. Blocks are kept for ever, so an org gets one for
    many entries, or when its last one is old.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        rest_s: float = 5.0,
        orgs_max: int = 50,
        entries_min: int = 1_000,
        entries_max: int = 5_000,
        age_us: int = MINUTE_US,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.entries_min = entries_min
        self.age_us = age_us
        self.orgs_max = orgs_max
        self.entries_max = entries_max
        self.entries = 0
        self._queue: list[int] = []

    async def tick(self) -> bool:
        """Seal one block each of the next orgs; a round takes in every org that was behind.

        One whose block is full has more to seal, and has its turn again after the others.
        """
        async with self.pool.acquire() as connection:
            if not self._queue:
                self._queue = await orgs_unsealed(
                    connection, entries_min=self.entries_min, age_us=self.age_us, limit=100_000
                )
            chosen, self._queue = self._queue[: self.orgs_max], self._queue[self.orgs_max :]
            if chosen:
                sealed = await seal(connection, chosen, entries_max=self.entries_max)
                self.entries += sum(sealed.values())
                self._queue += [
                    org_id for org_id, count in sealed.items() if count == self.entries_max
                ]
        return bool(self._queue)


MEASURES_MAX: Final = 10  # between two snapshots of an account, however many others move


class Snapshotter(Paced):
    """Stores sums of accounts now and then, so that balances of the past need few entries.

    An org gets its snapshots when it has many entries since its last ones.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        rest_s: float = 10.0,
        entries_between: int = 2_000,
        entries_each: int = 100,
        orgs_max: int = 20,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.entries_between = entries_between
        self.entries_each = entries_each
        self.orgs_max = orgs_max

    async def tick(self) -> bool:
        """Take the snapshots of a bounded number of orgs; go on while there were that many."""
        async with self.pool.acquire() as connection:
            org_ids = await orgs_behind(
                connection, entries=self.entries_between, limit=self.orgs_max
            )
            for org_id in org_ids:
                await take_snapshots(
                    connection,
                    org_id,
                    entries_each=self.entries_each,
                    entries_max=MEASURES_MAX * self.entries_between,
                )
        return len(org_ids) == self.orgs_max


class Statistician(Paced):
    """Refreshes statistics of tables that have grown fivefold: the database is too slow at it."""

    def __init__(
        self, pool: Pool, *, rest_s: float = 5.0, times: int = 5, rows_min: int = 100
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.times = times
        self.rows_min = rows_min

    async def tick(self) -> bool:
        """Look at tables that have grown; there is nothing to go on with at once."""
        async with self.pool.acquire() as connection:
            await analyze_grown(connection, times=self.times, rows_min=self.rows_min)
        return False


class Retention(Paced):
    """Deletes old decisions, answers to keys, ended requests and delivered events.

    It also counts the readers of events that are stuck: what is kept for them fills the disk.
    """

    def __init__(
        self,
        pool: Pool,
        readers: ReadersStanding | None = None,
        *,
        rest_s: float = 60.0,
        decisions_days: int = 30,
        answers_days: int = 30,
        events_days: int = 7,
        rows_max: int = 5_000,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.readers = readers or ReadersStanding()
        self.decisions_us = decisions_days * DAY_US
        self.answers_us = answers_days * DAY_US
        self.events_us = events_days * DAY_US
        self.rows_max = rows_max

    async def tick(self) -> bool:
        """Forget what is old; go on at once while there is a full measure of it."""
        decisions = await forget_decisions(
            self.pool, older_us=self.decisions_us, limit=self.rows_max
        )
        answers = await forget_answers(self.pool, older_us=self.answers_us, limit=self.rows_max)
        async with self.pool.acquire() as db:
            requests = await forget_ended(db, older_us=self.answers_us, limit=self.rows_max)
        events = await trim(self.pool, older_us=self.events_us, limit=self.rows_max)
        self.readers.stuck = await count_stuck(self.pool, older_us=self.events_us)
        return self.rows_max in (decisions, answers, requests, events)
