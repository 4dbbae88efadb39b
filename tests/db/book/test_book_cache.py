"""Books that are kept from one batch to the next: they are what would be read, or are not used."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.account import lineage
from gpucredits.core.book import Book
from gpucredits.core.command import (
    AddBoost,
    Cancel,
    Command,
    CreateAccount,
    EndQuota,
    EndRateLimit,
    Explain,
    Issue,
    Reserve,
    ResumeLease,
    SetQuota,
    SetRateLimit,
    Settle,
    StopLease,
    UpdateAccount,
)
from gpucredits.core.limits import tokens
from gpucredits.core.outcome import QuotaSaved, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Reservation
from gpucredits.service.write import batch
from gpucredits.service.write.ledger import DEFAULTS
from gpucredits.store.book import save
from gpucredits.store.book.cached_book import BOOK_WEIGHT, windows_of
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from gpucredits.store.database.errors import Conflict
from support.books.kept import counted_reads
from support.books.parity import PATHS, Players
from support.scenes.scene import CREDIT, Scene, play

STEPS = 60
RESETTING = (CreateAccount, UpdateAccount)
ASKED_BY_BEATS = (Dimension.CREDITS_PER_WINDOW, Dimension.CREDITS_PER_JOB)


def as_read(lease: Reservation) -> Reservation:
    """A lease without what no rule reads of a running one."""
    return replace(lease, region="", node="", price_id=0, metadata={}, job_id="", gpu_type="")


def lasting(book: Book, account_id: int) -> set[int]:
    """The limits of an account without which no beat can be decided."""
    quotas = book.limits.quotas.get(account_id, ())
    bucket = book.limits.buckets.get(account_id)
    windows = {each.quota_id for each in quotas if each.dimension in ASKED_BY_BEATS}
    return windows if bucket is None else windows | {bucket.bucket_id}


async def assert_true(stage: Scene) -> int:
    """Every row of the cached books is what the database holds; how many leases that were."""
    compared = 0
    for org_id, cached in stage.ledger.cache.books.items():
        held = cached.book
        needs = Needs(
            orgs={org_id},
            leases={org_id: set(held.reservations)},
            account_ids={(org_id, number) for number in held.accounts},
        )
        async with stage.pool.acquire() as connection:
            fresh = (await load(connection, needs))[org_id].book
            tallies = await connection.fetch("SELECT quota_id, starts_at, used FROM tallies")
        assert held.org == fresh.org
        assert not held.changed
        assert not held.entries
        assert held.suspended == fresh.suspended
        for number, account in held.accounts.items():
            assert fresh.accounts[number] == account
            if held.grants[number]:
                assert fresh.grants[number] == held.grants[number]
        for number, lease in held.reservations.items():
            beat_at = lease.beat_at if cached.gated else fresh.reservations[number].beat_at
            assert as_read(fresh.reservations[number]) == replace(as_read(lease), beat_at=beat_at)
            assert held.grants[lease.payer_id] == fresh.grants[lease.payer_id]
            assert not cached.gated or set(lineage(lease.account)) <= held.paths.keys()
            compared += 1
        if cached.gated:
            counters = fresh.limits.counters
            for number, counter in held.limits.counters.items():
                assert counters[number] == counter
            for number, bucket in held.limits.buckets.items():
                known = fresh.limits.buckets[number]
                assert tokens(known, cached.now) == tokens(bucket, cached.now)
            for number in held.accounts:
                assert lasting(held, number) == lasting(fresh, number)
                ends = [window.ends_at for window in windows_of(held, number)]
                assert all(cached.fresh_until <= each for each in ends)
            stored = {(row["quota_id"], row["starts_at"]): row["used"] for row in tallies}
            for number, every in held.limits.tallies.items():
                assert all(stored.get((number, at), 0) == each.used for at, each in every.items())
    return compared


async def set_limits(stage: Scene) -> None:
    """Limits of every kind, wide enough that most things pass and some do not."""
    wide: tuple[dict[str, Any], ...] = (
        {"account": "acme", "dimension": Dimension.CONCURRENT_GPUS, "limit": 9_000},
        {"account": "acme/p", "dimension": Dimension.CONCURRENT_JOBS, "limit": 4},
        {"account": "acme/p", "dimension": Dimension.CREDITS_PER_JOB, "limit": 90 * CREDIT},
    )
    window: dict[str, Any] = {"dimension": Dimension.CREDITS_PER_WINDOW, "limit": 600 * CREDIT}
    for terms in (*wide, {"account": "acme/p/u", "rolling_hours": 1} | window):
        assert isinstance(await stage.do(SetQuota(**terms)), QuotaSaved)
    limit = SetRateLimit(account="acme", capacity=300 * CREDIT, refill_per_hour=3_600 * CREDIT)
    assert isinstance(await stage.do(limit), RateLimitSaved)


LIMITS_SET = """
SELECT quota_id AS id FROM quotas WHERE ended_at = 0 UNION
SELECT bucket_id FROM token_buckets WHERE ended_at = 0 ORDER BY id
"""


async def other_command(stage: Scene, players: Players) -> Command | None:
    """Now and then what sets, lifts or ends a limit, asks about one, or stops a lease."""
    dice = players.dice
    path = dice.choice(PATHS)
    now = await stage.pool.fetchval("SELECT ledger_now()")
    limits = [row["id"] for row in await stage.pool.fetch(LIMITS_SET)] or [999]
    some: Any = {"limit": 1_000 * dice.randrange(9), "dimension": Dimension.CONCURRENT_GPUS}
    ends_at = now + dice.choice([2, 30, 4_000]) * 1_000_000
    choices: list[Command | None] = [
        None,
        None,
        EndRateLimit(account=path),
        SetRateLimit(account=path, capacity=300 * CREDIT, refill_per_hour=3_600 * CREDIT),
        SetQuota(account=path, **some),
        EndQuota(quota_id=dice.choice(limits)),
        AddBoost(target_id=dice.choice(limits), amount=dice.choice([2, CREDIT]), ends_at=ends_at),
        Explain(reserve=Reserve(**players.reserve(path))),
        StopLease(reservation_id=(lease := dice.choice([*players.leases, 999])), grace_ms=20_000),
        ResumeLease(reservation_id=lease, stopping_for=0),
    ]
    return dice.choice(choices)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_kept_pages_are_what_would_be_read(database: str, seed: int, gated: bool) -> None:
    """Whatever is done and whatever time passes, a cached book is the stored truth."""
    players = Players(seed)

    async def act(stage: Scene) -> None:
        await stage.fund(*PATHS)
        if gated:
            await set_limits(stage)
        compared = 0
        for step in range(STEPS):
            commands = [players.command(0) for _ in range(players.dice.randrange(3))]
            if step % 10:  # what changes an account's terms drops the cached book of its org
                commands = [each for each in commands if not isinstance(each, RESETTING)]
            commands.append(Reserve(**players.reserve(players.dice.choice(PATHS))))
            if gated and not step % 4 and (other := await other_command(stage, players)):
                commands.append(other)
            beats = [(1, players.beat()) for _ in range(players.dice.randrange(8))]
            reported = asyncio.create_task(stage.ledger.beat(beats))
            for outcome in await asyncio.gather(*(stage.do(command) for command in commands)):
                players.note(outcome)
            await reported
            compared += await assert_true(stage)
            if step % 5 == 0:
                await stage.advance(players.dice.choice([0.5, 3, 20]))
        assert compared > STEPS

    play(database, act)


def test_beats_of_kept_leases_read_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that was admitted or has reported before is renewed on the lock alone."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p")
        leases = [await stage.reserve("acme/p") for _ in range(3)]
        reads = counted_reads(monkeypatch)
        for seq in (1, 2, 3):
            for lease in leases:
                assert (await stage.beat(lease, seq, seq)).decision == "continue"
        assert reads == []
        await stage.advance(11)  # every lease has lapsed: the account is due
        assert (await stage.beat(leases[0], 4, 4)).decision == "stop"
        assert len(reads) == 1

    play(database, act)


async def pass_by(stage: Scene, seconds: float) -> None:
    """Let time pass, and let the server learn of it by what it does for another org."""
    await stage.advance(seconds)
    await stage.fund(f"org{seconds}")


@pytest.mark.parametrize("gated", [False, True])
def test_a_page_outlives_what_comes_due(
    database: str, monkeypatch: pytest.MonkeyPatch, gated: bool
) -> None:
    """When a payer comes due its lapsed leases are read; others that run on are not read again."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", credits_each=1_000)
        if gated:
            some: Any = {"account": "acme", "limit": 900 * CREDIT}
            month = {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.MONTH}
            await stage.do(
                SetQuota(**some | {"dimension": Dimension.CONCURRENT_GPUS, "limit": 9_000})
            )
            await stage.do(SetQuota(**some | month))
        silent = await stage.reserve("acme/p", job_id="silent")
        leases = [await stage.reserve("acme/p", job_id=f"job-{number}") for number in range(3)]
        other = await stage.reserve("acme", job_id="other")
        await stage.advance(6)
        for lease in (*leases, other):
            assert (await stage.beat(lease, 1, 6_000)).decision == "continue"
        await pass_by(stage, 5)  # the silent one has lapsed
        reads = counted_reads(monkeypatch)
        for lease in leases:
            assert (await stage.beat(lease, 2, 11_000)).decision == "continue"
        assert (await stage.beat(other, 2, 11_000)).decision == "continue"
        named = [set().union(*read.leases.values()) for read in reads]
        assert named[0] == {leases[0].reservation.reservation_id}
        assert len(named) == 1 if gated else len(named) == 2, named  # without limits each payer is
        assert (await stage.beat(silent, 1, 9_000)).decision == "stop"
        await assert_true(stage)

    play(database, act)


def test_an_account_that_is_due_does_not_concern_others_without_limits(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beats of one payer read nothing though another of the org is due, and stays so."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", "acme/q")
        await stage.reserve("acme/q", job_id="silent")
        running = await stage.reserve("acme/p", window_ms=60_000)
        await pass_by(stage, 11)
        reads = counted_reads(monkeypatch)
        for seq in (1, 2):
            assert (await stage.beat(running, seq, seq * 1_000)).decision == "continue"
        assert reads == []

    play(database, act)


def test_a_window_that_is_over_concerns_those_that_it_limits(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beats below one limit read nothing though a window of another account has ended."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", "acme/q", credits_each=9_000)
        terms: Any = {"dimension": Dimension.CREDITS_PER_WINDOW, "limit": 9_000 * CREDIT}
        for path in ("acme/p", "acme/q"):
            await stage.do(SetQuota(account=path, rolling_hours=24, **terms))
        first, other = [
            await stage.reserve(path, window_ms=3_600_000) for path in ("acme/p", "acme/q")
        ]
        await pass_by(stage, 25 * 60)
        assert (await stage.beat(first, 1, 1_000)).decision == "continue"
        reads = counted_reads(monkeypatch)
        assert (await stage.beat(first, 2, 2_000)).decision == "continue"
        assert reads == []
        assert (await stage.beat(other, 1, 1_000)).decision == "continue"
        assert reads
        await assert_true(stage)

    play(database, act)


def test_limits_that_are_taken_over_are_not_forgotten(database: str) -> None:
    """A book that was read for somebody without limits still knows when others' windows end."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", "acme/q", credits_each=90_000)
        terms: Any = {"dimension": Dimension.CREDITS_PER_WINDOW, "limit": 90_000 * CREDIT}
        await stage.do(SetQuota(account="acme/p", rolling_hours=24, **terms))
        lease = await stage.reserve("acme/p", window_ms=3_600_000)
        await stage.advance(25 * 60)
        await stage.beat(lease, 1, 25 * 60_000)
        await stage.reserve("acme/q", job_id="silent")
        await pass_by(stage, 11)
        await stage.do(Issue(account="acme/q", amount=CREDIT))
        await assert_true(stage)
        await pass_by(stage, 25 * 60)
        await stage.beat(lease, 2, 50 * 60_000)  # in the end, verify adds the windows up

    play(database, act)


def test_admissions_of_known_accounts_at_known_prices_read_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reserve, settle and cancel take one statement each, once their org is known."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p")
        await stage.reserve("acme/p")
        reads = counted_reads(monkeypatch)
        first, second = (
            await stage.reserve("acme/p"),
            await stage.reserve("acme/p", milli_gpus=2_000),
        )
        await stage.do(Cancel(reservation_id=first.reservation.reservation_id))
        await stage.do(Settle(reservation_id=second.reservation.reservation_id, used_ms=0))
        assert reads == []
        await stage.do(Reserve(account="acme/q", job_id="j", gpu_type="h100", milli_gpus=1_000))
        assert len(reads) == 1  # nobody knows that account

    play(database, act)


def test_what_was_rolled_back_is_not_kept(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A book whose changes were not written is gone with them."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve()
        failures = iter([True, False])
        save_if = save.save_if

        async def contended(*everything: Any) -> Any:
            if next(failures, False):
                raise Conflict("another was first")
            return await save_if(*everything)

        monkeypatch.setattr(batch, "save_if", contended)
        await stage.advance(2)
        assert (await stage.beat(lease, 1, 2_000)).settled == 2 * CREDIT
        assert (await stage.balance()).spent == 2 * CREDIT
        await assert_true(stage)

    play(database, act)


def test_the_shelf_is_bounded_and_forgets_what_has_ended(database: str) -> None:
    """The book that was used longest ago goes first; leases that ended go at once."""

    async def act(stage: Scene) -> None:
        for org in ("acme", "bmce", "cmce"):
            await stage.do(CreateAccount(path=org), org=org)
            await stage.do(Issue(account=org, amount=90 * CREDIT), org=org)
            leases = [await stage.reserve(org, milli_gpus=1_000) for _ in range(2)]
        assert set(stage.ledger.cache.books) == {2, 3}
        assert stage.ledger.cache.weight == 2 * (BOOK_WEIGHT + 4)
        await stage.do(Cancel(reservation_id=leases[0].reservation.reservation_id), org="cmce")
        assert stage.ledger.cache.weight == 2 * (BOOK_WEIGHT + 4) - 1

    play(database, act, options=replace(DEFAULTS, kept_leases_max=2 * (BOOK_WEIGHT + 4)))


def test_pages_without_leases_are_bounded_too(database: str) -> None:
    """An org of which a server knows an account and grants takes room like any other."""

    async def act(stage: Scene) -> None:
        cache = stage.ledger.cache
        for number in range(1, 7):
            await stage.fund(f"org-{number}")
            more = Issue(account=f"org-{number}", amount=CREDIT)
            await stage.do(more, org=more.account)
            assert set(cache.books) == {number, *range(max(number - 2, 1), number)}
            assert cache.weight == len(cache.books) * (BOOK_WEIGHT + 3)

    play(database, act, options=replace(DEFAULTS, kept_leases_max=3 * (BOOK_WEIGHT + 3)))


def test_a_page_is_read_anew_when_a_rate_limit_has_ended(database: str) -> None:
    """The org's last limit is gone: a lease that the book lacks is renewed all the same."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/p", "acme/p/u")
        lease = await stage.reserve("acme/p/u")
        await stage.do(SetRateLimit(account="acme", capacity=CREDIT, refill_per_hour=CREDIT))
        await stage.do(EndRateLimit(account="acme"))
        assert (await stage.beat(lease, 1, 1)).decision == "continue"
        await assert_true(stage)

    play(database, act)
