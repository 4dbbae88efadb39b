"""What becomes of a job that can no longer be renewed in full: as was agreed at its admission."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import Reserve, SetQuota, Settle, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved, Closed, QuotaSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Exhaustion, ReservationState
from support.books.ledger import CREDIT, Ledger

A_WINDOW = 1_200_000
STOP, DRAIN, FINISH = Exhaustion.STOP, Exhaustion.DRAIN, Exhaustion.FINISH


def beat(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """A heartbeat that is answered."""
    return ledger.accept(Beat(lease, seq, used_ms), BeatResult)


def allow_overdraft(ledger: Ledger, amount: int) -> None:
    """Let jobs of the org overdraw."""
    ledger.accept(UpdateAccount(path="acme", overdraft_limit=amount), AccountSaved)


def test_stop_ends_the_lease_at_once_and_returns_its_hold(ledger: Ledger) -> None:
    """The first renewal that cannot be funded in full is the end, with the rest given back."""
    ledger.grant("acme", A_WINDOW + 100_000)
    lease = ledger.lease("acme", exhaustion=STOP).reservation_id
    ledger.wait(s=10)
    assert beat(ledger, lease, 1, 10_000).decision == "continue"
    ledger.wait(s=1)
    answer = beat(ledger, lease, 2, 11_000)
    assert (answer.decision, answer.reason) == ("stop", "insufficient_credits")
    assert (answer.settled, answer.held, answer.expires_in_ms) == (110_000, 0, 0)
    account = ledger.account("acme")
    assert (account.available, account.reserved) == (A_WINDOW - 10_000, 0)
    assert ledger.reservation(lease).state is ReservationState.EXPIRED


def test_drain_signals_a_grace_before_the_kill(ledger: Ledger) -> None:
    """The deadline is where the last credit runs out; the signal comes one grace earlier."""
    ledger.grant("acme", A_WINDOW + 100_000)
    lease = ledger.lease("acme", grace_ms=30_000).reservation_id
    ledger.wait(s=20)
    answer = beat(ledger, lease, 1, 20_000)
    assert (answer.decision, answer.expires_in_ms, answer.signal_in_ms) == (
        "drain",
        110_000,
        80_000,
    )
    ledger.wait(s=90)
    answer = beat(ledger, lease, 2, 110_000)
    assert (answer.decision, answer.expires_in_ms, answer.signal_in_ms) == ("drain", 20_000, 0)


def test_a_grace_is_at_most_a_window(ledger: Ledger) -> None:
    """A longer grace than the lease itself makes no sense and is cut."""
    ledger.grant("acme", 10 * A_WINDOW)
    assert ledger.lease("acme", grace_ms=10**9).grace_ms == 120_000


def test_finish_runs_on_a_bounded_overdraft(ledger: Ledger) -> None:
    """Out of credits the job goes on, told why; the house covers it, up to what was pinned."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    lease = ledger.lease("acme", exhaustion=FINISH, overdraft=CREDIT).reservation_id
    ledger.wait(s=60)
    answer = beat(ledger, lease, 1, 60_000)
    assert (answer.decision, answer.reason) == ("continue", "overdraft")
    assert (answer.held, answer.expires_in_ms) == (600_000, 120_000)
    ledger.wait(s=100)
    answer = beat(ledger, lease, 2, 160_000)
    assert (answer.decision, answer.reason) == ("drain", "insufficient_credits")
    assert (answer.settled, answer.held, answer.expires_in_ms) == (1_600_000, 0, 60_000)
    assert ledger.account("acme").overrun == 400_000
    ledger.wait(s=60)
    answer = beat(ledger, lease, 3, 220_000)
    assert (answer.decision, answer.settled) == ("stop", 2_200_000)
    account = ledger.account("acme")
    assert (account.overrun, account.available) == (CREDIT, 0)


def test_an_overdraft_is_collected_from_later_credits(ledger: Ledger) -> None:
    """What the house covered comes out of the next grant, and the overdraft is not used twice."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    lease = ledger.lease("acme", exhaustion=FINISH, overdraft=CREDIT).reservation_id
    ledger.wait(s=100)
    beat(ledger, lease, 1, 100_000)
    ledger.wait(s=60)
    beat(ledger, lease, 2, 160_000)
    ledger.accept(Settle(reservation_id=lease), Closed)
    ledger.grant("acme", 10 * CREDIT)
    account = ledger.account("acme")
    assert (account.overrun, account.available) == (0, 10 * CREDIT - 400_000)


def test_a_small_overdraft_lets_a_job_shut_down_cleanly(ledger: Ledger) -> None:
    """A draining job gets no more of its overdraft than its grace costs, after the last credit."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, 10 * CREDIT)
    lease = ledger.lease("acme", grace_ms=15_000, overdraft=10 * CREDIT).reservation_id
    ledger.wait(s=60)
    answer = beat(ledger, lease, 1, 60_000)
    assert (answer.decision, answer.expires_in_ms, answer.signal_in_ms) == ("drain", 75_000, 60_000)
    ledger.wait(ms=74_000)
    beat(ledger, lease, 2, 134_000)
    assert ledger.account("acme").overrun == 140_000


def test_a_grace_does_not_begin_anew_with_every_beat(ledger: Ledger) -> None:
    """However often a draining job reports, its kill stays one grace after its last credit."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, 10 * CREDIT)
    lease = ledger.lease("acme", grace_ms=30_000, overdraft=10 * CREDIT).reservation_id
    for seq, used_s in enumerate(range(60, 150, 10), start=1):
        ledger.wait(s=60 if seq == 1 else 10)
        answer = beat(ledger, lease, seq, used_s * 1_000)
        assert answer.expires_in_ms == (150 - used_s) * 1_000
    ledger.wait(s=10)
    assert beat(ledger, lease, 99, 150_000).decision == "stop"
    assert ledger.account("acme").overrun <= 300_000


def test_overdrafts_of_all_jobs_share_the_payers_limit(ledger: Ledger) -> None:
    """What one job was promised of the payer's overdraft is not promised to another."""
    ledger.grant("acme", 2 * A_WINDOW)
    allow_overdraft(ledger, 500_000)
    first, second = (
        ledger.lease("acme", exhaustion=FINISH, overdraft=500_000).reservation_id for _ in range(2)
    )
    ledger.wait(ms=119_000)
    assert beat(ledger, first, 1, 119_000).expires_in_ms == 51_000
    assert ledger.account("acme").promised == 500_000
    ledger.wait(ms=500)
    answer = beat(ledger, second, 1, 119_500)
    assert (answer.decision, answer.expires_in_ms) == ("drain", 500)
    ledger.wait(ms=50_000)
    last = beat(ledger, second, 2, 169_500)
    assert (last.decision, last.settled) == ("stop", A_WINDOW), "its last half a second is paid"
    assert beat(ledger, first, 2, 169_500).expires_in_ms == 500
    account = ledger.account("acme")
    assert (account.overrun, account.promised) == (495_000, 5_000)


def test_many_jobs_overdraw_no_more_than_one(ledger: Ledger) -> None:
    """However many jobs run on an overdraft, the house covers the payer's limit and no more."""
    ledger.grant("acme", 5 * A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    leases = [
        ledger.lease("acme", exhaustion=FINISH, overdraft=CREDIT).reservation_id for _ in range(5)
    ]
    for seq, used_s in enumerate((60, 118, 170, 215, 218), start=1):
        ledger.wait(s=used_s - (0, 60, 118, 170, 215)[seq - 1])
        for lease in leases:
            if ledger.reservation(lease).state is ReservationState.ACTIVE:
                beat(ledger, lease, seq, used_s * 1_000)
        account = ledger.account("acme")
        assert account.overrun + account.promised <= CREDIT
    assert ledger.account("acme").overrun > CREDIT // 2, "it is used all the same"


@pytest.mark.parametrize("ending", ["settled", "lapsed", "funded", "suspended", "stopped"])
def test_a_promise_that_is_not_needed_is_free_for_others(ledger: Ledger, ending: str) -> None:
    """A job that ends, or gets credits after all, leaves the payer's overdraft as it found it."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    lease = ledger.lease("acme", exhaustion=FINISH, overdraft=CREDIT).reservation_id
    ledger.wait(s=60)
    beat(ledger, lease, 1, 60_000)
    assert (ledger.account("acme").promised, ledger.reservation(lease).promised) == (600_000,) * 2
    match ending:
        case "settled":
            ledger.accept(Settle(reservation_id=lease), Closed)
        case "lapsed":
            ledger.wait(s=120)
        case "funded":
            ledger.grant("acme", 10 * A_WINDOW)
            beat(ledger, lease, 2, 60_000 + 1)
        case "suspended":
            ledger.accept(UpdateAccount(path="acme", status=Status.SUSPENDED), AccountSaved)
            beat(ledger, lease, 2, 60_000)
        case _:
            ledger.accept(UpdateAccount(path="acme", overdraft_limit=0), AccountSaved)
            ledger.wait(s=60)
            assert beat(ledger, lease, 2, 120_000).decision == "stop"
    assert (ledger.account("acme").promised, ledger.reservation(lease).promised) == (0, 0)


def test_an_overdraft_that_was_not_allowed_is_refused(ledger: Ledger) -> None:
    """Only what an operator allowed the payer can be pinned."""
    ledger.grant("acme", A_WINDOW)
    ask = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000, overdraft=1)
    assert ledger.reason(ask) is Reason.OVERDRAFT_TOO_LARGE
    allow_overdraft(ledger, 1)
    ledger.lease("acme", overdraft=1)


@pytest.mark.parametrize(
    ("policy", "decision"), [(STOP, "stop"), (DRAIN, "drain"), (FINISH, "drain")]
)
def test_a_full_quota_follows_the_policy_but_never_the_overdraft(
    ledger: Ledger, policy: Exhaustion, decision: str
) -> None:
    """A quota is no matter of credits: an overdraft does not buy a way past it."""
    ledger.grant("acme", 100 * A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    command = SetQuota(
        account="acme",
        dimension=Dimension.CREDITS_PER_WINDOW,
        limit=A_WINDOW,
        calendar=Calendar.DAY,
    )
    ledger.accept(command, QuotaSaved)
    lease = ledger.lease("acme", exhaustion=policy, overdraft=CREDIT).reservation_id
    ledger.wait(s=60)
    answer = beat(ledger, lease, 1, 60_000)
    assert (answer.decision, answer.reason) == (decision, "quota_exceeded")
    assert answer.expires_in_ms == (60_000 if decision == "drain" else 0)


def daily(ledger: Ledger, limit: int) -> int:
    """Set a quota on the org's credits of a day; its id."""
    dimension = Dimension.CREDITS_PER_WINDOW
    command = SetQuota(account="acme", dimension=dimension, limit=limit, calendar=Calendar.DAY)
    return ledger.accept(command, QuotaSaved).quota.quota_id


def test_overdrafts_of_many_jobs_stay_within_a_window(ledger: Ledger) -> None:
    """What was promised to one job has its place in the window, and is not there for another."""
    ledger.grant("acme", 2 * A_WINDOW)
    allow_overdraft(ledger, 100 * CREDIT)
    quota = daily(ledger, 3_400_000)
    first, second = (
        ledger.lease("acme", exhaustion=FINISH, overdraft=5 * CREDIT).reservation_id
        for _ in range(2)
    )
    ledger.wait(s=119)
    assert beat(ledger, first, 1, 119_000).expires_in_ms == 101_000
    assert ledger.stored.limits.counters[quota].held == 2_210_000
    answer = beat(ledger, second, 1, 119_000)
    assert (answer.decision, answer.expires_in_ms) == ("drain", 1_000)
    ledger.wait(s=95)
    assert beat(ledger, second, 2, 214_000).decision == "stop"
    assert beat(ledger, first, 2, 214_000).decision == "continue"
    counter = ledger.stored.limits.counters[quota]
    assert counter.used + counter.held <= 3_400_000
    assert counter.used == A_WINDOW + 2_140_000


@pytest.mark.parametrize("ending", ["settled", "lapsed", "funded"])
def test_a_window_has_room_again_for_what_was_only_promised(ledger: Ledger, ending: str) -> None:
    """A promise that lapsed is no longer held in the window, and what was used of it counts."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    quota = daily(ledger, 10 * A_WINDOW)
    lease = ledger.lease("acme", exhaustion=FINISH, overdraft=CREDIT).reservation_id
    ledger.wait(s=60)
    beat(ledger, lease, 1, 60_000)
    assert ledger.stored.limits.counters[quota].held == A_WINDOW
    ledger.wait(s=80)
    match ending:
        case "settled":
            ledger.accept(Settle(reservation_id=lease, used_ms=140_000), Closed)
        case "lapsed":
            beat(ledger, lease, 2, 140_000)
            ledger.wait(s=120)
        case _:
            ledger.grant("acme", 10 * A_WINDOW)
            beat(ledger, lease, 2, 140_000)
    counter = ledger.view().limits.counters[quota]
    held = A_WINDOW if ending == "funded" else 0
    assert (counter.used, counter.held) == (1_400_000, held)


def test_a_new_window_counts_what_was_promised(ledger: Ledger) -> None:
    """A quota that is set while a job runs on its overdraft knows of it."""
    ledger.grant("acme", A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    lease = ledger.lease("acme", exhaustion=FINISH, overdraft=CREDIT).reservation_id
    ledger.wait(s=60)
    beat(ledger, lease, 1, 60_000)
    quota = daily(ledger, 10 * A_WINDOW)
    assert ledger.stored.limits.counters[quota].held == A_WINDOW


@pytest.mark.parametrize("policy", Exhaustion)
def test_suspension_drains_whatever_was_agreed(ledger: Ledger, policy: Exhaustion) -> None:
    """A suspended account drains what runs: no policy and no overdraft changes that."""
    ledger.grant("acme", 100 * A_WINDOW)
    allow_overdraft(ledger, CREDIT)
    terms = {"exhaustion": policy, "overdraft": CREDIT, "grace_ms": 120_000}
    lease = ledger.lease("acme", **terms).reservation_id
    ledger.accept(UpdateAccount(path="acme", status=Status.SUSPENDED), AccountSaved)
    ledger.wait(s=20)
    answer = beat(ledger, lease, 1, 20_000)
    assert (answer.decision, answer.reason) == ("drain", "account_suspended")
    assert answer.expires_in_ms == 100_000


def test_stop_applies_to_the_jobs_own_cap(ledger: Ledger) -> None:
    """A job that reaches its cap under stop ends as soon as a renewal is not full."""
    ledger.grant("acme", 100 * A_WINDOW)
    lease = ledger.lease("acme", exhaustion=STOP, max_amount=A_WINDOW + 50_000).reservation_id
    ledger.wait(s=10)
    answer = beat(ledger, lease, 1, 10_000)
    assert (answer.decision, answer.reason) == ("stop", "max_amount")
