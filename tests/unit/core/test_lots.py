"""Credits of an account: which are spent, kept for holds, owed, and collected."""

from __future__ import annotations

from gpucredits.core.account import Model
from gpucredits.core.command import Adjust, Beat, Cancel
from gpucredits.core.outcome import Adjusted, Beaten, Closed
from support.ledger import CREDIT, SECOND, START, Ledger

A_WINDOW = 1_200_000


def test_one_hold_lets_go_of_its_own_share_however_much_is_free(ledger: Ledger) -> None:
    """With plenty available beside them, held-over credits still wait for their own holds."""
    ending = ledger.grant("acme", 2 * A_WINDOW, expires_at=START + SECOND).grant_id
    first, _ = (ledger.lease("acme").reservation_id for _ in range(2))
    ledger.wait(s=1)
    ledger.grant("acme", 9 * CREDIT)
    ledger.accept(Cancel(reservation_id=first), Closed)
    assert ledger.lot(ending).remaining == A_WINDOW


def test_held_over_credits_stay_for_the_holds_that_are_left(ledger: Ledger) -> None:
    """Postpaid: a large hold ends, and only what the other hold does not need expires."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=A_WINDOW)
    ending = ledger.grant("acme/post", 2 * A_WINDOW, expires_at=START + SECOND).grant_id
    large = ledger.lease("acme/post", gpu_count=2).reservation_id
    ledger.lease("acme/post")
    ledger.wait(s=1)
    assert ledger.lot(ending).remaining == 2 * A_WINDOW
    ledger.accept(Cancel(reservation_id=large), Closed)
    assert ledger.lot(ending).remaining == A_WINDOW
    assert ledger.account("acme/post").available == 0


def test_the_house_collects_only_what_is_free(ledger: Ledger) -> None:
    """Credits that arrive below zero back the holds first; what rises above is collected."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=A_WINDOW)
    lease = ledger.lease("acme/post").reservation_id
    ledger.accept(Adjust(reservation_id=lease, amount=7), Adjusted)
    ledger.grant("acme/post", A_WINDOW)
    account = ledger.account("acme/post")
    assert (account.available, account.overrun) == (0, 7)
    ledger.grant("acme/post", 5)
    account = ledger.account("acme/post")
    assert (account.available, account.overrun) == (0, 2)


def test_pending_credits_do_not_pay(ledger: Ledger) -> None:
    """A postpaid account borrows rather than spend a grant that has not started."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=9 * CREDIT)
    pending = ledger.grant("acme/post", CREDIT, starts_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 1, 1_000), Beaten)
    assert ledger.lot(pending).remaining == CREDIT
    assert ledger.account("acme/post").debt == 10_000
    ledger.wait(s=59)
    account = ledger.account("acme/post")
    assert (account.debt, ledger.lot(pending).remaining) == (0, 990_000)
