"""Changes: what is named changes, and the rest stays as it is stored."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucredits.core import bounds
from gpucredits.core.bounds import DAY_US
from gpucredits.core.budget import Budget, Rollover
from gpucredits.core.change import merged
from gpucredits.core.command import EndBudget, EndRateLimit, SetBudget, SetRateLimit, UpdateAccount
from gpucredits.core.outcome import AccountSaved, BudgetSaved, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.reasons import Reason
from gpucredits.core.request_limit import RequestLimit, changed_limit
from gpucredits.core.risk import AnomalyTerms
from support.books.ledger import CREDIT, Ledger

WHOLE = SetBudget(
    account="acme",
    allowance=10 * CREDIT,
    calendar=Calendar.WEEK,
    zone="Asia/Tokyo",
    ends_at=bounds.INSTANT_US_MAX,
    rollover=Rollover.CAPPED,
    rollover_cap=3 * CREDIT,
    rollover_us=DAY_US,
    priority=5,
    warn_percent=(50, 80),
)
CHANGES = {
    "allowance": 7 * CREDIT,
    "calendar": Calendar.DAY,
    "zone": "Europe/Berlin",
    "ends_at": bounds.INSTANT_US_MAX - 1,
    "rollover_cap": 4 * CREDIT,
    "rollover_us": 2 * DAY_US,
    "priority": 9,
    "warn_percent": (),
}


def terms(budget: Budget) -> dict[str, object]:
    """What was agreed of a budget."""
    return {name: value for name, value in asdict(budget).items() if name in asdict(WHOLE)}


def budget_change(name: str, value: object) -> SetBudget:
    """A change of one term of the budget, and nothing else."""
    fields: dict[str, Any] = {"account": "acme", "allowance": 0, name: value}
    return SetBudget(**fields, named=named(name))


def named(*names: str) -> frozenset[str]:
    """What a command names."""
    return frozenset(names)


@given(st.sets(st.sampled_from(["ratio_percent", "floor", "hours"])))
def test_a_change_takes_what_is_named_from_the_caller_and_the_rest_from_the_row(
    names: set[str],
) -> None:
    """Whatever is named; all of it where nothing says what is, or nothing is stored."""
    stored, wanted = (
        AnomalyTerms(ratio_percent=percent, floor=floor, hours=hours)
        for percent, floor, hours in ((200, 1, 3), (300, 2, 4))
    )
    result = merged(wanted, stored, frozenset(names))
    for name in ("ratio_percent", "floor", "hours"):
        assert getattr(result, name) == getattr(wanted if name in names else stored, name)
    assert merged(wanted, stored, None) == merged(wanted, None, frozenset(names)) == wanted


@pytest.mark.parametrize("name", CHANGES)
def test_setting_one_term_of_a_budget_keeps_the_others(ledger: Ledger, name: str) -> None:
    """Each of them alone, and a replacement takes the others back to their defaults."""
    before = terms(ledger.accept(WHOLE, BudgetSaved).budget)
    change = budget_change(name, CHANGES[name])
    after = terms(ledger.accept(change, BudgetSaved).budget)
    assert after == {**before, name: CHANGES[name]}
    plain = SetBudget(account="acme", allowance=1, calendar=Calendar.DAY)
    assert terms(ledger.accept(plain, BudgetSaved).budget)["zone"] == "UTC"


def test_a_term_that_needs_another_goes_with_it(ledger: Ledger) -> None:
    """Without a rollover there is no cap and no life of it; a cap alone is refused then."""
    ledger.accept(WHOLE, BudgetSaved)
    change = SetBudget(account="acme", allowance=0, named=named("rollover"))
    saved = ledger.accept(change, BudgetSaved).budget
    assert (saved.rollover, saved.rollover_cap, saved.rollover_us) == (Rollover.NONE, 0, 0)
    for name, wrong in (("rollover_cap", 1), ("rollover_us", 1)):
        alone = budget_change(name, wrong)
        assert ledger.refuse(alone).reason is Reason.LIMIT_INVALID
    once = SetBudget(account="acme", allowance=0, named=named("calendar"))
    saved = ledger.accept(once, BudgetSaved).budget
    assert (saved.calendar, saved.zone) == (None, "UTC")


def test_a_budget_that_is_not_open_has_nothing_to_keep(ledger: Ledger) -> None:
    """Neither a new one nor one that has ended: both need an allowance, and begin with defaults."""
    change = SetBudget(account="acme", allowance=0, priority=1, named=named("priority"))
    assert ledger.refuse(change).reason is Reason.LIMIT_INVALID
    ledger.accept(WHOLE, BudgetSaved)
    ledger.accept(EndBudget(account="acme"), BudgetSaved)
    assert ledger.refuse(change).reason is Reason.LIMIT_INVALID
    anew = SetBudget(
        account="acme",
        allowance=CREDIT,
        calendar=Calendar.DAY,
        named=named("allowance", "calendar"),
    )
    saved = ledger.accept(anew, BudgetSaved).budget
    assert (saved.priority, saved.warn_percent) == (bounds.PRIORITY_DEFAULT, ())


def test_a_rate_limit_keeps_what_is_not_named(ledger: Ledger) -> None:
    """Capacity or refill alone; where there is none, both must be named."""
    whole = SetRateLimit(account="acme", capacity=5, refill_per_hour=6)
    half = replace(whole, capacity=9, named=named("capacity"))
    assert ledger.refuse(half).reason is Reason.LIMIT_INVALID
    ledger.accept(whole, RateLimitSaved)
    bucket = ledger.accept(replace(half, refill_per_hour=0), RateLimitSaved).bucket
    assert (bucket.capacity, bucket.refill_per_hour) == (9, 6)
    other = replace(whole, capacity=0, refill_per_hour=7, named=named("refill_per_hour"))
    bucket = ledger.accept(other, RateLimitSaved).bucket
    assert (bucket.capacity, bucket.refill_per_hour) == (9, 7)
    ledger.accept(EndRateLimit(account="acme"), RateLimitSaved)
    assert ledger.refuse(half).reason is Reason.LIMIT_INVALID


def test_labels_are_changed_one_by_one(ledger: Ledger) -> None:
    """Those given change, those that are None go, the others stay; twenty are the most."""

    def labels(**change: str | None) -> dict[str, str]:
        saved = ledger.accept(UpdateAccount(path="acme", labels=change), AccountSaved)
        return dict(saved.account.metadata)

    assert labels(team="vision", cost="7") == {"team": "vision", "cost": "7"}
    assert labels(cost=None, gone=None, site="b") == {"team": "vision", "site": "b"}
    many: dict[str, str | None] = {f"l{number}": "" for number in range(bounds.METADATA_KEYS_MAX)}
    assert ledger.refuse(UpdateAccount(path="acme", labels=many)).reason is Reason.LIMIT_INVALID
    assert len(labels(**many, team=None, site=None)) == bounds.METADATA_KEYS_MAX
    cleared = ledger.accept(UpdateAccount(path="acme", metadata={}), AccountSaved)
    assert cleared.account.metadata == {}


def test_a_request_limit_keeps_what_is_not_named() -> None:
    """Of the limit in force, be it the default; a burst that is not said is the usual one."""
    before = RequestLimit(100, 3_600)
    assert changed_limit(RequestLimit(0, 7_200), before, named("refill_per_hour")) == RequestLimit(
        100, 7_200
    )
    assert changed_limit(RequestLimit(9, 0), before, named("capacity")) == RequestLimit(9, 3_600)
    assert changed_limit(RequestLimit(0, 0), before, named("capacity")) == RequestLimit(4, 3_600)
    assert changed_limit(RequestLimit(0, 3_600), None, named("refill_per_hour")).capacity == 4
    with pytest.raises(ValueError, match="must be given"):
        changed_limit(RequestLimit(9, 0), None, named("capacity"))
