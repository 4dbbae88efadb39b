"""Writes down what the clock has made true: lapsed leases, grants' starts and ends, new periods.

It also has the warnings written down that budgets have reached.
Correctness never depends on it: every write and read does the same for the accounts it touches.
Several may run; what one has swept, the others find done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from gpucredits.core.outcome import Swept
from gpucredits.jobs.pace import Paced
from gpucredits.service.dispatch.admission import Asking
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.ledger.due import DueCursor, find_due, find_warned


class Sweeper(Paced):
    """Goes round all orgs, a bounded number in each tick, and sweeps accounts that are due.

    Each round begins with a bounded number of budgets.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        rest_s: float = 1.0,
        orgs_max: int = 200,
        accounts_max: int = 100,
        budgets_max: int = 20_000,
        grace_us: int = 1_000_000,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.orgs_max = orgs_max
        self.accounts_max = accounts_max
        self.budgets_max = budgets_max
        self.grace_us = grace_us
        self.asking = Asking()
        self.after = 0
        self.budget_place = DueCursor()
        self.entries = 0
        self._left_over = False  # an org moved on in this round and has more than fits into a turn

    async def tick(self) -> bool:
        """Sweep what is due in the next orgs; go on at once until all of them are swept."""
        warned: list[DueCursor] = []
        if not self.after:
            self._left_over = False
            warned, self.budget_place = await find_warned(
                self.ledger.pool, self.budget_place, walk_max=self.budgets_max
            )
        due, self.after = await find_due(
            self.ledger.pool,
            self.after,
            orgs_max=self.orgs_max,
            accounts_max=self.accounts_max,
            grace_us=self.grace_us,
        )
        full = {org_id for org_id, found in due.items() if len(found) == self.accounts_max}
        for org_id, account_id in warned:
            due.setdefault(org_id, []).append(account_id)
        swept = await asyncio.gather(*(self._sweep(*each) for each in due.items()))
        self.entries += sum(each.entries for found in swept for each in found)
        self._left_over |= any(
            org_id in full and any(each.moved_on for each in found)
            for org_id, found in zip(due, swept, strict=True)
        )
        return self.after > 0 or self._left_over

    async def _sweep(self, org_id: int, account_ids: Sequence[int]) -> list[Swept]:
        """Sweep accounts of an org; one that the ledger cannot answer for holds up nobody else."""
        sweep = partial(self.ledger.sweep, org_id, account_ids)
        return await self.asking.done(org_id, "a sweep", sweep) or []
