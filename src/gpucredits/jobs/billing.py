"""Finishes budget requests, closes months, and compares each hour's spending with those before.

Several servers may run each of these jobs.
"""

from __future__ import annotations

import asyncio
from typing import Final

from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.pace import Paced
from gpucredits.service.billing.anomalies import hour_now, judge_hour, suspend_pending
from gpucredits.service.billing.budget_requests import repair
from gpucredits.service.billing.statements import (
    ZONE,
    Step,
    close_months,
    months_over,
    review_standings,
)
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.ledger.due import DueCursor


class Requests(Paced):
    """Finishes approvals that were cut short, and writes down which requests have expired."""

    def __init__(self, ledger: Ledger, *, rest_s: float = 2.0, rows_max: int = 200) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.rows_max = rows_max

    async def tick(self) -> bool:
        """Finish what was begun; go on at once while there is a full measure of it."""
        return await repair(self.ledger, limit=self.rows_max) == self.rows_max


MONTHS_EVERY_S: Final = 60.0


class Statements(Paced):
    """Goes round the accounts that pay later, a bounded number in each tick; several may run.

    Months are looked for when one has ended, and each minute for those that got no answer. Each
    walk closes one month of an account, so that after a downtime the months follow in order.
    """

    def __init__(  # one argument for each setting
        self,
        ledger: Ledger,
        *,
        rest_s: float = 2.0,
        accounts_max: int = 100,
        walk_max: int = 1_000,
        zone: str = ZONE,
        due_days: int = DUE_DAYS,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.accounts_max = accounts_max
        self.walk_max = walk_max
        self.zone = zone
        self.due_days = due_days
        self.place = DueCursor()
        self.month_place = DueCursor()
        self.is_closing = False
        self._until = 0  # the months that the last walk was about
        self._again_at = 0.0
        self._closed = 0  # in this walk

    async def tick(self) -> bool:
        """Close months, then look at who is overdue; go on at once until all were looked at."""
        closed = await self._close()
        self.place = await review_standings(self.ledger, self._step(self.place))
        return closed > 0 or self.place != DueCursor()

    async def _close(self) -> int:
        """Close months of the next accounts, if it is time to; of how many."""
        until = await months_over(self.ledger.pool, self.zone)
        now_s = asyncio.get_running_loop().time()
        if not self.is_closing and (until != self._until or now_s >= self._again_at):
            self.is_closing, self._until = True, until
            self._again_at = now_s + MONTHS_EVERY_S
        if not self.is_closing:
            return 0
        closed, self.month_place = await close_months(
            self.ledger,
            self._step(self.month_place),
            until=until,
            zone=self.zone,
            due_days=self.due_days,
        )
        self._closed += closed
        if self.month_place == DueCursor():  # who had a month to close may have another
            self.is_closing, self._closed = self._closed > 0, 0
        return closed

    def _step(self, after: DueCursor) -> Step:
        return Step(after, self.walk_max, self.accounts_max)


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
