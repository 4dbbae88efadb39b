"""Credits of an account: which are spent, kept for holds, owed, and collected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import Adjust, Cancel, Settle
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Adjusted, Closed
from gpucredits.core.reservation import Decision, Exhaustion, ReservationState
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_WINDOW = 1_200_000


def test_one_hold_lets_go_of_its_own_share_however_much_is_free(ledger: Ledger) -> None:
    """With plenty available beside them, held-over credits still wait for their own holds."""
    ending = ledger.grant("acme", 2 * A_WINDOW, expires_at=START + SECOND).grant_id
    first, _ = (ledger.lease("acme").reservation_id for _ in range(2))
    ledger.wait(s=1)
    ledger.grant("acme", 9 * CREDIT)
    ledger.accept(Cancel(reservation_id=first), Closed)
    assert ledger.lot(ending).remaining == A_WINDOW


def by_canceling(ledger: Ledger, lease: int) -> None:
    """The job of a lease never starts."""
    ledger.accept(Cancel(reservation_id=lease), Closed)


def by_settling(ledger: Ledger, lease: int) -> None:
    """A job ends that used next to nothing."""
    ledger.accept(Settle(reservation_id=lease, used_ms=0), Closed)


def by_lapsing(ledger: Ledger, lease: int) -> None:
    """A node falls silent."""
    ledger.wait(s=10)
    assert ledger.reservation(lease).state is ReservationState.EXPIRED


def by_renewing_less(ledger: Ledger, lease: int) -> None:
    """A lease that is to stop at its cap is renewed for nothing."""
    assert ledger.accept(Beat(lease, 1, 0), BeatResult).decision is Decision.STOP


ENDS = (by_canceling, by_settling, by_lapsing, by_renewing_less)


@pytest.mark.parametrize("let_go", ENDS)
def test_held_over_credits_do_not_go_with_a_lease_that_came_later(
    ledger: Ledger, let_go: Callable[[Ledger, int], None]
) -> None:
    """What is kept for one hold is still there when another has come and gone."""
    ending = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    kept = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    other = ledger.grant("acme", 9 * CREDIT).grant_id
    later = ledger.lease(
        "acme", window_ms=10_000, max_amount=100_000, exhaustion=Exhaustion.STOP
    ).reservation_id
    let_go(ledger, later)
    assert ledger.lot(ending).remaining == A_WINDOW
    ledger.accept(Settle(reservation_id=kept, used_ms=1_000), Closed)
    assert ledger.reservation(kept).paid == ((ending, 10_000),)
    assert (ledger.lot(ending).remaining, ledger.lot(other).remaining) == (0, 9 * CREDIT)


def test_each_lease_lets_go_of_grants_that_ended_while_it_ran(ledger: Ledger) -> None:
    """Two grants held over in turn: the later lease frees the later one, the earlier both."""
    first = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND, priority=1_000).grant_id
    early = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    second = ledger.grant("acme", 2 * A_WINDOW, expires_at=ledger.now + SECOND).grant_id
    late, last = (ledger.lease("acme").reservation_id for _ in range(2))
    ledger.wait(s=1)
    ledger.grant("acme", 9 * CREDIT)
    ledger.accept(Cancel(reservation_id=late), Closed)
    assert (ledger.lot(first).remaining, ledger.lot(second).remaining) == (A_WINDOW, A_WINDOW)
    ledger.accept(Cancel(reservation_id=early), Closed)
    assert (ledger.lot(first).remaining, ledger.lot(second).remaining) == (0, A_WINDOW)
    ledger.accept(Cancel(reservation_id=last), Closed)
    assert ledger.lot(second).remaining == 0
    assert ledger.account("acme").available == 9 * CREDIT


def test_each_hold_is_paid_by_what_was_kept_for_it(ledger: Ledger) -> None:
    """One lease does not take what is kept for another, whichever would come first in order."""
    first = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND, priority=1_000).grant_id
    early = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    second = ledger.grant("acme", A_WINDOW, expires_at=ledger.now + SECOND, priority=1).grant_id
    late = ledger.lease("acme").reservation_id
    ledger.wait(s=118)
    ledger.accept(Settle(reservation_id=early, used_ms=119_000), Closed)
    assert ledger.reservation(early).paid == ((first, A_WINDOW * 119 // 120),)
    assert (ledger.lot(first).remaining, ledger.lot(second).remaining) == (0, A_WINDOW)
    ledger.accept(Cancel(reservation_id=late), Closed)
    assert ledger.account("acme").remaining == 0


def test_held_over_credits_stay_for_the_holds_that_are_left(ledger: Ledger) -> None:
    """Postpaid: a large hold ends, and only what the other hold does not need expires."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=A_WINDOW)
    ending = ledger.grant("acme/post", 2 * A_WINDOW, expires_at=START + SECOND).grant_id
    large = ledger.lease("acme/post", milli_gpus=2_000).reservation_id
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
    ledger.accept(Beat(lease, 1, 1_000), BeatResult)
    assert ledger.lot(pending).remaining == CREDIT
    assert ledger.account("acme/post").debt == 10_000
    ledger.wait(s=59)
    account = ledger.account("acme/post")
    assert (account.debt, ledger.lot(pending).remaining) == (0, 990_000)
