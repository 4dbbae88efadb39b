"""Credits as text and as whole micro-credits, and the one formula that rounds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.money import AMOUNT_MAX, cost, format_credits, parse_credits, time_covered_ms

EXACT = {
    "0": 0,
    "1": 1_000_000,
    "12.5": 12_500_000,
    "0.000001": 1,
    "-3.25": -3_250_000,
    "1000000000": AMOUNT_MAX,
}
WRONG = [
    "",
    "1.",
    ".5",
    "1e3",
    "+1",
    "1,5",
    " 1",
    "1 ",
    "0.0000001",
    "1000000000.000001",
    "٣",
    "1\n",
]


@pytest.mark.parametrize(("text", "micros"), EXACT.items())
def test_text_and_amount_are_the_same_thing(text: str, micros: int) -> None:
    """Each of these is read exactly and written back as it was."""
    assert parse_credits(text) == micros
    assert format_credits(micros) == text


@pytest.mark.parametrize("text", WRONG)
def test_what_is_not_an_exact_amount_is_not_read(text: str) -> None:
    """Museum 26: exponents, seven decimals, foreign digits and stray signs are errors."""
    with pytest.raises(ValueError, match="must be"):
        parse_credits(text)


@given(st.integers(-AMOUNT_MAX, AMOUNT_MAX))
@settings(derandomize=True, database=None, max_examples=200)
def test_every_amount_survives_being_written(micros: int) -> None:
    """Writing and reading any amount gives it back."""
    assert parse_credits(format_credits(micros)) == micros


@given(st.integers(1, 10**14), st.integers(0, 10**9))
@settings(derandomize=True, database=None, max_examples=200)
def test_time_covered_is_the_last_millisecond_paid_for(rate: int, amount: int) -> None:
    """One millisecond more than the time covered would cost more than the amount."""
    covered = time_covered_ms(rate, amount)
    assert cost(rate, covered) <= amount < cost(rate, covered + 1)


def test_prices_that_people_quote_are_exact() -> None:
    """0.01 credit per GPU-second and 1 credit per minute round nothing away."""
    assert cost(36_000_000_000, 1_000) == 10_000
    assert cost(60_000_000_000, 60_000) == 1_000_000
