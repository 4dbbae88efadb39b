"""The token bucket: exact to the token and to the microsecond."""

from __future__ import annotations

import pytest

from gpucredits.core.bounds import HOUR_US
from gpucredits.core.limits import (
    Boost,
    TokenBucket,
    Tokens,
    advance,
    bucket_terms,
    clears_at,
    resize,
    tokens,
)
from support.books.buckets import draw, refund

START = 1_750_000_000_000_000


def bucket(capacity: int = 100, refill: int = 3_600, level: int = 100) -> TokenBucket:
    """A bucket that gains one token a second unless told otherwise."""
    return TokenBucket(1, 1, capacity, refill, level, START)


def test_a_bucket_gives_what_it_holds_and_no_more() -> None:
    """The last token can be drawn, one more cannot, and a denial draws nothing."""
    full = bucket()
    assert draw(full, 100, START)
    assert not draw(full, 1, START)
    assert tokens(full, START) == 0


@pytest.mark.parametrize(("wait", "there"), [(0, 0), (999_999, 0), (1_000_000, 1), (2_999_999, 2)])
def test_tokens_come_back_to_the_microsecond(wait: int, there: int) -> None:
    """A token is there at the instant it is due and not a microsecond before."""
    assert tokens(bucket(level=0), START + wait) == there


def test_looking_often_mints_and_loses_nothing() -> None:
    """A bucket that is looked at every few microseconds gains what one looked at once gains."""
    watched, left_alone = (
        bucket(refill=1_234_567, level=0, capacity=10**9),
        bucket(refill=1_234_567, level=0, capacity=10**9),
    )
    for step in range(0, 1_000_000, 7):
        advance(watched, (), START + step)
    now = START + 1_000_000
    assert tokens(watched, now) == tokens(left_alone, now) == 1_234_567 * 1_000_000 // HOUR_US


def test_a_full_bucket_does_not_save_up() -> None:
    """Time that passes while a bucket is full earns nothing, to the fraction."""
    full = bucket()
    assert draw(full, 0, START + 10 * HOUR_US + 500_000)
    assert draw(full, 100, START + 10 * HOUR_US + 500_000)
    assert tokens(full, START + 10 * HOUR_US + 1_499_999) == 0
    assert tokens(full, START + 10 * HOUR_US + 1_500_000) == 1


def test_a_refund_mints_no_rate() -> None:
    """Museum 14: drawing and giving back changes nothing at any later instant."""
    used, untouched = bucket(level=50), bucket(level=50)
    for step in range(10):
        assert draw(used, 30, START + step * 100_001)
        refund(used, 30)
    for wait in (1_000_010, 20_000_000, 49_999_999, 50_000_000, HOUR_US):
        assert tokens(used, START + wait) == tokens(untouched, START + wait)


def test_a_refund_does_not_overfill() -> None:
    """What comes back beyond the capacity is gone."""
    full = bucket()
    refund(full, 50)
    assert tokens(full, START) == 100
    assert not draw(full, 101, START)


CLEARS = {
    "now, when it is there": (50, 50, 0),
    "when the refill has made up the difference": (0, 50, 50_000_000),
    "to the microsecond, rounded up": (0, 1, 1_000_000),
    "out of a debt": (-10, 1, 11_000_000),
}


@pytest.mark.parametrize(("level", "amount", "wait"), CLEARS.values(), ids=CLEARS.keys())
def test_a_denial_clears_at_a_known_instant(level: int, amount: int, wait: int) -> None:
    """A draw is denied until that instant and given at it."""
    there = bucket(level=level)
    clears = clears_at(there, amount, START)
    assert clears == START + wait
    assert tokens(there, START + wait) >= amount
    if wait:
        assert tokens(there, START + wait - 1) < amount


def test_what_never_clears_says_so() -> None:
    """More than the capacity never comes, and neither does anything without a refill."""
    assert clears_at(bucket(), 101, START) is None
    assert clears_at(bucket(refill=0, level=5), 6, START) is None
    assert clears_at(bucket(refill=0, level=5), 5, START) == START


def test_new_terms_keep_the_level_that_fits() -> None:
    """A larger bucket is not fuller; a smaller one spills; the fraction of a token stays."""
    changed = bucket(level=80)
    resize(changed, capacity=200, refill_per_hour=3_600, now=START + 500_000)
    assert tokens(changed, START + 500_000) == 80
    assert tokens(changed, START + 1_000_000) == 81
    resize(changed, capacity=40, refill_per_hour=3_600, now=START + 1_000_000)
    assert tokens(changed, START + 1_000_000) == 40


def test_a_boost_of_the_refill_counts_only_while_it_lasts() -> None:
    """A boost between two looks gives exactly its own time's tokens, and its capacity spills."""
    boost = Boost(9, 1, 1, 50, START + 10_000_000, START + 20_000_000, refill_per_hour=36_000)
    there = bucket(capacity=100, level=0)
    terms = bucket_terms(there, [boost])
    assert advance(there, terms, START + 5_000_000).capacity == 100
    assert there.level == 5
    inside = advance(there, terms, START + 15_000_000)
    assert (inside.capacity, inside.refill_per_hour, there.level) == (150, 39_600, 10 + 55)
    advance(there, terms, START + 30_000_000)
    assert there.level == 100, "120 at the end of the boost, of which the bucket keeps 100"


def test_requests_are_counted_by_the_same_function() -> None:
    """A bucket of requests is a bucket: burst of three, then one a minute."""
    key = TokenBucket(1, 0, 3, 60, 3, START, kind=Tokens.REQUESTS)
    assert [draw(key, 1, START) for _ in range(4)] == [True, True, True, False]
    assert clears_at(key, 1, START) == START + 60_000_000
