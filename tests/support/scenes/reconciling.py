"""Short words for leases with measured use, and passes of the reconciler."""

from __future__ import annotations

import itertools
from typing import Any

from gpucredits.core.command import Settle
from gpucredits.core.outcome import Closed
from gpucredits.core.reconciliation.comparison import Mode, ReconcilePolicy
from gpucredits.core.reservation import Reservation
from gpucredits.service.billing.usage import UsageRow, record_use
from gpucredits.service.reconciliation.passes import PassResult, Wanted, note_new_use, run_pass
from gpucredits.service.reconciliation.terms import POLICY
from gpucredits.service.write.acts import Act
from gpucredits.store.database.connections import session
from gpucredits.store.reconciliation.measured_use import read_lease
from support.scenes.scene import Scene

SEQS = itertools.count(1)
QUIET_S = 16 * 60  # longer than the delay of the reconciler


async def settled(stage: Scene, used_ms: int, *, s: float = 100, **wanted: Any) -> Reservation:
    """A lease of ``acme`` that settled so much use, so many seconds after its admission."""
    usual: dict[str, Any] = {"window_ms": int(s * 1_000) + 20_000, "node": "n1"}
    lease = await stage.reserve(**(usual | wanted))
    number = lease.reservation.reservation_id
    await stage.advance(s)
    outcome = await stage.do(Settle(reservation_id=number, used_ms=used_ms))
    assert isinstance(outcome, Closed), outcome
    return lease.reservation


async def measure(
    stage: Scene,
    lease: Reservation,
    *spans: tuple[int, int],
    node: str = "n1",
    seq: int = 0,
    is_attested: bool = True,
) -> int:
    """Store what a node measured for a lease; how many events were new."""
    rows = [
        UsageRow(
            1,
            lease.job_id,
            node,
            lease.reservation_id,
            0,
            seq or next(SEQS),
            end - start,
            {"start_ms": start, "end_ms": end},
            is_attested,
        )
        for start, end in spans
    ]
    return len((await record_use(stage.pool, rows, dry_run=False)).stored)


async def policy(stage: Scene, account: str = "acme", **terms: Any) -> None:
    """Set the policy of an account; it posts unless told otherwise."""
    wanted = ReconcilePolicy(**({"mode": Mode.POST, "tolerance_ms": 0} | terms))
    act = Act(org_id=1, actor="tester")
    assert await POLICY.set(stage.pool, act, account, wanted, None) is not None


async def look(stage: Scene) -> None:
    """Let the reconciler see all new events."""
    while await note_new_use(stage.pool):
        pass


async def run(stage: Scene, **wanted: Any) -> PassResult:
    """Let the reconciler see new events and compare every lease that is due."""
    await look(stage)
    return await run_pass(stage.ledger, Wanted(**wanted))


async def lease_now(stage: Scene, lease: Reservation) -> Reservation:
    """The lease as it is stored."""
    async with session(stage.pool) as db:
        found = await read_lease(db, 1, lease.reservation_id)
    assert found is not None
    return found


async def entry_count(stage: Scene) -> int:
    """How many entries there are."""
    count: int = await stage.pool.fetchval("SELECT count(*) FROM entries")
    return count
