"""Compares ended leases with their nodes' measurements, and corrects bills.

Correctness does not depend on how often it runs, nor on how many servers run it: see
service/reconciliation/passes.py.
"""

from __future__ import annotations

from gpucredits.jobs.pace import Paced
from gpucredits.service.reconciliation.lost_work import carry_on
from gpucredits.service.reconciliation.passes import (
    ReconcilerState,
    Wanted,
    note_new_use,
    read_counts,
    run_pass,
)
from gpucredits.service.write.ledger import Ledger


class Reconciler(Paced):
    """Looks for new events, and compares a bounded number of leases in each tick."""

    def __init__(
        self,
        ledger: Ledger,
        state: ReconcilerState | None = None,
        *,
        rest_s: float = 5.0,
        leases_max: int = 200,
    ) -> None:
        super().__init__(rest_s=rest_s)
        self.ledger = ledger
        self.state = ReconcilerState() if state is None else state
        self.leases_max = leases_max

    async def tick(self) -> bool:
        """Note new use, compare due leases, and finish claims that a dead server left."""
        has_more = await note_new_use(self.ledger.pool)
        done = await run_pass(self.ledger, Wanted(limit=self.leases_max))
        await carry_on(self.ledger, limit=self.leases_max)
        self.state.compared_total += done.compared
        self.state.posted_total += done.posted
        self.state.counts = await read_counts(self.ledger.pool)
        return has_more or not done.is_done
