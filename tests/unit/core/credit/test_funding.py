"""Whose credits an account may spend, who pays at admission, and who takes a lease over."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.core.account import Funding, Model, Status
from gpucredits.core.command import (
    Adjust,
    CreateAccount,
    EndBudget,
    Explain,
    Refund,
    SetBudget,
    Settle,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import (
    AccountSaved,
    Adjusted,
    BudgetSaved,
    Closed,
    Explained,
    Funder,
    Refunded,
    Transferred,
)
from gpucredits.core.period import Calendar
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Exhaustion
from gpucredits.core.rules.credit.funding import shares_paid
from gpucredits.core.rules.upkeep.roll import live_leases
from support.books.asking import ALICE, alone, ask
from support.books.ledger import CREDIT, SECOND, START, Ledger

VISION = "acme/vision"
A_WINDOW = 1_200_000
SLICE = 100_000  # ten seconds of an h100


def beat(ledger: Ledger, lease: int, seq: int, *, wait_s: int = 10) -> BeatResult:
    """A heartbeat of a job that runs without a pause, ten seconds after the last."""
    ledger.wait(s=wait_s)
    elapsed = (ledger.now - ledger.reservation(lease).admitted_at) // 1_000
    return ledger.accept(Beat(lease, seq, elapsed), BeatResult)


def payer_of(ledger: Ledger, lease: int) -> str:
    """The path of the account that pays for a lease now."""
    number = ledger.reservation(lease).payer_id
    return ledger.view().accounts[number].path


def paid_by(ledger: Ledger, lease: int) -> dict[str, int]:
    """What each account has paid for a lease."""
    paths = {number: account.path for number, account in ledger.view().accounts.items()}
    shares = shares_paid(ledger.reservation(lease))
    return {paths[number]: amount for number, amount in shares}


def test_what_accounts_are_created_with(ledger: Ledger) -> None:
    """An org spends its own credits; a project and a user spend their parent's too."""
    seen = [ledger.account(path).funding for path in ("acme", VISION, ALICE)]
    assert seen == [Funding.OWN, Funding.SHARED, Funding.SHARED]
    assert ledger.open("acme/set", funding=Funding.OWN).funding is Funding.OWN
    postpaid = ledger.open("acme/post", model=Model.POSTPAID, credit_limit=CREDIT)
    assert postpaid.funding is Funding.OWN
    for command in (
        CreateAccount(path="other", funding=Funding.SHARED),
        UpdateAccount(path="acme", funding=Funding.SHARED),
    ):
        assert ledger.reason(command) is Reason.FUNDING_INVALID


def issue(ledger: Ledger) -> None:
    """A grant."""
    ledger.grant(VISION, CREDIT, expires_at=START + 60 * SECOND)


def pay(ledger: Ledger) -> None:
    """A payment that has arrived."""
    ledger.pay(VISION, CREDIT, expires_at=START + 60 * SECOND)


def move(ledger: Ledger) -> None:
    """Credits of the org."""
    ledger.grant("acme", CREDIT, expires_at=START + 60 * SECOND)
    ledger.accept(Transfer(source="acme", target=VISION, amount=CREDIT), Transferred)


def allow(ledger: Ledger) -> None:
    """A budget, of which nothing comes after the first day."""
    ledger.accept(SetBudget(account=VISION, allowance=1, calendar=Calendar.DAY), BudgetSaved)
    ledger.accept(EndBudget(account=VISION), BudgetSaved)


def lend(ledger: Ledger) -> None:
    """A credit limit, for a while."""
    terms = UpdateAccount(path=VISION, model=Model.POSTPAID, credit_limit=CREDIT)
    ledger.accept(terms, AccountSaved)
    ledger.accept(UpdateAccount(path=VISION, model=Model.PREPAID, credit_limit=0), AccountSaved)


@pytest.mark.parametrize("allocate", [issue, pay, move, allow, lend])
def test_a_project_spends_its_own_from_its_first_allocation_on(
    ledger: Ledger, allocate: Any
) -> None:
    """Whatever it is given first, and for good: when that has ended it does not spend the org's."""
    ledger.grant("acme", 100 * CREDIT)
    ledger.lease(ALICE)
    allocate(ledger)
    assert ledger.account(VISION).funding is Funding.OWN
    assert ledger.stored.became_own in ([VISION], []), "a fresh ledger notes it in the batch"
    ledger.wait(s=3 * 86_400)
    assert ledger.account(VISION).available == 0
    refused = ledger.refuse(ask())
    assert refused.reason is Reason.INSUFFICIENT_CREDITS
    assert refused.detail["account"] == ALICE, "nearest of those that come equally close"
    ledger.accept(UpdateAccount(path=VISION, funding=Funding.SHARED), AccountSaved)
    assert ledger.lease(ALICE).payer_id == ledger.account("acme").account_id
    ledger.grant(VISION, 1)
    assert ledger.account(VISION).funding is Funding.SHARED, "what an operator set stays"


def test_a_user_stays_shared_whatever_it_is_given(ledger: Ledger) -> None:
    """A user with 2 credits is admitted on the project's 1,080 for what costs more."""
    ledger.grant(VISION, 1_080 * CREDIT)
    ledger.grant(ALICE, 2 * CREDIT)
    assert ledger.account(ALICE).funding is Funding.SHARED
    large = ledger.lease(ALICE, milli_gpus=8_000)
    small = ledger.lease(ALICE)
    assert payer_of(ledger, large.reservation_id) == VISION
    assert payer_of(ledger, small.reservation_id) == ALICE


def test_a_refusal_names_who_comes_closest(ledger: Ledger) -> None:
    """Of the accounts that may pay; and it clears when the first of them could."""
    ledger.grant("acme", 3 * CREDIT)
    ledger.grant(ALICE, 2 * CREDIT)
    ledger.grant(ALICE, 50 * CREDIT, starts_at=START + 60 * SECOND)
    refused = ledger.refuse(ask(milli_gpus=8_000))
    assert (refused.detail["account"], refused.detail["available"]) == ("acme", "3")
    assert refused.detail["clears_at"] == START + 60 * SECOND
    ledger.grant(VISION, CREDIT)
    refused = ledger.refuse(ask(milli_gpus=8_000))
    assert (refused.detail["account"], refused.detail["available"]) == (ALICE, "2")


def test_an_explanation_tells_each_account_of_the_chain(ledger: Ledger) -> None:
    """Who may pay, what it can spend, whether that holds the window, and since when it could."""
    ledger.grant("acme", 30 * CREDIT)
    ledger.grant(ALICE, CREDIT)
    ledger.grant(ALICE, 9 * CREDIT, starts_at=START + 60 * SECOND)
    told = ledger.accept(Explain(reserve=ask(milli_gpus=2_000)), Explained)
    assert told.payer == "acme"
    assert told.funders == (
        Funder(ALICE, Funding.SHARED, CREDIT, can_pay=False, clears_at=START + 60 * SECOND),
        Funder(VISION, Funding.SHARED, 0, can_pay=False),
        Funder("acme", Funding.OWN, 30 * CREDIT, can_pay=True),
    )


NAMED = {
    "its own account": (ALICE, ALICE, True),
    "its project, which spends its own": (ALICE, VISION, True),
    "the org, past a project that spends its own": (ALICE, "acme", False),
    "the org, by a key of the project": (VISION, "acme", False),
    "the org, by a key of the org": ("acme", "acme", True),
    "the org, by a key of the system": ("", "acme", True),
    "an account beside it": ("acme", "acme/audio", False),
    "an account that is not there": ("", "acme/none", False),
}


@pytest.mark.parametrize(("scope", "payer", "is_valid"), NAMED.values(), ids=NAMED.keys())
def test_a_named_payer_is_in_the_chain_or_in_the_scope_of_the_key(
    ledger: Ledger, scope: str, payer: str, is_valid: bool
) -> None:
    """A key names whom its chain reaches, or whom it sees; the rest is refused before any gate."""
    ledger.open("acme/audio")
    for path in ("acme", VISION, ALICE, "acme/audio"):
        ledger.grant(path, 100 * CREDIT)
    wanted = ask(payer=payer, scope=scope)
    if is_valid:
        assert payer_of(ledger, ledger.lease(ALICE, payer=payer, scope=scope).reservation_id)
    else:
        assert ledger.reason(wanted) is Reason.PAYER_INVALID
        assert ledger.reason(Explain(reserve=wanted)) is Reason.PAYER_INVALID


def test_an_overdraft_is_asked_of_those_that_allow_it(ledger: Ledger) -> None:
    """The nearest account that allows it and can hold the window pays."""
    ledger.grant("acme", 10 * CREDIT)
    ledger.grant(ALICE, 10 * CREDIT)
    ledger.accept(UpdateAccount(path="acme", overdraft_limit=CREDIT), AccountSaved)
    lease = ledger.lease(ALICE, overdraft=CREDIT, exhaustion=Exhaustion.FINISH)
    assert payer_of(ledger, lease.reservation_id) == "acme"
    refused = ledger.refuse(ask(overdraft=2 * CREDIT))
    assert refused.reason is Reason.OVERDRAFT_TOO_LARGE
    assert refused.detail["account"] == "acme"


def test_a_lease_moves_up_when_its_payer_runs_short(ledger: Ledger) -> None:
    """What is due is settled and the rest released; the next account holds the window whole."""
    ledger.grant(VISION, 100 * CREDIT)
    ledger.grant(ALICE, A_WINDOW + SLICE)
    lease = ledger.lease(ALICE).reservation_id
    assert beat(ledger, lease, 1).decision == "continue"
    assert payer_of(ledger, lease) == ALICE
    moved = beat(ledger, lease, 2)
    assert (moved.decision, moved.held, moved.expires_in_ms) == ("continue", A_WINDOW, 120_000)
    assert payer_of(ledger, lease) == VISION
    alice, vision = ledger.account(ALICE), ledger.account(VISION)
    assert (alice.available, alice.reserved, alice.spent) == (A_WINDOW - SLICE, 0, 2 * SLICE)
    assert (vision.reserved, vision.spent) == (A_WINDOW, 0)
    assert beat(ledger, lease, 3).decision == "continue"
    ledger.accept(Settle(reservation_id=lease), Closed)
    assert paid_by(ledger, lease) == {ALICE: 2 * SLICE, VISION: SLICE}
    assert ledger.account(VISION).reserved == 0


@pytest.mark.parametrize("exhaustion", Exhaustion)
def test_a_lease_moves_before_it_stops_drains_or_overdraws(
    ledger: Ledger, exhaustion: Exhaustion
) -> None:
    """Whatever was agreed for the end of the credits, the accounts above come first."""
    ledger.grant("acme", 100 * CREDIT)
    ledger.grant(ALICE, A_WINDOW)
    lease = ledger.lease(ALICE, exhaustion=exhaustion).reservation_id
    assert beat(ledger, lease, 1).decision == "continue"
    assert payer_of(ledger, lease) == "acme", "the project has nothing, so the org is next"


def test_a_lease_does_not_move_past_an_account_that_spends_its_own(ledger: Ledger) -> None:
    """The org has plenty; a project that ran out drains all the same."""
    ledger.grant("acme", 100 * CREDIT)
    ledger.grant(VISION, A_WINDOW)
    lease = ledger.lease(ALICE).reservation_id
    answer = beat(ledger, lease, 1)
    assert (answer.decision, answer.reason) == ("drain", "insufficient_credits")
    assert payer_of(ledger, lease) == VISION
    alone(ledger, ALICE)
    ledger.accept(UpdateAccount(path=VISION, funding=Funding.SHARED), AccountSaved)
    assert beat(ledger, lease, 2).decision == "drain", "alice may spend her own credits only now"
    ledger.accept(UpdateAccount(path=ALICE, funding=Funding.SHARED), AccountSaved)
    assert beat(ledger, lease, 3).decision == "continue"
    assert payer_of(ledger, lease) == "acme"


def test_a_lease_of_a_suspended_account_does_not_move(ledger: Ledger) -> None:
    """A suspension ends it where it would have ended."""
    ledger.grant("acme", 100 * CREDIT)
    ledger.grant(ALICE, A_WINDOW)
    lease = ledger.lease(ALICE, grace_ms=120_000).reservation_id
    ledger.accept(UpdateAccount(path=ALICE, status=Status.SUSPENDED), AccountSaved)
    assert beat(ledger, lease, 1).reason == "account_suspended"
    assert payer_of(ledger, lease) == ALICE


def test_nobody_takes_over_who_cannot_hold_the_whole_window(ledger: Ledger) -> None:
    """A lease drains with its payer rather than in small steps through all accounts."""
    ledger.grant(VISION, A_WINDOW - 1)
    ledger.grant(ALICE, A_WINDOW)
    lease = ledger.lease(ALICE).reservation_id
    assert beat(ledger, lease, 1).decision == "drain"
    assert payer_of(ledger, lease) == ALICE


def test_corrections_go_to_whoever_paid(ledger: Ledger) -> None:
    """Debts of two payers stay apart, refunds go back the last one first, charges to the last."""
    for path in (VISION, ALICE):
        limit = A_WINDOW + SLICE if path == ALICE else 100 * CREDIT
        terms = UpdateAccount(path=path, model=Model.POSTPAID, credit_limit=limit)
        ledger.accept(terms, AccountSaved)
    lease = ledger.lease(ALICE).reservation_id
    for seq in range(1, 5):
        beat(ledger, lease, seq)
    assert ledger.reservation(lease).paid == ((0, 2 * SLICE), (0, 2 * SLICE))
    assert (ledger.account(ALICE).debt, ledger.account(VISION).debt) == (2 * SLICE, 2 * SLICE)
    ledger.accept(Adjust(reservation_id=lease, amount=SLICE), Adjusted)
    assert paid_by(ledger, lease) == {ALICE: 2 * SLICE, VISION: 3 * SLICE}
    ledger.accept(Refund(reservation_id=lease, amount=4 * SLICE), Refunded)
    assert paid_by(ledger, lease) == {ALICE: SLICE, VISION: 0}
    assert (ledger.account(ALICE).spent, ledger.account(VISION).spent) == (SLICE, 0)
    ledger.accept(Adjust(reservation_id=lease, amount=SLICE), Adjusted)
    assert paid_by(ledger, lease) == {ALICE: SLICE, VISION: SLICE}
    ledger.accept(Refund(reservation_id=lease, amount=2 * SLICE), Refunded)
    assert (ledger.account(ALICE).debt, ledger.account(VISION).debt) == (0, 0)


def test_a_move_that_is_taken_back_leaves_no_trace(ledger: Ledger) -> None:
    """After a rehearsal of the beat that moves a lease everything is as it was before."""
    ledger.grant("acme", 100 * CREDIT)
    ledger.grant(ALICE, A_WINDOW)
    number = ledger.lease(ALICE).reservation_id
    ledger.wait(s=10)
    book = ledger.copied()
    before = repr((book.accounts, book.reservations, book.lots, book.entries))
    book.begin()
    decide(book, Beat(number, 1, 10_000), ledger.now)
    assert [move.target for move in book.moves] == ["acme"]
    assert live_leases(book, book.paths["acme"]) == [book.reservations[number]]
    book.take_back()
    assert repr((book.accounts, book.reservations, book.lots, book.entries)) == before
    assert (book.moves, live_leases(book, book.paths["acme"])) == ([], [])
