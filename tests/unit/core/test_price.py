"""Which price applies: nearest account first, the latest version in force of each."""

from __future__ import annotations

import pytest

from gpucredits.core.price import Price, applicable_price

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


def test_a_type_without_a_price_has_none() -> None:
    """Neither another type nor another region lends its price."""
    for gpu_type, region in (("b200", "eu"), ("h100", "asia")):
        found = applicable_price(PRICES, account="acme", gpu_type=gpu_type, region=region, now=99)
        assert found is None
