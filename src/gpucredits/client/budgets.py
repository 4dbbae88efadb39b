"""Calls about budgets: an allowance for each period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpucredits.client.call import Call, Number, Setting, When, account_path, body_of, read, write
from gpucredits.client.errors import Invalid
from gpucredits.wire.budget import (
    NAME_DEFAULT,
    BudgetBody,
    BudgetChange,
    BudgetsAnswer,
    BudgetsRequest,
    BudgetsTerms,
    BudgetTerms,
    PeriodsAnswer,
    RolloverName,
)
from gpucredits.wire.quota import CalendarName
from gpucredits.wire.scalars import Slug, from_wire


def budgets(account: str) -> Call[BudgetsAnswer]:
    """The budgets of an account and their open periods."""
    return read(account_path(account, "/budgets"), BudgetsAnswer)


def set_budget(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    allowance: Number | None = None,
    *,
    name: str | None = None,
    calendar: CalendarName | None = None,
    zone: str | None = None,
    starts_at: When | None = None,
    ends_at: When | None = None,
    rollover: RolloverName | None = None,
    rollover_cap: Number | None = None,
    rollover_seconds: int | None = None,
    priority: int | None = None,
    warn_percent: Sequence[int] | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[BudgetTerms]:
    """Make a budget, or change what is given of it from its next period on; the rest stays.

    ``replace`` replaces all terms. ``clear`` names fields that go back to their defaults.
    """
    fields = {
        "allowance": allowance,
        "calendar": calendar,
        "zone": zone,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "rollover": rollover,
        "rollover_cap": rollover_cap,
        "rollover_seconds": rollover_seconds,
        "priority": priority,
        "warn_percent": None if warn_percent is None else list(warn_percent),
    }
    return Setting(replace=replace, clear=clear).call(
        _budget_path(account, NAME_DEFAULT if name is None else name),
        BudgetTerms,
        change=BudgetChange,
        whole=BudgetBody,
        fields=fields,
        key=key,
        dry_run=dry_run,
    )


def replace_budgets(
    account: str,
    budgets: Sequence[Mapping[str, Any]],
    *,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[BudgetsTerms]:
    """Let an account have these budgets and no others; each has ``set_budget``'s fields."""
    return write(
        account_path(account, "/budgets"),
        BudgetsTerms,
        body=body_of(BudgetsRequest, budgets=list(budgets)),
        key=key,
        dry_run=dry_run,
        method="PUT",
    )


def end_budget(
    account: str, name: str = NAME_DEFAULT, *, key: str | None = None, dry_run: bool = False
) -> Call[BudgetTerms]:
    """Let no further period of a budget begin; the one that is open runs to its end."""
    path = _budget_path(account, name)
    return write(path, BudgetTerms, key=key, dry_run=dry_run, method="DELETE")


def period_page(
    account: str,
    name: str = NAME_DEFAULT,
    *,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[PeriodsAnswer]:
    """A page of a budget's periods, the latest first."""
    path = _budget_path(account, name, "/periods")
    return read(path, PeriodsAnswer, cursor=cursor, limit=limit)


def _budget_path(account: str, name: str, tail: str = "") -> str:
    try:
        slug = from_wire(Slug, name)
    except ValueError as error:
        raise Invalid(str(error), field="name") from error
    return account_path(account, f"/budgets/{slug}{tail}")
