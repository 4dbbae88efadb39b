"""A report's slice is cut where grants started or ended: each piece is paid as it was then."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import Settle
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_SECOND = 10_000  # what one h100 costs
EVERY_TEN = range(10, 100, 10)


@pytest.mark.parametrize("beats", [EVERY_TEN, (), (59,), (60,), (61,), (10, 90)], ids=repr)
def test_a_grant_pays_up_to_its_end_however_often_a_job_reports(
    ledger: Ledger, beats: range | tuple[int, ...]
) -> None:
    """Two identical jobs across a grant's end leave the same, whatever they report in between."""
    ending = ledger.grant("acme", 2 * CREDIT, expires_at=START + 60 * SECOND).grant_id
    lasting = ledger.grant("acme", 10 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    for seq, at in enumerate(beats, start=1):
        ledger.now = START + at * SECOND
        ledger.accept(Beat(lease, seq, at * 1_000), BeatResult)
    ledger.now = START + 100 * SECOND
    ledger.accept(Settle(reservation_id=lease, used_ms=100_000), Closed)
    assert ledger.reservation(lease).paid == ((ending, 60 * A_SECOND), (lasting, 40 * A_SECOND))
    assert ledger.lot(lasting).remaining == 10 * CREDIT - 40 * A_SECOND
    assert ledger.account("acme").available == 10 * CREDIT - 40 * A_SECOND


def test_use_before_a_grant_began_is_not_paid_by_it(ledger: Ledger) -> None:
    """A grant that comes first in the order pays from its start on, not for the whole slice."""
    lasting = ledger.grant("acme", 10 * CREDIT).grant_id
    starting = ledger.grant("acme", CREDIT, starts_at=START + 30 * SECOND, priority=1).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=50)
    issued = ledger.grant("acme", CREDIT, starts_at=START - SECOND, priority=0).grant_id
    ledger.wait(s=10)
    ledger.accept(Beat(lease, 1, 60_000), BeatResult)
    assert ledger.reservation(lease).paid == (
        (lasting, 30 * A_SECOND),
        (starting, 20 * A_SECOND),
        (issued, 10 * A_SECOND),
    )


def test_use_is_spread_evenly_over_its_slice(ledger: Ledger) -> None:
    """A job that ran a third of the time has used a third of it before the end of a grant."""
    ending = ledger.grant("acme", 2 * CREDIT, expires_at=START + 60 * SECOND).grant_id
    lasting = ledger.grant("acme", 10 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=90)
    ledger.accept(Beat(lease, 1, 30_000), BeatResult)
    assert ledger.reservation(lease).paid == ((ending, 20 * A_SECOND), (lasting, 10 * A_SECOND))
    assert ledger.lot(ending).remaining == 0


def test_rounding_changes_no_bill() -> None:
    """Pieces are differences of what the use up to their ends costs."""
    ledger = Ledger()
    ledger.price("h100", 7_000)
    ledger.open("acme")
    grants = [
        ledger.grant("acme", CREDIT, expires_at=START + at * SECOND + 1, priority=at).grant_id
        for at in range(1, 60)
    ]
    grants.append(ledger.grant("acme", CREDIT, priority=1_000).grant_id)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=119)
    closed = ledger.accept(Settle(reservation_id=lease, used_ms=118_999), Closed)
    assert closed.settled == 7_000 * 118_999 // 3_600_000
    assert sum(part for _, part in ledger.reservation(lease).paid) == closed.settled


def test_what_the_grants_of_then_lack_others_pay(ledger: Ledger) -> None:
    """A piece for which nobody then had enough is paid by whoever has credits now."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=10 * CREDIT)
    small = ledger.grant("acme/post", A_SECOND, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=100)
    late = ledger.grant("acme/post", 30 * A_SECOND).grant_id
    ledger.accept(Beat(lease, 1, 100_000), BeatResult)
    paid = ledger.reservation(lease).paid
    assert paid == ((small, A_SECOND), (late, 30 * A_SECOND), (0, 69 * A_SECOND))
