"""Rate limits that come and go: nobody gets tokens that were not there before."""

from __future__ import annotations

import pytest

from gpucredits.core.command import (
    Cancel,
    EndRateLimit,
    SetQuota,
    SetRateLimit,
    Settle,
)
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed, QuotaSaved, RateLimitSaved
from gpucredits.core.quota import Dimension
from support.books.asking import ALICE, SLOW, left, limit
from support.books.ledger import CREDIT, Ledger

A_WINDOW = 1_200_000


@pytest.fixture(autouse=True)
def plenty(ledger: Ledger) -> None:
    """Credits are never what is missing here."""
    ledger.grant("acme", 1_000_000 * CREDIT)


def beat(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """A heartbeat that is answered."""
    return ledger.accept(Beat(lease, seq, used_ms), BeatResult)


@pytest.mark.parametrize("end", ["settle", "cancel", "lapse", "cut"])
def test_a_lease_gives_nothing_back_to_a_bucket_that_it_never_drew_from(
    ledger: Ledger, end: str
) -> None:
    """What was held before the limit was set is no token: its end leaves the bucket as it is."""
    old = ledger.lease(ALICE, window_ms=3_600_000).reservation_id
    limit(ledger, "acme", A_WINDOW, refill=0)
    ledger.lease(ALICE, job_id="other")
    match end:
        case "settle":
            ledger.accept(Settle(reservation_id=old), Closed)
        case "cancel":
            ledger.accept(Cancel(reservation_id=old), Closed)
        case "cut":
            capped = SetQuota(account="acme", dimension=Dimension.CREDITS_PER_JOB, limit=A_WINDOW)
            ledger.accept(capped, QuotaSaved)
            ledger.wait(s=1)
            assert beat(ledger, old, 1, 1_000).held == A_WINDOW - 10_000
        case _:
            ledger.wait(s=3_600)
            assert beat(ledger, old, 1, 1_000).decision == "stop"
    late = A_WINDOW - 10_000  # the other lease lapsed as well, and this one was charged
    assert left(ledger) == (late if end == "lapse" else 0)


def test_an_older_lease_draws_what_it_spends_from_then_on(ledger: Ledger) -> None:
    """From when the limit was set a lease that ran before has drawn no less than it spent anew."""
    old = ledger.lease(ALICE).reservation_id
    limit(ledger, "acme", 10 * CREDIT, refill=0)
    for seq in range(1, 6):
        ledger.wait(s=20)
        beat(ledger, old, seq, seq * 20_000)
    ledger.accept(Settle(reservation_id=old), Closed)
    assert left(ledger) == 9 * CREDIT


def test_a_limit_that_was_taken_away_comes_back_with_what_it_had(ledger: Ledger) -> None:
    """Ended and set again, a bucket holds what it would hold had nothing been drawn meanwhile."""
    limit(ledger, "acme", 2 * A_WINDOW, refill=SLOW)
    ledger.lease(ALICE, milli_gpus=2_000)
    ledger.wait(s=10)
    ledger.accept(EndRateLimit(account="acme"), RateLimitSaved)
    ledger.wait(s=20)
    limit(ledger, "acme", 50 * A_WINDOW, refill=0)
    assert left(ledger) == 30_000
    ledger.accept(EndRateLimit(account="acme"), RateLimitSaved)
    between = ledger.lease(ALICE).reservation_id
    smaller = SetRateLimit(account="acme", capacity=20_000, refill_per_hour=0)
    assert ledger.accept(smaller, RateLimitSaved).bucket.level == 20_000, "as far as it fits"
    ledger.accept(Cancel(reservation_id=between), Closed)
    assert left(ledger) == 20_000
    limit(ledger, "acme/vision", A_WINDOW, refill=0)
    assert left(ledger, "acme/vision") == A_WINDOW, "the first of an account is full"


def test_a_limit_that_was_set_for_a_try_leaves_the_ended_one(ledger: Ledger) -> None:
    """What is taken back does not make anyone forget what the bucket before it held."""
    limit(ledger, "acme", A_WINDOW, refill=0)
    ledger.lease(ALICE)
    ledger.accept(EndRateLimit(account="acme"), RateLimitSaved)
    book = ledger.view()
    again = SetRateLimit(account="acme", capacity=A_WINDOW, refill_per_hour=0)
    for _ in range(2):
        book.begin()
        for command in (again, EndRateLimit(account="acme"), again):
            decide(book, command, ledger.now)
        book.take_back()
    saved = decide(book, again, ledger.now)
    assert isinstance(saved, RateLimitSaved)
    assert saved.bucket.level == 0


def test_a_limit_that_was_replaced_for_a_try_is_still_there(ledger: Ledger) -> None:
    """Ending a limit and setting another, both taken back, leaves the first one in force."""
    bucket = limit(ledger, "acme", A_WINDOW, refill=0)
    book = ledger.view()
    book.begin()
    decide(book, EndRateLimit(account="acme"), ledger.now)
    decide(book, SetRateLimit(account="acme", capacity=1, refill_per_hour=0), ledger.now)
    book.take_back()
    ended = decide(book, EndRateLimit(account="acme"), ledger.now)
    assert isinstance(ended, RateLimitSaved)
    assert ended.bucket.bucket_id == bucket
