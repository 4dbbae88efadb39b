"""Writes through the ledger on a real database."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from gpucredits.core.account import Model, Status
from gpucredits.core.command import (
    Adjust,
    Cancel,
    Command,
    ConfirmTopUp,
    CreateAccount,
    FailTopUp,
    Issue,
    Refund,
    Reserve,
    ReverseTopUp,
    Settle,
    TopUp,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.grant import GrantState
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import (
    AccountSaved,
    Adjusted,
    Closed,
    Granted,
    Outcome,
    Refunded,
    Reserved,
    ToppedUp,
    Transferred,
)
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.service.write.batch_record import decode, encode
from gpucredits.service.write.errors import KeyReused
from gpucredits.store.ledger.grants import GrantFilter
from gpucredits.store.ledger.reservations import ReservationFilter
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

MONEY_TABLES = ("orgs", "accounts", "grants", "topups", "reservations", "entries", "outbox")


async def money(stage: Scene) -> list[list[tuple[object, ...]]]:
    """Every row of every table that a refusal must not touch."""
    return [
        [tuple(row) for row in await stage.pool.fetch(f"SELECT * FROM {table} ORDER BY 1, 2")]
        for table in MONEY_TABLES
    ]


def test_a_job_runs_from_reserve_to_settle(database: str) -> None:
    """A lease holds a window, beats settle what was used, the end gives back the rest."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve()
        assert lease.reservation.held == 10 * CREDIT
        assert (await stage.balance()).available == 90 * CREDIT
        await stage.advance(5)
        beaten = await stage.beat(lease, 1, 5_000)
        assert (beaten.settled, beaten.held) == (5 * CREDIT, 10 * CREDIT)
        await stage.advance(2)
        closed = await stage.do(
            Settle(reservation_id=lease.reservation.reservation_id, seq=2, used_ms=7_000)
        )
        assert isinstance(closed, Closed)
        assert (closed.settled, closed.released) == (7 * CREDIT, 8 * CREDIT)
        balance = await stage.balance()
        assert (balance.available, balance.reserved, balance.spent) == (
            93 * CREDIT,
            0,
            7 * CREDIT,
        )

    play(database, act)


def test_every_kind_of_command_is_stored_and_answered_again(database: str) -> None:
    """Each command's rows survive a round trip, and its key gives an equal answer again."""

    async def act(stage: Scene) -> None:
        kinds: set[type] = set()

        async def twice(command: Command) -> Outcome:
            request = stage.request(command)
            first = await stage.ledger.submit("acme", request)
            assert await stage.ledger.submit("acme", request) == first
            assert decode(encode(first)) == first
            kinds.add(type(first))
            return first

        await twice(CreateAccount(path="acme", metadata={"tier": "gold"}))
        await twice(CreateAccount(path="acme/vision"))
        await twice(
            UpdateAccount(path="acme/vision", model=Model.POSTPAID, credit_limit=50 * CREDIT)
        )
        await twice(Issue(account="acme", amount=40 * CREDIT, metadata={"po": "7"}))
        paid = await twice(TopUp(account="acme", amount=60 * CREDIT, payment_reference="pay-1"))
        assert isinstance(paid, ToppedUp)
        await twice(ConfirmTopUp(topup_id=paid.topup.topup_id))
        failed = await twice(TopUp(account="acme", amount=CREDIT, payment_reference="pay-2"))
        assert isinstance(failed, ToppedUp)
        await twice(FailTopUp(topup_id=failed.topup.topup_id))
        moved = await twice(Transfer(source="acme", target="acme/vision", amount=45 * CREDIT))
        assert isinstance(moved, Transferred)
        assert len(moved.lots) == 2
        job = Reserve(account="acme/vision", job_id="j", gpu_type="h100", milli_gpus=2_000)
        lease = await twice(replace(job, window_ms=10_000))
        assert isinstance(lease, Reserved)
        number = lease.reservation.reservation_id
        other = await twice(replace(job, job_id="k", milli_gpus=1_000))
        assert isinstance(other, Refused)
        await stage.advance(9)
        assert isinstance(await twice(Beat(number, 1, 9_000)), BeatResult)
        await twice(Settle(reservation_id=number))
        await twice(Refund(reservation_id=number, amount=3 * CREDIT))
        await twice(Adjust(reservation_id=number, amount=CREDIT))
        await twice(ReverseTopUp(topup_id=paid.topup.topup_id))
        assert kinds == {
            AccountSaved,
            Granted,
            ToppedUp,
            Transferred,
            Reserved,
            Refused,
            BeatResult,
            Closed,
            Refunded,
            Adjusted,
        }

    play(database, act)


def test_a_refusal_changes_nothing_but_answers_and_decisions(database: str) -> None:
    """Whatever is refused leaves every row of money as it was, to the byte."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision")
        lease = await stage.reserve()
        number = lease.reservation.reservation_id
        await stage.do(Settle(reservation_id=number))
        await stage.advance(3_600)  # what the clock has made due is not written down either
        before = await money(stage)
        refusals: list[Command] = [
            CreateAccount(path="acme/vision"),
            CreateAccount(path="acme/nowhere/alice"),
            UpdateAccount(path="acme/nowhere", status=Status.SUSPENDED),
            Issue(account="acme/nowhere", amount=1),
            Issue(account="acme", amount=1, expires_at=1),
            ConfirmTopUp(topup_id=999),
            Transfer(source="acme", target="acme/vision", amount=101 * CREDIT),
            Transfer(source="acme", target="other/vision", amount=1),
            Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=100_000),
            Reserve(account="acme", job_id="j", gpu_type="abacus", milli_gpus=1_000),
            Beat(999, 1, 1),
            Settle(reservation_id=number),
            Cancel(reservation_id=number),
            Refund(reservation_id=number, amount=1),
        ]
        for command in refusals:
            assert isinstance(await stage.do(command), Refused), command
        assert await money(stage) == before
        assert await stage.pool.fetchval("SELECT count(*) FROM decisions") == len(refusals)

    play(database, act)


def test_a_dry_run_answers_like_the_real_one_and_leaves_nothing(database: str) -> None:
    """The answer is the one the command would get, and no table has one row more or less."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision")
        before = await money(stage)
        answers = await stage.pool.fetchval("SELECT count(*) FROM idempotency")
        command = Transfer(source="acme", target="acme/vision", amount=30 * CREDIT)
        dry = await stage.ledger.submit("acme", stage.request(command), dry_run=True)
        newcomer = CreateAccount(path="newcomer")
        opened = await stage.ledger.submit("newcomer", stage.request(newcomer), dry_run=True)
        assert isinstance(opened, AccountSaved)
        assert await money(stage) == before
        assert await stage.pool.fetchval("SELECT count(*) FROM idempotency") == answers
        real = await stage.do(command)
        assert dry == real

    play(database, act)


def test_another_body_under_a_used_key_is_an_error(database: str) -> None:
    """A key stands for one request; the first answer stays."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        first = await stage.do(Issue(account="acme", amount=CREDIT), key="k")
        with pytest.raises(KeyReused):
            await stage.do(Issue(account="acme", amount=2 * CREDIT), key="k")
        assert await stage.do(Issue(account="acme", amount=CREDIT), key="k") == first
        assert (await stage.balance()).available == 101 * CREDIT

    play(database, act)


def test_an_atomic_group_is_all_or_nothing(database: str) -> None:
    """Three nodes of a job are admitted together, or none is and every answer says why."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        node = Reserve(
            account="acme", job_id="wide", gpu_type="h100", milli_gpus=4_000, window_ms=10_000
        )
        three = [stage.request(replace(node, node=f"n{n}")) for n in range(3)]
        before = await money(stage)
        outcomes = await stage.ledger.submit_all("acme", three, atomic=True)
        assert [type(each) for each in outcomes] == [Refused] * 3
        assert await money(stage) == before
        assert await stage.ledger.submit_all("acme", three, atomic=True) == outcomes
        two = [stage.request(replace(node, node=f"n{n}")) for n in range(2)]
        admitted = await stage.ledger.submit_all("acme", two, atomic=True)
        assert [type(each) for each in admitted] == [Reserved] * 2
        assert await stage.ledger.submit_all("acme", two, atomic=True) == admitted
        assert (await stage.balance()).reserved == 80 * CREDIT

    play(database, act)


def test_an_unknown_org_has_nothing(database: str) -> None:
    """Commands and beats for an org that does not exist are refused and leave no trace."""

    async def act(stage: Scene) -> None:
        refused = await stage.do(Issue(account="ghost", amount=1), org="ghost")
        assert isinstance(refused, Refused)
        assert refused.reason is Reason.ACCOUNT_UNKNOWN
        [beaten] = await stage.ledger.beat([(4_711, Beat(1, 1, 1))])
        assert isinstance(beaten, Refused)
        assert beaten.reason is Reason.RESERVATION_UNKNOWN
        assert await stage.pool.fetchval("SELECT count(*) FROM orgs") == 0

    play(database, act)


def test_beats_of_one_lease_in_one_call_are_settled_in_order(database: str) -> None:
    """A lease named several times in a batch is one row; a repeated number changes nothing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve()
        org_id = await stage.ledger.org_id("acme")
        assert org_id is not None
        await stage.advance(4)
        number = lease.reservation.reservation_id
        beats = [Beat(number, 1, 1_000), Beat(number, 2, 2_000), Beat(number, 2, 3_000)]
        results = await stage.ledger.beat([(org_id, beat) for beat in beats])
        assert [
            (each.settled, each.duplicate) for each in results if isinstance(each, BeatResult)
        ] == [
            (1 * CREDIT, False),
            (2 * CREDIT, False),
            (2 * CREDIT, True),
        ]

    play(database, act)


def test_a_silent_lease_lapses_for_readers_and_writers_without_a_sweeper(database: str) -> None:
    """After its window a lease is over: balance, listing, beat and late use all say so."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve()
        await stage.beat(lease, 1, 0)
        await stage.advance(11)
        balance = await stage.balance()
        assert (balance.available, balance.reserved) == (100 * CREDIT, 0)
        [(listed, payers)] = await stage.reads.reservations("acme", ReservationFilter())
        assert (listed.state, listed.held, payers) == (ReservationState.EXPIRED, 0, ("acme",))
        late = await stage.beat(lease, 2, 9_000)
        assert (late.decision, late.reason) == (Decision.STOP, "expired")
        rows = await stage.pool.fetch("SELECT seq, used_ms, is_late FROM usage_events")
        assert [tuple(row) for row in rows] == [(2, 9_000, True)]

    play(database, act)


def test_a_grant_that_ended_is_gone_for_readers_without_a_sweeper(database: str) -> None:
    """What expired is not available and shows as ended, though nothing was written."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        now = (await stage.balance()).as_of
        await stage.do(Issue(account="acme", amount=CREDIT, expires_at=now + HOUR_US))
        later = Issue(account="acme", amount=5 * CREDIT, starts_at=now + 2 * HOUR_US)
        await stage.do(later)
        balance = await stage.balance()
        assert (balance.available, balance.pending) == (CREDIT, 5 * CREDIT)
        await stage.advance(3_700)
        balance = await stage.balance()
        assert (balance.available, balance.pending) == (0, 5 * CREDIT)
        (first, _), (second, _) = await stage.reads.grants("acme", GrantFilter(account="acme"))
        assert (first.state, second.state) == (GrantState.ENDED, GrantState.PENDING)
        await stage.advance(3_600)
        tree = await stage.balance(tree=True)
        assert (tree.available, tree.pending) == (5 * CREDIT, 0)

    play(database, act)


def test_a_suspended_project_drains_what_runs(database: str) -> None:
    """Suspension above a job's account ends its renewals but not its settlement."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision", credits_each=50)
        lease = await stage.reserve("acme/vision", grace_ms=10_000)
        await stage.do(UpdateAccount(path="acme", status=Status.SUSPENDED))
        await stage.advance(3)
        beaten = await stage.beat(lease, 1, 3_000)
        assert (beaten.decision, beaten.settled) == (Decision.DRAIN, 3 * CREDIT)
        row = await stage.pool.fetchrow("SELECT decision, reason FROM decisions")
        assert tuple(row) == ("drain", "account_suspended")

    play(database, act)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET amount = 1",
        "DELETE FROM entries",
        "TRUNCATE entries",
        "UPDATE list_prices SET credits_per_gpu_hour = 1",
        "DELETE FROM list_prices",
        "TRUNCATE list_prices",
        "UPDATE discounts SET credits_per_gpu_hour = 1",
        "DELETE FROM discounts",
        "TRUNCATE discounts",
    ],
)
def test_entries_and_prices_are_insert_only(database: str, statement: str) -> None:
    """The database itself refuses to change the ledger, and what leases are charged by."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await stage.pool.execute(statement)

    play(database, act)


def test_events_tell_what_happened_once(database: str) -> None:
    """The outbox holds one event for each thing that happened, and none for heartbeats."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve()
        await stage.advance(2)
        await stage.beat(lease, 1, 1_000)
        await stage.beat(lease, 2, 2_000)
        await stage.do(Settle(reservation_id=lease.reservation.reservation_id))
        await stage.do(Refund(reservation_id=lease.reservation.reservation_id, amount=CREDIT))
        rows = await stage.pool.fetch("SELECT type FROM outbox ORDER BY event_id")
        assert [row["type"] for row in rows] == [
            "account.opened",
            "grant.issued",
            "reservation.opened",
            "reservation.settled",
        ]

    play(database, act)


def test_a_stopped_ledger_finishes_what_it_took(database: str) -> None:
    """Everything that was accepted before the stop is carried out and answered."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        waiting = [
            asyncio.create_task(stage.do(Issue(account="acme", amount=CREDIT))) for _ in range(200)
        ]
        await asyncio.sleep(0)
        await stage.ledger.stop()
        outcomes = await asyncio.gather(*waiting)
        assert {type(each) for each in outcomes} == {Granted}
        assert (await stage.balance()).available == 200 * CREDIT

    play(database, act)
