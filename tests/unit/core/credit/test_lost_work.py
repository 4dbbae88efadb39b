"""Lost work goes back to the grants that paid, by rule, once, and never more than was charged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import Refund, Settle, StopLease, Sweep
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import (
    Closed,
    LostWorkRefunded,
    Reconciled,
    Refunded,
    Stopping,
    Swept,
)
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reconciliation.commands import Reconcile, RefundLostWork
from gpucredits.core.reconciliation.lost_work import (
    Cause,
    Loss,
    LossEvidence,
    LossTerms,
    billed_ms,
    judge_loss,
)
from gpucredits.core.reservation import Reservation
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_SECOND = 10_000
HOUR_MS = 3_600_000
HOUR_US = 3_600_000_000
TERMS = LossTerms(hours_per_job=2, window_hours=24, unreported_hours=1)


def failed(ledger: Ledger, used_ms: int, **fields: object) -> int:
    """A lease that reported so much use and was never heard of again."""
    lease = ledger.lease("acme", window_ms=60_000, **fields).reservation_id
    ledger.wait(ms=used_ms)
    ledger.accept(Beat(lease, 1, used_ms), BeatResult)
    ledger.wait(s=120)
    ledger.accept(Sweep(account_id=1), Swept)
    return lease


def lost(ledger: Ledger, lease: int, checkpoint_ms: int, limit_ms: int = HOUR_MS) -> Any:
    """What comes of a refund of lost work."""
    return ledger.do(
        RefundLostWork(reservation_id=lease, checkpoint_ms=checkpoint_ms, limit_ms=limit_ms)
    )


def test_the_use_after_the_checkpoint_goes_back_to_its_grants(ledger: Ledger) -> None:
    """Last payer first, once."""
    first = ledger.grant("acme", 30 * A_SECOND, expires_at=START + 9_000 * SECOND).grant_id
    second = ledger.grant("acme", 5 * CREDIT).grant_id
    lease = failed(ledger, 50_000)
    done = lost(ledger, lease, 10_000)
    assert done == LostWorkRefunded(
        lease, 40_000, 40 * A_SECOND, ((second, 20 * A_SECOND), (first, 20 * A_SECOND))
    )
    assert ledger.reservation(lease).lost_ms == 40_000
    again = lost(ledger, lease, 0)
    assert isinstance(again, Refused)
    assert again.reason is Reason.LOSS_REFUNDED


def test_a_limit_caps_what_is_given_back(ledger: Ledger) -> None:
    """The latest use is lost first, up to the limit."""
    ledger.grant("acme", 5 * CREDIT)
    lease = failed(ledger, 50_000)
    done = lost(ledger, lease, 10_000, 5_000)
    assert (done.lost_ms, done.amount) == (5_000, 5 * A_SECOND)


def test_no_more_goes_back_than_was_charged(ledger: Ledger) -> None:
    """What people or the reconciler gave back before is not given back again."""
    ledger.grant("acme", 9 * CREDIT)
    lease = failed(ledger, 50_000)
    ledger.accept(Refund(reservation_id=lease, amount=45 * A_SECOND), Refunded)
    assert lost(ledger, lease, 10_000).amount == 5 * A_SECOND
    other = failed(ledger, 50_000)
    ledger.accept(Reconcile(reservation_id=other, spans=((0, 20_000),)), Reconciled)
    assert billed_ms(ledger.reservation(other)) == 20_000
    done = lost(ledger, other, 10_000)
    assert (done.lost_ms, done.amount) == (10_000, 10 * A_SECOND)


def test_a_lease_that_was_given_lost_work_back_is_given_nothing_more(ledger: Ledger) -> None:
    """The reconciler gives nothing back on top, and still charges what was used and not billed."""
    ledger.grant("acme", 9 * CREDIT)
    lease = failed(ledger, 50_000)
    lost(ledger, lease, 10_000)
    less = Reconcile(reservation_id=lease, spans=((0, 30_000),))
    assert ledger.accept(less, Reconciled).amount == 0
    more = Reconcile(reservation_id=lease, spans=((0, 90_000),))
    assert ledger.accept(more, Reconciled).amount == 400_000
    assert ledger.accept(less, Reconciled).amount == 0


def test_nothing_is_given_back_for_a_live_lease_or_no_loss(ledger: Ledger) -> None:
    """Nor for a lease that does not exist."""
    ledger.grant("acme", 9 * CREDIT)
    live = ledger.lease("acme").reservation_id
    assert lost(ledger, live, 0).reason is Reason.RESERVATION_ACTIVE
    assert lost(ledger, 999, 0).reason is Reason.RESERVATION_UNKNOWN
    lease = failed(ledger, 50_000)
    assert lost(ledger, lease, 50_000).reason is Reason.LOSS_REFUSED
    assert ledger.reservation(lease).lost_ms == 0


def judged(ledger: Ledger, lease: int | Reservation, terms: LossTerms = TERMS, **known: Any) -> Any:
    """What a claim is judged to be worth: a loss, or a reason."""
    row = ledger.reservation(lease) if isinstance(lease, int) else lease
    evidence = LossEvidence(**({"cause": Cause.NODE_FAILURE, "reported_ms": 10_000} | known))
    found = judge_loss(row, terms, evidence, ledger.now)
    return found if isinstance(found, Loss) else found.message


def test_a_node_failure_is_silence_of_the_whole_node(ledger: Ledger) -> None:
    """A lease that was settled, or whose node went on, did not fail."""
    ledger.grant("acme", 9 * CREDIT)
    lease = failed(ledger, 50_000)
    assert judged(ledger, lease) == Loss(10_000, 40_000, is_reported=True)
    assert "reported other leases" in judged(ledger, lease, node_lived=True)
    nameless = replace(ledger.reservation(lease), node="")
    assert "names no node" in judged(ledger, nameless)
    done = ledger.lease("acme").reservation_id
    ledger.wait(s=20)
    ledger.accept(Settle(reservation_id=done, used_ms=20_000), Closed)
    assert "not by the silence of a failed node" in judged(ledger, done)
    assert "not preempted" in judged(ledger, lease, cause=Cause.PREEMPTION)


def test_a_preemption_is_known_to_the_lease(ledger: Ledger) -> None:
    """However the job then ended."""
    ledger.grant("acme", 9 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=30)
    ledger.accept(StopLease(reservation_id=lease, grace_ms=5_000), Stopping)
    ledger.wait(s=5)
    ledger.do(Settle(reservation_id=lease, used_ms=34_000))
    found = judged(ledger, lease, cause=Cause.PREEMPTION)
    assert isinstance(found, Loss)
    assert found.limit_ms == billed_ms(ledger.reservation(lease)) - 10_000


@pytest.mark.parametrize(
    ("terms", "known", "word"),
    [
        (LossTerms(), {}, "no terms are set"),
        (replace(TERMS, unreported_hours=0), {"reported_ms": None}, "No checkpoint"),
        (TERMS, {"job_ms": 2 * HOUR_MS}, "before"),
        (TERMS, {"reported_ms": None, "job_ms": HOUR_MS}, "before"),
        (TERMS, {"claimed_ms": 50_000}, "nothing was lost"),
    ],
)
def test_terms_and_evidence_bound_a_claim(
    ledger: Ledger, terms: LossTerms, known: dict[str, Any], word: str
) -> None:
    """Off by default; within the caps; never before the reported checkpoint."""
    ledger.grant("acme", 9 * CREDIT)
    lease = failed(ledger, 50_000)
    assert word in judged(ledger, lease, terms, **known)


def test_the_later_checkpoint_and_the_smaller_cap_count(ledger: Ledger) -> None:
    """A claimant cannot move a reported checkpoint back; unreported ones are capped apart."""
    ledger.grant("acme", 9 * CREDIT)
    lease = failed(ledger, 50_000)
    assert judged(ledger, lease, claimed_ms=1_000).checkpoint_ms == 10_000
    assert judged(ledger, lease, claimed_ms=30_000).checkpoint_ms == 30_000
    told = judged(ledger, lease, reported_ms=None, claimed_ms=20_000)
    assert told == Loss(20_000, 30_000, is_reported=False)
    left = judged(ledger, lease, job_ms=2 * HOUR_MS - 7_000)
    assert left.limit_ms == 7_000


def test_a_claim_is_taken_up_to_the_end_of_its_window(ledger: Ledger) -> None:
    """At the end of the window it still is, a moment later it is not."""
    ledger.grant("acme", 9 * CREDIT)
    lease = failed(ledger, 50_000)
    ledger.now = ledger.reservation(lease).ended_at + 24 * HOUR_US
    assert isinstance(judged(ledger, lease), Loss)
    ledger.wait(us=1)
    assert "the time for claims is over" in judged(ledger, lease)
