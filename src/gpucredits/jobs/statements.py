"""Closes the months of accounts that pay later, pauses who does not pay and resumes who does."""

from __future__ import annotations

from gpucredits.core.statement import DUE_DAYS
from gpucredits.jobs.pace import Paced
from gpucredits.service.ledger import Ledger
from gpucredits.service.statements import ZONE, close_months, review_standings


class Statements(Paced):
    """Looks after a bounded number of accounts in each tick; several may run.

    Each tick closes one month of an account, so that after a downtime the months follow in order.
    """

    def __init__(  # one argument for each setting
        self,
        ledger: Ledger,
        *,
        rest_s: float = 2.0,
        accounts_max: int = 100,
        zone: str = ZONE,
        due_days: int = DUE_DAYS,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.accounts_max = accounts_max
        self.zone = zone
        self.due_days = due_days

    async def tick(self) -> bool:
        """Close months, then look at who is overdue; go on at once while months are open."""
        closed = await close_months(
            self.ledger, limit=self.accounts_max, zone=self.zone, due_days=self.due_days
        )
        reviewed = await review_standings(self.ledger, limit=self.accounts_max)
        return closed > 0 or reviewed == self.accounts_max
