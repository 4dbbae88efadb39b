"""Whose word on a lease moves money: that of its own node, which the system vouches for."""

from __future__ import annotations

import pytest

from gpucredits.core.reservation import Reservation, elapsed_ms
from gpucredits.service.billing.usage import UsageRow, record_use
from gpucredits.service.reconciliation.passes import (
    ComparedFilter,
    ComparedRow,
    list_comparisons,
)
from gpucredits.service.reconciliation.unmatched_use import (
    UnmatchedFilter,
    decide_unmatched,
    list_unmatched,
)
from gpucredits.service.write.acts import Act
from gpucredits.store.reconciliation.comparisons import DIFFERS, POSTED
from support.scenes.reconciling import QUIET_S, SEQS, lease_now, measure, policy, run, settled
from support.scenes.scene import CREDIT, Scene, play

ALL = (2**62, 0)


async def compared(stage: Scene) -> ComparedRow:
    """The only lease that was compared."""
    [row] = await list_comparisons(stage.pool, ComparedFilter(before=ALL))
    return row


@pytest.mark.parametrize(
    ("node", "told_by", "is_attested"),
    [
        ("n1", "n1", False),  # a key of the tenant, in the node's name
        ("n1", "n2", True),  # another node of the system
        ("", "n1", True),  # a lease that runs on no node
        ("", "", True),  # and a teller that names none
    ],
)
@pytest.mark.parametrize("told_ms", [1_000, 90_000])
def test_the_word_of_nobody_else_moves_money(
    database: str, node: str, told_by: str, is_attested: bool, told_ms: int
) -> None:
    """It is kept, compared and shown, and neither lowers nor raises the bill."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 60_000, node=node)
        await measure(stage, lease, (0, told_ms), node=told_by, is_attested=is_attested)
        await stage.advance(QUIET_S)
        assert (await run(stage)).differed == 1
        assert (await run(stage, again=True)).posted == 0
        row = await compared(stage)
        shown = (row.state, row.is_attested, row.measured_ms)
        assert shown == (DIFFERS, False, told_ms)
        assert (await lease_now(stage, lease)).charged == 60 * CREDIT

    play(database, act)


def test_the_nodes_own_word_is_not_diluted(database: str) -> None:
    """What others tell beside it does not count, more or less, before or after."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 60_000)
        await measure(stage, lease, (0, 99_000), is_attested=False)
        await measure(stage, lease, (0, 40_000))
        await measure(stage, lease, (0, 99_000), node="n2")
        await stage.advance(QUIET_S)
        assert (await run(stage)).given_back == 20 * CREDIT
        row = await compared(stage)
        assert (row.state, row.is_attested, row.measured_ms) == (POSTED, True, 40_000)

    play(database, act)


def test_nobody_takes_the_numbers_of_a_nodes_reports(database: str) -> None:
    """Events in the node's name with every seq that it will use do not make it a duplicate."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 60_000)
        for seq in (1, 2):
            assert await measure(stage, lease, (0, 1), seq=seq, is_attested=False) == 1
        for seq, end in ((1, 40_000), (2, 75_000), (2, 90_000)):
            fresh = await measure(stage, lease, (0, end), seq=seq)
            assert fresh == (end != 90_000)  # the control: its own repeat is one
        await stage.advance(QUIET_S)
        assert (await run(stage)).charged == 15 * CREDIT

    play(database, act)


def test_use_beyond_the_lease_is_never_charged(database: str) -> None:
    """The node's own word counts up to the end of the lease."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 60_000)
        await measure(stage, lease, (0, 100_000), (100_000, 900_000))
        await stage.advance(QUIET_S)
        assert (await run(stage)).posted == 1
        ended, row = await lease_now(stage, lease), await compared(stage)
        lasted_ms = elapsed_ms(ended, ended.ended_at)
        assert lasted_ms < 200_000
        assert (row.measured_ms, row.beyond_ms) == (lasted_ms, 900_000 - lasted_ms)
        assert ended.charged == lasted_ms * CREDIT // 1_000

    play(database, act)


def test_use_that_people_matched_counts_if_a_node_told_it(database: str) -> None:
    """People say whose use of a renamed node it is; what a tenant adds to it counts nothing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=900)
        await policy(stage)
        lease = await settled(stage, 60_000)
        assert await told(stage, lease, 70_000, is_attested=True) == 1
        assert await told(stage, lease, 99_000, is_attested=False) == 1
        [row] = await list_unmatched(stage.pool, UnmatchedFilter(before=ALL))
        act = Act(org_id=1, actor="key_0_2")
        number = lease.reservation_id
        assert await decide_unmatched(
            stage.pool, act, row.unmatched_id, reservation_id=number, note="renamed"
        )
        await stage.advance(QUIET_S)
        assert (await run(stage)).charged == 10 * CREDIT

    async def told(stage: Scene, lease: Reservation, end: int, *, is_attested: bool) -> int:
        payload = {"start_ms": 0, "end_ms": end}
        row = UsageRow(1, lease.job_id, "old", 0, 1, next(SEQS), end, payload, is_attested)
        return len((await record_use(stage.pool, [row], dry_run=False)).stored)

    play(database, act)
