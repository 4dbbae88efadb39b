"""Balances of the past and the ledger's pages, from stored snapshots and entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import CreateAccount, Issue, Settle, Transfer
from gpucredits.core.entry import EntryType
from gpucredits.jobs.upkeep import Snapshotter
from gpucredits.service.reads import books as reads
from gpucredits.service.reads.books import Balance
from gpucredits.service.reads.spending import UsageQuestion, read_usage
from gpucredits.store.ledger import history
from gpucredits.store.ledger.accounts import AccountFilter
from gpucredits.store.ledger.entries import EntryFilter
from gpucredits.store.ledger.reservations import ReservationFilter
from support.books.kept import counted_reads
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

HOSTILE = ("'; DROP TABLE entries; --", "%", "_", "acme%", "\\", "[where]", "$1", "{}", "acme/")


def buckets(balance: Balance) -> tuple[int, int, int]:
    """What a balance shows, without when."""
    return balance.available, balance.reserved, balance.spent


@pytest.mark.parametrize("snapshots", [False, True], ids=["entries alone", "with snapshots"])
def test_every_past_balance_is_what_it_was(database: str, snapshots: bool) -> None:
    """Asked later, each instant gives the balance that was given then, tree sums included."""

    async def act(stage: Scene) -> None:
        snapshotter = Snapshotter(stage.pool, entries_between=1, entries_each=0)
        await stage.fund("acme", "acme/vision")
        seen: list[tuple[Balance, Balance]] = []

        async def look() -> None:
            seen.append((await stage.balance(), await stage.balance(tree=True)))
            if snapshots:
                await snapshotter.tick()

        await look()
        lease = await stage.reserve()
        await look()
        await stage.advance(4)
        await stage.beat(lease, 1, 3_000)
        await look()
        await stage.do(Transfer(source="acme", target="acme/vision", amount=20 * CREDIT))
        await look()
        await stage.advance(60)  # the lease lapses, and nobody has written it down
        await look()
        await stage.do(Issue(account="acme", amount=CREDIT))
        await look()
        for alone, tree in seen:
            assert buckets(await stage.balance(at=alone.as_of)) == buckets(alone)
            assert buckets(await stage.balance(at=tree.as_of, tree=True)) == buckets(tree)

    play(database, act)


def test_what_the_clock_made_true_was_known_although_it_was_recorded_later(database: str) -> None:
    """A lapse is known when the window ends: every read of that time said so."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await stage.reserve()
        await stage.advance(60)
        then = await stage.balance()
        assert then.available == 100 * CREDIT
        before = then.as_of
        await stage.advance(60)
        await stage.do(Issue(account="acme", amount=CREDIT))
        assert (await stage.balance(at=before)).available == 100 * CREDIT
        assert (await stage.balance(known_at=before)).available == 100 * CREDIT
        assert (await stage.balance(at=before, known_at=before)).available == 100 * CREDIT

    play(database, act)


def test_snapshots_save_reading_entries_again(database: str) -> None:
    """A question about a time long gone reads only the entries around it."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        instants = []
        for _ in range(30):
            await stage.do(Issue(account="acme", amount=CREDIT))
            instants.append((await stage.balance()).as_of)
            await Snapshotter(stage.pool, entries_between=5, entries_each=1).tick()
            await stage.advance(1)
        for count, instant in enumerate(instants, start=1):
            assert (await stage.balance(at=instant)).available == count * CREDIT
        assert await stage.pool.fetchval("SELECT count(*) FROM snapshots") == 6

    play(database, act)


@pytest.mark.parametrize(("each", "enough"), [(1, 5), (4, 20), (100, 50)])
def test_snapshots_are_few_beside_the_entries(database: str, each: int, enough: int) -> None:
    """They wait for so many entries for each account that moved, up to ten measures in all."""

    async def act(stage: Scene) -> None:
        paths = ["acme", *(f"acme/{number}" for number in range(4))]
        await stage.fund(*paths, credits_each=0)
        snapshotter = Snapshotter(stage.pool, entries_between=5, entries_each=each)
        taken = []
        for number in range(enough):
            await stage.do(Issue(account=paths[number % 5], amount=CREDIT))
            await snapshotter.tick()
            taken.append(await stage.pool.fetchval("SELECT count(*) FROM snapshots"))
            async with stage.pool.acquire() as db:  # nobody reads the same entries again
                assert await history.orgs_behind(db, entries=5, limit=1) == []
        assert taken == [0] * (enough - 1) + [5]

    play(database, act)


def test_entries_can_be_filtered_and_paged(database: str) -> None:
    """Pages follow one another without a gap, and each filter gives exactly its entries."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision", "acme/vision/alice", "acme/video")
        lease = await stage.reserve("acme/vision/alice", job_id="train")
        await stage.do(Transfer(source="acme", target="acme/vision", amount=CREDIT))
        await stage.do(Settle(reservation_id=lease.reservation.reservation_id))
        whole = await stage.reads.entries("acme", EntryFilter())
        assert [row.entry.entry_id for row in whole] == list(range(len(whole), 0, -1))
        pages, before = [], 0
        while page := await stage.reads.entries("acme", EntryFilter(before=before, limit=2)):
            pages.extend(page)
            before = page[-1].entry.entry_id
        assert pages == whole

        async def found(**wanted: object) -> set[int]:
            rows = await stage.reads.entries("acme", EntryFilter(**wanted))  # type: ignore[arg-type]  # the tests name each field
            return {row.entry.entry_id for row in rows}

        vision = {row.entry.entry_id for row in whole if "acme/vision" in (row.account, row.other)}
        assert await found(account="acme/vision") == vision
        below = {row.entry.entry_id for row in whole if row.account.startswith("acme/vision/")}
        assert await found(account="acme/vision", tree=True) == vision | below
        job = {row.entry.entry_id for row in whole if row.job_id == "train"}
        assert job
        assert await found(job_id="train") == job
        assert await found(job_id="other") == set()
        issues = {row.entry.entry_id for row in whole if row.entry.type is EntryType.ISSUE}
        assert await found(types=(EntryType.ISSUE,)) == issues
        middle = whole[3].entry.effective_at
        assert await found(until=middle) | await found(since=middle) == await found()

    play(database, act)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_filters_find_nothing_and_harm_nothing(database: str, text: str) -> None:
    """What callers write into filters is compared, never understood."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision")
        await stage.reserve("acme/vision")
        entries, reads = EntryFilter, stage.reads
        assert await reads.entries("acme", entries(account=text, tree=True)) == []
        assert await reads.entries("acme", entries(job_id=text)) == []
        assert await reads.entries(text, entries()) == []
        assert await reads.accounts("acme", AccountFilter(under=text)) == []
        assert await reads.accounts("acme", AccountFilter(metadata={text: text})) == []
        wanted = ReservationFilter(account=text, node=text, job_id=text)
        assert await reads.reservations("acme", wanted) == []
        assert await reads.balance(text) is None

    play(database, act)


def test_accounts_are_listed_in_order_of_path(database: str) -> None:
    """A subtree does not take in its neighbour whose name begins alike; pages continue."""

    async def act(stage: Scene) -> None:
        for path in ("acme", "acme/v", "acme/v/a", "acme/v-2", "acme/v0"):
            await stage.do(CreateAccount(path=path, metadata={"path": path}))
        tree = await stage.reads.accounts("acme", AccountFilter(under="acme/v"))
        assert [account.path for account in tree] == ["acme/v", "acme/v/a"]
        rest = await stage.reads.accounts("acme", AccountFilter(after="acme/v-2", limit=2))
        assert [account.path for account in rest] == ["acme/v/a", "acme/v0"]
        [one] = await stage.reads.accounts("acme", AccountFilter(metadata={"path": "acme/v0"}))
        assert one.path == "acme/v0"

    play(database, act)


def test_usage_adds_up_by_job_and_day(database: str) -> None:
    """What jobs cost is the sum of their settlements."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        for job, used_ms in (("a", 2_000), ("b", 5_000)):
            lease = await stage.reserve(job_id=job)
            await stage.advance(6)
            await stage.do(
                Settle(reservation_id=lease.reservation.reservation_id, seq=1, used_ms=used_ms)
            )
        now = (await stage.balance()).as_of
        asked = UsageQuestion(org_id=1, account="acme", since=now - HOUR_US, until=now + 1)
        by_job = await read_usage(stage.pool, asked)
        assert [(each.name, each.amount) for each in by_job.paid.groups] == [
            ("b", 5 * CREDIT),
            ("a", 2 * CREDIT),
        ]
        by_type = await read_usage(stage.pool, replace(asked, by="gpu_type"))
        assert [(each.name, each.amount) for each in by_type.paid.groups] == [("h100", 7 * CREDIT)]

    play(database, act)


def test_the_past_of_a_tree_is_read_at_once(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries of all accounts are added up in one statement; only who is due is opened."""
    summed: list[int] = []

    async def counted(connection: Any, org_id: int, account_ids: Any, *, at: int) -> Any:
        summed.append(len(account_ids))
        return await history.sums_at(connection, org_id, account_ids, at=at)

    monkeypatch.setattr(reads, "sums_at", counted)

    async def act(stage: Scene) -> None:
        await stage.fund("acme", *(f"acme/{number}" for number in range(9)))
        await stage.reserve("acme/3")
        await stage.advance(11)
        opened = counted_reads(monkeypatch)
        past = await stage.balance(tree=True, at=(await stage.balance()).as_of)
        assert buckets(past) == (1_000 * CREDIT, 0, 0)
        assert summed == [10]
        assert [len(needs.account_ids) for needs in opened] == [0, 0, 1]

    play(database, act)
