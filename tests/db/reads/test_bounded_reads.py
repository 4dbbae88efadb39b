"""Reads that look at a part of the history only find what reading all of it would find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from gpucredits.core.bounds import DAY_US
from gpucredits.core.budget import Rollover
from gpucredits.core.command import Command, CreateAccount, Reserve, SetBudget, StopLease
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.period import Calendar
from gpucredits.core.reservation import Reservation
from gpucredits.service.reads.spending import LAST, UsageQuestion, read_usage
from gpucredits.store.billing import lease_spending
from gpucredits.store.billing.spending import Grouping
from gpucredits.store.ledger import entries, reservations
from gpucredits.store.ledger.entries import EntryFilter, EntryRow
from gpucredits.store.ledger.reservations import ReservationFilter
from support.books.parity import PATHS, Players
from support.scenes.scene import CREDIT, Scene, play

STEPS = 100
ALL = 100_000
EPOCH = date(1970, 1, 1)
SPENDING = {EntryType.SETTLE: 1, EntryType.REFUND: -1, EntryType.ADJUST: 1}


def is_under(path: str, root: str) -> bool:
    """Whether an account is another or below it."""
    return path == root or path.startswith(f"{root}/")


async def walk(stage: Scene, seed: int) -> list[int]:
    """Do things by chance, some long after they were due; the instants in between."""
    players, instants = Players(seed), []
    dice = players.dice
    for path in PATHS[:3]:
        await stage.do(CreateAccount(path=path))
    await stage.do(
        SetBudget(
            account="acme/p",
            allowance=40 * CREDIT,
            calendar=Calendar.DAY,
            rollover=Rollover.ALL,
        )
    )
    for _ in range(STEPS):
        now = (await stage.balance()).as_of
        instants.append(now)
        command: Command = players.command(now)
        if dice.random() < 0.1:
            lease = dice.choice([*players.leases, 999])
            grace_ms = dice.choice([0, 1_000, 2_000])
            command = StopLease(reservation_id=lease, grace_ms=grace_ms)
        elif isinstance(command, Reserve):
            command = replace(command, job_id=f"j-{dice.randrange(20)}")
        players.note(await stage.do(command))
        await stage.ledger.beat([(1, players.beat()) for _ in range(dice.randrange(6))])
        if dice.random() < 0.4:
            await stage.advance(dice.choice([0.5, 3, 20, 90, 4_000, 90_000]))
    return instants


async def check_entries(
    stage: Scene, whole: list[EntryRow], instants: list[int], leases: list[Reservation]
) -> None:
    """Entries by lease, and by account from one instant to another."""

    async def found(**wanted: object) -> list[EntryRow]:
        return await stage.reads.entries("acme", EntryFilter(**wanted, limit=ALL))  # type: ignore[arg-type]  # the callers name each field

    for lease in leases:
        number = lease.reservation_id
        of_lease = [row for row in whole if row.entry.reservation_id == number]
        assert await found(reservation_id=number) == of_lease, lease
    for job_id in {lease.job_id for lease in leases}:
        assert await found(job_id=job_id) == [row for row in whole if row.job_id == job_id]
    for place, since in list(enumerate(instants))[::4]:
        until = instants[min(place + 5, len(instants) - 1)]
        path, kind = PATHS[place % len(PATHS)], EntryType(place % 13 + 1)  # all of both, in turn
        before = [row for row in whole if row.entry.effective_at < until]
        assert await found(until=until) == before
        of_path = [row for row in before if path in (row.account, row.other)]
        assert await found(account=path, until=until) == of_path
        below = [row for row in before if is_under(row.account, path) or is_under(row.other, path)]
        assert await found(account=path, tree=True, until=until) == below
        between = [row for row in before if row.entry.effective_at >= since]
        assert await found(since=since, until=until) == between
        if kind not in (EntryType.RESERVE, EntryType.RELEASE):
            of_kind = [row for row in between if row.entry.type is kind]
            assert await found(types=(kind,), since=since, until=until) == of_kind


async def check_usage(
    stage: Scene, whole: list[EntryRow], instants: list[int], leases: list[Reservation]
) -> None:
    """What was spent from one instant to another, by each property, and on which leases."""
    by_number = {lease.reservation_id: lease for lease in leases}
    midnight = instants[len(instants) // 2] // DAY_US * DAY_US  # a bound that cuts no day
    bounds = sorted([*instants[::4], midnight, midnight + DAY_US])
    for place, since in enumerate(bounds):
        until = bounds[min(place + 1 + place % 3, len(bounds) - 1)]
        path = PATHS[place % len(PATHS)]
        charges = [
            (by_number[row.entry.reservation_id], row.entry, SPENDING[row.entry.type])
            for row in whole
            if row.entry.type in SPENDING
            and is_under(row.account, path)
            and since <= row.entry.effective_at < until
        ]
        names: dict[Grouping, Callable[[Reservation, Entry], str]] = {
            "job": lambda lease, _: lease.job_id,
            "account": lambda lease, _: lease.account,
            "gpu_type": lambda lease, _: lease.gpu_type,
            "day": lambda _, entry: str(EPOCH + timedelta(days=entry.effective_at // DAY_US)),
        }
        for by, name_of in names.items():
            expected: dict[str, int] = {}
            for lease, entry, sign in charges:
                name = name_of(lease, entry)
                expected[name] = expected.get(name, 0) + sign * entry.amount
            expected = {name: amount for name, amount in expected.items() if amount}
            groups, total = await groups_of(stage, path, (since, until), by)
            assert groups == expected, (by, path, since, until)
            assert total == sum(expected.values())
        await check_leases_in(stage, whole, leases, path, (since, until))


async def groups_of(
    stage: Scene, path: str, time: tuple[int, int], by: Grouping
) -> tuple[dict[str, int], int]:
    """All groups of a time, a few at a time, none of them twice; and the total."""
    groups: dict[str, int] = {}
    asked = UsageQuestion(
        org_id=1, account=path, since=time[0], until=time[1], by=by, limit=3, before=0
    )
    page = (await read_usage(stage.pool, asked)).paid
    while True:
        assert not groups.keys() & {each.name for each in page.groups}
        groups |= {each.name: each.amount for each in page.groups}
        if page.following is None:
            assert page.group_count in (None, len(groups))
            return groups, page.amount
        page = (await read_usage(stage.pool, replace(asked, place=page.following))).paid


async def check_leases_in(
    stage: Scene, whole: list[EntryRow], leases: list[Reservation], path: str, time: tuple[int, int]
) -> None:
    """The leases that were admitted or paid for from one instant to another, with what was paid."""
    since, until = time
    expected = []
    for lease in sorted(leases, key=lambda each: -each.reservation_id):
        amount = sum(
            SPENDING[row.entry.type] * row.entry.amount
            for row in whole
            if row.entry.reservation_id == lease.reservation_id
            and row.entry.type in SPENDING
            and since <= row.entry.effective_at < until
        )
        if is_under(lease.account, path) and (since <= lease.admitted_at < until or amount):
            expected.append((lease.reservation_id, amount))
    pages: list[tuple[int, int]] = []
    asked = UsageQuestion(
        org_id=1, account=path, since=since, until=until, limit=3, place=LAST, before=LAST
    )
    while asked.before:
        page = await read_usage(stage.pool, asked)
        assert not page.paid.groups
        pages += [(each.lease.reservation_id, each.lease.amount) for each in page.leases]
        asked = replace(asked, before=page.before)
    assert pages == expected


async def check_leases(stage: Scene, leases: list[Reservation]) -> None:
    """Leases by account, state and page."""

    async def found(**wanted: object) -> list[Reservation]:
        listed = await stage.reads.reservations("acme", ReservationFilter(**wanted))  # type: ignore[arg-type]  # the callers name each field
        return [lease for lease, _ in listed]

    for path in PATHS:
        own = [lease for lease in leases if lease.account == path]
        below = [lease for lease in leases if is_under(lease.account, path)]
        assert await found(account=path, limit=ALL) == own
        assert await found(account=path, tree=True, limit=ALL) == below
        pages, before = [], 0
        while page := await found(account=path, tree=True, before=before, limit=3):
            pages += page
            before = page[-1].reservation_id
        assert pages == below
        for state in {lease.state for lease in leases}:
            in_state = [lease for lease in below if lease.state is state]
            assert await found(account=path, tree=True, state=state, limit=ALL) == in_state
        for job_id in {lease.job_id for lease in leases}:
            of_job = [lease for lease in own if lease.job_id == job_id]
            assert await found(account=path, job_id=job_id, limit=ALL) == of_job


@pytest.mark.parametrize(("seed", "probed", "tried"), [(0, 100, 100), (1, 1, 1), (2, 1, 100)])
def test_what_is_bounded_finds_all(
    database: str, monkeypatch: pytest.MonkeyPatch, seed: int, probed: int, tried: int
) -> None:
    """Whatever happened, and however late it was written down, no read leaves any of it out."""
    monkeypatch.setattr(entries, "ACCOUNTS_PROBED_MAX", probed)
    monkeypatch.setattr(entries, "ACCOUNTS_TRIED_MAX", tried)
    monkeypatch.setattr(entries, "LEASES_READ_MAX", tried)
    monkeypatch.setattr(reservations, "ACCOUNTS_PROBED_MAX", probed)
    monkeypatch.setattr(lease_spending, "ACCOUNTS_PROBED_MAX", probed)
    monkeypatch.setattr(lease_spending, "DAY_ACCOUNTS_MAX", probed)

    async def act(stage: Scene) -> None:
        instants = await walk(stage, seed)
        whole = await stage.reads.entries("acme", EntryFilter(limit=ALL))
        listed = await stage.reads.reservations("acme", ReservationFilter(limit=ALL))
        leases = [lease for lease, _ in listed]
        assert any(row.entry.effective_at < row.recorded_at for row in whole)
        await check_entries(stage, whole, instants, leases)
        await check_usage(stage, whole, instants, leases)
        await check_leases(stage, leases)

    play(database, act)
