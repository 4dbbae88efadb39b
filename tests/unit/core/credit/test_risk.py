"""Risk of accounts that pay later: unusual spending and unpaid bills, each with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucredits.core.account import Status
from gpucredits.core.command import Explain, Reserve, UpdateAccount
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import AccountSaved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.risk import AnomalyTerms, Statement, check_spend, hourly_sums, standing
from gpucredits.core.statement import CLOSES_AFTER_US, months_over
from support.books.ledger import CREDIT, SECOND, START, Ledger

TERMS = AnomalyTerms(ratio_percent=300, floor=10, hours=24)
HOURS = {
    "three times the usual is usual": ([20] * 10, 60, False),
    "a micro-credit more is not": ([20] * 10, 61, True),
    "one wild hour does not raise the baseline": ([20] * 9 + [10_000], 61, True),
    "small sums are never unusual": ([0] * 10, 10, False),
    "a quiet account that wakes up is": ([0] * 10, 11, True),
    "too little history to call anything unusual": ([20] * 5, 10_000, False),
    "just enough history": ([20] * 6, 10_000, True),
    "hours long ago do not count": ([1_000] * 30 + [20] * 24, 61, True),
}


@pytest.mark.parametrize(("past", "spent", "unusual"), HOURS.values(), ids=HOURS.keys())
def test_an_hour_is_judged_by_those_before_it(past: list[int], spent: int, unusual: bool) -> None:
    """The trailing median and the threshold decide, and are told."""
    check = check_spend([*past, spent], TERMS)
    assert check.unusual is unusual
    assert check.hours == min(len(past), 24)


def test_the_judgement_is_explained() -> None:
    """A person reads the sum, the threshold and where it comes from."""
    check = check_spend([2 * CREDIT] * 8 + [9 * CREDIT], AnomalyTerms())
    assert check.sentence == (
        "9 credits in this hour are above the threshold of 8, which follows from a median of 2 an "
        "hour over the last 8 hours."
    )


BILLS = {
    "nothing is owed": ([], 0, 0),
    "not due yet": ([(100, 0, START + 1)], 0, 0),
    "due at this instant": ([(100, 0, START)], 100, START),
    "paid in full": ([(100, 100, START - 5)], 0, 0),
    "paid in part": ([(100, 60, START - 5)], 40, START - 5),
    "several, since the first": (
        [(100, 0, START - 1), (50, 20, START - 9), (7, 0, START + 9)],
        130,
        START - 9,
    ),
}


@pytest.mark.parametrize(("bills", "overdue", "since"), BILLS.values(), ids=BILLS.keys())
def test_an_unpaid_statement_past_its_date_is_delinquency(
    bills: list[tuple[int, int, int]], overdue: int, since: int
) -> None:
    """What is overdue, and since when, follows from the statements alone."""
    rows = [Statement(1, 1, amount, due_at, paid) for amount, paid, due_at in bills]
    found = standing(rows, START)
    assert (found.overdue, found.since, found.is_delinquent) == (overdue, since, overdue > 0)
    assert ("overdue since" in found.sentence) is found.is_delinquent


def test_a_delinquent_account_is_paused_until_it_pays(ledger: Ledger) -> None:
    """It admits nothing and drains what runs; payment resumes it."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease("acme", grace_ms=60_000).reservation_id
    ledger.accept(UpdateAccount(path="acme", delinquent=True), AccountSaved)
    ask = Reserve(account="acme/vision", job_id="b", gpu_type="h100", milli_gpus=1_000)
    for command in (ask, Explain(reserve=ask)):
        refused = ledger.do(command)
        assert isinstance(refused, Refused)
        assert refused.reason is Reason.ACCOUNT_DELINQUENT
        assert refused.message == (
            "A statement of acme is unpaid past its due date, so acme admits nothing; paying what "
            "is overdue resumes it."
        )
        assert refused.detail == {"account": "acme", "as_of": ledger.now}
    ledger.wait(s=10)
    beaten = ledger.accept(Beat(lease, 1, 10_000), BeatResult)
    assert (beaten.decision, beaten.reason) == ("drain", "account_delinquent")
    ledger.accept(UpdateAccount(path="acme", delinquent=False), AccountSaved)
    ledger.lease("acme/vision")
    assert ledger.accept(Beat(lease, 2, 10_000), BeatResult).decision == "continue"


def test_payment_does_not_resume_what_an_operator_suspended(ledger: Ledger) -> None:
    """The two suspensions are separate: both have to be lifted."""
    ledger.grant("acme", 10 * CREDIT)
    suspend = UpdateAccount(path="acme", delinquent=True, status=Status.SUSPENDED)
    ledger.accept(suspend, AccountSaved)
    ledger.accept(UpdateAccount(path="acme", delinquent=False), AccountSaved)
    ask = Reserve(account="acme", job_id="b", gpu_type="h100", milli_gpus=1_000)
    assert ledger.reason(ask) is Reason.ACCOUNT_SUSPENDED
    ledger.accept(UpdateAccount(path="acme", status=Status.ACTIVE), AccountSaved)
    ledger.lease("acme")


def test_resuming_tells_what_still_stands(ledger: Ledger) -> None:
    """An unpaid statement, or a pause above, outlasts an operator's resume; the answer says so."""
    resume = UpdateAccount(path="acme", status=Status.ACTIVE)
    assert ledger.accept(resume, AccountSaved).stands is None
    both = UpdateAccount(path="acme", delinquent=True, status=Status.SUSPENDED)
    assert ledger.accept(both, AccountSaved).stands is None
    saved = ledger.accept(resume, AccountSaved)
    assert (saved.account.status, saved.account.delinquent) == (Status.ACTIVE, True)
    assert saved.stands is not None
    assert saved.stands.reason is Reason.ACCOUNT_DELINQUENT
    below = ledger.accept(replace(resume, path="acme/vision"), AccountSaved)
    assert below.stands is not None
    assert below.stands.detail["account"] == "acme"
    ledger.accept(UpdateAccount(path="acme", delinquent=False), AccountSaved)
    assert ledger.accept(resume, AccountSaved).stands is None


def test_a_month_closes_one_minute_after_its_end() -> None:
    """Not before, so that its last charges are in it; in the zone whose months they are."""
    end = 1_772_323_200 * SECOND  # 2026-03-01 in UTC
    february = 1_769_904_000 * SECOND
    assert months_over(end + CLOSES_AFTER_US - 1, "UTC") == february
    assert months_over(end + CLOSES_AFTER_US, "UTC") == end
    assert CLOSES_AFTER_US == 60 * SECOND
    berlin = end - 3_600 * SECOND
    assert months_over(berlin + CLOSES_AFTER_US, "Europe/Berlin") == berlin


def test_hours_come_from_marks_of_what_was_spent_in_all() -> None:
    """Hours without a mark count as nothing, and nothing is known before the first."""
    marks = [(10, 500), (11, 503), (14, 513), (15, 510), (16, 520)]
    assert hourly_sums(marks, 16, 168) == [3, 0, 0, 10, 0, 10]
    assert hourly_sums(marks, 18, 168) == [3, 0, 0, 10, 0, 10, 0, 0]
    assert hourly_sums(marks, 16, 2) == [10, 0, 10]
    assert hourly_sums([], 16, 168) == []
