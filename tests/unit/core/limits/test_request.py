"""Budget requests: their states, and the one command that an approval stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core import bounds
from gpucredits.core.budget import Budget, Rollover
from gpucredits.core.command import AddBoost, Issue, SetBudget, Transfer
from gpucredits.core.period import Calendar
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.request import (
    OPEN_MAX,
    BudgetRequest,
    RequestKind,
    RequestState,
    RequestTerms,
    applied,
    approve,
    check_new,
    close,
    command_of,
    reopened,
    state_at,
)
from gpucredits.core.rules.limits.budgets import whole_budget

NOW, LATER = 1_000, 2_000
TERMS = RequestTerms(amount=7, ends_at=LATER)


def ask(**change: Any) -> BudgetRequest:
    """An open request of acme for five micro-credits until LATER."""
    usual: dict[str, Any] = {
        "org_id": 1,
        "request_id": 9,
        "account": "acme",
        "kind": RequestKind.CREDITS,
        "amount": 5,
        "reason": "why not",
        "asked_by": "key_1_1",
        "asked_at": 0,
        "expires_at": LATER,
    }
    return BudgetRequest(**(usual | change))


def approved(**change: Any) -> BudgetRequest:
    """A request that was approved with TERMS."""
    row = approve(ask(**change), TERMS, actor="boss", note="", now=NOW)
    assert isinstance(row, BudgetRequest)
    return row


def reason(answer: BudgetRequest | Refused | None) -> Reason | None:
    """Why not, or None."""
    return answer.reason if isinstance(answer, Refused) else None


@pytest.mark.parametrize("state", [each for each in RequestState if each is not RequestState.OPEN])
def test_only_an_open_request_is_decided(state: RequestState) -> None:
    """Whatever else it is, it can be neither approved nor closed."""
    row = replace(ask(), state=state)
    assert reason(approve(row, TERMS, actor="b", note="", now=NOW)) is Reason.REQUEST_STATE
    closed = close(row, RequestState.DECLINED, actor="b", note="", now=NOW)
    assert reason(closed) is Reason.REQUEST_STATE


def test_an_open_request_ends_at_its_instant() -> None:
    """One microsecond before it is open, at it no longer; a decided one does not expire."""
    assert state_at(ask(), LATER - 1) is RequestState.OPEN
    assert state_at(ask(), LATER) is RequestState.EXPIRED
    late = approve(ask(), RequestTerms(amount=1), actor="b", note="", now=LATER)
    assert reason(late) is Reason.REQUEST_STATE
    assert state_at(approved(), LATER) is RequestState.APPROVING


def test_an_end_that_has_passed_is_refused() -> None:
    """Neither asked for nor approved."""
    past = RequestTerms(amount=1, ends_at=NOW)
    assert reason(check_new("acme", past, open_now=0, now=NOW)) is Reason.WINDOW_ENDED
    assert reason(approve(ask(), past, actor="b", note="", now=NOW)) is Reason.WINDOW_ENDED
    assert check_new("acme", replace(past, ends_at=NOW + 1), open_now=0, now=NOW) is None


def test_open_requests_are_bounded() -> None:
    """The twentieth may be asked, the twenty-first not."""
    assert check_new("acme", TERMS, open_now=OPEN_MAX - 1, now=NOW) is None
    refused = check_new("acme", TERMS, open_now=OPEN_MAX, now=NOW)
    assert reason(refused) is Reason.REQUESTS_FULL


def test_each_attempt_has_a_key_of_its_own() -> None:
    """A refused approval is open again, without its decision, and the next has another key."""
    first = approved()
    again = reopened(first, "said why")
    assert (again.state, again.decided_by, again.refusal) == (RequestState.OPEN, "", "said why")
    second = approve(again, TERMS, actor="b", note="", now=NOW)
    assert isinstance(second, BudgetRequest)
    assert (first.key, second.key, second.refusal) == ("request 9 1", "request 9 2", "")
    assert applied(second, "grt_1_1").state is RequestState.APPROVED


def test_an_approval_stands_for_one_command() -> None:
    """Credits are issued or moved, quotas and rate limits boosted, on the approved terms."""
    label = {"request": "ask_1_9"}
    issue = Issue(account="acme", amount=7, expires_at=LATER, metadata=label)
    assert command_of(approved()) == issue
    moved = replace(approved(), taken_from="acme/pot")
    assert command_of(moved) == Transfer(source="acme/pot", target="acme", amount=7, metadata=label)
    for kind in (RequestKind.QUOTA, RequestKind.RATE_LIMIT):
        boost = AddBoost(target_id=4, amount=7, ends_at=LATER, note="why not")
        assert command_of(approved(kind=kind, target_id=4)) == boost


BUDGET_TERMS = (
    *("allowance", "calendar", "zone", "ends_at", "rollover", "rollover_cap", "rollover_us"),
    *("priority", "warn_percent"),
)


def test_a_budget_keeps_everything_but_its_allowance() -> None:
    """Its calendar, zone, rollover, end and warnings stay; a new one is monthly."""
    budget = Budget(
        1,
        1,
        "gpu",
        100,
        0,
        calendar=Calendar.WEEK,
        zone="Asia/Tokyo",
        ends_at=9_999,
        rollover=Rollover.CAPPED,
        rollover_cap=3,
        rollover_us=4,
        priority=5,
        warn_percent=(50,),
    )
    row = replace(approved(kind=RequestKind.BUDGET, budget="gpu"), given_ends_at=bounds.NEVER_US)
    command = command_of(row)
    assert isinstance(command, SetBudget)
    whole = whole_budget(command, budget)
    assert replace(budget, allowance=7) == replace(
        budget, **{name: getattr(whole, name) for name in BUDGET_TERMS}
    )
    fresh = whole_budget(command, None)
    assert (fresh.calendar, fresh.ends_at) == (Calendar.MONTH, bounds.NEVER_US)
    ended = command_of(replace(row, given_ends_at=LATER))
    assert isinstance(ended, SetBudget)
    assert whole_budget(ended, budget).ends_at == LATER
