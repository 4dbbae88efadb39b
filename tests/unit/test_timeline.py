"""The engine: order of consumption, windows, cost of late events, and memory."""

import contextlib
import random
from typing import Any

import pytest

from gpucredits import ArgumentValueError
from gpucredits.library.timeline import Grant, Shortage, Timeline, Window, log
from gpucredits.library.timeline.event import ADD, CHARGE


def steady(size: int, length: int = 50) -> Any:
    """A history in order: a grant and a charge by turns, so that the state keeps turning over."""
    timeline = Timeline(shortage=Shortage.REFUSE)
    for time in range(size):
        timeline.add("g", 10, time, time + length)
        timeline.charge(None, 4, time)
    return timeline


def cost_of(timeline: Any, work: Any) -> Any:
    """Events walked while some work is done."""
    effort = timeline.effort
    before = effort.decided + effort.applied + effort.reverted
    work()
    return effort.decided + effort.applied + effort.reverted - before


def test_window_conventions_differ_in_the_last_instant() -> None:
    """An inclusive end belongs to the window, a half-open one does not."""
    for window, at_end in ((Window.INCLUSIVE, (5, 1)), (Window.HALF_OPEN, (0, 0))):
        timeline = Timeline(window=window)
        timeline.add("g", 5, 0, 10)
        assert timeline.state(9) == (5, 1)
        assert timeline.state(10) == at_end
        assert timeline.state(11) == (0, 0)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_order_of_consumption_is_a_parameter(is_loaded: Any) -> None:
    """A service can spend by its own priority before expiry."""
    priority = {"bought": 1, "gift": 0}

    def order(grant: Grant) -> tuple[int, ...]:
        return (priority[grant.name], grant.expiry)

    timeline = Timeline(order=order)
    if is_loaded:
        timeline.load(ADD, ["bought", "gift"], [5, 5], [0, 0], [10, 20])
        timeline.load(CHARGE, [None], [7], [1], [0])
    else:
        timeline.add("bought", 5, 0, 10)
        timeline.add("gift", 5, 0, 20)
        timeline.charge(None, 7, 1)
    (row,) = timeline.consumptions()
    assert row.taken == [("gift", 5), ("bought", 2)]


def test_refund_of_uncovered_credits_cancels_debt() -> None:
    """Under debt, what was never covered is given back first, as debt that is no longer owed."""
    timeline = Timeline()
    timeline.add("g", 4, 0, 100)
    timeline.charge("c", 10, 1)
    timeline.refund("c", 7, 2)
    assert timeline.state(1) == (-6, 1)
    assert timeline.state(2) == (1, 1)


def test_settled_question_walks_nothing() -> None:
    """Questions about a settled history do not replay."""
    timeline = steady(3_000)
    timeline.state(2_999)
    assert cost_of(timeline, lambda: [timeline.state(t) for t in range(0, 6_000, 7)]) == 0


def test_late_event_stops_where_the_state_meets_what_was_there() -> None:
    """A late charge is replayed until the grants it touched are gone, not to the end."""
    timeline = steady(20_000)

    def late() -> None:
        timeline.charge(None, 5, 3_000)
        timeline.state(20_000)

    assert cost_of(timeline, late) < 3 * log.BLOCK


def test_late_event_near_the_head_costs_its_distance() -> None:
    """A late event near the end rewinds there, whatever lies before."""
    timeline = steady(20_000, length=10**9)

    def late() -> None:
        timeline.add("late", 5, 19_950, 10**10)
        timeline.state(20_000)

    assert cost_of(timeline, late) < 300


def test_question_before_a_late_event_does_not_settle_it() -> None:
    """What happens later is nobody's business yet."""
    timeline = steady(5_000)
    timeline.charge(None, 5, 4_000)
    assert cost_of(timeline, lambda: timeline.state(3_999)) == 0


def test_many_late_events_settle_in_one_sweep() -> None:
    """A history in reverse order costs about one walk over its events."""
    timeline = Timeline()

    def reverse() -> None:
        for time in reversed(range(20_000)):
            timeline.add("g", 1, time, time + 10)
        timeline.state(20_000)

    assert cost_of(timeline, reverse) <= 3 * 20_000


@pytest.mark.parametrize("length", [10, 1_000, 10**9])
def test_checkpoints_take_no_more_than_the_events(length: int) -> None:
    """However many grants are alive, checkpoints have no more cells than the log events."""
    timeline = steady(10_000, length)
    rng = random.Random(1)
    for _ in range(50):
        time = rng.randrange(10_000)
        timeline.add("late", 3, time, 10**9)
        timeline.state(10_000)
    assert 0 < timeline.checkpoint_cells <= len(timeline._log)


def test_any_order_of_arrival_gives_the_same_balances() -> None:
    """Under debt, balances depend on times alone; one grant per instant leaves no tie open."""
    rng = random.Random(7)
    events = [
        ("add", rng.randint(0, 20), 2 * n, 2 * n + rng.randint(0, 60))
        if rng.random() < 0.5
        else ("charge", rng.randint(0, 12), rng.randint(0, 400), 0)
        for n in range(200)
    ]
    answers = []
    for turn in range(6):
        timeline = Timeline(window=Window.INCLUSIVE)
        for kind, amount, time, end in events:
            if kind == "add":
                timeline.add("g", amount, time, end)
            else:
                timeline.charge(None, amount, time)
            if turn % 2:
                timeline.state(rng.randint(0, 500))
        answers.append([timeline.state(time) for time in range(-1, 500)])
        rng.shuffle(events)
    assert all(answer == answers[0] for answer in answers)


def test_future_is_answered_from_the_head_without_replay() -> None:
    """Questions beyond the last event see expiries there, many or few."""
    timeline = Timeline()
    for n in range(1_000):
        timeline.add("g", 1, 0, 10 + n)
    assert [timeline.state(t) for t in (9, 10, 12, 500, 1_009)] == [
        (1_000, 1_000),
        (999, 999),
        (997, 997),
        (509, 509),
        (0, 0),
    ]
    timeline.charge(None, 500, 5)
    assert [timeline.state(t) for t in (5, 500, 510)] == [(500, 1_000), (500, 509), (499, 499)]


def test_many_refunds_of_one_charge_come_back_in_any_order() -> None:
    """Part refunds, dated before and after the charge, add up to the charge."""
    timeline = Timeline(shortage=Shortage.REFUSE)
    timeline.add("g", 100, 0, 1_000)
    times = list(range(1, 101))
    random.Random(3).shuffle(times)
    for time in times[:50]:
        timeline.refund("c", 1, time)
    timeline.charge("c", 100, 50)
    for time in times[50:]:
        timeline.refund("c", 1, time)
        timeline.state(time)
    assert timeline.balance(49) == 100
    assert [timeline.balance(t) for t in (50, 75, 100)] == [50, 75, 100]


@pytest.mark.parametrize("shortage", list(Shortage))
def test_settling_bit_by_bit_equals_settling_at_once(shortage: Any) -> None:
    """With blocks of real size, asking at every turn equals asking only at the end."""
    rng = random.Random(11)
    asked, unasked = Timeline(shortage=shortage), Timeline(shortage=shortage)
    for turn in range(4_000):
        time = turn if rng.random() < 0.9 else rng.randrange(turn + 1)
        amount = rng.randint(0, 20)
        kind = rng.choice(["add", "charge", "charge", "refund"])
        arguments = {
            "add": ("g", 2 * amount, time, time + rng.choice([5, 300, 10**6])),
            "charge": (f"c{turn}", amount, time),
            "refund": (f"c{rng.randrange(turn + 5)}", 0 if amount > 10 else 1, time),
        }[kind]
        for timeline in (asked, unasked):
            with contextlib.suppress(ArgumentValueError):
                getattr(timeline, kind)(*arguments)
        if turn % 7 == 0:
            asked.state(rng.randrange(turn + 100))
    times = range(0, 5_000, 3)
    assert [asked.state(time) for time in times] == [unasked.state(time) for time in times]
    assert asked.consumptions() == unasked.consumptions()
    assert asked.first_shortfall(5_000) == unasked.first_shortfall(5_000)
    assert asked.effort.reverted
    assert asked.effort.applied
