"""CreditTracker: judging, ties, refunds, and histories that do not reconcile."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gpucredits import ArgumentTypeError, ArgumentValueError, CreditTracker, IrreconcilableError


@pytest.fixture
def tracker() -> Any:
    """A tracker with one grant of 10 on [0, 100)."""
    made = CreditTracker()
    made.add("g", 10, 0, 100)
    return made


def test_window_is_half_open(tracker: Any) -> None:
    """A grant counts from its start to just before its expiration."""
    assert [tracker.get_balance(t) for t in (-1, 0, 99, 100)] == [0, 10, 10, 0]


def test_charge_returns_what_is_left(tracker: Any) -> None:
    """An accepted charge answers with the balance left at its time."""
    assert tracker.charge(4, 10) == 6
    assert tracker.charge(6, 20) == 0


def test_charge_beyond_the_balance_changes_nothing(tracker: Any) -> None:
    """A refused charge answers None, and the dump is what it was."""
    before = tracker.dump()
    assert tracker.charge(11, 10, "c") is None
    assert tracker.dump() == before
    assert tracker.charge(10, 10, "c") == 0


def test_charge_is_judged_by_what_is_known_at_or_before_it(tracker: Any) -> None:
    """A grant that starts later does not help, nor does a later charge hinder."""
    tracker.add("later", 50, 30, 100)
    assert tracker.charge(11, 20) is None
    assert tracker.charge(55, 40) == 5
    assert tracker.charge(10, 20) == 0


def test_earliest_expiry_pays_first(tracker: Any) -> None:
    """The grant that ends first is used first, so the later one survives it."""
    tracker.add("short", 5, 0, 50)
    assert tracker.charge(5, 10) == 10
    assert tracker.get_balance(60) == 10


def test_equal_expiry_is_paid_by_earlier_start_then_arrival() -> None:
    """Among equal expiries the earlier start pays, then the earlier arrival."""
    tracker = CreditTracker()
    tracker.add("late start", 1, 1, 9)
    tracker.add("first", 1, 0, 9)
    tracker.add("second", 1, 0, 9)
    tracker.charge(3, 5, "c")
    (row,) = tracker._timeline.consumptions()
    assert [name for name, _ in row.taken] == ["first", "second", "late start"]


def test_ties_go_expiry_add_refund_charge() -> None:
    """At one instant: what expires is gone, adds and refunds are there, then charges."""
    tracker = CreditTracker()
    tracker.add("old", 10, 0, 5)
    assert tracker.charge(10, 5) is None
    tracker.add("new", 3, 5, 50)
    assert tracker.charge(3, 5, "c") == 0
    tracker.refund("c", 2, 8)
    assert tracker.charge(2, 8) == 0


def test_late_charge_can_break_history_and_a_late_add_mends_it(tracker: Any) -> None:
    """A charge that replay cannot fund is named until a late grant pays for it."""
    assert tracker.charge(8, 50, "later") == 2
    assert tracker.charge(5, 20, "earlier") == 5
    assert tracker.get_balance(49) == 5
    with pytest.raises(IrreconcilableError) as caught:
        tracker.get_balance(50)
    error = caught.value
    assert (error.charge_id, error.timestamp, error.amount, error.short_by) == ("later", 50, 8, 3)
    with pytest.raises(IrreconcilableError):
        tracker.charge(0, 60)
    tracker.add("mend", 3, 30, 60)
    assert tracker.get_balance(50) == 0


def test_irreconcilable_error_survives_pickling(tracker: Any) -> None:
    """The error keeps its fields across processes."""
    tracker.charge(8, 50, "later")
    tracker.charge(5, 20)
    with pytest.raises(IrreconcilableError) as caught:
        tracker.get_balance(70)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.charge_id, copy.short_by, str(copy)) == ("later", 3, str(caught.value))


def test_refund_returns_to_the_grants_last_consumed_first() -> None:
    """A part refund goes to the grant that paid last, the next part to the one before."""
    tracker = CreditTracker()
    tracker.add("a", 4, 0, 50)
    tracker.add("b", 4, 0, 90)
    tracker.charge(8, 10, "c")
    tracker.refund("c", 4, 20)
    assert [tracker.get_balance(t) for t in (20, 60)] == [4, 4]
    tracker.refund("c", 4, 30)
    assert [tracker.get_balance(t) for t in (30, 60)] == [8, 4]


def test_refund_to_an_expired_grant_is_lost(tracker: Any) -> None:
    """Credits that came from a grant no longer valid do not come back."""
    tracker.charge(10, 10, "c")
    tracker.add("other", 1, 0, 500)
    tracker.refund("c", 10, 100)
    assert tracker.get_balance(100) == 1


def test_refund_may_arrive_before_its_charge(tracker: Any) -> None:
    """A waiting refund does nothing until its charge arrives, then counts."""
    tracker.refund("c", 3, 20)
    assert tracker.get_balance(30) == 10
    assert tracker.charge(5, 10, "c") == 5
    assert [tracker.get_balance(t) for t in (10, 20)] == [5, 8]


def test_refund_dated_before_its_charge_follows_it_at_once(tracker: Any) -> None:
    """A refund at or before its charge applies right after it, and shows in the answer."""
    tracker.refund("c", 3, 2)
    assert tracker.charge(5, 10, "c") == 8
    assert [tracker.get_balance(t) for t in (2, 9, 10)] == [10, 10, 8]


def test_late_charge_moves_the_refund_of_a_later_one() -> None:
    """When a charge is paid by another grant after all, its refund goes there too."""
    tracker = CreditTracker()
    tracker.add("a", 5, 0, 30)
    tracker.add("b", 5, 0, 90)
    tracker.charge(5, 20, "c")
    tracker.refund("c", 5, 40)
    assert tracker.get_balance(40) == 5
    tracker.charge(5, 10, "earlier")
    assert tracker.get_balance(20) == 0
    assert tracker.get_balance(40) == 5


def test_empty_window_and_zero_amounts_are_allowed() -> None:
    """A grant that ends where it starts is never active; a charge of zero is accepted."""
    tracker = CreditTracker()
    tracker.add("empty", 10, 5, 5)
    assert tracker.get_balance(5) == 0
    assert tracker.charge(0, 5) == 0


BAD: dict[str, tuple[Callable[[Any], object], str, Any]] = {
    "negative grant": (lambda t: t.add("x", -1, 0, 1), "amount", ArgumentValueError),
    "expiration before start": (lambda t: t.add("x", 1, 5, 4), "expiration", ArgumentValueError),
    "bool amount": (lambda t: t.add("x", True, 0, 1), "amount", ArgumentTypeError),
    "float amount": (lambda t: t.add("x", 1.0, 0, 1), "amount", ArgumentTypeError),
    "float start": (lambda t: t.add("x", 1, 0.5, 1), "start", ArgumentTypeError),
    "text expiration": (lambda t: t.add("x", 1, 0, "9"), "expiration", ArgumentTypeError),
    "grant id of no text": (lambda t: t.add(7, 1, 0, 9), "grant_id", ArgumentTypeError),
    "negative charge": (lambda t: t.charge(-1, 5), "amount", ArgumentValueError),
    "bool timestamp": (lambda t: t.charge(1, False), "timestamp", ArgumentTypeError),
    "charge id of no text": (lambda t: t.charge(1, 5, 5), "charge_id", ArgumentTypeError),
    "charge id again": (lambda t: t.charge(1, 5, "used"), "charge_id", ArgumentValueError),
    "charge below waiting refunds": (lambda t: t.charge(1, 5, "w"), "amount", ArgumentValueError),
    "refund above the charge": (lambda t: t.refund("used", 3, 9), "amount", ArgumentValueError),
    "negative refund": (lambda t: t.refund("used", -1, 9), "amount", ArgumentValueError),
    "refund of no charge id": (lambda t: t.refund(None, 1, 9), "charge_id", ArgumentTypeError),
    "refund at a float": (lambda t: t.refund("used", 1, 9.0), "timestamp", ArgumentTypeError),
    "question at a float": (lambda t: t.get_balance(1.0), "timestamp", ArgumentTypeError),
    "question at None": (lambda t: t.get_balance(None), "timestamp", ArgumentTypeError),
    "load of text": (lambda t: t.load("abc"), "data", ArgumentTypeError),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_argument_and_changes_nothing(tracker: Any, name: str) -> None:
    """Each refusal names its argument, and the history is what it was."""
    call, argument, error = BAD[name]
    tracker.charge(2, 5, "used")
    tracker.refund("w", 2, 5)
    before = tracker.dump()
    with pytest.raises(error) as caught:
        call(tracker)
    assert caught.value.argument == argument
    assert argument in str(caught.value)
    assert isinstance(caught.value, (ValueError, TypeError))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert tracker.dump() == before
    assert tracker.get_balance(5) == 8


def test_refund_totals_are_held_across_parts(tracker: Any) -> None:
    """Several part refunds may reach the charge and not pass it."""
    tracker.charge(5, 10, "c")
    tracker.refund("c", 3, 20)
    tracker.refund("c", 2, 15)
    with pytest.raises(ArgumentValueError):
        tracker.refund("c", 1, 30)
    assert tracker.get_balance(30) == 10


def test_equal_trackers_compare_equal_and_have_no_hash(tracker: Any) -> None:
    """Equality is by history; a thing that changes cannot be a key."""
    other = CreditTracker()
    assert tracker != other
    other.add("g", 10, 0, 100)
    assert tracker == other
    assert tracker != "g"
    with pytest.raises(TypeError):
        hash(tracker)
