"""Finishes approvals that were cut short, and writes down whose time is over."""

from __future__ import annotations

from gpucredits.jobs.pace import Paced
from gpucredits.service.billing.budget_requests import repair
from gpucredits.service.write.ledger import Ledger


class Requests(Paced):
    """Looks after a bounded number of requests in each tick; several may run."""

    def __init__(self, ledger: Ledger, *, rest_s: float = 2.0, rows_max: int = 200) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.rows_max = rows_max

    async def tick(self) -> bool:
        """Finish what was begun; go on at once while there is a full measure of it."""
        return await repair(self.ledger, limit=self.rows_max) == self.rows_max
