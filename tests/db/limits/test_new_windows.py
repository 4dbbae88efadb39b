"""Quotas on credits per window that are set while others of the same org are at work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gpucredits.core.book import InvariantBroken
from gpucredits.core.command import Command, Issue, ReplaceQuotas, SetQuota, Settle
from gpucredits.core.outcome import Closed, Granted, Outcome, QuotaSaved, QuotasReplaced
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.service.write import batch_worker
from gpucredits.service.write.batch import Job, Result, commit
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import Unavailable
from support.scenes.gated import until_noon
from support.scenes.scene import CREDIT, Scene, play

MONTH = SetQuota(
    account="acme/p",
    dimension=Dimension.CREDITS_PER_WINDOW,
    limit=9_000 * CREDIT,
    calendar=Calendar.MONTH,
)
ROLLING = SetQuota(
    account="acme/p",
    dimension=Dimension.CREDITS_PER_WINDOW,
    limit=9_000 * CREDIT,
    rolling_hours=240,
)
REPLACED = ReplaceQuotas(account="acme/p", quotas=(MONTH, ROLLING))


async def a_settle(stage: Scene) -> Settle:
    """The end of a lease of ``acme/p`` that has used 900 credits and said nothing yet."""
    await stage.fund("acme", "acme/p", credits_each=90_000)
    await until_noon(stage)
    lease = await stage.reserve("acme/p", window_ms=3_600_000)
    await stage.advance(1_000)
    return Settle(reservation_id=lease.reservation.reservation_id, used_ms=900_000)


@pytest.mark.parametrize("command", [MONTH, ROLLING, REPLACED], ids=["month", "rolling", "all"])
@pytest.mark.parametrize("settles_first", [True, False])
def test_a_new_window_has_what_is_settled_beside_it(
    database: str, command: Command, settles_first: bool
) -> None:
    """Whichever of the two comes first, what was charged is counted, once."""

    async def act(stage: Scene) -> None:
        settle = await a_settle(stage)
        both = [settle, command] if settles_first else [command, settle]
        told = await asyncio.gather(
            stage.do(Issue(account="acme", amount=CREDIT)), *map(stage.do, both)
        )
        assert {type(each) for each in told} <= {Closed, Granted, QuotaSaved, QuotasReplaced}
        used = {row[0] for row in await stage.pool.fetch("SELECT used FROM windows")}
        assert used == {900 * CREDIT} == {(await stage.balance("acme/p")).spent}

    play(database, act)


def test_whoever_sets_a_quota_holds_up_nobody_else(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other orgs go first, together; those of its own org one by one, in their order."""
    together: list[list[tuple[int, str]]] = []

    async def seen(connection: Connection, jobs: Sequence[Job], cache: BookCache) -> list[Result]:
        together.append([(job.org_id, kind_of(job)) for job in jobs])
        return await commit(connection, jobs, cache)

    async def act(stage: Scene) -> None:
        settle = await a_settle(stage)
        await stage.fund("beta", "gamma")
        acme, beta, gamma = [await number_of(stage, org) for org in ("acme", "beta", "gamma")]
        monkeypatch.setattr(batch_worker, "commit", seen)
        await asyncio.gather(
            stage.do(Issue(account="acme", amount=CREDIT)),
            stage.do(settle),
            stage.do(MONTH),
            stage.do(Issue(account="beta", amount=CREDIT), org="beta"),
            stage.do(Issue(account="gamma", amount=CREDIT), org="gamma"),
        )
        assert together == [
            [(beta, "Issue"), (gamma, "Issue")],
            [(acme, "Issue")],
            [(acme, "Settle")],
            [(acme, "SetQuota")],
        ]

    play(database, act)


def kind_of(job: Job) -> str:
    """The command of a job that is one."""
    [request] = job.requests  # type: ignore[union-attr]
    return type(request.command).__name__


async def number_of(stage: Scene, org: str) -> int:
    """The number of an org that exists."""
    number = await stage.ledger.org_id(org)
    assert number is not None
    return number


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_quota_is_set_with_nothing_else(database: str, dry_run: bool) -> None:
    """All or nothing is not for quotas: what the others of a group charge could not be counted."""

    async def act(stage: Scene) -> None:
        asked = [stage.request(each) for each in (await a_settle(stage), MONTH)]
        with pytest.raises(InvariantBroken):
            await stage.ledger.submit_all("acme", asked, atomic=True, dry_run=dry_run)
        told: list[Outcome] = await stage.ledger.submit_all("acme", asked, atomic=False)
        assert [type(each) for each in told] == [Closed, QuotaSaved]
        assert await stage.pool.fetchval("SELECT used FROM windows") == 900 * CREDIT

    play(database, act)


def test_a_held_org_in_which_a_window_opens_is_not_waited_for_job_by_job(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it was waited for too long, what is left of its batch is not begun."""
    begun: list[int] = []

    async def seen(connection: Connection, jobs: Sequence[Job], cache: BookCache) -> list[Result]:
        begun.append(len(jobs))
        return await commit(connection, jobs, cache)

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p")
        issue = Issue(account="acme", amount=CREDIT)
        monkeypatch.setattr(batch_worker, "HELD_MAX_S", 0.5)
        monkeypatch.setattr(batch_worker, "commit", seen)
        async with stage.pool.acquire() as holder, holder.transaction():
            await holder.execute("SELECT FROM orgs WHERE path = 'acme' FOR UPDATE")
            told = await asyncio.gather(
                *(stage.do(each) for each in (issue, MONTH, issue, issue)), return_exceptions=True
            )
        assert {type(each) for each in told} == {Unavailable}
        assert begun == [1]
        assert isinstance(await stage.do(MONTH), QuotaSaved)

    play(database, act)
