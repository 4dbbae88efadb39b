"""Compares what accounts spend in an hour with the hours before it."""

from __future__ import annotations

from gpucredits.jobs.pace import Paced
from gpucredits.service.billing.anomalies import hour_now, judge_hour, suspend_pending
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.ledger.due import DueCursor


class Anomalies(Paced):
    """Walks all accounts once after each hour, a bounded number in each tick; several may run."""

    def __init__(self, ledger: Ledger, *, rest_s: float = 2.0, walk_max: int = 2_000) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.walk_max = walk_max
        self.place = DueCursor()
        self.hour = -1  # the last hour that is done, or that the walk is about
        self.is_walking = False

    async def tick(self) -> bool:
        """Judge the hour that is over, of the next accounts; suspend who is to be suspended."""
        over = await hour_now(self.ledger.pool) - 1
        if not self.is_walking and over > self.hour:
            self.hour, self.place, self.is_walking = over, DueCursor(), True
        if self.is_walking:
            _, self.place = await judge_hour(
                self.ledger.pool, self.place, hour=self.hour, walk_max=self.walk_max
            )
            self.is_walking = self.place != DueCursor()
        await suspend_pending(self.ledger, limit=self.walk_max)
        return self.is_walking
