"""Risk of accounts that pay later: spending that is out of the ordinary, bills that are not paid.

Owns: two explainable judgements over plain numbers. Caps for each job and each day are quotas.
Must not: suspend anyone; whoever asks acts on the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpucredits.core.money import MICROS_PER_CREDIT, be, count, format_credits
from gpucredits.core.period import instant_text

BASELINE_HOURS_MIN = 6  # with less history nothing is called unusual
RATIO_PERCENT_DEFAULT = 400
FLOOR_DEFAULT = 100 * MICROS_PER_CREDIT  # where an account has no terms of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyTerms:
    """When an hour's spending is unusual: over ``ratio_percent`` of the usual, and ``floor``."""

    ratio_percent: int = RATIO_PERCENT_DEFAULT
    floor: int = 0
    hours: int = 168


@dataclass(frozen=True, slots=True)
class SpendCheck:
    """An hour's spending against its trailing baseline."""

    spent: int
    baseline: int
    threshold: int
    hours: int
    unusual: bool

    @property
    def sentence(self) -> str:
        """The same for people."""
        spent = format_credits(self.spent)
        relation = "above" if self.unusual else "within"
        return (
            f"{count(spent, 'credit')} in this hour {be(spent)} {relation} the threshold of "
            f"{format_credits(self.threshold)}, which follows from a median of "
            f"{format_credits(self.baseline)} an hour over the last {count(self.hours, 'hour')}."
        )


def check_spend(hourly: Sequence[int], terms: AnomalyTerms) -> SpendCheck:
    """Judge the last of ``hourly`` sums by the median of those before it.

    A median, so that one wild hour does not raise the baseline; hours without spending count, so
    that a quiet account has a low one, and ``floor`` keeps small sums from ever being unusual.
    """
    *past, spent = hourly
    past = past[-terms.hours :]
    baseline = sorted(past)[(len(past) - 1) // 2] if past else 0
    threshold = max(baseline * terms.ratio_percent // 100, terms.floor)
    unusual = len(past) >= BASELINE_HOURS_MIN and spent > threshold
    return SpendCheck(spent, baseline, threshold, len(past), unusual)


def hourly_sums(marks: Sequence[tuple[int, int]], hour: int, hours: int) -> list[int]:
    """What was spent in each hour up to and with ``hour``, from what had been spent in all.

    ``marks`` are (hour, spent by its end) in order, without the hours in which nothing changed.
    Nothing is known of hours up to and with the first mark. A refund is no negative spending.
    """
    if not marks:
        return []
    first = max(marks[0][0] + 1, hour - hours)
    sums = dict.fromkeys(range(first, hour + 1), 0)
    for (_, before), (marked, after) in pairwise(marks):
        if marked in sums:
            sums[marked] = max(0, after - before)
    return list(sums.values())


@dataclass(slots=True)
class Statement:
    """What an account owes for a period, and until when it is to be paid."""

    statement_id: int
    account_id: int
    amount: int
    due_at: int
    paid: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether an account is delinquent: how much is overdue, and since when."""

    overdue: int
    since: int

    @property
    def is_delinquent(self) -> bool:
        """Whether anything is overdue."""
        return self.overdue > 0

    @property
    def sentence(self) -> str:
        """The same for people."""
        if not self.is_delinquent:
            return "Nothing is overdue."
        owed = format_credits(self.overdue)
        return (
            f"{count(owed, 'credit')} {be(owed)} overdue since {instant_text(self.since)}; "
            "a payment of that much resumes the account."
        )


def standing(statements: Sequence[Statement], now: int) -> Standing:
    """What is unpaid past its due date; a statement is in time until that instant."""
    late = [bill for bill in statements if bill.due_at <= now and bill.paid < bill.amount]
    return Standing(
        sum(bill.amount - bill.paid for bill in late),
        min((bill.due_at for bill in late), default=0),
    )
