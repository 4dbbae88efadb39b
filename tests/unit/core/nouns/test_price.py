"""Which price applies: nearest account first, the latest version in force of each."""

from __future__ import annotations

import pytest

from gpucredits.core.price import Price, applicable_price, last_end

PRICES = [
    Price(1, "h100", "eu", 100, 0),
    Price(2, "h100", "eu", 120, 50),
    Price(3, "h100", "eu", 80, 10, "acme"),
    Price(4, "h100", "eu", 70, 20, "acme/vision"),
    Price(5, "h100", "us", 1, 0),
    Price(6, "h100", "eu", 121, 50),
]
CASES = [
    ("list price", "other", 0, 100),
    ("a later version from its very instant, the newer of two", "other", 50, 121),
    ("not before", "other", 49, 100),
    ("a discount not yet in force leaves the list price", "acme/audio", 9, 100),
    ("the org's discount", "acme/audio", 10, 80),
    ("the nearest ancestor's, though the list price is newer", "acme/vision/alice", 60, 70),
    ("until it is in force the one above", "acme/vision/alice", 19, 80),
    ("a name that only begins the same is no ancestor", "acmex", 60, 121),
]


@pytest.mark.parametrize(
    ("account", "now", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_the_price_in_force(account: str, now: int, expected: int) -> None:
    """Each row gives the account, the instant and the price."""
    price = applicable_price(PRICES, account=account, gpu_type="h100", region="eu", now=now)
    assert price is not None
    assert price.credits_per_gpu_hour == expected


ENDING = [
    Price(1, "h100", "eu", 100, 0),
    Price(2, "h100", "eu", 50, 10, "", 20),
    Price(3, "h100", "eu", 40, 10, "acme", 30),
    Price(4, "h100", "eu", 0, 40, "", is_end=True),
    Price(5, "h100", "eu", 30, 50, "", 60),
]
ENDS = [
    ("a version with an end while it lasts", "other", 19, 50),
    ("from its very end on the one before it", "other", 20, 100),
    ("a discount up to its end", "acme/vision", 29, 40),
    ("then the list price", "acme/vision", 30, 100),
    ("up to the end of all", "other", 39, 100),
    ("from there on none", "other", 40, None),
    ("until a later version starts", "other", 50, 30),
    ("whose end brings nothing back", "other", 60, None),
]


@pytest.mark.parametrize(
    ("account", "now", "expected"), [c[1:] for c in ENDS], ids=[c[0] for c in ENDS]
)
def test_prices_end(account: str, now: int, expected: int | None) -> None:
    """A version is in force before its end and not at it; an end leaves no price."""
    what = {"gpu_type": "h100", "region": "eu"}
    price = applicable_price(ENDING, account=account, now=now, **what)
    assert (None if price is None else price.credits_per_gpu_hour) == expected


@pytest.mark.parametrize(
    ("now", "expected"), [(19, None), (20, 20), (45, 40), (59, 40), (60, 60), (99, 60)]
)
def test_when_the_last_price_ended(now: int, expected: int | None) -> None:
    """The latest end that has passed, of those that an account had; others' do not count."""
    found = last_end(ENDING, account="other", gpu_type="h100", region="eu", now=now)
    assert found == expected
    if now == 45:
        assert last_end(ENDING, account="acme", gpu_type="h100", region="eu", now=35) == 30


def test_a_type_without_a_price_has_none() -> None:
    """Neither another type nor another region lends its price."""
    for gpu_type, region in (("b200", "eu"), ("h100", "asia")):
        found = applicable_price(PRICES, account="acme", gpu_type=gpu_type, region=region, now=99)
        assert found is None
