"""Measured use without a lease, on a real database: matched, dismissed, bounded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import Cancel
from gpucredits.core.reasons import Refused
from gpucredits.service.billing.usage import UsageRow, record_use
from gpucredits.service.reconciliation.passes import read_counts
from gpucredits.service.reconciliation.unmatched_use import (
    UnmatchedFilter,
    UnmatchedRow,
    decide_unmatched,
    keep_unknown,
    list_unmatched,
)
from gpucredits.service.write.acts import Act, ActRefused
from gpucredits.store.reconciliation import unmatched_use as unmatched_rows
from support.scenes.reconciling import QUIET_S, SEQS, lease_now, policy, run, settled
from support.scenes.scene import CREDIT, Scene, play

ALL = (2**62, 0)
ACT = Act(org_id=1, actor="tester")


async def queue_of(stage: Scene) -> list[UnmatchedRow]:
    """Everything in the queue of unmatched use."""
    return await list_unmatched(stage.pool, UnmatchedFilter(before=ALL))


def unnamed(account: int, job: str, end_ms: int, node: str = "n1") -> UsageRow:
    """An event of a job without a lease."""
    payload = {"start_ms": 0, "end_ms": end_ms}
    return UsageRow(1, job, node, 0, account, next(SEQS), end_ms, payload, True)


def test_use_of_a_job_with_one_lease_is_matched_to_it(database: str) -> None:
    """An event that names account and job belongs to the only lease that there is."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 10_000, node="n1")
        await record_use(stage.pool, [unnamed(1, "job", 20_000)], dry_run=False)
        await stage.advance(QUIET_S)
        assert (await run(stage)).charged == 10 * CREDIT
        [row] = await queue_of(stage)
        assert (row.state, row.reservation_id) == (1, lease.reservation_id)

    play(database, act)


def test_use_of_a_job_with_a_second_lease_moves_money_only_where_people_say_so(
    database: str,
) -> None:
    """A job that runs again on its node makes its use ambiguous: it is compared, and not posted."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        first = await settled(stage, 40_000, node="n1")
        await record_use(stage.pool, [unnamed(1, "job", 40_000)], dry_run=False)
        await stage.advance(QUIET_S)
        assert (await run(stage)).agreed == 1
        second = await settled(stage, 90_000, node="n1")
        await record_use(stage.pool, [unnamed(1, "job", 90_000)], dry_run=False)
        await stage.advance(QUIET_S)
        done = await run(stage)
        assert (done.posted, done.differed) == (0, 1)
        for lease, used in ((first, 40), (second, 90)):
            assert (await lease_now(stage, lease)).charged == used * CREDIT
        [row] = await queue_of(stage)
        number = second.reservation_id
        assert await decide_unmatched(
            stage.pool, ACT, row.unmatched_id, reservation_id=number, note="the second run"
        )
        assert (await run(stage, again=True)).posted == 0  # it agrees with the second
        for lease, used in ((first, 40), (second, 90)):
            assert (await lease_now(stage, lease)).charged == used * CREDIT

    play(database, act)


def test_a_lease_that_never_ran_makes_no_use_ambiguous(database: str) -> None:
    """Nobody takes the bill back from the reconciler with a reserve that is canceled at once."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        await settled(stage, 10_000, node="n1")
        await record_use(stage.pool, [unnamed(1, "job", 10_000)], dry_run=False)
        await stage.advance(QUIET_S)
        assert (await run(stage)).agreed == 1
        never = await stage.reserve(node="n1")
        await stage.do(Cancel(reservation_id=never.reservation.reservation_id))
        await record_use(stage.pool, [unnamed(1, "job", 20_000)], dry_run=False)
        await stage.advance(QUIET_S)
        assert (await run(stage)).charged == 10 * CREDIT

    play(database, act)


def test_a_flood_of_one_org_is_bounded_and_hides_nobody_elses_use(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond its room an org's new use is not kept but counted; others have their own room."""
    monkeypatch.setattr(unmatched_rows, "OPEN_MAX", 4)

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "zeta", credits_each=900)
        flood = [unnamed(1, f"made-up-{number}", 1_000) for number in range(10)]
        payload = {"start_ms": 0, "end_ms": 1_000}
        other = UsageRow(2, "theirs", "n1", 0, 1, next(SEQS), 1_000, payload)
        told = await record_use(stage.pool, [*flood, other], dry_run=False)
        assert (told.stored, told.dropped) == ({0, 1, 2, 3, 10}, set(range(4, 10)))
        assert "theirs" in {row.job_id for row in await queue_of(stage)}
        assert len(await queue_of(stage)) == 5
        again = await record_use(stage.pool, [unnamed(1, "made-up-0", 2_000)], dry_run=False)
        assert again.stored == {0}  # a row that there is takes its later events
        assert (await read_counts(stage.pool)).dropped == 6
        assert await stage.pool.fetchval("SELECT count(*) FROM usage_events") == 6
        [first, *_] = [row for row in await queue_of(stage) if row.org_id == 1]
        await decide_unmatched(stage.pool, ACT, first.unmatched_id, reservation_id=0, note="no")
        after = await record_use(stage.pool, [unnamed(1, "made-up-9", 1_000)], dry_run=False)
        assert after == ({0}, set())  # there is room again

    play(database, act)


def test_two_servers_do_not_fill_the_same_room(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Floods at once take no more rows than there is room for."""
    monkeypatch.setattr(unmatched_rows, "OPEN_MAX", 7)

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        floods = [[unnamed(1, f"job-{n}-{m}", 1_000) for m in range(5)] for n in range(4)]
        told = await asyncio.gather(
            *(record_use(stage.pool, flood, dry_run=False) for flood in floods)
        )
        assert sum(len(each.stored) for each in told) == 7
        assert sum(len(each.dropped) for each in told) == 13
        assert len(await queue_of(stage)) == 7

    play(database, act)


def test_made_up_nodes_are_not_matched_to_a_lease_without_a_node(database: str) -> None:
    """Only the node of a lease is its node: names that anybody thinks of wait for people."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        await settled(stage, 10_000, node="")
        await record_use(stage.pool, [unnamed(1, "job", 20_000, "made-up")], dry_run=False)
        await stage.advance(QUIET_S)
        assert (await run(stage)).posted == 0
        [row] = await queue_of(stage)
        assert row.state == 0

    play(database, act)


def test_people_match_and_dismiss_use_without_a_lease(database: str) -> None:
    """Use of a job with several leases, and of a lease that does not exist, wait for people."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 10_000, node="n1")
        await settled(stage, 10_000, node="n1")
        other = await settled(stage, 10_000, account="acme/p")
        await record_use(stage.pool, [unnamed(1, "job", 20_000)], dry_run=False)
        await keep_unknown(stage.pool, [unnamed(0, "rsv_1_zzz", 5_000)])
        await stage.advance(QUIET_S)
        assert (await run(stage)).posted == 0
        by_job = {row.job_id: row for row in await queue_of(stage)}
        mine, ghost = by_job["job"], by_job["rsv_1_zzz"]
        assert (mine.state, mine.events, mine.used_ms, mine.account) == (0, 1, 20_000, "acme")

        async def decide(row: UnmatchedRow, number: int) -> Any:
            try:
                return await decide_unmatched(
                    stage.pool, ACT, row.unmatched_id, reservation_id=number, note="seen"
                )
            except ActRefused as error:
                return error.refused

        assert isinstance(await decide(mine, 999), Refused)
        assert isinstance(await decide(mine, other.reservation_id), Refused)
        row, _ = await decide(mine, lease.reservation_id)
        assert row.state == 1
        assert (await decide(ghost, 0))[0].state == 2
        assert isinstance(await decide(ghost, lease.reservation_id), Refused)
        assert (await run(stage)).charged == 10 * CREDIT
        await record_use(stage.pool, [unnamed(1, "job", 30_000)], dry_run=False)
        await stage.advance(QUIET_S)
        assert (await run(stage)).charged == 10 * CREDIT
        assert (await run(stage, again=True)).posted == 0

    play(database, act)


def test_the_queue_of_unknown_leases_is_bounded(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound nothing is kept of leases that do not exist."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        monkeypatch.setattr(unmatched_rows, "OPEN_MAX", 2)
        rows = [unnamed(0, f"rsv_1_z{n}", 1_000) for n in range(4)]
        assert await keep_unknown(stage.pool, rows[:1]) == set()
        assert await keep_unknown(stage.pool, rows[1:]) == {1, 2}
        assert len(await queue_of(stage)) == 2
        elsewhere = replace(rows[0], org_id=99)
        assert await keep_unknown(stage.pool, [elsewhere]) == set()  # nobody's room
        assert await stage.pool.fetchval("SELECT count(*) FROM usage_events") == 2

    play(database, act)
