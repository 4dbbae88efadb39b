"""Corrections that look back at what was written long before: on a real database."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import (
    CreateAccount,
    FailTopUp,
    Issue,
    Refund,
    Reserve,
    ReverseTopUp,
    Settle,
    TopUp,
    Transfer,
)
from gpucredits.core.entry import EntryType
from gpucredits.core.outcome import Closed, Granted, Refunded, Reserved, ToppedUp
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from support.scenes.gated import quota
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

POST = "acme/post"


async def owe(stage: Scene) -> int:
    """A postpaid account, and a job of five credits that it owes."""
    await stage.fund("acme")
    await stage.do(CreateAccount(path=POST, model=Model.POSTPAID, credit_limit=50 * CREDIT))
    reserve = Reserve(account=POST, job_id="j", gpu_type="h100", milli_gpus=1_000, window_ms=10_000)
    lease = await stage.do(reserve)
    assert isinstance(lease, Reserved)
    number = lease.reservation.reservation_id
    await stage.advance(5)
    closed = await stage.do(Settle(reservation_id=number, used_ms=5_000))
    assert isinstance(closed, Closed)
    assert closed.settled == 5 * CREDIT
    return number


async def repay(stage: Scene, amount: int, seconds: int) -> int:
    """Credits that end soon pay off what is owed."""
    now = await stage.pool.fetchval("SELECT ledger_now()")
    granted = await stage.do(
        Issue(account=POST, amount=amount, expires_at=now + seconds * HOUR_US // 3_600)
    )
    assert isinstance(granted, Granted)
    return granted.grant.grant_id


def test_a_refund_finds_the_grants_that_repaid_a_debt(database: str) -> None:
    """Used up and no longer open, they get back what they gave, once, and only for their time."""

    async def act(stage: Scene) -> None:
        lease = await owe(stage)
        first = await repay(stage, 2 * CREDIT, 3_000)
        second = await repay(stage, 3 * CREDIT, 30)
        for amount, lots in (
            (1, ((second, CREDIT),)),
            (3, ((second, 2 * CREDIT), (first, CREDIT))),
            (1, ((first, CREDIT),)),
        ):
            outcome = await stage.do(Refund(reservation_id=lease, amount=amount * CREDIT))
            assert isinstance(outcome, Refunded)
            assert outcome.lots == lots
        assert (await stage.balance(POST)).available == 5 * CREDIT
        await stage.advance(31)
        assert (await stage.balance(POST)).available == 2 * CREDIT
        await stage.assert_sound()

    play(database, act)


async def pay_for_an_hour(stage: Scene, amount: int = 50) -> int:
    """A confirmed top-up, whose credits end in an hour."""
    now = await stage.pool.fetchval("SELECT ledger_now()")
    topped = await stage.do(
        TopUp(
            account="acme",
            amount=amount * CREDIT,
            payment_reference="wire",
            confirmed=True,
            expires_at=now + HOUR_US,
        )
    )
    assert isinstance(topped, ToppedUp)
    return topped.topup.topup_id


def test_a_reversal_finds_what_expired_unspent(database: str) -> None:
    """A payment that nobody used before its credits ended is owed by nobody."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        payment = await pay_for_an_hour(stage)
        await stage.advance(3_600)
        assert (await stage.balance()).available == 100 * CREDIT
        await stage.do(Issue(account="acme", amount=1))  # it is written down that they are gone
        refused = await stage.do(FailTopUp(topup_id=payment))  # looks at it as well
        assert isinstance(refused, Refused)
        await stage.do(ReverseTopUp(topup_id=payment))
        balance = await stage.balance()
        assert (balance.available, balance.overrun) == (100 * CREDIT + 1, 0)
        await stage.assert_sound()

    play(database, act)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("sweeps", [True, False])
def test_a_reversal_finds_what_was_moved_on_and_expired(
    database: str, *, limited: bool, sweeps: bool
) -> None:
    """From hand to hand, and whether or not anybody has written down that they are gone."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p")
        await stage.fund("acme/p/u", credits_each=0)
        if limited:
            await quota(stage, "acme", Dimension.CREDITS_PER_JOB, 60 * CREDIT)
        payment = await pay_for_an_hour(stage)
        await stage.do(Transfer(source="acme", target="acme/p", amount=40 * CREDIT))
        await stage.do(Transfer(source="acme/p", target="acme/p/u", amount=30 * CREDIT))
        lease = (await stage.reserve("acme/p/u")).reservation.reservation_id
        await stage.advance(5)
        await stage.do(Settle(reservation_id=lease, used_ms=5_000))
        await stage.advance(3_600)
        for path in ("acme/p/u", "acme/p", "acme") if sweeps else ():
            await stage.do(Issue(account=path, amount=1))
        await stage.do(ReverseTopUp(topup_id=payment))
        balance = await stage.balance()
        assert (balance.available // CREDIT, balance.overrun) == (95, 0)
        await stage.assert_sound()
        await stage.do(Refund(reservation_id=lease, amount=5 * CREDIT))
        await stage.assert_sound()

    play(database, act)


@pytest.mark.parametrize("limited", [True, False])
def test_a_reversal_takes_back_what_was_moved_on(database: str, *, limited: bool) -> None:
    """Through three accounts and a lease that runs; the books are sound, limits set or not."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", "acme/p/u", credits_each=0)
        if limited:
            await quota(stage, "acme", Dimension.CREDITS_PER_JOB, 600 * CREDIT)
        payment = await pay_for_an_hour(stage)
        await stage.do(Transfer(source="acme", target="acme/p", amount=40 * CREDIT))
        await stage.do(Transfer(source="acme/p", target="acme/p/u", amount=40 * CREDIT))
        lease = await stage.reserve("acme/p/u", window_ms=10_000)
        await stage.advance(5)
        await stage.beat(lease, 1, 5_000)
        await stage.do(CreateAccount(path="acme/q"))  # acme/p has passed everything on
        await stage.do(Transfer(source="acme/p/u", target="acme/q", amount=4 * CREDIT))
        await stage.do(ReverseTopUp(topup_id=payment))
        found = [await stage.balance(path) for path in ("acme", "acme/q", "acme/p/u")]
        assert [(each.available, each.overrun) for each in found] == [
            (0, 15 * CREDIT),
            *[(0, 0)] * 2,
        ]
        assert (found[2].reserved, found[2].spent) == (10 * CREDIT, 5 * CREDIT)
        await stage.assert_sound()
        await stage.advance(11)  # the lease lapses: its hold stays with the account that held it
        assert (await stage.balance("acme/p/u")).available == 10 * CREDIT
        await stage.assert_sound()

    play(database, act)


def test_a_refund_to_a_grant_that_has_ended_pays_what_is_owed(database: str) -> None:
    """A payment that was taken back, and a job that it paid for and that is refunded later."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        payment = await pay_for_an_hour(stage, 10)
        lease = (await stage.reserve()).reservation.reservation_id
        await stage.advance(9)
        await stage.do(Settle(reservation_id=lease, used_ms=9_000))
        await stage.do(ReverseTopUp(topup_id=payment))
        assert (await stage.balance()).overrun == 9 * CREDIT
        await stage.advance(3_600)
        await stage.do(Refund(reservation_id=lease, amount=9 * CREDIT))
        balance = await stage.balance()
        assert (balance.available, balance.spent, balance.overrun) == (0, 0, 0)

    play(database, act)


def test_the_end_of_a_job_with_a_seq_that_was_used_is_sound(database: str) -> None:
    """It is charged under a seq of its own, so that no report has two effects."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve()
        number = lease.reservation.reservation_id
        await stage.advance(5)
        await stage.beat(lease, 5, 3_000)
        closed = await stage.do(Settle(reservation_id=number, seq=5, used_ms=5_000))
        assert isinstance(closed, Closed)
        assert closed.settled == 5 * CREDIT
        found = await stage.pool.fetch(
            "SELECT type, seq, reserve < 0 AS releases FROM entries"
            " WHERE reservation_id = $1 AND seq > 0 ORDER BY entry_id",
            number,
        )
        assert [tuple(row) for row in found] == [
            (EntryType.SETTLE, 5, False),
            (EntryType.SETTLE, 6, True),
        ]
        await stage.assert_sound()

    play(database, act)
