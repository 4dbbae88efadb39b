"""Replacing all quotas or budgets of an account at once, and how limits stand."""

from __future__ import annotations

import pytest

from gpucredits.core import bounds
from gpucredits.core.command import (
    AddBoost,
    ReplaceBudgets,
    ReplaceQuotas,
    Reserve,
    SetBudget,
    SetQuota,
    SetRateLimit,
)
from gpucredits.core.gate import GateUnit
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.limit_standing import (
    budget_standings,
    quota_standings,
    rate_limit_standing,
)
from gpucredits.core.outcome import (
    Boosted,
    BudgetSaved,
    BudgetsReplaced,
    QuotaSaved,
    QuotasReplaced,
    RateLimitSaved,
)
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Decision
from gpucredits.core.rules.upkeep.roll import roll_due
from support.books.ledger import CREDIT, SECOND, Ledger

ORG = "acme"


def gpus(limit: int, gpu_type: str = "") -> SetQuota:
    """A quota on GPUs."""
    dimension = Dimension.CONCURRENT_GPUS
    return SetQuota(account=ORG, dimension=dimension, limit=1_000 * limit, gpu_type=gpu_type)


def daily(limit: int, zone: str = "UTC") -> SetQuota:
    """A quota on credits a day."""
    dimension = Dimension.CREDITS_PER_WINDOW
    return SetQuota(account=ORG, dimension=dimension, limit=limit, calendar=Calendar.DAY, zone=zone)


def monthly(name: str, allowance: int = 5 * CREDIT, **more: object) -> SetBudget:
    """A budget."""
    given: dict[str, object] = {"calendar": Calendar.MONTH, **more}
    return SetBudget(account=ORG, allowance=allowance, name=name, **given)  # type: ignore[arg-type]


def replace(*quotas: SetQuota) -> ReplaceQuotas:
    """All quotas of the org."""
    return ReplaceQuotas(account=ORG, quotas=quotas)


def test_quotas_stay_change_begin_and_end(ledger: Ledger) -> None:
    """What is the same but for its limit keeps its id and its count; the rest ends or is new."""
    ledger.grant(ORG, 100 * CREDIT)
    kept = ledger.accept(gpus(4), QuotaSaved).quota.quota_id
    gone = ledger.accept(daily(5 * CREDIT), QuotaSaved).quota.quota_id
    ledger.lease(ORG, milli_gpus=3_000)
    outcome = ledger.accept(replace(gpus(9), daily(7 * CREDIT, "Asia/Tokyo")), QuotasReplaced)
    assert [quota.limit for quota in outcome.quotas] == [9_000, 7 * CREDIT]
    assert outcome.quotas[0].quota_id == kept
    assert [quota.quota_id for quota in outcome.ended] == [gone]
    view = ledger.view()
    assert view.limits.counters[kept].count == 3_000
    assert view.limits.counters[outcome.quotas[1].quota_id].held > 0
    assert ledger.accept(replace(), QuotasReplaced).quotas == ()


@pytest.mark.parametrize(
    ("quotas", "reason"),
    [
        ((gpus(1), gpus(2)), Reason.LIMIT_INVALID),
        ((gpus(1), daily(1, "Mars/Olympus")), Reason.ZONE_UNKNOWN),
        (tuple(gpus(1, f"t{n}") for n in range(bounds.QUOTAS_MAX + 1)), Reason.LIMIT_INVALID),
    ],
    ids=["twice the same", "an unknown zone", "too many"],
)
def test_one_wrong_quota_spoils_all(
    ledger: Ledger, quotas: tuple[SetQuota, ...], reason: Reason
) -> None:
    """Nothing of a list is done of which one thing cannot be."""
    ledger.accept(gpus(4, "h100"), QuotaSaved)
    assert ledger.reason(replace(*quotas)) is reason
    elsewhere = ReplaceQuotas(account="acme/nobody", quotas=quotas)
    assert ledger.reason(elsewhere) is Reason.ACCOUNT_UNKNOWN


def test_budgets_stay_change_begin_and_end(ledger: Ledger) -> None:
    """Open budgets that are not in the list end with their period; the rest are set."""
    ledger.accept(monthly("old"), BudgetSaved)
    ledger.accept(monthly("kept"), BudgetSaved)
    both = (monthly("kept", 6 * CREDIT), monthly("new"))
    outcome = ledger.accept(ReplaceBudgets(account=ORG, budgets=both), BudgetsReplaced)
    assert [budget.name for budget in outcome.budgets] == ["kept", "new"]
    assert [budget.name for budget in outcome.ended] == ["old"]
    assert ledger.account(ORG).available == 15 * CREDIT
    ledger.wait(s=32 * 86_400)
    assert ledger.account(ORG).available == 11 * CREDIT


@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        ((monthly("a"), monthly("a")), Reason.LIMIT_INVALID),
        ((monthly("a"), monthly("b", calendar=None)), Reason.LIMIT_INVALID),
        ((monthly("a"), monthly("b", zone="Mars/Olympus")), Reason.ZONE_UNKNOWN),
        ((monthly("a"), monthly("b", ends_at=1)), Reason.WINDOW_ENDED),
        (tuple(monthly(f"b{n}") for n in range(bounds.BUDGETS_MAX + 1)), Reason.LIMIT_INVALID),
    ],
    ids=["twice the same", "no end", "an unknown zone", "over already", "too many"],
)
def test_one_wrong_budget_spoils_all(
    ledger: Ledger, budgets: tuple[SetBudget, ...], reason: Reason
) -> None:
    """Nothing of a list is done of which one thing cannot be."""
    ledger.accept(monthly("old"), BudgetSaved)
    assert ledger.reason(ReplaceBudgets(account=ORG, budgets=budgets)) is reason


def test_there_is_a_most_of_each(ledger: Ledger) -> None:
    """One quota, boost or budget more than the bound is refused, and says the bound."""
    quotas = tuple(gpus(1, f"t{n}") for n in range(bounds.QUOTAS_MAX))
    made = ledger.accept(replace(*quotas), QuotasReplaced).quotas[0]
    assert ledger.reason(gpus(1, "more")) is Reason.LIMIT_INVALID
    assert ledger.accept(gpus(2, "t0"), QuotaSaved).quota.limit == 2_000
    boost = AddBoost(target_id=made.quota_id, amount=1, ends_at=ledger.now + SECOND)
    for _ in range(bounds.BOOSTS_MAX):
        assert ledger.accept(boost, Boosted).unit is GateUnit.GPUS
    assert ledger.reason(boost) is Reason.LIMIT_INVALID
    for number in range(bounds.BUDGETS_MAX):
        ledger.accept(monthly(f"b{number}"), BudgetSaved)
    assert ledger.reason(monthly("more")) is Reason.LIMIT_INVALID


def test_limits_stand_as_admission_sees_them(ledger: Ledger) -> None:
    """Cap with boosts, what is used and held, when it resets; lapsed boosts count for nothing."""
    ledger.grant(ORG, 100 * CREDIT)
    quota = ledger.accept(gpus(4), QuotaSaved).quota.quota_id
    ledger.accept(daily(50 * CREDIT), QuotaSaved)
    terms = SetRateLimit(account=ORG, capacity=10 * CREDIT, refill_per_hour=36 * CREDIT)
    bucket = ledger.accept(terms, RateLimitSaved).bucket.bucket_id
    ledger.accept(monthly("m", 20 * CREDIT), BudgetSaved)
    ends = ledger.now + 60 * SECOND
    ledger.accept(AddBoost(target_id=quota, amount=2_000, ends_at=ends), Boosted)
    raised = AddBoost(target_id=bucket, amount=CREDIT, refill_per_hour=CREDIT, ends_at=ends)
    assert ledger.accept(raised, Boosted).is_rate_limit
    held = ledger.lease(ORG, milli_gpus=3_000).held
    book, now = ledger.view(), ledger.now
    counted, window = quota_standings(book, book.paths[ORG], now)
    assert (counted.cap, counted.used, counted.left, len(counted.boosts)) == (
        6_000,
        3_000,
        3_000,
        1,
    )
    assert (window.used, window.held, window.left) == (0, held, 50 * CREDIT - held)
    assert window.resets_at is not None
    rate = rate_limit_standing(book, book.paths[ORG], now)
    assert rate is not None
    assert (rate.cap, rate.refill, rate.level) == (11 * CREDIT, 37 * CREDIT, 10 * CREDIT - held)
    assert rate.full_at is not None
    [budget] = budget_standings(book, book.paths[ORG], now)
    assert budget.left == 20 * CREDIT
    ledger.wait(s=61)
    book, now = ledger.view(), ledger.now
    roll_due(book, now)
    counted, _ = quota_standings(book, book.paths[ORG], now)
    assert (counted.cap, counted.boosts) == (4_000, ())


def test_a_refusal_for_speed_says_how_long(ledger: Ledger) -> None:
    """The wait is that of the slowest bucket; where one never has enough there is none."""
    ledger.grant(ORG, 1_000 * CREDIT)
    user = "acme/vision/alice"
    ask = Reserve(account=user, job_id="j", gpu_type="h100", milli_gpus=1_000)
    hold = ledger.lease(user).held
    for account, refill in ((ORG, 3_600), ("acme/vision", 360)):
        terms = SetRateLimit(account=account, capacity=hold, refill_per_hour=refill * hold // 3_600)
        ledger.accept(terms, RateLimitSaved)
    ledger.lease(user)
    refused = ledger.refuse(ask)
    assert (refused.reason, refused.detail["clears_in_ms"]) == (Reason.RATE_LIMITED, 36_000_000)
    assert refused.detail["clears_at"] == ledger.now + 36_000 * SECOND
    small = SetRateLimit(account=user, capacity=1, refill_per_hour=1)
    ledger.accept(small, RateLimitSaved)
    refused = ledger.refuse(ask)
    assert "clears_in_ms" not in refused.detail


def test_tokens_that_take_ages_have_no_instant(ledger: Ledger) -> None:
    """A wait beyond the year 9999 is told as none, at admission and at a renewal."""
    ledger.grant(ORG, 10**9 * CREDIT)
    ledger.price("gold", 10**6 * CREDIT)
    lease = ledger.lease(ORG, gpu_type="gold", milli_gpus=10_000)
    capacity = lease.held * 10
    ledger.accept(SetRateLimit(account=ORG, capacity=1, refill_per_hour=1), RateLimitSaved)
    ledger.accept(SetRateLimit(account=ORG, capacity=capacity, refill_per_hour=1), RateLimitSaved)
    ask = Reserve(account=ORG, job_id="j", gpu_type="gold", milli_gpus=10_000)
    refused = ledger.refuse(ask)
    assert (refused.reason, "clears_at" in refused.detail) == (Reason.RATE_LIMITED, False)
    assert refused.reports[-1].sentence
    ledger.wait(s=60)
    told = ledger.accept(Beat(lease.reservation_id, 1, 60_000), BeatResult)
    assert (told.decision, told.clears_in_ms) == (Decision.THROTTLE, 0)
