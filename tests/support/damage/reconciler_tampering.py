"""Books with every power of the reconciler in use, and what a superuser could do to them unseen."""

from __future__ import annotations

from gpucredits.core.command import Issue
from gpucredits.core.reconciliation.lost_work import Cause, LossTerms
from gpucredits.service.billing.usage import UsageRow
from gpucredits.service.reconciliation.lost_work import LostRow, claim, report_checkpoint
from gpucredits.service.reconciliation.terms import LOSS, POLICY
from gpucredits.service.reconciliation.unmatched_use import (
    UnmatchedFilter,
    decide_unmatched,
    keep_unknown,
    list_unmatched,
)
from gpucredits.service.write.acts import Act
from support.scenes.reconciling import QUIET_S, SEQS, measure, policy, run, settled
from support.scenes.scene import CREDIT, Scene

STAFF = Act(org_id=1, actor="key_0_2")
RECONCILER_TAMPERINGS: dict[str, tuple[str, ...]] = {
    "reconciled": (
        "UPDATE reservations SET reconciled = reconciled + 1 WHERE reconciled <> 0",
        "UPDATE reservations SET reconciled = 0 WHERE reconciled <> 0",
        "UPDATE reservations SET reconciled = 1 WHERE reconciled = 0 AND state = 1",
        "DELETE FROM audit_log WHERE action = 'credits.reconcile'",
    ),
    "lost_work": (
        "UPDATE reservations SET lost_ms = 0 WHERE lost_ms > 0",
        "UPDATE reservations SET lost_ms = lost_ms + 1 WHERE lost_ms > 0",
        "UPDATE reservations SET lost_ms = 1 WHERE lost_ms = 0 AND state = 1",
        "UPDATE lost_work SET amount = amount + 1",
        "UPDATE lost_work SET lost_ms = lost_ms - 1",
    ),
    "lost_work_claims": (
        "UPDATE lost_work SET limit_ms = limit_ms * 2",
        "UPDATE lost_work SET checkpoint_ms = 0",
        "UPDATE lost_work SET is_reported = NOT is_reported",
        "UPDATE lost_work SET cause = 1 - cause",
        "DELETE FROM lost_work",
    ),
    "reconcile_policy_acts": (
        "UPDATE reconcile_policies SET mode = 0",
        "UPDATE reconcile_policies SET tolerance_ms = 3600000",
        "UPDATE reconcile_policies SET alarm_percent = 100",
        "UPDATE reconcile_policies SET alarm_floor = alarm_floor * 2",
        "UPDATE reconcile_policies SET quiet_ms = 0",
        "DELETE FROM reconcile_policies",
        "INSERT INTO reconcile_policies VALUES (1, 3, 2, 0, 5, 1000000)",
    ),
    "loss_term_acts": (
        "UPDATE loss_terms SET hours_per_job = 700",
        "UPDATE loss_terms SET window_hours = 700",
        "UPDATE loss_terms SET unreported_hours = 700",
        "UPDATE loss_terms SET hours_per_account = 700",
        "DELETE FROM loss_terms",
        "INSERT INTO loss_terms VALUES (1, 3, 9, 9, 9)",
    ),
    "unmatched_acts": (
        "UPDATE unmatched_use SET reservation_id = 1 WHERE state = 1",
        "UPDATE unmatched_use SET state = 0, reservation_id = 0 WHERE state = 1",
        "UPDATE unmatched_use SET state = 2, reservation_id = 0 WHERE state = 1",
        "UPDATE unmatched_use SET decided_by = 'key_0_9' WHERE state = 2",
        "DELETE FROM unmatched_use WHERE state = 2",
    ),
    "reconciliation_ids": (
        "UPDATE org_numbers SET unmatched = 0",
        "UPDATE org_numbers SET alarms = 0",
    ),
}


async def use_reconciler(stage: Scene) -> None:
    """Corrections, alarms, a claim of lost work, and unmatched use that somebody decided on."""
    await stage.do(Issue(account="acme", amount=900 * CREDIT))
    await policy(stage)
    terms = LossTerms(hours_per_job=1, window_hours=24, unreported_hours=1)
    assert await LOSS.set(stage.pool, STAFF, "acme", terms, None)
    await policy(stage, "acme/p")
    assert await POLICY.end(stage.pool, STAFF, "acme/p")
    assert await LOSS.set(stage.pool, STAFF, "acme/p", terms, None)
    assert await LOSS.end(stage.pool, STAFF, "acme/p")
    lease = await settled(stage, 10_000, account="acme", job_id="measured", node="m1")
    await measure(stage, lease, (0, 30_000), node="m1")
    await measure(stage, lease, (0, 10_000), is_attested=False)
    await claim_one(stage)
    payload = {"start_ms": 0, "end_ms": 5_000}
    lost = UsageRow(1, "rsv_1_zz", "m1", 0, 0, next(SEQS), 5_000, payload)
    other = UsageRow(1, "rsv_1_zy", "m1", 0, 0, next(SEQS), 5_000, payload)
    await keep_unknown(stage.pool, [lost, other])
    await stage.advance(QUIET_S)
    done = await run(stage)
    assert (done.posted, done.alarms) == (1, 2)
    rows = await list_unmatched(stage.pool, UnmatchedFilter(before=(2**62, 0)))
    first, second = (row for row in rows if row.job_id.startswith("rsv_1_z"))
    for row, number in ((first, lease.reservation_id), (second, 0)):
        assert await decide_unmatched(
            stage.pool, STAFF, row.unmatched_id, reservation_id=number, note="seen"
        )


async def claim_one(stage: Scene) -> None:
    """A lease whose node failed, and its lost work."""
    held = await stage.reserve("acme", window_ms=60_000, node="m2", job_id="failed")
    number = held.reservation.reservation_id
    await stage.advance(50)
    await stage.beat(held, 1, 50_000)
    await report_checkpoint(stage.pool, 1, number, 20_000, dry_run=False)
    await stage.advance(61)
    await stage.beat(held, 2, 0)
    done = await claim(stage.ledger, STAFF, number, Cause.NODE_FAILURE, None, "a fan")
    assert isinstance(done, tuple)
    assert isinstance(done[0], LostRow)
    assert done[0].amount > 0
