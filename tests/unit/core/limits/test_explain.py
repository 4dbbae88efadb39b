"""Explaining an admission: every gate at every scope, on the road of the real thing, no residue."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model, Status
from gpucredits.core.command import (
    AddBoost,
    Explain,
    Reserve,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
    UpdateAccount,
)
from gpucredits.core.gate import FairShareVerdict, Gate
from gpucredits.core.outcome import (
    AccountSaved,
    Boosted,
    BudgetSaved,
    Closed,
    Explained,
    QuotaSaved,
    RateLimitSaved,
    Reserved,
)
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Kind, Reason, Refused, kind_of
from support.books.asking import ALICE, ask
from support.books.ledger import CREDIT, SECOND, START, Ledger

SCOPES = ["acme", "acme/vision", ALICE]
A_WINDOW = 1_200_000
NO_TURN = FairShareVerdict(
    passes=False,
    limit=8,
    current=8,
    requested=1,
    sentence="acme holds 8 of the 8 GPUs that are its share, and others are waiting.",
)


def limit_everything(ledger: Ledger, limit: int) -> None:
    """Every sort of quota and a rate limit at every scope."""
    for path in SCOPES:
        for dimension in reversed(Dimension):
            window = dimension is Dimension.CREDITS_PER_WINDOW
            command = SetQuota(
                account=path,
                dimension=dimension,
                limit=limit,
                calendar=Calendar.DAY if window else None,
            )
            ledger.accept(command, QuotaSaved)
        rate = SetRateLimit(account=path, capacity=limit, refill_per_hour=limit)
        ledger.accept(rate, RateLimitSaved)


def explain(ledger: Ledger, command: Reserve) -> Explained:
    """An explanation, which must leave no trace."""
    before = ledger.dump()
    explained = ledger.accept(Explain(reserve=command), Explained)
    assert ledger.dump() == before, "an explanation leaves everything as it was"
    return explained


def test_every_gate_at_every_scope_is_reported_in_order(ledger: Ledger) -> None:
    """Budget, then quotas from org to user, then rate limits, then fair share."""
    ledger.grant("acme", 100 * CREDIT)
    limit_everything(ledger, 100 * CREDIT)
    turn = FairShareVerdict(passes=True, limit=8, current=2, requested=1, sentence="There is room.")
    explained = explain(ledger, ask(fair_share=turn))
    assert [(report.gate, report.account) for report in explained.reports] == [
        (Gate.BUDGET, "acme"),
        *((Gate.QUOTA, path) for path in SCOPES for _ in range(4)),
        *((Gate.RATE_LIMIT, path) for path in SCOPES),
        (Gate.FAIR_SHARE, ALICE),
    ]
    names = [report.name for report in explained.reports[1:5]]
    assert names == [
        *("credits per job", "concurrent GPUs", "concurrent jobs"),
        "credits per day (UTC)",
    ]
    assert explained.admitted
    assert all(report.passes and report.sentence for report in explained.reports)
    assert [report.scope for report in explained.reports[-4:-1]] == ["org", "project", "user"]


def test_an_explanation_names_price_payer_and_grants(ledger: Ledger) -> None:
    """Who pays, at which price, how much is held, and from which grants it would come."""
    first = ledger.grant("acme/vision", 1_000_000, expires_at=START + 100 * SECOND)
    second = ledger.grant("acme/vision", CREDIT)
    explained = explain(ledger, ask())
    assert (explained.payer, explained.price, explained.hold) == (
        *("acme/vision", 36 * CREDIT),
        A_WINDOW,
    )
    assert explained.lots == ((first.grant_id, 1_000_000), (second.grant_id, 200_000))
    assert explained.lease_ms == 120_000


def test_a_postpaid_account_would_pay_by_debt(ledger: Ledger) -> None:
    """Beyond its grants the lots name a debt, and the budget's limit is the credit limit."""
    ledger.open("acme/late", model=Model.POSTPAID, credit_limit=2 * CREDIT)
    command = Reserve(account="acme/late", job_id="j", gpu_type="h100", milli_gpus=1_000)
    explained = explain(ledger, command)
    assert explained.lots == ((0, A_WINDOW),)
    budget = explained.reports[0]
    assert (budget.limit, budget.current, budget.requested) == (2 * CREDIT, 0, A_WINDOW)


@pytest.mark.parametrize("gpus", [1, 3, 9])
def test_an_explanation_and_the_decision_never_differ(ledger: Ledger, gpus: int) -> None:
    """Whatever is explained is what happens, with the same reports in a refusal."""
    ledger.grant("acme", 8 * CREDIT)
    limit_everything(ledger, 5 * CREDIT)
    explained = explain(ledger, ask(milli_gpus=1_000 * gpus))
    outcome = ledger.do(ask(milli_gpus=1_000 * gpus))
    assert isinstance(outcome, Reserved) is explained.admitted
    if isinstance(outcome, Refused):
        assert outcome.reports == explained.reports
        failing = [report for report in outcome.reports if not report.passes]
        assert outcome.message == failing[0].sentence


PRECEDENCE = {
    "credits before everything": (["budget", "quota", "rate", "share"], "insufficient_credits"),
    "a quota before the rate": (["quota", "rate", "share"], "quota_exceeded"),
    "the rate before fairness": (["rate", "share"], "rate_limited"),
    "fairness last": (["share"], "fair_share"),
}


@pytest.mark.parametrize(("closed", "reason"), PRECEDENCE.values(), ids=PRECEDENCE.keys())
def test_a_refusal_names_the_most_lasting_obstacle(
    ledger: Ledger, closed: list[str], reason: str
) -> None:
    """Of several closed gates the first in the documented order is the reason, and all are told."""
    ledger.grant("acme", A_WINDOW - ("budget" in closed))
    if "quota" in closed:
        quota = SetQuota(account=ALICE, dimension=Dimension.CONCURRENT_GPUS, limit=0)
        ledger.accept(quota, QuotaSaved)
    if "rate" in closed:
        rate = SetRateLimit(account="acme", capacity=1, refill_per_hour=1)
        ledger.accept(rate, RateLimitSaved)
    verdict = NO_TURN if "share" in closed else None
    refused = ledger.refuse(ask(fair_share=verdict))
    assert refused.reason == reason
    failing = [report.gate for report in refused.reports if not report.passes]
    assert len(failing) == len(closed)


def test_fair_share_is_refused_in_the_words_of_the_pool(ledger: Ledger) -> None:
    """A tenant with credits waits for its turn; the sentence is the dispatcher's."""
    ledger.grant("acme", 100 * CREDIT)
    refused = ledger.refuse(ask(fair_share=NO_TURN))
    assert (refused.reason, kind_of(refused.reason)) == (Reason.FAIR_SHARE, Kind.CONFLICT)
    assert refused.message == NO_TURN.sentence
    assert refused.detail["name"] == "fair share of h100 in default"


def test_a_tenant_within_its_share_still_needs_credits(ledger: Ledger) -> None:
    """The gates are independent: fairness says yes, the budget says no."""
    turn = FairShareVerdict(passes=True, limit=8, current=0, requested=1, sentence="There is room.")
    ledger.grant("acme", 1)
    assert ledger.reason(ask(fair_share=turn)) is Reason.INSUFFICIENT_CREDITS


def test_credits_on_their_way_say_when_they_come(ledger: Ledger) -> None:
    """A pending grant or the next allowance that makes up for the lack is when it clears."""
    ledger.grant("acme", 500_000)
    ledger.grant("acme", 500_000, starts_at=START + 10 * SECOND)
    assert "clears_at" not in ledger.refuse(ask()).detail
    ledger.grant("acme", 500_000, starts_at=START + 20 * SECOND)
    refused = ledger.refuse(ask())
    assert refused.detail["clears_at"] == START + 20 * SECOND
    budget = SetBudget(
        account="acme", allowance=CREDIT, calendar=Calendar.DAY, starts_at=START + 5 * SECOND
    )
    ledger.accept(budget, BudgetSaved)
    assert ledger.refuse(ask()).detail["clears_at"] == START + 5 * SECOND


def test_a_boost_to_come_is_part_of_when_it_clears(ledger: Ledger) -> None:
    """The limit that counts at the end of the window is the one that will be in force then."""
    ledger.grant("acme", 100 * CREDIT)
    command = SetQuota(
        account="acme",
        dimension=Dimension.CREDITS_PER_WINDOW,
        limit=0,
        calendar=Calendar.DAY,
    )
    quota = ledger.accept(command, QuotaSaved).quota
    assert "clears_at" not in ledger.refuse(ask()).detail
    midnight = START - START % (86_400 * SECOND) + 86_400 * SECOND
    boost = AddBoost(
        target_id=quota.quota_id,
        amount=2 * CREDIT,
        starts_at=midnight,
        ends_at=midnight + SECOND,
    )
    ledger.accept(boost, Boosted)
    assert ledger.refuse(ask()).detail["clears_at"] == midnight
    ledger.now = midnight
    ledger.lease(ALICE)


def test_what_makes_no_sense_is_refused_before_any_gate(ledger: Ledger) -> None:
    """An unknown account, no price or a suspension are told as they always are."""
    assert ledger.reason(Explain(reserve=ask(gpu_type="none"))) is Reason.PRICE_UNKNOWN
    ledger.accept(UpdateAccount(path="acme", status=Status.SUSPENDED), AccountSaved)
    assert ledger.reason(Explain(reserve=ask())) is Reason.ACCOUNT_SUSPENDED


def test_an_explanation_sees_what_the_clock_has_made_true(ledger: Ledger) -> None:
    """Museum 19: lapsed leases are seen as lapsed, and nothing of that is written down."""
    ledger.grant("acme", A_WINDOW)
    limit_everything(ledger, A_WINDOW)
    ledger.lease(ALICE)
    assert not explain(ledger, ask()).admitted
    ledger.wait(s=120)
    entries = len(ledger.entries())
    assert explain(ledger, ask()).admitted
    assert len(ledger.entries()) == entries


def test_sentences_that_pass_say_what_is_left(ledger: Ledger) -> None:
    """A person reads the numbers of an open gate as well."""
    ledger.grant("acme", 2 * CREDIT)
    report = explain(ledger, ask()).reports[0]
    assert report.sentence == (
        "acme passes its credits: 0 of 2 credits are taken, 1.2 would be added and 0.8 would be "
        "left."
    )


def test_a_refusal_clears_when_every_closed_gate_does(ledger: Ledger) -> None:
    """Of an hour and a month that are both full, the month says when; of a cap, nobody does."""
    ledger.grant("acme", 100 * CREDIT)
    window = Dimension.CREDITS_PER_WINDOW
    for calendar in (Calendar.DAY, Calendar.MONTH):
        quota = SetQuota(account="acme", dimension=window, limit=A_WINDOW, calendar=calendar)
        ledger.accept(quota, QuotaSaved)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=100)
    ledger.accept(Settle(reservation_id=lease, used_ms=100_000), Closed)
    refused = ledger.refuse(ask())
    instants = [report.clears_at for report in refused.reports if not report.passes]
    assert len(set(instants)) == 2
    assert instants[0] < instants[1] == refused.detail["clears_at"]  # type: ignore[operator]
    cap = SetQuota(account="acme", dimension=Dimension.CREDITS_PER_JOB, limit=1)
    ledger.accept(cap, QuotaSaved)
    gpus = SetQuota(account="acme", dimension=Dimension.CONCURRENT_GPUS, limit=0)
    ledger.accept(gpus, QuotaSaved)
    assert "clears_at" not in ledger.refuse(ask()).detail
