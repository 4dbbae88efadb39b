"""Writes down what the clock has made true: lapsed leases, grants' starts and ends, new periods.

It also has the warnings written down that budgets have reached.
Correctness never depends on it: every write and read does the same for the accounts it touches.
Several may run; what one has swept, the others find done.
"""

from __future__ import annotations

import asyncio
from itertools import groupby

from gpucredits.jobs.pace import Paced
from gpucredits.service.ledger import Ledger
from gpucredits.store.due import Place, find_due, find_warned


class Sweeper(Paced):
    """Walks all accounts, a bounded number in each tick, and sweeps those that are due."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        rest_s: float = 1.0,
        walk_max: int = 20_000,
        grace_us: int = 1_000_000,
        start: Place | None = None,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.walk_max = walk_max
        self.grace_us = grace_us
        self.place = start or Place()
        self.budget_place = Place()
        self.entries = 0

    async def tick(self) -> bool:
        """Sweep what is due among the next accounts; go on at once while there are more."""
        due, self.place = await find_due(
            self.ledger.pool, self.place, walk_max=self.walk_max, grace_us=self.grace_us
        )
        warned, self.budget_place = await find_warned(
            self.ledger.pool, self.budget_place, walk_max=self.walk_max
        )
        groups = [
            self.ledger.sweep(org_id, [place.account_id for place in places])
            for org_id, places in groupby(sorted({*due, *warned}), key=lambda place: place.org_id)
        ]
        for swept in await asyncio.gather(*groups):
            self.entries += swept
        return self.place != Place()
