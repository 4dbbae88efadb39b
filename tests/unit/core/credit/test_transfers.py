"""A transfer moves lots: unheld active credits, windows kept, in any direction."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import Settle, Transfer
from gpucredits.core.grant import Source
from gpucredits.core.outcome import Closed, Transferred
from gpucredits.core.reasons import Reason
from support.books.ledger import CREDIT, SECOND, START, Ledger

ALICE = "acme/vision/alice"
A_WINDOW = 1_200_000


def move(ledger: Ledger, source: str, target: str, amount: int) -> Transferred:
    """A transfer that must be accepted."""
    command = Transfer(source=source, target=target, amount=amount)
    return ledger.accept(command, Transferred)


def test_a_transfer_keeps_window_priority_and_source(ledger: Ledger) -> None:
    """What arrives is linked to the grant it left and is like it in everything else."""
    left = ledger.grant(
        "acme", 5, expires_at=START + SECOND, priority=7, source=Source.PROMO, starts_at=START - 3
    )
    ((from_id, to_id, part),) = move(ledger, "acme", ALICE, 3).lots
    arrived = ledger.lot(to_id)
    assert (from_id, part, arrived.remaining, arrived.amount) == (left.grant_id, 3, 3, 3)
    assert arrived.origin_id == left.grant_id
    assert (arrived.starts_at, arrived.expires_at) == (left.starts_at, left.expires_at)
    assert (arrived.priority, arrived.source) == (7, Source.PROMO)
    assert ledger.account("acme").available == 2


@pytest.mark.parametrize("target", ["other", "other/p"])
def test_another_org_is_not_looked_into(ledger: Ledger, target: str) -> None:
    """Whether an account of another org exists is nobody's business here."""
    ledger.grant("acme", 5)
    abroad = Transfer(source="acme", target=target, amount=1)
    assert ledger.reason(abroad) is Reason.CROSS_ORG
    unknown = Transfer(source="acme/nobody", target=target, amount=1)
    assert ledger.reason(unknown) is Reason.ACCOUNT_UNKNOWN


def test_credits_are_not_laundered_into_longer_life(ledger: Ledger) -> None:
    """However often they move, they end when they always would have."""
    ledger.grant("acme", 5, expires_at=START + SECOND)
    for source, target in (("acme", ALICE), (ALICE, "acme/vision"), ("acme/vision", "acme")) * 3:
        move(ledger, source, target, 5)
    ledger.wait(s=1)
    assert [account.available for account in ledger.view().accounts.values()] == [0, 0, 0]


def test_arrived_credits_end_where_they_arrived(ledger: Ledger) -> None:
    """The receiver's account knows the end of what it received, and who pays knows it too."""
    ledger.grant("acme", 5 * CREDIT, expires_at=START + SECOND)
    move(ledger, "acme", ALICE, 5 * CREDIT)
    lease = ledger.lease(ALICE)
    assert lease.payer_id == ledger.account(ALICE).account_id
    ledger.wait(s=1)
    assert ledger.account(ALICE).available == 0
    assert ledger.account(ALICE).remaining == A_WINDOW


def test_claw_back_is_the_same_transfer_the_other_way(ledger: Ledger) -> None:
    """Down and up again: everyone has what they had."""
    ledger.grant("acme", 5)
    move(ledger, "acme", ALICE, 4)
    move(ledger, ALICE, "acme", 4)
    assert ledger.account("acme").available == 5
    assert ledger.account(ALICE).available == 0


def test_lots_leave_in_consumption_order(ledger: Ledger) -> None:
    """The soonest to end goes first; the second transfer joins the lot of the first."""
    late = ledger.grant("acme", 5).grant_id
    soon = ledger.grant("acme", 5, expires_at=START + SECOND).grant_id
    lots = move(ledger, "acme", ALICE, 7).lots
    assert [(left, part) for left, _, part in lots] == [(soon, 5), (late, 2)]
    again = move(ledger, "acme", ALICE, 1).lots
    assert again == ((late, lots[1][1], 1),)
    assert ledger.lot(lots[1][1]).remaining == 3


def test_held_pending_and_borrowed_credits_do_not_move(ledger: Ledger) -> None:
    """A hold, a grant not started and a credit limit are not there to be given away."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=CREDIT)
    command = Transfer(source="acme/post", target="acme", amount=1)
    assert ledger.reason(command) is Reason.INSUFFICIENT_CREDITS
    ledger.grant("acme", A_WINDOW + 5)
    ledger.grant("acme", 50, starts_at=START + SECOND)
    ledger.lease("acme")
    too_much = Transfer(source="acme", target=ALICE, amount=6)
    assert ledger.reason(too_much) is Reason.INSUFFICIENT_CREDITS
    move(ledger, "acme", ALICE, 5)


def test_held_over_credits_do_not_move(ledger: Ledger) -> None:
    """Credits kept past their end for a hold stay with it; active ones beside them move."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    ledger.lease("acme")
    ledger.wait(s=1)
    active = ledger.grant("acme", 5).grant_id
    assert [left for left, _, _ in move(ledger, "acme", ALICE, 5).lots] == [active]
    assert ledger.lot(ending).remaining == A_WINDOW
    assert ledger.reason(Transfer(source="acme", target=ALICE, amount=1)) is (
        Reason.INSUFFICIENT_CREDITS
    )


def test_arriving_credits_repay_debt_first(ledger: Ledger) -> None:
    """A transfer to a postpaid account in debt repays it before anything is available."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=10 * CREDIT)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=100)
    ledger.accept(Settle(reservation_id=lease, used_ms=100_000), Closed)
    ledger.grant("acme", 3 * CREDIT)
    move(ledger, "acme", "acme/post", 3 * CREDIT)
    account = ledger.account("acme/post")
    assert (account.debt, account.available, account.spent) == (0, 2 * CREDIT, CREDIT)


REFUSED = {
    "to itself": ("acme", "acme", Reason.SAME_ACCOUNT),
    "from nowhere": ("acme/none", "acme", Reason.ACCOUNT_UNKNOWN),
    "to nowhere": ("acme", "acme/none", Reason.ACCOUNT_UNKNOWN),
    "to another org, whether or not it exists": ("acme", "other", Reason.CROSS_ORG),
    "with nothing to give": ("acme", ALICE, Reason.INSUFFICIENT_CREDITS),
}


@pytest.mark.parametrize(("source", "target", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_transfers_that_are_refused(
    ledger: Ledger, source: str, target: str, reason: Reason
) -> None:
    """Museum 26: self-transfers and transfers over the org's edge move nothing."""
    assert ledger.reason(Transfer(source=source, target=target, amount=1)) is reason
