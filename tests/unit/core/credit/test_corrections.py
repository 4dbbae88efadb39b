"""Corrections: refunds return to the grants that paid; adjustments are charged like use."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import Adjust, Refund, Settle, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import DEBT, OVERRUN
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Adjusted, Closed, Refunded, Swept
from gpucredits.core.reasons import Reason
from support.books.ledger import CREDIT, SECOND, START, Ledger


def split(ledger: Ledger) -> tuple[int, int, int]:
    """A finished job of 10,000 micro-credits: 4,000 from one grant, 6,000 from another."""
    first = ledger.grant("acme", 4_000, expires_at=START + 60 * SECOND).grant_id
    second = ledger.grant("acme", 2 * CREDIT).grant_id
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    ledger.accept(Settle(reservation_id=lease, used_ms=1_000), Closed)
    return lease, first, second


def refund(ledger: Ledger, lease: int, amount: int) -> tuple[tuple[int, int], ...]:
    """Who got how much back."""
    return ledger.accept(Refund(reservation_id=lease, amount=amount), Refunded).lots


def test_a_refund_unwinds_a_split_payment_from_its_end(ledger: Ledger) -> None:
    """Museum 12: last paid is first returned, part by part, to exactly the grants that paid."""
    lease, first, second = split(ledger)
    assert refund(ledger, lease, 5_000) == ((second, 5_000),)
    assert refund(ledger, lease, 2_000) == ((second, 1_000), (first, 1_000))
    assert ledger.lot(second).remaining == 2 * CREDIT
    assert ledger.lot(first).remaining == 1_000
    account = ledger.account("acme")
    assert (account.spent, account.available) == (3_000, 2 * CREDIT + 1_000)


def test_a_refund_never_exceeds_what_was_charged(ledger: Ledger) -> None:
    """Museum 12: the same refund twice is refused the second time."""
    lease, *_ = split(ledger)
    refund(ledger, lease, 10_000)
    again = Refund(reservation_id=lease, amount=1)
    assert ledger.reason(again) is Reason.REFUND_EXCEEDS
    assert ledger.reason(Refund(reservation_id=999, amount=1)) is Reason.RESERVATION_UNKNOWN


def test_a_refund_lives_only_as_long_as_its_grant(ledger: Ledger) -> None:
    """A grant that has ended lets the refund expire at once; one still open lives on its time."""
    lease, first, _ = split(ledger)
    refund(ledger, lease, 8_000)
    assert ledger.lot(first).remaining == 2_000
    ledger.wait(s=59)
    assert ledger.lot(first).remaining == 0
    refund(ledger, lease, 2_000)
    assert [entry.type for entry in ledger.entries()][-2:] == [EntryType.REFUND, EntryType.EXPIRE]
    account = ledger.account("acme")
    assert (account.spent, account.available) == (0, 2 * CREDIT)


def test_a_refund_during_the_job_does_not_change_its_bill(ledger: Ledger) -> None:
    """The formula goes on from the use; what was given back stays given back."""
    ledger.grant("acme", 5 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=10)
    ledger.accept(Beat(lease, 1, 10_000), BeatResult)
    refund(ledger, lease, 60_000)
    ledger.wait(s=10)
    assert ledger.accept(Beat(lease, 2, 20_000), BeatResult).settled == 200_000
    assert ledger.account("acme").spent == 140_000


def test_a_refund_of_debt_lowers_the_debt(ledger: Ledger) -> None:
    """What a postpaid account borrowed for a job is no longer owed."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=5 * CREDIT)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=10)
    ledger.accept(Settle(reservation_id=lease, used_ms=10_000), Closed)
    assert refund(ledger, lease, 30_000) == ((DEBT, 30_000),)
    account = ledger.account("acme/post")
    assert (account.debt, account.spent, account.available) == (70_000, 70_000, -70_000)


def test_a_refund_of_debt_repaid_since_is_available(ledger: Ledger) -> None:
    """Once a later grant has repaid the debt, the refund is credits again."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=5 * CREDIT)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=10)
    ledger.accept(Settle(reservation_id=lease, used_ms=10_000), Closed)
    grant = ledger.grant("acme/post", 60_000).grant_id
    assert refund(ledger, lease, 100_000) == ((DEBT, 40_000), (grant, 60_000))
    account = ledger.account("acme/post")
    assert (account.debt, account.spent, account.available) == (0, 0, 60_000)


@pytest.mark.parametrize("after", [10, 31])
def test_a_refund_of_repaid_debt_lives_as_long_as_what_repaid_it(
    ledger: Ledger, after: int
) -> None:
    """Credits that end soon do not come back as credits that never do."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=5 * CREDIT)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=10)
    ledger.accept(Settle(reservation_id=lease, used_ms=10_000), Closed)
    promo = ledger.grant("acme/post", 500_000, expires_at=ledger.now + 30 * SECOND).grant_id
    ledger.wait(s=after)
    assert refund(ledger, lease, 100_000) == ((promo, 100_000),)
    assert ledger.account("acme/post").available == (500_000 if after < 30 else 0)
    ledger.wait(s=30)
    account = ledger.account("acme/post")
    assert (account.available, account.spent, account.debt) == (0, 0, 0)


def test_a_refund_of_repaid_debt_goes_back_to_the_last_that_repaid(ledger: Ledger) -> None:
    """As with grants that paid: the last one first, and each for no more than it gave."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=5 * CREDIT)
    lease = ledger.lease("acme/post").reservation_id
    ledger.wait(s=10)
    ledger.accept(Settle(reservation_id=lease, used_ms=10_000), Closed)
    first, second = (ledger.grant("acme/post", amount).grant_id for amount in (70_000, 90_000))
    assert refund(ledger, lease, 20_000) == ((second, 20_000),)
    assert refund(ledger, lease, 50_000) == ((second, 10_000), (first, 40_000))
    assert refund(ledger, lease, 30_000) == ((first, 30_000),)
    assert (ledger.lot(first).remaining, ledger.lot(second).remaining) == (70_000, 90_000)


def test_an_adjustment_takes_credits_then_debt_then_the_house(ledger: Ledger) -> None:
    """Charged like use, and refundable like it, without touching the formula."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=CREDIT)
    grant = ledger.grant("acme/post", 30_000).grant_id
    lease = ledger.lease("acme/post", window_ms=1_000).reservation_id
    ledger.accept(Settle(reservation_id=lease), Closed)
    amount = 30_000 + CREDIT + 7
    adjusted = ledger.accept(Adjust(reservation_id=lease, amount=amount), Adjusted)
    assert adjusted.lots == ((grant, 30_000), (DEBT, CREDIT), (OVERRUN, 7))
    account = ledger.account("acme/post")
    assert (account.available, account.overrun, account.spent) == (-CREDIT, 7, amount)
    assert ledger.reservation(lease).settled == 0
    assert refund(ledger, lease, amount) == ((OVERRUN, 7), (DEBT, CREDIT), (grant, 30_000))
    account = ledger.account("acme/post")
    assert (account.available, account.overrun, account.spent) == (30_000, 0, 0)


def test_an_adjustment_leaves_holds_alone(ledger: Ledger) -> None:
    """A prepaid adjustment takes only what is not held; the running job keeps its window."""
    ledger.grant("acme", 1_200_000 + 5)
    lease = ledger.lease("acme").reservation_id
    ledger.accept(Adjust(reservation_id=lease, amount=9), Adjusted)
    account = ledger.account("acme")
    assert (account.available, account.reserved, account.overrun) == (0, 1_200_000, 4)
    ledger.wait(s=60)
    assert ledger.accept(Beat(lease, 1, 60_000), BeatResult).settled == 600_000


def test_a_refund_of_an_overrun_collected_since_is_available(ledger: Ledger) -> None:
    """Once later credits have paid the house, a refund of the job is the account's again."""
    first = ledger.grant("acme", 25_000).grant_id
    lease = ledger.lease("acme", window_ms=2_500).reservation_id
    ledger.wait(ms=2_500)
    other = ledger.lease("acme", window_ms=1_500).reservation_id
    ledger.accept(Settle(reservation_id=lease, used_ms=2_500), Closed)
    ledger.wait(s=1)
    ledger.accept(Settle(reservation_id=other, used_ms=1_000), Closed)
    grant = ledger.grant("acme", 7_000).grant_id
    assert ledger.account("acme").overrun == 3_000
    assert refund(ledger, lease, 15_000) == ((OVERRUN, 3_000), (grant, 7_000), (first, 5_000))
    account = ledger.account("acme")
    assert (account.overrun, account.available, account.spent) == (0, 12_000, 20_000)


def test_a_refund_reopens_the_end_of_its_grant(ledger: Ledger) -> None:
    """A grant used up and forgotten by the clock ends on time once credits are back in it."""
    grant = ledger.grant("acme", 10_000, expires_at=START + 60 * SECOND).grant_id
    lease = ledger.lease("acme", window_ms=1_000).reservation_id
    ledger.wait(s=1)
    ledger.accept(Settle(reservation_id=lease, used_ms=1_000), Closed)
    ledger.wait(s=1)
    ledger.accept(Sweep(account_id=ledger.account("acme").account_id), Swept)
    refund(ledger, lease, 10_000)
    assert ledger.account("acme").available == 10_000
    ledger.wait(s=60)
    assert ledger.account("acme").available == 0
    assert ledger.lot(grant).remaining == 0
