"""Rate limits: what a lease authorises is drawn from buckets on its way, and throttles it there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpucredits.core.command import (
    AddBoost,
    Cancel,
    EndBoost,
    EndRateLimit,
    SetQuota,
    Settle,
    UpdateAccount,
)
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import (
    AccountSaved,
    Boosted,
    Closed,
    QuotaSaved,
    RateLimitSaved,
)
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Kind, Reason, kind_of
from gpucredits.core.reservation import Exhaustion
from support.books.asking import ALICE, SLOW, alone, ask, left, limit
from support.books.ledger import CREDIT, SECOND, START, Ledger

SCOPES = ["acme", "acme/vision", ALICE]
A_WINDOW = 1_200_000


@pytest.fixture(autouse=True)
def plenty(ledger: Ledger) -> None:
    """Credits are never what is missing here."""
    ledger.grant("acme", 1_000_000 * CREDIT)


def beat(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """A heartbeat that is answered."""
    return ledger.accept(Beat(lease, seq, used_ms), BeatResult)


@pytest.mark.parametrize("scope", SCOPES)
def test_an_empty_bucket_refuses_at_every_scope(ledger: Ledger, scope: str) -> None:
    """The first hold is drawn; a second that finds too little is told when there will be enough."""
    limit(ledger, scope, 10 * A_WINDOW + 200_000)
    ledger.lease(ALICE, window_ms=1_200_000)
    refused = ledger.refuse(ask())
    assert (refused.reason, kind_of(refused.reason)) == (Reason.RATE_LIMITED, Kind.THROTTLED)
    assert refused.detail["clears_at"] == START + 1_000 * SECOND
    assert refused.message == (
        f"{scope} is spending too fast: 0.2 of the 12.2 credits that its rate limit lets it draw "
        "at once are there, and 1.2 are needed. It would clear at 2025-06-15 15:23:20 UTC."
    )
    ledger.now = START + 1_000 * SECOND - 1
    ledger.refuse(ask())
    ledger.wait(us=1)
    ledger.lease(ALICE)


def test_a_request_above_the_capacity_never_clears(ledger: Ledger) -> None:
    """Waiting does not help a request that the bucket could never hold, and it is told so."""
    limit(ledger, "acme", A_WINDOW - 1)
    refused = ledger.refuse(ask())
    assert "clears_at" not in refused.detail
    assert refused.message.endswith("It never clears: the request alone is over the limit.")


def test_a_renewal_draws_its_next_slice(ledger: Ledger) -> None:
    """In steady running each beat draws exactly what it settles."""
    limit(ledger, "acme", 10 * CREDIT, refill=0)
    lease = ledger.lease(ALICE).reservation_id
    for seq in range(1, 6):
        ledger.wait(s=20)
        assert beat(ledger, lease, seq, seq * 20_000).decision == "continue"
        assert left(ledger) == 10 * CREDIT - A_WINDOW - seq * 200_000


@pytest.mark.parametrize("end", ["settle", "cancel", "lapse"])
def test_what_was_not_used_goes_back(ledger: Ledger, end: str) -> None:
    """Over a lease's life the bucket has paid exactly for what was settled."""
    limit(ledger, "acme", 10 * CREDIT, refill=0)
    lease = ledger.lease(ALICE).reservation_id
    used = 0
    if end == "cancel":
        ledger.accept(Cancel(reservation_id=lease), Closed)
    else:
        ledger.wait(s=30)
        beat(ledger, lease, 1, 30_000)
        used = 300_000
        if end == "settle":
            ledger.accept(Settle(reservation_id=lease), Closed)
        else:
            ledger.wait(s=120)
            assert beat(ledger, lease, 2, 60_000).decision == "stop"
            used = 600_000
    assert left(ledger) == 10 * CREDIT - used


def test_a_renewal_without_tokens_is_throttled_and_keeps_its_hold(ledger: Ledger) -> None:
    """The answer is throttle: what it holds stays, and how soon it could go on is told."""
    limit(ledger, "acme", A_WINDOW, refill=SLOW)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=20)
    answer = beat(ledger, lease, 1, 20_000)
    assert (answer.decision, answer.reason) == ("throttle", "rate_limited")
    assert (answer.held, answer.expires_in_ms) == (A_WINDOW - 200_000 + 20_000, 102_000)
    assert answer.clears_in_ms == 180_000, "180,000 of 200,000 are missing, at 1,000 a second"
    assert left(ledger) == 0


def test_a_throttled_job_that_pauses_keeps_its_lease_and_goes_on(ledger: Ledger) -> None:
    """Pausing uses nothing, so the lease lives on; with tokens it is renewed in full again."""
    limit(ledger, "acme", A_WINDOW, refill=SLOW)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=20)
    beat(ledger, lease, 1, 20_000)
    for seq in range(2, 8):
        ledger.wait(s=30)
        answer = beat(ledger, lease, seq, 20_000)
    assert (answer.decision, answer.held, answer.expires_in_ms) == ("continue", A_WINDOW, 120_000)


def test_a_throttled_job_that_does_not_slow_down_ends(ledger: Ledger) -> None:
    """Ignoring throttle uses up the hold; then the answer is stop, for the same reason."""
    limit(ledger, "acme", A_WINDOW, refill=0)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=60)
    assert beat(ledger, lease, 1, 30_000).expires_in_ms == 90_000
    ledger.wait(s=60)
    answer = beat(ledger, lease, 2, 120_000)
    assert (answer.decision, answer.reason) == ("stop", "rate_limited")
    assert answer.settled == A_WINDOW


def test_what_goes_back_spills_before_the_next_draw(ledger: Ledger) -> None:
    """A refund into a full bucket is gone, even for a draw at the very same instant."""
    limit(ledger, "acme", 10 * CREDIT, refill=SLOW * 100)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=60)
    assert left(ledger) == 10 * CREDIT
    ledger.accept(Cancel(reservation_id=lease), Closed)
    ledger.lease(ALICE)
    assert left(ledger) == 10 * CREDIT - A_WINDOW


def test_a_charge_beyond_the_tokens_is_owed(ledger: Ledger) -> None:
    """Charges are never refused: a settle beyond its hold takes the bucket below zero."""
    limit(ledger, "acme", A_WINDOW, refill=0)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=60)
    assert beat(ledger, lease, 1, 0).expires_in_ms == 120_000
    ledger.wait(s=61)
    ledger.accept(Settle(reservation_id=lease, used_ms=121_000), Closed)
    assert left(ledger) == -10_000


def test_credits_running_out_are_told_before_the_rate(ledger: Ledger) -> None:
    """Where both are short the job drains: slowing down would not save it."""
    alone(ledger)
    ledger.grant(ALICE, A_WINDOW)
    limit(ledger, "acme", A_WINDOW, refill=0)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=20)
    answer = beat(ledger, lease, 1, 20_000)
    assert (answer.decision, answer.reason) == ("drain", "insufficient_credits")


def short_of_credits(ledger: Ledger) -> dict[str, object]:
    """Alice pays herself, for a window and most of another."""
    alone(ledger)
    ledger.grant(ALICE, 2 * A_WINDOW - 300_000)
    return {}


def short_of_its_cap(_: Ledger) -> dict[str, object]:
    """The job may cost a window and most of another."""
    return {"max_amount": 2 * A_WINDOW - 300_000}


def short_of_its_window(ledger: Ledger) -> dict[str, object]:
    """So much may be spent in a day."""
    window = {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.DAY}
    limited = SetQuota(account=ALICE, limit=2 * A_WINDOW - 300_000, **window)  # type: ignore[arg-type]
    ledger.accept(limited, QuotaSaved)
    return {}


def on_its_overdraft(ledger: Ledger) -> dict[str, object]:
    """Alice pays herself, for one window; the house would pay for more."""
    alone(ledger)
    ledger.grant(ALICE, A_WINDOW)
    allowed = UpdateAccount(path=ALICE, overdraft_limit=10 * CREDIT)
    ledger.accept(allowed, AccountSaved)
    return {"exhaustion": Exhaustion.FINISH, "overdraft": 10 * CREDIT}


SHORT = [short_of_credits, short_of_its_cap, short_of_its_window, on_its_overdraft]


@pytest.mark.parametrize("prepare", SHORT)
def test_a_job_that_is_short_otherwise_draws_tokens_all_the_same(
    ledger: Ledger, prepare: Callable[[Ledger], dict[str, object]]
) -> None:
    """Whatever else is running out, nothing is authorised for which there is no token."""
    terms = prepare(ledger)
    limit(ledger, "acme", A_WINDOW, refill=0)
    lease = ledger.lease(ALICE, **terms).reservation_id
    for seq, used_ms in enumerate((60_000, 110_000), start=1):
        ledger.wait(ms=used_ms if seq == 1 else 50_000)
        answer = beat(ledger, lease, seq, used_ms)
        assert (answer.decision, answer.reason) == ("throttle", "rate_limited")
        assert answer.expires_in_ms == 120_000 - used_ms
        assert left(ledger) == 0
    ledger.wait(s=10)
    assert beat(ledger, lease, 3, 120_000).decision == "stop"
    assert left(ledger) == 0


@pytest.mark.parametrize("prepare", SHORT)
def test_a_throttled_job_that_is_short_otherwise_goes_on_with_tokens(
    ledger: Ledger, prepare: Callable[[Ledger], dict[str, object]]
) -> None:
    """Tokens that come let it run to where the rest ends, and are drawn for all of that."""
    terms = prepare(ledger)
    limit(ledger, "acme", 2 * A_WINDOW, refill=SLOW)
    held = ledger.lease("acme", milli_gpus=1_000).reservation_id
    lease = ledger.lease(ALICE, **terms).reservation_id
    ledger.wait(s=115)
    told = beat(ledger, lease, 1, 115_000)
    assert told.decision == "throttle"
    assert told.clears_in_ms > 0
    ledger.accept(Settle(reservation_id=held), Closed)
    before = left(ledger)
    answer = beat(ledger, lease, 2, 115_000)
    on_overdraft = prepare is on_its_overdraft
    assert answer.decision == ("continue" if on_overdraft else "drain")
    assert answer.expires_in_ms == (120_000 if on_overdraft else 95_000)
    ahead = answer.expires_in_ms * 10 - told.expires_in_ms * 10
    assert before - left(ledger) == ahead


def test_a_promised_overdraft_is_drawn_and_goes_back(ledger: Ledger) -> None:
    """Tokens for what a job may overdraw are its own until it ends; then they go back."""
    terms = on_its_overdraft(ledger)
    limit(ledger, "acme", A_WINDOW + 600_000, refill=0)
    lease = ledger.lease(ALICE, **terms).reservation_id
    ledger.wait(s=60)
    assert beat(ledger, lease, 1, 60_000).reason == "overdraft"
    assert left(ledger) == 0
    ledger.wait(s=40)
    answer = beat(ledger, lease, 2, 100_000)
    assert (answer.decision, answer.held, answer.expires_in_ms) == ("throttle", 200_000, 80_000)
    assert left(ledger) == 0
    ledger.accept(Settle(reservation_id=lease), Closed)
    assert left(ledger) == 800_000


def test_stop_does_not_wait_for_tokens(ledger: Ledger) -> None:
    """A job that was to end when credits run out ends, whether or not there are tokens."""
    alone(ledger)
    ledger.grant(ALICE, 2 * A_WINDOW - 300_000)
    limit(ledger, "acme", A_WINDOW, refill=0)
    lease = ledger.lease(ALICE, exhaustion=Exhaustion.STOP).reservation_id
    ledger.wait(s=115)
    answer = beat(ledger, lease, 1, 115_000)
    assert (answer.decision, answer.reason) == ("stop", "insufficient_credits")
    assert left(ledger) == 50_000


def test_changed_terms_keep_the_tokens(ledger: Ledger) -> None:
    """Setting a limit again is no fresh bucket."""
    bucket = limit(ledger, "acme", 2 * A_WINDOW, refill=0)
    ledger.lease(ALICE)
    assert limit(ledger, "acme", 3 * A_WINDOW, refill=0) == bucket
    assert left(ledger) == A_WINDOW
    assert limit(ledger, "acme", 1_000, refill=0) == bucket
    assert left(ledger) == 1_000
    ledger.accept(EndRateLimit(account="acme"), RateLimitSaved)
    assert ledger.reason(EndRateLimit(account="acme")) is Reason.LIMIT_UNKNOWN
    ledger.lease(ALICE, milli_gpus=50_000)
    assert limit(ledger, "acme", A_WINDOW) != bucket
    assert left(ledger) == 1_000


def test_a_boosted_bucket_is_larger_and_faster_for_a_while(ledger: Ledger) -> None:
    """During the boost a larger request fits once it has filled; after it the rest has spilled."""
    bucket = limit(ledger, "acme", A_WINDOW, refill=0)
    boost = AddBoost(
        target_id=bucket,
        amount=A_WINDOW,
        refill_per_hour=3_600 * 10_000,
        ends_at=START + 200 * SECOND,
    )
    ledger.accept(boost, Boosted)
    assert ledger.reason(ask(milli_gpus=2_000)) is Reason.RATE_LIMITED
    ledger.wait(s=120)
    lease = ledger.lease(ALICE, milli_gpus=2_000).reservation_id
    ledger.wait(s=60)
    answer = beat(ledger, lease, 1, 60_000)
    assert answer.decision == "throttle", "it spends twenty thousand a second and gains ten"
    ledger.wait(s=80)
    ledger.accept(Settle(reservation_id=lease), Closed)
    assert left(ledger) == A_WINDOW
    assert ledger.reason(ask(milli_gpus=2_000)) is Reason.RATE_LIMITED


def test_a_boost_that_is_ended_early_fills_by_its_terms_until_then(ledger: Ledger) -> None:
    """The bucket gained by the boost up to its end, keeps what fits, and gains no more by it."""
    bucket = limit(ledger, "acme", A_WINDOW, refill=0)
    ledger.lease(ALICE)
    assert left(ledger) == 0
    boost = AddBoost(
        target_id=bucket,
        amount=A_WINDOW,
        refill_per_hour=3_600 * 10_000,
        ends_at=START + 3_600 * SECOND,
    )
    number = ledger.accept(boost, Boosted).boost.boost_id
    ledger.wait(s=20)
    ended = ledger.accept(EndBoost(target_id=bucket, boost_id=number), Boosted)
    assert (ended.boost.ends_at, ended.is_rate_limit) == (ledger.now, True)
    assert left(ledger) == 200_000
    ledger.wait(s=20)
    assert left(ledger) == 200_000
    again = EndBoost(target_id=bucket, boost_id=number)
    assert ledger.reason(again) is Reason.LIMIT_UNKNOWN


def test_what_a_boost_had_room_for_spills_when_it_is_ended(ledger: Ledger) -> None:
    """A bucket that a boost had filled beyond its capacity is full, and no more."""
    bucket = limit(ledger, "acme", A_WINDOW, refill=0)
    boost = AddBoost(
        target_id=bucket,
        amount=A_WINDOW,
        refill_per_hour=3_600 * 10_000,
        ends_at=START + 3_600 * SECOND,
    )
    number = ledger.accept(boost, Boosted).boost.boost_id
    ledger.wait(s=100)
    ledger.accept(EndBoost(target_id=bucket, boost_id=number), Boosted)
    assert left(ledger) == A_WINDOW
    ledger.lease(ALICE)
    assert ledger.reason(ask()) is Reason.RATE_LIMITED
