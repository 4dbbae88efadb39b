"""The arithmetic of limits against naive versions of it: buckets, windows and budget periods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.budget import Budget, next_period
from gpucredits.core.command import SetBudget, Sweep
from gpucredits.core.limits import Boost, TokenBucket, advance, bucket_terms, clears_at, tokens
from gpucredits.core.outcome import BudgetSaved, Swept
from gpucredits.core.period import Calendar, period_at
from gpucredits.core.quota import Dimension, Quota, spread
from support.books.buckets import draw, refund
from support.books.ledger import CREDIT, Ledger

HOUR = 3_600_000_000
ZONES = ["UTC", "Europe/Berlin", "America/Havana", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Gaza"]
steps = st.lists(
    st.tuples(
        st.sampled_from(["draw", "refund"]),
        st.integers(0, 40),
        st.sampled_from([0, 1, 7, 999_999, 1_000_001, HOUR // 3, HOUR]),
    ),
    max_size=40,
)
boosts = st.lists(
    st.tuples(
        st.integers(0, 2 * HOUR), st.integers(1, HOUR), st.integers(0, 50), st.integers(0, 99)
    ),
    max_size=3,
)


@given(capacity=st.integers(1, 100), refill=st.integers(0, 5_000), steps=steps)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_bucket_is_a_bucket_of_fractions(
    capacity: int, refill: int, steps: list[tuple[str, int, int]]
) -> None:
    """After any draws and refunds it holds, to the token, what a bucket of fractions holds."""
    bucket = TokenBucket(1, 1, capacity, refill, capacity, 0)
    level, now = Fraction(capacity), 0
    for action, amount, wait in steps:
        now += wait
        level = min(Fraction(capacity), level + Fraction(refill * wait, HOUR))
        assert tokens(bucket, now) == level.__floor__()
        clears = clears_at(bucket, amount, now)
        if clears is not None:
            later = level + Fraction(refill * (clears - now), HOUR)
            assert later >= amount
            assert clears == now or later - Fraction(refill, HOUR) < amount
        if action == "refund":
            refund(bucket, amount)
            level = min(Fraction(capacity), level + amount)
        elif draw(bucket, amount, now):
            level -= amount
        else:
            assert level < amount


@given(refill=st.integers(0, 5_000), boosts=boosts, looks=st.lists(st.integers(0, 3 * HOUR)))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_boosted_buckets_do_not_depend_on_who_looks(
    refill: int, boosts: list[tuple[int, int, int, int]], looks: list[int]
) -> None:
    """Looked at often or once, a bucket under boosts holds the same at the end."""
    rows = [
        Boost(n, 1, 1, more, at, at + span, fast) for n, (at, span, more, fast) in enumerate(boosts)
    ]
    watched, alone = (TokenBucket(1, 1, 100, refill, 0, 0) for _ in range(2))
    terms = bucket_terms(watched, rows)
    for at in sorted(looks):
        advance(watched, terms, at)
    assert advance(watched, terms, 3 * HOUR) == advance(alone, terms, 3 * HOUR)
    assert (watched.level, watched.fraction) == (alone.level, alone.fraction)


@given(
    due=st.integers(0, 10**9),
    since=st.integers(0, 3 * 24 * HOUR),
    length=st.integers(0, 80 * HOUR),
    hours=st.integers(0, 48),
    zone=st.sampled_from(ZONES),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_slice_is_spread_without_loss(
    due: int, since: int, length: int, hours: int, zone: str
) -> None:
    """Parts add up, windows join, and before each boundary lies the even share rounded down."""
    base = 1_774_600_000_000_000  # Berlin's clocks go forward in these days
    since += base
    calendar = None if hours else Calendar.DAY
    quota = Quota(1, 1, Dimension.CREDITS_PER_WINDOW, 0, "", calendar, zone, hours)
    parts = spread(quota, due, since, since + length)
    assert sum(part for _, _, part in parts) == due
    assert parts[0][0] <= since < parts[0][1]
    assert parts[-1][1] >= since + length
    counted = 0
    for (_, ends_at, part), following in pairwise(parts):
        assert ends_at == following[0]
        counted += part
        assert counted == (Fraction(due) * Fraction(ends_at - since, length)).__floor__()


@given(zone=st.sampled_from(ZONES), minute=st.integers(0, 60 * 24 * 366 * 4))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_day_is_all_instants_of_one_date(zone: str, minute: int) -> None:
    """The bounds of a day are the first instants of its date and of the next, minute by minute."""
    at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    micros = int(at.timestamp()) * 1_000_000
    starts_at, ends_at = period_at(Calendar.DAY, zone, micros)
    budget = Budget(1, 1, "b", 1, micros, calendar=Calendar.DAY, zone=zone)
    assert next_period(budget) == (micros, ends_at)
    assert starts_at <= micros < ends_at
    assert 22 * HOUR < ends_at - starts_at < 26 * HOUR
    assert period_at(Calendar.DAY, zone, ends_at)[0] == ends_at
    assert period_at(Calendar.DAY, zone, starts_at - 1)[1] == starts_at


@given(
    zone=st.sampled_from(ZONES),
    calendar=st.sampled_from(list(Calendar)),
    waits=st.lists(st.integers(1, 40 * 24 * HOUR), min_size=1, max_size=6),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_periods_do_not_depend_on_who_rolls(
    zone: str, calendar: Calendar, waits: list[int]
) -> None:
    """Rolled at random instants or once at the end: the same periods, balances and entries."""
    ledgers = (Ledger(), Ledger(fresh=True))
    for ledger in ledgers:
        ledger.open("acme")
        budget = SetBudget(account="acme", allowance=CREDIT, calendar=calendar, zone=zone)
        ledger.accept(budget, BudgetSaved)
    busy, idle = ledgers
    for wait in waits:
        busy.wait(us=wait)
        busy.accept(Sweep(account_id=1), Swept)
    idle.now = busy.now
    idle.accept(Sweep(account_id=1), Swept)
    assert busy.entries() == idle.entries()
    assert busy.stored.periods == idle.stored.periods
    periods = busy.stored.periods[2]
    edges = [(row.starts_at, row.ends_at) for row in periods]
    assert all(ends == starts for (_, ends), (starts, _) in pairwise(edges))
    assert edges[-1][0] <= busy.now < edges[-1][1]
    assert busy.account("acme").available == CREDIT
