"""Batches that the queues cannot take whole, or that are not carried out to their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpucredits.core.command import Issue
from gpucredits.service import batch, lane
from gpucredits.service.batch import Job, Result
from gpucredits.service.errors import Busy, Incomplete, complete
from gpucredits.service.funnel import DEFAULTS, FunnelOptions
from gpucredits.store.connection import Connection
from gpucredits.store.errors import Unavailable
from gpucredits.store.shelf import Shelf
from support.scene import CREDIT, Scene, play


def test_a_batch_that_does_not_fit_is_not_begun(database: str) -> None:
    """Items that stand alone, in two orgs: when those of one cannot all wait, none is done."""
    options = FunnelOptions(commands=replace(DEFAULTS.commands, org_waiting_max=5))

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "quiet", credits_each=50)
        orgs = [await stage.ledger.org_id(path) for path in ("quiet", "acme")]
        parts = [
            (org_id or 0, [stage.request(Issue(account=path, amount=1)) for _ in range(count)])
            for org_id, path, count in zip(orgs, ("quiet", "acme"), (2, 6), strict=True)
        ]
        entries = "SELECT count(*) FROM entries"
        before = await stage.pool.fetchval(entries)
        with pytest.raises(Busy):
            await stage.ledger.answer_parts(parts, atomic=False)
        with pytest.raises(Busy):
            await stage.ledger.submit_all("acme", parts[1][1], atomic=False)
        assert [lane.waiting for lane in stage.ledger.funnel.lanes] == [0] * options.lanes
        assert await stage.pool.fetchval(entries) == before
        parts[1][1].pop()
        answers = await stage.ledger.answer_parts(parts, atomic=False)
        assert [len(each.outcomes) for each in answers] == [2, 5]
        assert await stage.pool.fetchval(entries) == before + 7

    play(database, act, options=options)


def test_a_batch_of_which_some_waited_too_long_says_what_was_done(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy is for what was not begun at all; the same keys then go on where it stopped."""
    options = FunnelOptions(commands=replace(DEFAULTS.commands, org_batch_max=2))

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        requests = [stage.request(Issue(account="acme", amount=1)) for _ in range(6)]
        with monkeypatch.context() as patched:
            patched.setattr(lane, "WAIT_MAX_S", -1.0)
            with pytest.raises(Busy):
                await stage.ledger.submit_all("acme", requests, atomic=False)
        assert (await stage.balance()).available == 100 * CREDIT
        real = batch.commit

        async def slow(connection: Connection, jobs: Sequence[Job], shelf: Shelf) -> list[Result]:
            results = await real(connection, jobs, shelf)
            patched.setattr(lane, "WAIT_MAX_S", -1.0)
            return results

        with monkeypatch.context() as patched:
            patched.setattr(lane, "commit", slow)
            with pytest.raises(Incomplete) as raised:
                await stage.ledger.submit_all("acme", requests, atomic=False)
        assert (raised.value.decided, raised.value.items) == (2, 6)
        assert (await stage.balance()).available == 100 * CREDIT + 2
        assert len(await stage.ledger.submit_all("acme", requests, atomic=False)) == 6
        assert (await stage.balance()).available == 100 * CREDIT + 6

    play(database, act, options=options)


def test_the_gravest_failure_is_told() -> None:
    """Busy says that nothing was begun, so it is said only when that is true of all items."""
    assert complete([1, 2]) == [1, 2]
    for results, before, told in (
        ([Busy(1.0), Busy(1.0)], 0, Busy),
        ([Busy(1.0), Unavailable("gone")], 0, Unavailable),
        ([Busy(1.0), ValueError("ours"), Unavailable("gone")], 0, ValueError),
        ([Busy(1.0), 1], 0, Incomplete),
        ([Busy(1.0)], 3, Incomplete),
    ):
        with pytest.raises(told):
            complete(results, before=before)
