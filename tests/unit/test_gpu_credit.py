"""GPUCredit: the published examples, ties, and debt."""

from typing import Any

import pytest

from gpucredits import GPUCredit


def credit(*operations: Any) -> Any:
    """A GPUCredit after some operations: (id, amount, timestamp, expiration) or (amount, time)."""
    made = GPUCredit()
    for operation in operations:
        (made.add_credit if len(operation) == 4 else made.subtract)(*operation)
    return made


EXAMPLES: dict[str, tuple[list[Any], dict[int, int | None]]] = {
    "basic credit": (
        [("microsoft", 10, 10, 30)],
        {0: None, 10: 10, 40: 10, 41: None},
    ),
    "subtraction": (
        [("amazon", 40, 10, 50), (30, 30)],
        {10: 40, 30: 10, 60: 10, 61: None},
    ),
    "out of order": (
        [(4, 30), ("a", 4, 20, 30)],
        {10: None, 20: 4, 30: 0, 50: 0, 51: None},
    ),
    "negative balance": (
        [("openai", 10, 10, 30), (100, 20)],
        {10: 10, 20: None, 30: None},
    ),
    "repeated credit id": (
        [("openai", 10, 10, 50), ("openai", 10, 30, 50), (15, 35)],
        {10: 10, 30: 20, 35: 5, 70: 5},
    ),
    "basic smoke": ([("a", 4, 20, 30)], {10: None, 20: 4, 50: 4, 51: None}),
    "earliest expiration first": (
        [("a", 4, 20, 40), ("b", 3, 30, 10), (2, 30)],
        {30: 5, 40: 5, 41: 4},
    ),
    "subtract arrives before its add": (
        [(30, 30), ("late", 40, 20, 50)],
        {20: 40, 30: 10},
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_published_example(name: str) -> None:
    """Every example of the specification gives the published answers."""
    operations, answers = EXAMPLES[name]
    made = credit(*operations)
    assert {time: made.get_balance(time) for time in answers} == answers


def test_debt_is_repaid_by_the_next_credit() -> None:
    """A later credit repays debt first and keeps its window."""
    made = credit((5, 1), ("a", 7, 2, 3))
    assert [made.get_balance(time) for time in (1, 2, 5, 6)] == [None, 2, 2, None]


def test_debt_outlives_the_windows() -> None:
    """Debt stays when nothing is active, and the answer stays None."""
    made = credit(("a", 3, 0, 5), (10, 2), ("b", 4, 20, 5))
    assert [made.get_balance(time) for time in (0, 2, 10, 20)] == [3, None, None, None]


def test_adds_at_one_time_repay_debt_in_order_of_arrival() -> None:
    """Of two credits at one instant, the first to arrive repays the debt."""
    first_ends_sooner = credit((3, 0), ("a", 5, 1, 1), ("b", 5, 1, 9))
    first_ends_later = credit((3, 0), ("b", 5, 1, 9), ("a", 5, 1, 1))
    assert [first_ends_sooner.get_balance(time) for time in (1, 3)] == [7, 5]
    assert [first_ends_later.get_balance(time) for time in (1, 3)] == [7, 2]


def test_zero_amounts_and_zero_windows_are_allowed() -> None:
    """A credit of zero still has a window, and a window may be one instant."""
    made = credit(("a", 0, 5, 0), (0, 5))
    assert [made.get_balance(time) for time in (4, 5, 6)] == [None, 0, None]


def test_any_size_and_sign_of_integer_works() -> None:
    """Timestamps may be negative and amounts beyond 64 bits."""
    huge = 1 << 200
    made = credit(("a", huge, -huge, 2 * huge), (1, 0))
    assert made.get_balance(huge) == huge - 1
    assert made.get_balance(huge + 1) is None
