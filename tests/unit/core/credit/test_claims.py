"""Credits of grants that have ended: who may still take them, until when, and what expires."""

from __future__ import annotations

from gpucredits.core.account import Model
from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    Adjust,
    Cancel,
    Explain,
    Reserve,
    ReverseTopUp,
    SetBudget,
    Settle,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import GrantState
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Adjusted, BudgetSaved, Closed, Explained, ToppedUp
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Decision, Exhaustion, ReservationState
from support.books.claims import check_claims
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_SECOND = 10_000  # what one h100 costs
A_WINDOW = 120 * A_SECOND


def test_what_nobody_can_have_used_expires_at_once(ledger: Ledger) -> None:
    """At its end a grant keeps what leases may have used and not reported, not a credit more."""
    ending = ledger.grant("acme", 2 * CREDIT, expires_at=START + 60 * SECOND).grant_id
    ledger.grant("acme", 10 * CREDIT)
    first = ledger.lease("acme").reservation_id
    second = ledger.lease("acme").reservation_id
    ledger.wait(s=50)
    ledger.accept(Beat(second, 1, 50_000), BeatResult)
    ledger.wait(s=10)
    assert ledger.lot(ending).remaining == 70 * A_SECOND
    assert ledger.reservation(first).kept == ((ending, 60 * A_SECOND, START + 60 * SECOND),)
    assert ledger.reservation(second).kept == ((ending, 10 * A_SECOND, START + 60 * SECOND),)
    ledger.accept(Beat(first, 1, 0), BeatResult)
    assert ledger.lot(ending).remaining == 10 * A_SECOND
    check_claims(ledger.view())


def test_a_grant_that_would_not_have_paid_keeps_nothing(ledger: Ledger) -> None:
    """What comes later in the order than enough others expires whole at its end."""
    ending = ledger.grant("acme", CREDIT, expires_at=START + 60 * SECOND, priority=500).grant_id
    ledger.grant("acme", 10 * CREDIT, priority=1)
    ledger.lease("acme")
    ledger.wait(s=60)
    assert ledger.lot(ending).state is GrantState.ENDED


def test_a_lease_that_uses_nothing_keeps_ended_credits_to_its_present_end(ledger: Ledger) -> None:
    """Expired credits that back a hold fund no renewal: the lease drains, and is gone with them."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme").reservation_id
    for seq, at in enumerate((70, 90, 110), start=1):
        ledger.now = START + at * SECOND
        told = ledger.accept(Beat(lease, seq, 0), BeatResult)
        assert (told.decision, told.reason) == (Decision.DRAIN, "insufficient_credits")
        assert told.expires_in_ms == (120 - at) * 1_000
        assert ledger.lot(ending).remaining == told.held == (120 - at) * A_SECOND
    ledger.now = START + 120 * SECOND
    assert ledger.reservation(lease).state is ReservationState.EXPIRED
    assert ledger.lot(ending).remaining == ledger.account("acme").remaining == 0


def test_a_running_lease_uses_what_was_kept_up_to_its_present_end(ledger: Ledger) -> None:
    """A hold that only an ended grant backs is paid by it, and the lease goes no further."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=100)
    told = ledger.accept(Beat(lease, 1, 100_000), BeatResult)
    assert (told.decision, told.expires_in_ms) == (Decision.DRAIN, 20_000)
    ledger.wait(us=20 * SECOND - 1)
    ledger.accept(Settle(reservation_id=lease, used_ms=119_999), Closed)
    assert ledger.reservation(lease).paid == ((ending, 119_999 * 10),)
    assert ledger.account("acme").available == 0


def test_active_credits_take_over_at_the_next_renewal(ledger: Ledger) -> None:
    """Where they fund the whole window, what was kept for the hold expires with the report."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=80)
    fresh = ledger.grant("acme", A_WINDOW).grant_id
    ledger.wait(s=10)
    told = ledger.accept(Beat(lease, 1, 90_000), BeatResult)
    assert (told.decision, told.held) == (Decision.CONTINUE, A_WINDOW)
    assert ledger.reservation(lease).paid == ((ending, 90 * A_SECOND),)
    assert (ledger.lot(ending).remaining, ledger.lot(fresh).remaining) == (0, A_WINDOW)
    expired = [e.amount for e in ledger.entries() if e.type is EntryType.EXPIRE]
    assert expired == [30 * A_SECOND]


def test_some_active_credits_carry_a_lease_beyond_what_was_kept(ledger: Ledger) -> None:
    """The hold is what is claimable until the old end and the active credits; it ends with both."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=80)
    ledger.grant("acme", 50 * A_SECOND)
    ledger.wait(s=10)
    told = ledger.accept(Beat(lease, 1, 90_000), BeatResult)
    assert (told.decision, told.expires_in_ms) == (Decision.DRAIN, 80_000)
    ledger.wait(s=60)
    told = ledger.accept(Beat(lease, 2, 90_000), BeatResult)
    assert (told.held, told.expires_in_ms) == (50 * A_SECOND, 50_000)
    assert ledger.lot(ending).remaining == 0


def test_nobody_else_takes_what_is_held_over(ledger: Ledger) -> None:
    """New holds, transfers, adjustments and other leases count on active credits alone."""
    ending = ledger.grant("acme", 2 * A_WINDOW, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme", milli_gpus=2_000).reservation_id
    ledger.wait(s=60)
    other = ledger.grant("acme", A_WINDOW).grant_id
    ask = Reserve(account="acme", job_id="job", gpu_type="h100", milli_gpus=1_000)
    assert ledger.accept(Explain(reserve=ask), Explained).lots == ((other, A_WINDOW),)
    late = ledger.lease("acme").reservation_id
    assert ledger.reason(ask) is Reason.INSUFFICIENT_CREDITS
    move = Transfer(source="acme", target="acme/vision", amount=1)
    assert ledger.reason(move) is Reason.INSUFFICIENT_CREDITS
    told = ledger.accept(Adjust(reservation_id=lease, amount=1), Adjusted)
    assert told.lots == ((-1, 1),)
    ledger.wait(s=10)
    ledger.accept(Beat(late, 1, 10_000), BeatResult)
    assert ledger.reservation(late).paid == ((other, 10 * A_SECOND),)
    assert ledger.lot(ending).remaining == 2 * A_WINDOW


def test_a_postpaid_account_owes_rather_than_take_what_is_kept_for_another(
    ledger: Ledger,
) -> None:
    """Use after a grant's end is a debt although the grant still holds something."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=10 * CREDIT)
    ending = ledger.grant("acme/post", A_WINDOW, expires_at=START + 60 * SECOND).grant_id
    first = ledger.lease("acme/post").reservation_id
    ledger.wait(s=61)
    second = ledger.lease("acme/post").reservation_id
    ledger.wait(s=10)
    ledger.accept(Beat(second, 1, 10_000), BeatResult)
    assert ledger.account("acme/post").debt == 10 * A_SECOND
    ledger.accept(Cancel(reservation_id=first), Closed)
    assert ledger.lot(ending).remaining == 0
    assert ledger.account("acme/post").debt == 10 * A_SECOND


def test_what_a_budget_may_have_paid_does_not_roll_over(ledger: Ledger) -> None:
    """The rest rolls over; what turns out not to have been used expires."""
    budget = SetBudget(
        account="acme",
        name="b",
        allowance=CREDIT * 2,
        ends_at=START + 60 * SECOND,
        rollover=Rollover.ALL,
        rollover_us=3_600 * SECOND,
    )
    ledger.accept(budget, BudgetSaved)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=70)
    told = ledger.accept(Beat(lease, 1, 35_000), BeatResult)
    assert told.decision is Decision.CONTINUE
    [first, rolled] = ledger.stored.lots.values()
    assert rolled.amount == 2 * CREDIT - 60 * A_SECOND
    assert ledger.reservation(lease).paid == (
        (first.grant_id, 30 * A_SECOND),
        (rolled.grant_id, 5 * A_SECOND),
    )
    expired = [e.amount for e in ledger.entries() if e.type is EntryType.EXPIRE]
    assert expired == [30 * A_SECOND]


def test_a_reversed_payment_leaves_what_leases_claim_of_it(ledger: Ledger) -> None:
    """What is kept of an ended grant pays for unreported use, the payment reversed or not."""
    paid = ledger.pay("acme", A_WINDOW, expires_at=START + 60 * SECOND)
    lasting = ledger.grant("acme", 3 * A_WINDOW).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=90)
    ledger.accept(ReverseTopUp(topup_id=paid.topup.topup_id), ToppedUp)
    check_claims(ledger.view())
    ledger.accept(Beat(lease, 1, 90_000), BeatResult)
    assert paid.grant is not None
    assert ledger.reservation(lease).paid == (
        (paid.grant.grant_id, 60 * A_SECOND),
        (lasting, 30 * A_SECOND),
    )


def test_a_suspended_lease_drains_on_what_was_kept(ledger: Ledger) -> None:
    """It goes no further than it could, with the credits that were kept for it."""
    ledger.grant("acme", A_WINDOW, expires_at=START + 60 * SECOND)
    lease = ledger.lease("acme", grace_ms=120_000).reservation_id
    ledger.wait(s=70)
    ledger.do(UpdateAccount(path="acme", delinquent=True))
    told = ledger.accept(Beat(lease, 1, 70_000), BeatResult)
    assert (told.decision, told.expires_in_ms, told.held) == (Decision.DRAIN, 50_000, 50 * A_SECOND)
    check_claims(ledger.view())


def test_a_job_that_may_overdraw_goes_on_when_kept_credits_end(ledger: Ledger) -> None:
    """What is kept pays first; the overdraft that was agreed carries the job on from there."""
    ledger.do(UpdateAccount(path="acme", overdraft_limit=5 * CREDIT))
    ledger.grant("acme", A_WINDOW, expires_at=START + 60 * SECOND)
    terms = {"exhaustion": Exhaustion.FINISH, "overdraft": 5 * CREDIT}
    lease = ledger.lease("acme", **terms).reservation_id
    for seq, at in enumerate((80, 160), start=1):
        ledger.now = START + at * SECOND
        told = ledger.accept(Beat(lease, seq, at * 1_000), BeatResult)
        assert (told.decision, told.reason) == (Decision.CONTINUE, "overdraft")
    check_claims(ledger.view())
