"""Leases that change payers, on a real database: what is read, saved, announced and given back."""

from __future__ import annotations

import json

import pytest

from gpucredits.core.account import Model
from gpucredits.core.command import (
    Adjust,
    CreateAccount,
    Issue,
    Refund,
    SetQuota,
    SetRateLimit,
    Settle,
    UpdateAccount,
)
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Reserved
from gpucredits.core.quota import Dimension
from gpucredits.store.ledger.reservations import ReservationFilter
from support.books.kept import counted_reads
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

ORG, PROJECT, USER = "acme", "acme/p", "acme/p/u"


async def open_tree(stage: Scene, *, gated: bool = False) -> None:
    """An org with plenty, a project that shares it, and a user with credits for one window."""
    await stage.fund(ORG)
    for path in (PROJECT, USER):
        await stage.do(CreateAccount(path=path))
    await stage.do(Issue(account=USER, amount=10 * CREDIT))
    if gated:
        gpus = Dimension.CONCURRENT_GPUS
        await stage.do(SetQuota(account=PROJECT, dimension=gpus, limit=10_000))
        window = Dimension.CREDITS_PER_WINDOW
        await stage.do(SetQuota(account=ORG, dimension=window, limit=CREDIT**2, rolling_hours=1))
        limit = SetRateLimit(account=ORG, capacity=CREDIT**2, refill_per_hour=CREDIT)
        await stage.do(limit)


async def payers_of(stage: Scene, lease: Reserved) -> tuple[str, ...]:
    """Who has paid for a lease in turn."""
    wanted = ReservationFilter(numbers=(lease.reservation.reservation_id,))
    [(_, payers)] = await stage.reads.reservations(ORG, wanted)
    return payers


@pytest.mark.parametrize("gated", [False, True], ids=["no limits", "limits"])
def test_a_lease_moves_up_in_a_batch_of_heartbeats(database: str, gated: bool) -> None:
    """Only the payer was loaded: the accounts above are read, and the lease goes on with them."""

    async def act(stage: Scene) -> None:
        await open_tree(stage, gated=gated)
        others = [await stage.reserve(ORG, job_id=f"other-{n}") for n in range(3)]
        lease = await stage.reserve(USER)
        assert lease.payer == USER
        await stage.advance(4)
        org_id = await stage.ledger.org_id(ORG)
        assert org_id is not None
        numbers = [each.reservation.reservation_id for each in (*others, lease)]
        beats = [(org_id, Beat(number, 1, 4_000)) for number in numbers]
        answers = await stage.ledger.beat(beats)
        assert {each.decision.value for each in answers} == {"continue"}  # type: ignore[union-attr]
        assert await payers_of(stage, lease) == (USER, ORG)
        for seq in (2, 3):
            await stage.advance(4)
            assert (await stage.beat(lease, seq, 4_000 * seq)).decision == "continue"
        user, org = await stage.balance(USER), await stage.balance(ORG)
        assert (user.available, user.reserved, user.spent) == (6 * CREDIT, 0, 4 * CREDIT)
        assert org.spent == (3 * 4 + 8) * CREDIT
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number))
        assert (await stage.balance(USER)).available == 6 * CREDIT
        await assert_announced(stage, number)

    play(database, act)


async def assert_announced(stage: Scene, number: int) -> None:
    """A move is an event and a decision, once."""
    told = {"from": USER, "to": ORG, "held": "10"}
    rows = await stage.pool.fetch(
        "SELECT payload FROM outbox WHERE type = 'reservation.payer_changed' AND subject_id = $1",
        number,
    )
    assert [json.loads(row["payload"]) for row in rows] == [told]
    rows = await stage.pool.fetch(
        "SELECT reason, detail FROM decisions WHERE decision = 'change_payer'"
        " AND reservation_id = $1",
        number,
    )
    assert [(row["reason"], json.loads(row["detail"])) for row in rows] == [
        ("insufficient_credits", told)
    ]


def test_a_mere_renewal_reads_nobody_above(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts above are read for the one beat that needs them, and for no other."""

    async def act(stage: Scene) -> None:
        await open_tree(stage)
        await stage.do(Issue(account=USER, amount=4 * CREDIT))
        lease = await stage.reserve(USER)
        reads = counted_reads(monkeypatch)
        for seq in (1, 2, 3):
            await stage.advance(4)
            await stage.beat(lease, seq, 4_000 * seq)
        assert [needs.chains for needs in reads].count(True) == 1
        assert await payers_of(stage, lease) == (USER, ORG)

    play(database, act)


def test_an_account_above_that_is_due_is_brought_forward_first(database: str) -> None:
    """Credits of the org that ended since do not take a lease over."""

    async def act(stage: Scene) -> None:
        await open_tree(stage)
        await stage.do(UpdateAccount(path=PROJECT, model=Model.POSTPAID, credit_limit=CREDIT))
        now = (await stage.balance()).as_of
        await stage.do(Issue(account=PROJECT, amount=50 * CREDIT, expires_at=now + 6 * CREDIT))
        lease = await stage.reserve(USER)
        await stage.advance(7)
        beaten = await stage.beat(lease, 1, 7_000)
        assert (beaten.decision, beaten.reason) == ("drain", "insufficient_credits")
        assert await payers_of(stage, lease) == (USER,)

    play(database, act)


def test_corrections_reach_everybody_who_paid(database: str) -> None:
    """Refunds go back through the present payer to the one before, repaid debts included."""

    async def act(stage: Scene) -> None:
        await stage.fund(ORG)
        await stage.do(CreateAccount(path=PROJECT))
        await stage.do(CreateAccount(path=USER, model=Model.POSTPAID, credit_limit=10 * CREDIT))
        lease = await stage.reserve(USER)
        for seq in (1, 2):
            await stage.advance(4)
            await stage.beat(lease, seq, 4_000 * seq)
        assert await payers_of(stage, lease) == (USER, ORG)
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number))
        await stage.do(Issue(account=USER, amount=CREDIT))  # repays a quarter
        await stage.do(Adjust(reservation_id=number, amount=CREDIT))
        await stage.do(Refund(reservation_id=number, amount=7 * CREDIT))
        user, org = await stage.balance(USER), await stage.balance(ORG)
        assert (org.spent, user.spent) == (0, 2 * CREDIT)
        assert org.available == 100 * CREDIT
        await stage.do(Refund(reservation_id=number, amount=2 * CREDIT))
        assert (await stage.balance(USER)).available == CREDIT

    play(database, act)


def test_a_project_that_is_given_credits_says_so(database: str) -> None:
    """Its first allocation is an event and an act with who did it; the second is neither."""

    async def act(stage: Scene) -> None:
        await stage.fund(ORG)
        await stage.do(CreateAccount(path=PROJECT))
        for _ in range(2):
            later = (await stage.balance()).as_of + HOUR_US
            await stage.do(Issue(account=PROJECT, amount=CREDIT, expires_at=later))
        rows = await stage.pool.fetch(
            "SELECT actor, old, new FROM audit_log WHERE action = 'account.funding'"
        )
        [(actor, old, new)] = [(row[0], json.loads(row[1]), json.loads(row[2])) for row in rows]
        assert (actor, old) == ("tester", {"funding": "shared"})
        assert new == {"funding": "own", "because": "credits.issue"}
        events = await stage.pool.fetch(
            "SELECT payload FROM outbox WHERE type = 'account.funding_changed'"
        )
        assert [json.loads(row["payload"]) for row in events] == [
            {"path": PROJECT, "funding": "own"}
        ]

    play(database, act)
