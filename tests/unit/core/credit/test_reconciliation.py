"""Measured use beside the bill: what differs is posted once, at the pinned price."""

from __future__ import annotations

import pytest

from gpucredits.core.command import Adjust, Refund, ReverseTopUp, Settle, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import OVERRUN
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Adjusted, Closed, Reconciled, Refunded, Swept, ToppedUp
from gpucredits.core.reasons import Reason
from gpucredits.core.reconciliation.commands import Reconcile
from gpucredits.core.reconciliation.comparison import (
    Comparison,
    Mode,
    ReconcilePolicy,
    clipped,
    compare,
    condensed,
    governing,
    is_alarming,
    is_noise,
    length_ms,
    union,
)
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_SECOND = 10_000  # what one h100 costs


def settled(ledger: Ledger, used_ms: int, *, s: int = 100, **fields: object) -> int:
    """A lease that settled so much use, ``s`` seconds after its admission."""
    lease = ledger.lease("acme", **fields).reservation_id
    ledger.wait(s=s)
    ledger.accept(Settle(reservation_id=lease, used_ms=used_ms), Closed)
    return lease


def posted(ledger: Ledger, lease: int, *spans: tuple[int, int]) -> Reconciled:
    """What a comparison with measured use posts."""
    return ledger.accept(Reconcile(reservation_id=lease, spans=spans), Reconciled)


def test_use_that_was_not_settled_is_charged_once(ledger: Ledger) -> None:
    """The difference is charged from the payer's credits; a second pass posts nothing."""
    grant = ledger.grant("acme", 5 * CREDIT).grant_id
    lease = settled(ledger, 60_000)
    found = posted(ledger, lease, (0, 70_000))
    assert (found.amount, found.lots) == (10 * A_SECOND, ((grant, 10 * A_SECOND),))
    entries = len(ledger.entries())
    assert posted(ledger, lease, (0, 70_000)).amount == 0
    assert len(ledger.entries()) == entries
    row = ledger.reservation(lease)
    assert (row.adjusted, row.reconciled, row.charged) == (100_000, 100_000, 700_000)


def test_what_was_not_measured_goes_back_to_the_grants_that_paid(ledger: Ledger) -> None:
    """The last payer is the first to be given back, as for every refund."""
    first = ledger.grant("acme", 40 * A_SECOND, expires_at=START + 9_000 * SECOND).grant_id
    second = ledger.grant("acme", 5 * CREDIT).grant_id
    lease = settled(ledger, 60_000)
    found = posted(ledger, lease, (0, 30_000))
    assert found.amount == -30 * A_SECOND
    assert found.lots == ((second, 20 * A_SECOND), (first, 10 * A_SECOND))
    assert ledger.reservation(lease).refunded == 30 * A_SECOND
    assert posted(ledger, lease, (0, 30_000)).amount == 0


def test_the_pinned_price_counts_whatever_the_price_is_now(ledger: Ledger) -> None:
    """A lease keeps the price of its admission, in corrections too."""
    ledger.grant("acme", 50 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.price("h100", 72 * CREDIT, since=START + 10 * SECOND)
    ledger.wait(s=100)
    ledger.accept(Settle(reservation_id=lease, used_ms=60_000), Closed)
    assert posted(ledger, lease, (0, 70_000)).amount == 10 * A_SECOND
    assert posted(ledger, lease, (0, 50_000)).amount == -20 * A_SECOND


def test_more_measurements_post_only_what_is_new(ledger: Ledger) -> None:
    """Each pass compares with what was settled and reconciled before."""
    ledger.grant("acme", 50 * CREDIT)
    lease = settled(ledger, 60_000)
    amounts = [posted(ledger, lease, (0, ms)).amount for ms in (70_000, 90_000, 90_000, 60_000)]
    assert amounts == [100_000, 200_000, 0, -300_000]
    assert ledger.reservation(lease).reconciled == 0
    assert ledger.reservation(lease).charged == 600_000


def test_corrections_by_people_are_left_alone(ledger: Ledger) -> None:
    """A refund or an adjustment of staff is neither undone nor counted."""
    ledger.grant("acme", 50 * CREDIT)
    lease = settled(ledger, 60_000)
    ledger.accept(Refund(reservation_id=lease, amount=5 * A_SECOND), Refunded)
    ledger.accept(Adjust(reservation_id=lease, amount=2 * A_SECOND), Adjusted)
    assert posted(ledger, lease, (0, 60_000)).amount == 0
    assert posted(ledger, lease, (0, 61_000)).amount == A_SECOND


def test_no_more_goes_back_than_was_charged(ledger: Ledger) -> None:
    """What people have given back is not given back again; nor is it in a second pass."""
    ledger.grant("acme", 50 * CREDIT)
    lease = settled(ledger, 60_000)
    ledger.accept(Refund(reservation_id=lease, amount=50 * A_SECOND), Refunded)
    assert posted(ledger, lease, (0, 10_000)).amount == -10 * A_SECOND
    assert posted(ledger, lease, (0, 10_000)).amount == 0


def test_use_after_the_end_of_a_lease_is_not_charged(ledger: Ledger) -> None:
    """The lease is what was admitted; use beyond it is evidence, not a charge."""
    ledger.grant("acme", 50 * CREDIT)
    lease = settled(ledger, 60_000, s=80)
    assert posted(ledger, lease, (0, 500_000)).amount == 20 * A_SECOND
    found = compare(ledger.reservation(lease), [(0, 500_000)])
    assert (found.measured_ms, found.beyond_ms, found.rest) == (80_000, 420_000, 0)


def test_a_job_never_costs_more_than_its_own_cap(ledger: Ledger) -> None:
    """``max_amount`` bounds corrections as it bounds renewals, however long the lease lasted."""
    ledger.grant("acme", 50 * CREDIT)
    lease = ledger.lease("acme", max_amount=65 * A_SECOND).reservation_id
    ledger.wait(s=50)
    ledger.accept(Beat(lease, 1, 5_000), BeatResult)
    ledger.wait(s=50)
    ledger.accept(Settle(reservation_id=lease, used_ms=10_000), Closed)
    assert posted(ledger, lease, (0, 100_000)).amount == 55 * A_SECOND
    assert ledger.reservation(lease).charged == 65 * A_SECOND


def test_an_active_lease_is_not_compared(ledger: Ledger) -> None:
    """Its heartbeats are still on their way."""
    ledger.grant("acme", 50 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    command = Reconcile(reservation_id=lease, spans=((0, 1_000),))
    assert ledger.reason(command) is Reason.RESERVATION_ACTIVE
    assert ledger.reason(Reconcile(reservation_id=999, spans=())) is Reason.RESERVATION_UNKNOWN


def test_credits_that_expired_since_pay_for_use_of_their_time(ledger: Ledger) -> None:
    """Use from before a grant's end is paid by what the grant then lost, before present credits."""
    ending = ledger.grant("acme", 90 * A_SECOND, expires_at=START + 100 * SECOND).grant_id
    lasting = ledger.grant("acme", 5 * CREDIT).grant_id
    lease = ledger.lease("acme", window_ms=60_000).reservation_id
    ledger.wait(s=50)
    ledger.accept(Beat(lease, 1, 50_000), BeatResult)
    ledger.wait(s=70)  # it lapses at 110 s; 40 seconds of the grant are lost, none is reported
    ledger.accept(Sweep(account_id=1), Swept)
    assert ledger.lot(ending).remaining == 0
    before = ledger.account("acme").available
    found = posted(ledger, lease, (0, 110_000))
    assert found.lots == ((ending, 40 * A_SECOND), (lasting, 20 * A_SECOND))
    kinds = [entry.type for entry in ledger.entries()[-3:]]
    assert kinds == [EntryType.RESTORE, EntryType.ADJUST, EntryType.ADJUST]
    assert ledger.account("acme").available == before - 20 * A_SECOND
    assert ledger.lot(ending).remaining == 0
    assert posted(ledger, lease, (0, 110_000)).amount == 0


def test_expired_credits_pay_only_for_their_own_time(ledger: Ledger) -> None:
    """Use after a grant's end is not paid by it, however much it lost."""
    ledger.grant("acme", 90 * A_SECOND, expires_at=START + 60 * SECOND)
    lasting = ledger.grant("acme", 5 * CREDIT).grant_id
    ledger.wait(s=61)
    lease = settled(ledger, 10_000)
    assert posted(ledger, lease, (0, 40_000)).lots == ((lasting, 30 * A_SECOND),)


def test_use_is_cut_where_an_expired_grant_ended(ledger: Ledger) -> None:
    """Of one interval over the end of a grant, the grant pays for the part before."""
    ending = ledger.grant("acme", 90 * A_SECOND, expires_at=START + 30 * SECOND).grant_id
    lasting = ledger.grant("acme", 5 * CREDIT).grant_id
    lease = ledger.lease("acme", window_ms=60_000).reservation_id
    ledger.wait(s=20)
    ledger.accept(Settle(reservation_id=lease, used_ms=0), Closed)
    ledger.wait(s=60)
    assert posted(ledger, lease, (10_000, 20_000)).lots == ((ending, 10 * A_SECOND),)
    later = ledger.lease("acme", window_ms=60_000).reservation_id
    ledger.wait(s=1)
    ledger.accept(Settle(reservation_id=later, used_ms=0), Closed)
    assert posted(ledger, later, (0, 1_000)).lots == ((lasting, A_SECOND),)


def test_expired_credits_of_a_reversed_payment_pay_for_nothing(ledger: Ledger) -> None:
    """Its money went back, so its credits were never the payer's."""
    payment = ledger.pay("acme", 90 * A_SECOND, expires_at=START + 30 * SECOND)
    lasting = ledger.grant("acme", 5 * CREDIT).grant_id
    lease = ledger.lease("acme", window_ms=60_000).reservation_id
    ledger.wait(s=20)
    ledger.accept(Settle(reservation_id=lease, used_ms=0), Closed)
    ledger.wait(s=60)
    ledger.accept(ReverseTopUp(topup_id=payment.topup.topup_id), ToppedUp)
    assert posted(ledger, lease, (0, 5_000)).lots == ((lasting, 5 * A_SECOND),)


def test_the_house_covers_what_the_payer_lacks(ledger: Ledger) -> None:
    """As for an adjustment: an overrun, collected from the payer's next credits."""
    ledger.grant("acme", 130 * A_SECOND)
    lease = settled(ledger, 60_000, s=110)
    settled(ledger, 65_000, s=65, window_ms=70_000)
    found = posted(ledger, lease, (0, 110_000))
    assert found.amount == 50 * A_SECOND
    assert found.lots[-1] == (OVERRUN, 45 * A_SECOND)


def test_intervals_count_once() -> None:
    """Repeated, overlapping and side by side: the time in which something was measured."""
    nodes = [(0, 10), (5, 20), (5, 20), (30, 40), (40, 41), (7, 7), (9, 3)]
    assert union(nodes) == ((0, 20), (30, 41))
    assert length_ms(union(nodes)) == 31
    assert clipped(union(nodes), 35) == ((0, 20), (30, 35))
    assert clipped(union(nodes), 0) == ()


def test_very_many_intervals_become_few_with_the_same_time() -> None:
    """The latest keep their places, which is where missing use is placed."""
    many = tuple((10 * n, 10 * n + 4) for n in range(100))
    few = condensed(many, 10)
    assert len(few) == 10
    assert length_ms(few) == length_ms(many)
    assert few[1:] == many[-9:]
    assert few[0][1] == many[-10][1]
    assert condensed(many, 100) == many


@pytest.mark.parametrize(
    ("drift", "alarms"), [(49_999, False), (50_000, True), (-50_000, True), (-49_999, False)]
)
def test_an_alarm_is_raised_at_its_threshold(drift: int, alarms: bool) -> None:
    """Five per cent of a bill of one credit, in either direction."""
    policy = ReconcilePolicy(alarm_percent=5, alarm_floor=1)
    assert is_alarming(drift, CREDIT, policy) is alarms


def test_an_alarm_needs_both_thresholds() -> None:
    """A large part of nothing is nothing, and no drift is never an alarm."""
    assert not is_alarming(999_999, CREDIT, ReconcilePolicy())
    assert is_alarming(CREDIT, 20 * CREDIT, ReconcilePolicy())
    assert not is_alarming(CREDIT, 21 * CREDIT, ReconcilePolicy())
    assert not is_alarming(0, 0, ReconcilePolicy(alarm_percent=0, alarm_floor=0))


def test_a_difference_within_the_tolerance_is_noise() -> None:
    """Clocks of heartbeats and meters differ by moments."""
    found = Comparison(60_000, 61_000, 0, 600_000, 610_000, 0)
    assert is_noise(found, ReconcilePolicy())
    assert not is_noise(found, ReconcilePolicy(tolerance_ms=999))


def test_the_nearest_policy_governs() -> None:
    """An account's own, else that of the nearest account above it, else the default."""
    post, off = ReconcilePolicy(Mode.POST), ReconcilePolicy(Mode.OFF)
    policies = {"acme": post, "acme/vision": off}
    assert governing("acme/vision/alice", policies) is off
    assert governing("acme/nlp", policies) is post
    assert governing("globex", policies).mode is Mode.REPORT
