"""Budgets: an allowance for each period, issued by the clock.

Owns: the rows of budgets and their periods, the bounds of the next period, when what rolls over
ends, and which warnings a period has reached.
Must not: make grants or move money.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gpucredits.core import bounds
from gpucredits.core.period import Calendar, period_at


class Rollover(IntEnum):
    """What becomes of an allowance that was not used up by the end of its period."""

    NONE = 0
    ALL = 1
    CAPPED = 2


@dataclass(slots=True)
class Budget:
    """An allowance that an account is given at the start of every period.

    Without a calendar there is one period, from the budget's start to ``ends_at``. What rolls over
    lives until the end of the next period, or for ``rollover_us`` where that is set. ``next_at`` is
    when the next period begins. A changed budget changes from its next period on.
    """

    budget_id: int
    account_id: int
    name: str
    allowance: int
    next_at: int
    calendar: Calendar | None = None
    zone: str = "UTC"
    ends_at: int = bounds.NEVER_US
    rollover: Rollover = Rollover.NONE
    rollover_cap: int = 0
    rollover_us: int = 0
    priority: int = bounds.PRIORITY_DEFAULT
    warn_percent: tuple[int, ...] = ()
    created_at: int = 0

    @property
    def is_open(self) -> bool:
        """Whether another period will come."""
        return self.next_at < self.ends_at


@dataclass(slots=True)
class BudgetPeriod:
    """One period of a budget, the grant that was issued for it, and what rolled out of it.

    ``warned_percent`` is the highest warning that was reported. The rule for its rest was fixed
    when it began: a change of the budget does not change that.
    """

    budget_id: int
    starts_at: int
    ends_at: int
    allowance: int
    grant_id: int
    rolled: int = 0
    rolled_grant_id: int = 0
    warned_percent: int = 0
    rollover: Rollover = Rollover.NONE
    rollover_cap: int = 0
    rollover_us: int = 0
    calendar: Calendar | None = None
    zone: str = "UTC"


def next_period(budget: Budget) -> tuple[int, int]:
    """The period that begins at ``next_at``; the first may begin within a calendar period."""
    if budget.calendar is None:
        return budget.next_at, budget.ends_at
    _, ends_at = period_at(budget.calendar, budget.zone, budget.next_at)
    return budget.next_at, min(ends_at, budget.ends_at)


def rolled_until(period: BudgetPeriod, ended_at: int) -> int:
    """When the part that rolled over at ``ended_at`` ends in its turn."""
    if period.rollover_us or period.calendar is None:
        return ended_at + period.rollover_us
    return period_at(period.calendar, period.zone, ended_at)[1]


def rolled_amount(period: BudgetPeriod, remaining: int) -> int:
    """The part of a period's rest that rolls over."""
    match period.rollover:
        case Rollover.NONE:
            return 0
        case Rollover.ALL:
            return remaining
        case Rollover.CAPPED:
            return min(remaining, period.rollover_cap)


def reached(thresholds: tuple[int, ...], limit: int, used: int) -> int:
    """The highest threshold in percent that ``used`` of ``limit`` has reached; 0 for none."""
    return max((percent for percent in thresholds if used * 100 >= limit * percent), default=0)
