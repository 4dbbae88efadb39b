"""Limits on requests: which buckets a request draws from, and what a speed comes to."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpucredits.core.bounds import HOUR_US
from gpucredits.core.limits import Tokens
from gpucredits.core.request_limit import (
    BURST_MAX,
    PER_HOUR_MAX,
    BucketDraw,
    BucketName,
    Defaults,
    Holder,
    RequestLimit,
    asks_of,
    bucket_of,
    limit_of,
)

ONE, TWO, THREE, FOUR = (RequestLimit(n, n) for n in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("per_second", "burst", "limit"),
    [
        (Fraction(50), 200, RequestLimit(200, 180_000)),
        (Fraction(50), None, RequestLimit(200, 180_000)),
        (Fraction(1, 3_600), None, RequestLimit(1, 1)),
        (Fraction("0.5"), None, RequestLimit(2, 1_800)),
        (Fraction(BURST_MAX), None, RequestLimit(BURST_MAX, PER_HOUR_MAX)),
    ],
)
def test_a_speed_is_whole_requests_an_hour(
    per_second: Fraction, burst: int | None, limit: RequestLimit
) -> None:
    """Four seconds of it may come at once, unless said otherwise; at least one."""
    assert limit_of(per_second, burst) == limit


@pytest.mark.parametrize(
    ("per_second", "burst"),
    [
        (Fraction(0), None),
        (Fraction(-1), None),
        (Fraction(1, 7_200), None),
        (Fraction(1, 7), None),
        (Fraction(BURST_MAX + 1), None),
        (Fraction(1), 0),
        (Fraction(1), BURST_MAX + 1),
    ],
)
def test_limits_out_of_bounds_are_refused(per_second: Fraction, burst: int | None) -> None:
    """Nothing that refills never, in part, or faster than can be counted."""
    with pytest.raises(ValueError, match="must"):
        limit_of(per_second, burst)


def test_every_product_fits_a_double() -> None:
    """Within the bounds, a shared store that counts in doubles is exact."""
    assert BURST_MAX * HOUR_US + 2 * PER_HOUR_MAX + HOUR_US < 2**53


def test_a_key_draws_from_its_own_bucket_and_its_orgs() -> None:
    """What was set for a key or an org goes before the defaults; without either there is none."""
    key = BucketName(7, Holder.KEY, 42, "acme")
    org = BucketName(7, Holder.ORG, 0, "acme")
    defaults = Defaults(key=THREE, org=FOUR)
    assert asks_of(key=(7, 42), org="acme", own=ONE, of_org=TWO, defaults=defaults) == (
        BucketDraw(key, ONE),
        BucketDraw(org, TWO),
    )
    assert asks_of(key=(7, 42), org="acme", own=None, of_org=None, defaults=defaults) == (
        BucketDraw(key, THREE),
        BucketDraw(org, FOUR),
    )
    assert asks_of(key=(7, 42), org="acme", own=None, of_org=None, defaults=Defaults()) == ()


def test_keys_of_the_whole_system_belong_to_no_org() -> None:
    """They have a bucket of their own, and no other."""
    asks = asks_of(key=(0, 1), org="", own=None, of_org=TWO, defaults=Defaults(key=ONE, org=FOUR))
    assert asks == (BucketDraw(BucketName(0, Holder.KEY, 1, ""), ONE),)


def test_a_bucket_never_holds_more_than_its_terms_allow() -> None:
    """A level from before a limit was lowered is cut to it, with its fraction."""
    ask = BucketDraw(BucketName(1, Holder.KEY, 1, "acme"), THREE)
    bucket = bucket_of(ask, level=9, fraction=5, level_at=0)
    assert (bucket.level, bucket.fraction, bucket.kind) == (3, 0, Tokens.REQUESTS)
    bucket = bucket_of(ask, level=2, fraction=5, level_at=0)
    assert (bucket.level, bucket.fraction) == (2, 5)
