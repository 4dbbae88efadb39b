"""A heartbeat that is sent again is told what it was told: the decision, the reason, how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import (
    Command,
    SetQuota,
    SetRateLimit,
    StopLease,
    UpdateAccount,
)
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Exhaustion
from support.books.ledger import CREDIT, Ledger

A_WINDOW = 1_200_000


def set_up(ledger: Ledger, credits_there: int, *before: Command, **fields: object) -> int:
    """A lease of two minutes with so much to spend."""
    ledger.grant("acme", credits_there)
    for command in before:
        assert not isinstance(ledger.do(command), Refused)
    return ledger.lease("acme", grace_ms=30_000, **fields).reservation_id


def short(ledger: Ledger) -> int:
    """Credits run out."""
    return set_up(ledger, A_WINDOW + 100_000)


def past_a_window(ledger: Ledger) -> int:
    """So does the quota of a day."""
    window = {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.DAY}
    return set_up(ledger, CREDIT**2, SetQuota(account="acme", limit=A_WINDOW + 1, **window))  # type: ignore[arg-type]


def bounded(ledger: Ledger) -> int:
    """The job comes to its own cap."""
    return set_up(ledger, CREDIT**2, max_amount=A_WINDOW + 1)


def throttled(ledger: Ledger) -> int:
    """There are too few tokens."""
    slow = SetRateLimit(account="acme", capacity=A_WINDOW, refill_per_hour=CREDIT)
    return set_up(ledger, CREDIT**2, slow)


def overdrawn(ledger: Ledger) -> int:
    """It goes on, on an overdraft."""
    allowed = UpdateAccount(path="acme", overdraft_limit=CREDIT)
    return set_up(ledger, A_WINDOW + 1, allowed, exhaustion=Exhaustion.FINISH, overdraft=CREDIT)


def over_a_quota(ledger: Ledger) -> int:
    """A limit was lowered below what runs."""
    lease = set_up(ledger, CREDIT**2)
    ledger.do(SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=0))
    return lease


def suspended(ledger: Ledger) -> int:
    """Its account was suspended."""
    lease = set_up(ledger, CREDIT**2)
    ledger.do(UpdateAccount(path="acme", status=Status.SUSPENDED))
    return lease


def preempted(ledger: Ledger) -> int:
    """It was told to stop."""
    lease = set_up(ledger, CREDIT**2)
    ledger.do(StopLease(reservation_id=lease, grace_ms=40_000))
    return lease


def preempted_and_short(ledger: Ledger) -> int:
    """It was told to stop and has no credits either."""
    lease = short(ledger)
    ledger.do(StopLease(reservation_id=lease, grace_ms=40_000))
    return lease


WAYS: dict[Callable[[Ledger], int], tuple[str, str]] = {
    short: ("drain", "insufficient_credits"),
    past_a_window: ("drain", "quota_exceeded"),
    bounded: ("drain", "max_amount"),
    throttled: ("throttle", "rate_limited"),
    overdrawn: ("continue", "overdraft"),
    over_a_quota: ("drain", "quota_exceeded"),
    suspended: ("drain", "account_suspended"),
    preempted: ("drain", "preempted"),
    preempted_and_short: ("drain", "insufficient_credits"),
}


@pytest.mark.parametrize(
    ("way", "told"), WAYS.items(), ids=lambda each: getattr(each, "__name__", "")
)
def test_a_repeated_beat_is_told_the_same(
    ledger: Ledger, way: Callable[[Ledger], int], told: tuple[str, str]
) -> None:
    """The answer was lost: the second one says the same, less the time that has passed."""
    lease = way(ledger)
    ledger.wait(s=20)
    first = ledger.accept(Beat(lease, 1, 20_000), BeatResult)
    assert (first.decision, first.reason) == WAYS[way]
    entries = len(ledger.entries())
    assert ledger.accept(Beat(lease, 1, 20_000), BeatResult) == replace(first, duplicate=True)
    ledger.wait(s=1)
    later = ledger.accept(Beat(lease, 1, 20_000), BeatResult)
    assert later == replace(
        first,
        duplicate=True,
        expires_in_ms=first.expires_in_ms - 1_000,
        signal_in_ms=max(first.signal_in_ms - 1_000, 0),
        clears_in_ms=max(first.clears_in_ms - 1_000, 0),
    )
    assert len(ledger.entries()) == entries


def test_a_reason_is_gone_with_what_it_was_for(ledger: Ledger) -> None:
    """Credits arrive: the next beat goes on without a reason, and so does its repetition."""
    lease = short(ledger)
    ledger.wait(s=20)
    assert ledger.accept(Beat(lease, 1, 20_000), BeatResult).reason == "insufficient_credits"
    ledger.grant("acme", 100 * CREDIT)
    for _ in range(2):
        answer = ledger.accept(Beat(lease, 2, 20_000), BeatResult)
        assert (answer.decision, answer.reason) == ("continue", "")
    ledger.wait(s=1)
    for _ in range(2):
        answer = ledger.accept(Beat(lease, 3, 21_000), BeatResult)
        assert (answer.decision, answer.reason) == ("continue", "")
