"""The batch functions against the slow model, on whole random histories."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.library.timeline import active_credits, audit_trail, balances
from oracle.slow_history import SlowCharge, SlowGrant, SlowHistory

adds = st.tuples(st.integers(0, 9), st.integers(-5, 30), st.integers(0, 20))
subs = st.tuples(st.integers(0, 9), st.integers(-5, 30))
histories = st.lists(st.one_of(adds, subs), max_size=40)
questions = st.lists(st.integers(-10, 60), max_size=20)


def model_of(history: list[Any]) -> Any:
    """The slow model after the same events; grants are named by their place."""
    model = SlowHistory(allows_debt=True)
    for place, event in enumerate(history):
        if len(event) == 3:
            amount, start, length = event
            model.arrivals.append(SlowGrant(str(place), amount, start, start + length + 1))
        else:
            model.arrivals.append(SlowCharge(None, *event))
    return model


@settings(deadline=None)
@given(histories, questions)
def test_balances_equal_a_replay_per_question(history: list[Any], queries: list[int]) -> None:
    """Each answer is what a replay up to that time gives."""
    events = [("add" if len(event) == 3 else "sub", *event) for event in history]
    expected = []
    for query in queries:
        state = model_of(history).replay(query)
        balance = len(state.tokens) - state.debt
        expected.append(balance if state.windows and balance >= 0 else None)
    assert balances(events, queries) == expected


@settings(deadline=None)
@given(histories)
def test_audit_trail_equals_a_replay(history: list[Any]) -> None:
    """Each row names the grants that a replay takes the credits from."""
    events = [
        ("add", str(place), *event) if len(event) == 3 else ("sub", *event)
        for place, event in enumerate(history)
    ]
    assert audit_trail(events) == model_of(history).replay(100).audit


@given(st.lists(adds, max_size=40), questions)
def test_active_credits_are_the_sum_of_open_windows(grants: list[Any], queries: list[int]) -> None:
    """Without charges the balance is the sum of the grants whose window holds the question."""
    expected = [
        sum(amount for amount, start, length in grants if start <= query <= start + length)
        for query in queries
    ]
    assert active_credits(grants, queries) == expected
