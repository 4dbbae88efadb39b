"""Forgets decisions, answers to keys and requests that have ended when their time is over."""

from __future__ import annotations

from gpucredits.core.bounds import DAY_US
from gpucredits.jobs.pace import Paced
from gpucredits.store.access.retention import forget_answers, forget_decisions
from gpucredits.store.database.connection import Pool
from gpucredits.store.dispatch.queue import forget_ended


class Retention(Paced):
    """Deletes a bounded number of old rows in each tick; several may run."""

    def __init__(
        self,
        pool: Pool,
        *,
        rest_s: float = 60.0,
        decisions_days: int = 30,
        answers_days: int = 30,
        rows_max: int = 5_000,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.pool = pool
        self.decisions_us = decisions_days * DAY_US
        self.answers_us = answers_days * DAY_US
        self.rows_max = rows_max

    async def tick(self) -> bool:
        """Forget what is old; go on at once while there is a full measure of it."""
        decisions = await forget_decisions(
            self.pool, older_us=self.decisions_us, limit=self.rows_max
        )
        answers = await forget_answers(self.pool, older_us=self.answers_us, limit=self.rows_max)
        async with self.pool.acquire() as db:
            requests = await forget_ended(db, older_us=self.answers_us, limit=self.rows_max)
        return self.rows_max in (decisions, answers, requests)
