"""What is read is what the clock has made true, whether or not anybody has written it down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core import bounds
from gpucredits.core.command import Issue, SetBudget, SetQuota, StopLease, Sweep, Transfer
from gpucredits.core.grant import GrantState
from gpucredits.core.outcome import Granted
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import ReservationState
from gpucredits.jobs.upkeep import Snapshotter
from gpucredits.service.dispatch.queue import by_the_clock
from gpucredits.service.reads.books import Balance
from gpucredits.store.dispatch import cycle as dispatch
from gpucredits.store.dispatch.queue import QueueFilter, QueueState
from gpucredits.store.ledger.grants import GrantFilter
from gpucredits.store.ledger.reservations import ReservationFilter
from support.scenes.scene import CREDIT, Scene, play
from support.scenes.stage import CAPACITY, stage_on

DAY_S = 24 * 3_600


async def sweep(stage: Scene) -> None:
    """Write down what is due of every account of acme."""
    for row in await stage.pool.fetch("SELECT account_id FROM accounts ORDER BY account_id"):
        await stage.do(Sweep(account_id=row["account_id"]))


async def leases(stage: Scene, state: ReservationState, *, limit: int = 100) -> list[int]:
    """The reservations in a state, newest first, read page by page."""
    found: list[int] = []
    wanted = ReservationFilter(account="acme", state=state, limit=limit)
    while page := await stage.reads.reservations("acme", wanted):
        assert {lease.state for lease, _ in page} == {state}
        found += [lease.reservation_id for lease, _ in page]
        wanted = replace(wanted, before=found[-1])
    return found


async def open_grants(stage: Scene, *, limit: int = 100) -> list[tuple[int, GrantState]]:
    """The grants with something left, oldest first, read page by page."""
    found: list[tuple[int, GrantState]] = []
    wanted = GrantFilter(account="acme", open_only=True, limit=limit)
    while page := await stage.reads.grants("acme", wanted):
        assert all(grant.remaining for grant, _ in page)
        found += [(grant.grant_id, grant.state) for grant, _ in page]
        wanted = replace(wanted, after=found[-1][0])
    return found


@pytest.mark.parametrize("limit", [1, 100])
def test_a_lapsed_lease_is_found_as_expired_before_it_is_swept(database: str, limit: int) -> None:
    """Lists by state hold what the lease is now, page by page, and sweeping changes none."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        short = [await stage.reserve() for _ in range(2)]
        long = [await stage.reserve(window_ms=30_000) for _ in range(2)]
        gone = [lease.reservation.reservation_id for lease in reversed(short)]
        running = [lease.reservation.reservation_id for lease in reversed(long)]
        await stage.advance(10)
        for _ in range(2):
            assert await leases(stage, ReservationState.ACTIVE, limit=limit) == running
            assert await leases(stage, ReservationState.EXPIRED, limit=limit) == gone
            assert await leases(stage, ReservationState.SETTLED, limit=limit) == []
            await sweep(stage)

    play(database, act)


@pytest.mark.parametrize("limit", [1, 100])
def test_an_ended_grant_is_not_open_before_it_is_swept(database: str, limit: int) -> None:
    """What expired is left out, what is held over for a lease stays, and no page is cut short."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        soon = (await stage.balance()).as_of + 5_000_000

        async def issue(
            amount: int, expires_at: int = bounds.NEVER_US, priority: int = bounds.PRIORITY_DEFAULT
        ) -> int:
            command = Issue(
                account="acme",
                amount=amount * CREDIT,
                expires_at=expires_at,
                priority=priority,
            )
            made = await stage.do(command)
            assert isinstance(made, Granted)
            return made.grant.grant_id

        for _ in range(3):
            await issue(1, soon)
        held_over = await issue(10, soon + 1_000_000, 1)  # pays first: the others pay nothing
        lasting = await issue(3)
        await stage.reserve(window_ms=10_000)  # holds ten
        await stage.advance(8)
        for _ in range(2):
            assert await open_grants(stage, limit=limit) == [
                (held_over, GrantState.HELD_OVER),
                (lasting, GrantState.ACTIVE),
            ]
            await sweep(stage)

    play(database, act)


@pytest.mark.parametrize("snapshots", [False, True], ids=["entries alone", "with snapshots"])
def test_what_was_known_then_is_what_was_answered_then(database: str, snapshots: bool) -> None:
    """Ends of grants, lapses, new periods and stops: known_at repeats the answer of that time."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision")
        now = (await stage.balance()).as_of
        await stage.do(Issue(account="acme", amount=CREDIT, expires_at=now + 30_000_000))
        await stage.do(Issue(account="acme", amount=CREDIT, starts_at=now + 35_000_000))
        daily = SetBudget(account="acme", name="daily", allowance=CREDIT, calendar=Calendar.DAY)
        await stage.do(daily)
        seen: list[tuple[Balance, Balance]] = []

        async def look() -> None:
            seen.append((await stage.balance(), await stage.balance(tree=True)))
            if snapshots:
                await Snapshotter(stage.pool, entries_between=1, entries_each=0).tick()

        stopped = await stage.reserve(window_ms=60_000)
        await stage.reserve(window_ms=20_000)
        number = stopped.reservation.reservation_id
        await stage.do(StopLease(reservation_id=number, grace_ms=25_000))
        for seconds in (15, 10, 6, 6):
            await look()
            await stage.advance(seconds)
        await look()
        await stage.beat(stopped, 1, 30_000)  # too late: it lapsed when its grace was over
        await look()
        await stage.advance(2 * DAY_S)
        await look()
        await stage.do(Transfer(source="acme", target="acme/vision", amount=CREDIT))
        await look()
        await sweep(stage)
        for moment in seen:
            for then, tree in zip(moment, (False, True), strict=True):
                for asked in ("known_at", "at"):
                    again = await stage.balance("acme", tree=tree, **{asked: then.as_of})
                    assert shown(again) == shown(then), asked

    play(database, act)


def test_the_earlier_of_at_and_known_at_counts(database: str) -> None:
    """Nothing took effect by an instant that was not known by it, and the other way round."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        first = await stage.balance()
        await stage.advance(10)
        await stage.do(Issue(account="acme", amount=CREDIT))
        second = await stage.balance()
        for at, known_at in ((first, second), (second, first)):
            again = await stage.balance(at=at.as_of, known_at=known_at.as_of)
            assert shown(again) == shown(first)
            assert again.as_of == first.as_of

    play(database, act)


def test_a_grant_with_a_past_start_counts_from_when_it_was_issued(database: str) -> None:
    """History is not rewritten: earlier instants keep the balance that was answered at them."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        before = await stage.balance()
        await stage.advance(60)
        backdated = Issue(account="acme", amount=CREDIT, starts_at=before.as_of - 1_000_000)
        await stage.do(backdated)
        for asked in ("at", "known_at"):
            assert shown(await stage.balance("acme", **{asked: before.as_of})) == (0, 0, 0)
        assert shown(await stage.balance()) == (CREDIT, 0, 0)

    play(database, act)


def test_a_lease_that_was_told_to_stop_lapses_when_its_grace_is_over(database: str) -> None:
    """Before anybody writes it down, and as of then."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve(window_ms=60_000)
        number = lease.reservation.reservation_id
        now = (await stage.balance()).as_of
        await stage.do(StopLease(reservation_id=number, grace_ms=5_000))
        await stage.advance(20)
        assert (await stage.balance()).reserved == 0
        await stage.beat(lease, 1, 20_000)
        [(shown_lease, _)] = await stage.reads.reservations("acme", ReservationFilter())
        assert shown_lease.state is ReservationState.EXPIRED
        assert now + 5_000_000 <= shown_lease.ended_at < now + 20_000_000

    play(database, act)


def shown(balance: Balance) -> tuple[int, int, int]:
    """What a balance shows, without when."""
    return balance.available, balance.reserved, balance.spent


def test_a_request_expires_at_its_deadline_before_its_dispatcher_says_so(database: str) -> None:
    """The list and the request itself say the same before and after, and nobody lets it in late."""

    async def act(base: Scene) -> None:
        async with stage_on(base) as stage:
            await stage.fund("acme")
            deadline = (await base.balance()).as_of + 5_000_000
            late = await stage.ask("acme", deadline=deadline)
            patient = await stage.ask("acme", CAPACITY)

            async def listed(state: QueueState) -> list[Any]:
                page = await stage.line.page(QueueFilter(states=(int(state),)))
                return [
                    (shown.queue_id, shown.state, shown.ended_at, shown.outcome)
                    for shown in map(by_the_clock, page)
                ]

            dispatcher = stage.dispatcher("one")
            assert {key for key, *_ in await listed(QueueState.WAITING)} == {late[1], patient[1]}
            picture = await dispatcher.look(stage.pool_id)
            assert picture is not None
            cycle = await dispatcher.decide(picture)
            await base.advance(6)
            async with base.pool.acquire() as db:
                lease = await dispatch.take_lease(db, stage.pool_id, "one", lease_us=10**9)
            assert lease is not None
            await dispatcher.apply(lease._replace(version=picture.version), cycle)
            before = await listed(QueueState.EXPIRED)
            assert [(key, ended) for key, _, ended, _ in before] == [(late[1], deadline)]
            assert late[1] not in {key for key, *_ in await listed(QueueState.WAITING)}
            await dispatcher.cycle(stage.pool_id)
            assert (await stage.ticket(late)).state == QueueState.EXPIRED
            assert await listed(QueueState.EXPIRED) == before

    play(database, act)


@pytest.mark.parametrize("gated", [False, True])
def test_a_balance_is_of_the_accounts_asked_for_and_of_no_others(
    database: str, gated: bool
) -> None:
    """Leases of several accounts have lapsed: each balance, now and then, has its own only."""

    async def act(stage: Scene) -> None:
        paths = ("acme", "acme/a", "acme/a/u", "acme/b")
        await stage.fund(*paths)
        if gated:
            gpus = Dimension.CONCURRENT_GPUS
            await stage.do(SetQuota(account="acme", dimension=gpus, limit=99_000))
        for path in paths[1:]:
            await stage.reserve(path)
        await stage.advance(11)
        seen: list[Balance] = []
        for _ in range(2):
            for path in paths:
                for tree in (False, True):
                    now = await stage.balance(path, tree=tree)
                    past = await stage.balance(path, tree=tree, at=now.as_of)
                    number = sum(each.startswith(path) for each in paths) if tree else 1
                    for each in (now, past):
                        assert (each.available, each.reserved) == (number * 100 * CREDIT, 0), path
                    seen.append(now)
            await sweep(stage)
        assert len(seen) == 16

    play(database, act)
