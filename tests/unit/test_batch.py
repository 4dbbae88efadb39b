"""The batch functions: every published example, and bad shapes."""

from typing import Any

import pytest

from gpucredits import ArgumentTypeError, ArgumentValueError
from gpucredits.library.timeline import active_credits, audit_trail, balances

ACTIVE = [
    ([], [0, 10], [0, 0]),
    ([(5, 10, 2), (3, 4, 0), (7, 8, 5)], [3, 4, 10, 12, 14], [0, 3, 12, 12, 0]),
    ([(4, 2, 3)], [1, 2, 5, 6], [0, 4, 4, 0]),
    ([(2, 0, 0), (3, 0, 2)], [0, 1, 2, 3], [5, 3, 3, 0]),
]

BALANCES = [
    ([("add", 10, 0, 10), ("add", 5, 0, 2), ("sub", 8, 1)], [1, 3], [7, 7]),
    ([("add", 5, 2, 3), ("sub", 5, 1)], [1, 2, 5, 6], [None, 0, 0, None]),
    ([("add", 4, 1, 10), ("add", 2, 2, 10), ("sub", 7, 3)], [3, 4], [None, None]),
    ([("add", 5, 1, 1)], [0, 1, 2, 3], [None, 5, 5, None]),
    ([], [0], [None]),
    (
        [("add", 10, 0, 10), ("add", 5, 0, 2), ("sub", 8, 1)],
        [0, 1, 2, 3, 11],
        [15, 7, 7, 7, None],
    ),
    (
        [("sub", 5, 1), ("add", 2, 2, 3), ("add", 3, 3, 3)],
        [1, 2, 3, 4, 7],
        [None, None, 0, 0, None],
    ),
    ([("sub", 4, 5), ("add", 10, 5, 5), ("add", 3, 1, 10)], [5, 6], [9, 9]),
    ([], [0, 10], [None, None]),
]

AUDITS = [
    (
        [("add", "A", 5, 0, 5), ("add", "B", 4, 1, 4), ("sub", 6, 2)],
        [(2, 6, [("A", 5), ("B", 1)], 0)],
    ),
    (
        [("sub", 7, 3), ("add", "g1", 4, 1, 10), ("add", "g2", 2, 2, 10)],
        [(3, 7, [("g1", 4), ("g2", 2)], 1)],
    ),
    (
        [("sub", 5, 1), ("add", "x", 3, 2, 5), ("add", "y", 4, 3, 5), ("sub", 2, 3)],
        [(1, 5, [], 5), (3, 2, [("y", 2)], 0)],
    ),
    ([("sub", 4, 5), ("add", "g1", 10, 5, 5)], [(5, 4, [("g1", 4)], 0)]),
    ([], []),
]


@pytest.mark.parametrize(("events", "queries", "expected"), ACTIVE)
def test_active_credits_example(events: Any, queries: list[int], expected: Any) -> None:
    """Part 1's examples hold."""
    assert active_credits(events, queries) == expected


@pytest.mark.parametrize(("events", "queries", "expected"), BALANCES)
def test_balances_example(events: Any, queries: list[int], expected: Any) -> None:
    """Part 2's and part 4's examples hold."""
    assert balances(events, queries) == expected


@pytest.mark.parametrize(("events", "expected"), AUDITS)
def test_audit_trail_example(events: Any, expected: Any) -> None:
    """Part 3's examples hold."""
    assert audit_trail(events) == expected


def test_asking_one_by_one_gives_the_same_answers() -> None:
    """Splitting the questions does not change the answers."""
    events = [("add", 9, n, n % 5) if n % 3 else ("sub", 4, n) for n in range(60)]
    queries = list(range(70))
    together = balances(events, queries)
    assert together == [balances(events, [query])[0] for query in queries]


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([("give", 1, 2, 3)], ArgumentValueError),
        ([("add", 1, 2)], ArgumentValueError),
        ([("sub", 1)], ArgumentValueError),
        ([("sub", -1, 2)], ArgumentValueError),
        ([("add", 1, 2, -3)], ArgumentValueError),
        ([("add", 1.5, 2, 3)], ArgumentTypeError),
        ([("sub", True, 3)], ArgumentTypeError),
        ([7], ArgumentTypeError),
    ],
)
def test_bad_event_is_refused_by_name(events: Any, error: Any) -> None:
    """A malformed event raises an error that names the argument."""
    with pytest.raises(error) as caught:
        balances(events, [0])
    assert caught.value.argument == "events"
