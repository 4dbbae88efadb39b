"""Budgets on the wire: an allowance for each period, and how the periods stand."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from gpucredits.core import bounds, ids
from gpucredits.core.budget import Budget, BudgetPeriod, Rollover
from gpucredits.core.command import ReplaceBudgets, SetBudget
from gpucredits.core.limit_states import budget_state
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import BudgetSaved, BudgetsReplaced
from gpucredits.wire.change import given, named_in
from gpucredits.wire.documented import (
    ACCOUNT,
    ALLOWANCE,
    AS_OF,
    BUDGETS,
    CALENDAR,
    CREATED_AT,
    NEXT_CURSOR,
    PRIORITY,
    ROLLOVER,
    ROLLOVER_SECONDS,
    WARN_PERCENT,
    ZONE,
    doc,
)
from gpucredits.wire.ledger.credit import Priority
from gpucredits.wire.limits.quota import CALENDARS, ZONE_DEFAULT, CalendarName, check_window
from gpucredits.wire.scalars import (
    Amount,
    CreditsText,
    Instant,
    InstantText,
    Slug,
    Zone,
    format_instant,
)

NAME_DEFAULT = "default"
RolloverName = Literal["none", "all", "capped"]
RolloverSeconds = Annotated[int, Meta(ge=1, le=bounds.ROLLOVER_US_MAX // bounds.SECOND_US)]
WarnPercent = Annotated[int, Meta(ge=1, le=bounds.WARN_PERCENT_MAX)]
WarnPercents = Annotated[list[WarnPercent], Meta(max_length=bounds.WARNINGS_MAX)]
FIRST_START = doc("When the first period begins; now, or as set before, unless given.")
LAST_END = doc("The end of the only period, or of the last calendar period.")
ROLLOVER_CAP = doc("The most that rolls over; for rollover capped.")
ISSUED_PRIORITY = doc("The priority of the grants that the budget issues.")
NAME = doc("The name of the budget; an open budget of that name is changed.")

_ROLLOVERS: dict[RolloverName, Rollover] = {
    "none": Rollover.NONE,
    "all": Rollover.ALL,
    "capped": Rollover.CAPPED,
}
_TERMS = {"rollover_seconds": "rollover_us"}  # as the core calls them


class BudgetBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """All terms of a budget: an allowance for each day, week or month in a zone, or until an end.

    An open budget changes from its next period on. Terms that are left out get their defaults.
    """

    allowance: Annotated[Amount, ALLOWANCE]
    calendar: Annotated[CalendarName | None, CALENDAR] = None
    zone: Annotated[Zone | None, ZONE] = None
    starts_at: Annotated[Instant | None, FIRST_START] = None
    ends_at: Annotated[Instant | None, LAST_END] = None
    rollover: Annotated[RolloverName, ROLLOVER] = "none"
    rollover_cap: Annotated[Amount | None, ROLLOVER_CAP] = None
    rollover_seconds: Annotated[RolloverSeconds | None, ROLLOVER_SECONDS] = None
    priority: Annotated[Priority, ISSUED_PRIORITY] = bounds.PRIORITY_DEFAULT
    warn_percent: Annotated[WarnPercents, WARN_PERCENT] = []

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        check_window(self.calendar, self.zone)
        if (self.rollover == "capped") is not (self.rollover_cap is not None):
            raise ValueError("rollover_cap goes with rollover capped: give both or neither")
        if self.rollover == "none" and self.rollover_seconds is not None:
            raise ValueError("rollover_seconds is for what rolls over: choose rollover all")


class BudgetItem(BudgetBody, kw_only=True, forbid_unknown_fields=True):
    """One budget of a list that replaces all budgets of an account."""

    name: Annotated[Slug, NAME] = field(default_factory=lambda: Slug(NAME_DEFAULT))


class BudgetChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of a budget to change; others stay, and null restores the default.

    An open budget changes from its next period on. Where there is none, one is made.
    """

    allowance: Annotated[Amount | UnsetType, ALLOWANCE] = UNSET
    calendar: Annotated[CalendarName | UnsetType | None, CALENDAR] = UNSET
    zone: Annotated[Zone | UnsetType | None, ZONE] = UNSET
    starts_at: Annotated[Instant | UnsetType | None, FIRST_START] = UNSET
    ends_at: Annotated[Instant | UnsetType | None, LAST_END] = UNSET
    rollover: Annotated[RolloverName | UnsetType | None, ROLLOVER] = UNSET
    rollover_cap: Annotated[Amount | UnsetType | None, ROLLOVER_CAP] = UNSET
    rollover_seconds: Annotated[RolloverSeconds | UnsetType | None, ROLLOVER_SECONDS] = UNSET
    priority: Annotated[Priority | UnsetType | None, ISSUED_PRIORITY] = UNSET
    warn_percent: Annotated[WarnPercents | UnsetType | None, WARN_PERCENT] = UNSET


class BudgetSetting(BudgetChange, kw_only=True, forbid_unknown_fields=True):
    """A budget to make, or to change by its name; terms that are left out stay."""

    allowance: Annotated[Amount, ALLOWANCE]
    name: Annotated[Slug, NAME] = field(default_factory=lambda: Slug(NAME_DEFAULT))


class BudgetsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """All budgets of an account from now on; open budgets that are not in the list end."""

    budgets: Annotated[list[BudgetItem], Meta(max_length=bounds.BUDGETS_MAX), BUDGETS]


class BudgetTerms(Struct, kw_only=True):
    """A budget as it was set; ``next_at`` is when its next period begins, null when none will."""

    budget_id: Annotated[str, doc("The id of the budget.")]
    account: Annotated[str, ACCOUNT]
    name: Annotated[str, doc("The name of the budget.")]
    allowance: Annotated[CreditsText, ALLOWANCE]
    calendar: Annotated[CalendarName | None, CALENDAR]
    zone: Annotated[str | None, ZONE]
    ends_at: Annotated[InstantText | None, doc("The end; null or absent if there is none.")]
    rollover: Annotated[RolloverName, ROLLOVER]
    rollover_cap: Annotated[
        CreditsText | None, doc("The most that rolls over; null if there is no cap.")
    ]
    rollover_seconds: Annotated[int | None, ROLLOVER_SECONDS]
    priority: Annotated[int, PRIORITY]
    warn_percent: Annotated[list[int], WARN_PERCENT]
    next_at: Annotated[InstantText | None, doc("When the next period begins; null if none will.")]
    created_at: Annotated[InstantText, CREATED_AT]


class BudgetsTerms(Struct, kw_only=True):
    """The budgets that an account now has, and the names of those that ended."""

    account: Annotated[str, ACCOUNT]
    budgets: Annotated[list[BudgetTerms], BUDGETS]
    ended: Annotated[
        list[str], doc("The names of budgets that ended because the list did not have them.")
    ]


class PeriodAnswer(Struct, kw_only=True):
    """One period: its allowance, what is used and left of it, and what rolled in and out.

    What rolled in is a grant of its own: the allowance's numbers do not count it.
    """

    starts_at: Annotated[InstantText, doc("When the period began.")]
    ends_at: Annotated[InstantText, doc("When the period ends.")]
    issued: Annotated[CreditsText, doc("The allowance of this period.")]
    used: Annotated[CreditsText, doc("The used allowance.")]
    left: Annotated[CreditsText, doc("The unused allowance.")]
    rolled_in: Annotated[
        CreditsText, doc("Credits that rolled in from the period before, as a grant of their own.")
    ]
    rolled_out: Annotated[CreditsText, doc("Credits that rolled out into the next period.")]
    grant_id: Annotated[str, doc("The grant of the allowance.")]
    warned_percent: Annotated[
        int | None, doc("The highest warning that was sent; null before the first.")
    ]


class BudgetAnswer(BudgetTerms, kw_only=True):
    """A budget and the period that is open, if one is."""

    period: Annotated[PeriodAnswer | None, doc("The open period; null if none is open.")]


class BudgetsAnswer(Struct, kw_only=True):
    """The budgets of an account, those that ended last."""

    account: Annotated[str, ACCOUNT]
    budgets: Annotated[list[BudgetAnswer], BUDGETS]
    as_of: Annotated[InstantText, AS_OF]


class PeriodsAnswer(Struct, kw_only=True):
    """The periods of a budget, the latest first."""

    account: Annotated[str, ACCOUNT]
    name: Annotated[str, doc("The name of the budget.")]
    periods: Annotated[list[PeriodAnswer], doc("The periods of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


def budget_from_wire(account: str, name: str, request: BudgetBody) -> SetBudget:
    """The core's command, which replaces all terms."""
    return SetBudget(
        account=account,
        allowance=int(request.allowance),
        name=name,
        calendar=None if request.calendar is None else CALENDARS[request.calendar],
        zone=str(request.zone or ZONE_DEFAULT),
        starts_at=None if request.starts_at is None else int(request.starts_at),
        ends_at=bounds.NEVER_US if request.ends_at is None else int(request.ends_at),
        rollover=_ROLLOVERS[request.rollover],
        rollover_cap=int(request.rollover_cap or 0),
        rollover_us=(request.rollover_seconds or 0) * bounds.SECOND_US,
        priority=request.priority,
        warn_percent=tuple(sorted(set(request.warn_percent))),
    )


def budget_change_from_wire(account: str, name: str, change: BudgetChange) -> SetBudget:
    """The core's command, which changes what is named."""
    calendar = given(change.calendar, None)
    starts_at = given(change.starts_at, None)
    return SetBudget(
        account=account,
        allowance=int(given(change.allowance, Amount(0))),
        name=name,
        calendar=None if calendar is None else CALENDARS[calendar],
        zone=str(given(change.zone, Zone(ZONE_DEFAULT))),
        starts_at=None if starts_at is None else int(starts_at),
        ends_at=int(given(change.ends_at, Instant(bounds.NEVER_US))),
        rollover=_ROLLOVERS[given(change.rollover, "none")],
        rollover_cap=int(given(change.rollover_cap, Amount(0))),
        rollover_us=given(change.rollover_seconds, 0) * bounds.SECOND_US,
        priority=given(change.priority, bounds.PRIORITY_DEFAULT),
        warn_percent=tuple(sorted(set(given(change.warn_percent, [])))),
        named=frozenset(_TERMS.get(name, name) for name in named_in(change)),
    )


def budgets_from_wire(account: str, request: BudgetsRequest) -> ReplaceBudgets:
    """The core's command."""
    budgets = tuple(budget_from_wire(account, str(each.name), each) for each in request.budgets)
    return ReplaceBudgets(account=account, budgets=budgets)


def budget_saved_to_wire(org_id: int, outcome: BudgetSaved) -> BudgetTerms:
    """The answer to setting or ending a budget."""
    return budget_to_wire(org_id, outcome.path, outcome.budget)


def budgets_replaced_to_wire(org_id: int, outcome: BudgetsReplaced) -> BudgetsTerms:
    """The answer to replacing all budgets."""
    return BudgetsTerms(
        account=outcome.path,
        budgets=[budget_to_wire(org_id, outcome.path, budget) for budget in outcome.budgets],
        ended=[budget.name for budget in outcome.ended],
    )


def budget_to_wire(org_id: int, path: str, budget: Budget) -> BudgetTerms:
    """A budget as it was set."""
    return BudgetTerms(**budget_state(org_id, path, budget))


def budget_standing_to_wire(
    org_id: int, path: str, budget: Budget, period: PeriodAnswer | None
) -> BudgetAnswer:
    """A budget and its open period."""
    return BudgetAnswer(**structs.asdict(budget_to_wire(org_id, path, budget)), period=period)


def period_to_wire(
    org_id: int, period: BudgetPeriod, *, used: int, left: int, rolled_in: int
) -> PeriodAnswer:
    """A period as it is shown."""
    return PeriodAnswer(
        starts_at=format_instant(period.starts_at),
        ends_at=format_instant(period.ends_at),
        issued=format_credits(period.allowance),
        used=format_credits(used),
        left=format_credits(left),
        rolled_in=format_credits(rolled_in),
        rolled_out=format_credits(period.rolled),
        grant_id=ids.format_id(ids.GRANT, org_id, period.grant_id),
        warned_percent=period.warned_percent or None,
    )
