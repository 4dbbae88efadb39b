"""Batches that the queues cannot take whole, or that are not carried out to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gpucredits.api.http.batch import begin
from gpucredits.api.http.call import ApiRequest
from gpucredits.core.command import Cancel, Issue, Reserve, SetQuota, StopLease
from gpucredits.core.outcome import Closed, Reserved, Stopping
from gpucredits.core.quota import Dimension
from gpucredits.service.access.permissions import Principal, Role
from gpucredits.service.reads.orgs import Directory
from gpucredits.service.services import UseCases
from gpucredits.service.write import batch, batch_worker
from gpucredits.service.write.acts import Act, claim, perform
from gpucredits.service.write.batch import Job, Result
from gpucredits.service.write.errors import Busy, Incomplete, KeyReused, complete
from gpucredits.service.write.ledger import DEFAULTS, WriteOptions
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.book.cached_book import CachedBooks
from gpucredits.store.book.save import BatchRecord
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import Unavailable
from support.scenes.gated import quota
from support.scenes.scene import CREDIT, Scene, play


def test_a_batch_that_does_not_fit_is_not_begun(database: str) -> None:
    """Items that stand alone, in two orgs: when those of one cannot all wait, none is done."""
    options = WriteOptions(commands=replace(DEFAULTS.commands, org_waiting_max=5))

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
        assert not stage.ledger.commands.queues
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
    options = WriteOptions(commands=replace(DEFAULTS.commands, batch_max=2))

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        requests = [stage.request(Issue(account="acme", amount=1)) for _ in range(6)]
        with monkeypatch.context() as patched:
            patched.setattr(batch_worker, "WAIT_MAX_S", -1.0)
            with pytest.raises(Busy):
                await stage.ledger.submit_all("acme", requests, atomic=False)
        assert (await stage.balance()).available == 100 * CREDIT
        real = batch.commit

        async def slow(
            connection: Connection, jobs: Sequence[Job], cache: BookCache
        ) -> list[Result]:
            results = await real(connection, jobs, cache)
            patched.setattr(batch_worker, "WAIT_MAX_S", -1.0)
            return results

        with monkeypatch.context() as patched:
            patched.setattr(batch_worker, "commit", slow)
            with pytest.raises(Incomplete) as raised:
                await stage.ledger.submit_all("acme", requests, atomic=False)
        assert (raised.value.decided, raised.value.items) == (2, 6)
        assert (await stage.balance()).available == 100 * CREDIT + 2
        assert len(await stage.ledger.submit_all("acme", requests, atomic=False)) == 6
        assert (await stage.balance()).available == 100 * CREDIT + 6

    play(database, act, options=options)


KEY, BATCH = "shared", b"a batch"


async def use_key(stage: Scene) -> None:
    """Bind the key to a batch in the org ``acme``."""
    await claim(stage.pool, [await number_of(stage)], KEY, fingerprint=BATCH)


async def number_of(stage: Scene) -> int:
    """The number of the org ``acme``."""
    number = await stage.ledger.org_id("acme")
    assert number is not None
    return number


def test_a_command_under_way_whose_key_a_batch_takes_is_not_done(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch locks nothing: a command, decided first or locked first, still sees it in time."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        real = batch.run_all
        for command in (
            Issue(account="acme", amount=1),
            SetQuota(account="acme", dimension=Dimension.CONCURRENT_JOBS, limit=4),
        ):

            async def meanwhile(
                jobs: Sequence[Job], pages: CachedBooks, minutes: BatchRecord, number: int
            ) -> list[Result]:
                await use_key(stage)
                return await real(jobs, pages, minutes, number)

            await stage.pool.execute("DELETE FROM idempotency")
            before = await stage.pool.fetchval("SELECT next_id FROM orgs WHERE path = 'acme'")
            with monkeypatch.context() as patched:
                patched.setattr(batch, "run_all", meanwhile)
                with pytest.raises(KeyReused):
                    await stage.do(command, key=KEY)
            after = await stage.pool.fetchval("SELECT next_id FROM orgs WHERE path = 'acme'")
            assert after == before

    play(database, act)


def test_an_act_under_way_whose_key_a_batch_takes_is_not_done(database: str) -> None:
    """Acts that move no money see it too, and what they did is taken back."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        asked = Act(org_id=await number_of(stage), key=KEY, fingerprint=b"an act")

        async def work(db: Connection) -> tuple[bytes, None]:
            await db.execute("UPDATE orgs SET path = 'done' WHERE path = 'acme'")
            await use_key(stage)
            return b"{}", None

        with pytest.raises(KeyReused):
            await perform(stage.pool, asked, work)
        assert await stage.pool.fetchval("SELECT count(*) FROM orgs WHERE path = 'done'") == 0

    play(database, act)


def test_a_key_is_bound_in_all_orgs_or_in_none(database: str) -> None:
    """Where it was used in one of them, nothing is left in the others; the same again is fine."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta")
        acme = await number_of(stage)
        await claim(stage.pool, [acme], KEY, fingerprint=BATCH)
        with pytest.raises(KeyReused):
            await claim(stage.pool, [0, acme, acme + 1], KEY, fingerprint=b"another")
        bound = "SELECT array_agg(org_id ORDER BY org_id) FROM idempotency WHERE key = $1"
        assert await stage.pool.fetchval(bound, KEY) == [acme]
        await claim(stage.pool, [acme + 1, acme, 0], KEY, fingerprint=BATCH)
        assert await stage.pool.fetchval(bound, KEY) == [0, acme, acme + 1]

    play(database, act)


def test_batches_that_bind_a_key_at_once_agree(database: str) -> None:
    """Repeats of one batch all go on; another batch under the key is told, and changes nothing."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta")
        acme = await number_of(stage)
        asked = [BATCH] * 7 + [b"another"]
        bound = await asyncio.gather(
            *(claim(stage.pool, [acme, acme + 1], KEY, fingerprint=each) for each in asked),
            return_exceptions=True,
        )
        reused = [each for each, said in zip(asked, bound, strict=True) if said is not None]
        assert {type(said) for said in bound} == {type(None), KeyReused}
        assert reused in ([b"another"], [BATCH] * 7)
        rows = "SELECT count(*), count(DISTINCT request_hash) FROM idempotency WHERE key = $1"
        assert tuple(await stage.pool.fetchrow(rows, KEY)) == (2, 1)

    play(database, act)


def test_a_batch_without_room_binds_no_key(database: str) -> None:
    """It is refused before anything is written down."""
    options = WriteOptions(commands=replace(DEFAULTS.commands, org_waiting_max=5))

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        services: Any = SimpleNamespace(
            run=UseCases(stage.pool), ledger=stage.ledger, directory=Directory(stage.pool)
        )
        call: ApiRequest[None, None] = ApiRequest(
            services=services,
            principal=Principal(key_id=1, org_id=0, role=Role.ADMIN),
            params={},
            body=None,
            query=None,
            request_id="",
            key=KEY,
            fingerprint=BATCH,
        )
        rows = "SELECT count(*) FROM idempotency WHERE key = $1"
        with pytest.raises(Busy):
            await begin(call, ["acme"] * 6, atomic=False)
        assert await stage.pool.fetchval(rows, KEY) == 0
        assert await begin(call, ["acme"] * 5, atomic=False) == {"acme": await number_of(stage)}
        assert await stage.pool.fetchval(rows, KEY) == 2

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


@pytest.mark.parametrize("is_limited", [False, True], ids=["without limits", "with a quota"])
def test_what_follows_an_order_to_stop_at_once_is_decided(database: str, is_limited: bool) -> None:
    """The lease that was stopped has ended, and its payer has nothing more that is due."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        if is_limited:
            await quota(stage, "acme", Dimension.CONCURRENT_JOBS, 9)
        stopped, other = [
            (await stage.reserve(job_id=job)).reservation.reservation_id for job in ("a", "b")
        ]
        ask = Reserve(account="acme", job_id="c", gpu_type="h100", milli_gpus=100)
        commands = (StopLease(reservation_id=stopped), Cancel(reservation_id=other), ask)
        requests = [stage.request(each) for each in commands]
        outcomes = await stage.ledger.submit_all("acme", requests, atomic=True)
        assert [type(each) for each in outcomes] == [Stopping, Closed, Reserved]
        await stage.assert_sound()

    play(database, act)
