"""Outages, planned stops and exposure on a real database, with one server and with two."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Model
from gpucredits.core.bounds import AWAY_US_MIN
from gpucredits.core.command import SetQuota, SetRateLimit, Sweep, UpdateAccount
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rules.leases.exposure import exposure_of, sum_of
from gpucredits.service.reads.exposure import ExposureFilter, PayerExposure, exposure_of_payers
from gpucredits.service.write.acts import Act
from gpucredits.service.write.ledger import Ledger
from gpucredits.service.write.maintenance import change, read_state
from gpucredits.store.book import database_clock
from gpucredits.store.book.rows import stored_lease
from gpucredits.store.outages import read_outages
from support.scenes.scene import CREDIT, Scene, play

SECOND = 1_000_000
STAFF = Act(org_id=0, actor="key_0_1", request_id="r")


async def be_away(stage: Scene, seconds: int) -> None:
    """No server lives for so long: the last sign is so old, and so much time has passed."""
    await stage.advance(seconds)
    await stage.pool.execute("UPDATE server_life SET alive_at = alive_at - $1", seconds * SECOND)
    stage.ledger.cache.life._signed_at = 1  # the process knows by its own clock that it is late


async def watched(stage: Scene) -> None:
    """A server that gives signs of life, the first one now."""
    stage.ledger.cache.life.is_watched = True
    await stage.ledger.cache.life.sign(stage.pool)


@pytest.mark.parametrize("gated", [False, True], ids=["without limits", "with a quota"])
def test_a_batch_hears_of_an_outage_before_it_decides(database: str, gated: bool) -> None:
    """The first report after the return is charged and renewed; nothing has lapsed meanwhile."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await watched(stage)
        if gated:
            await set_quota(stage)
        lease = await stage.reserve()
        await be_away(stage, 50)
        answer = await stage.beat(lease, 1, 50_000)
        assert (answer.decision, answer.settled) == ("continue", 50 * CREDIT)
        [outage] = await read_outages(stage.pool)
        assert outage.until - outage.since >= 50 * SECOND
        await stage.assert_sound()

    play(database, act)


async def set_quota(stage: Scene) -> None:
    """A quota that nobody reaches."""
    await stage.do(SetQuota(account="acme", dimension=Dimension.CONCURRENT_JOBS, limit=9))


def test_a_server_that_lived_gives_no_grace(database: str) -> None:
    """The control: as much time passes, and somebody gave a sign of life."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await watched(stage)
        other = Ledger(stage.pool)
        lease = await stage.reserve()
        await be_away(stage, 50)
        await stage.pool.execute("UPDATE server_life SET alive_at = alive_at + $1", 45 * SECOND)
        await other.cache.life.sign(stage.pool)
        assert (await stage.beat(lease, 1, 50_000)).decision == "stop"
        assert await read_outages(stage.pool) == ()
        await other.stop()

    play(database, act)


def test_silent_leases_are_kept_for_the_grace_and_then_swept(database: str) -> None:
    """Reads and the sweeper see the same; the books hold before, during and after the grace."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await watched(stage)
        lease = (await stage.reserve()).reservation
        await be_away(stage, 50)
        await stage.ledger.cache.life.sign(stage.pool)
        assert (await stage.balance()).reserved == lease.held, "a read knows the outage"
        await stage.ledger.sweep(1, [lease.payer_id])
        row = await stored(stage, lease.reservation_id)
        assert (row.state, row.reprieve_ms > 0) == (ReservationState.ACTIVE, True)
        assert row.beat_at == lease.admitted_at
        await stage.assert_sound()
        await stage.advance(11)
        assert (await stage.balance()).reserved == 0
        await stage.do(Sweep(account_id=lease.payer_id))
        row = await stored(stage, lease.reservation_id)
        assert row.state is ReservationState.EXPIRED

    play(database, act)


def test_two_servers_agree_on_one_outage(database: str) -> None:
    """Whoever is back first records it; the other finds it recorded."""

    async def act(stage: Scene) -> None:
        await watched(stage)
        other = Ledger(stage.pool)
        await be_away(stage, 60)
        await other.cache.life.sign(stage.pool)
        await stage.ledger.cache.life.sign(stage.pool)
        assert len(other.cache.life.outages) == 1
        assert other.cache.life.outages == stage.ledger.cache.life.outages
        await other.stop()

    play(database, act)


def test_short_silences_and_wrong_clocks_are_no_outages(database: str) -> None:
    """Nothing is recorded for less than ten seconds, nor for a sign from ahead of the present."""

    async def act(stage: Scene) -> None:
        await watched(stage)
        life = stage.ledger.cache.life
        for change_us in (AWAY_US_MIN - 2 * SECOND, -3_600 * SECOND):
            await stage.pool.execute("UPDATE server_life SET alive_at = alive_at - $1", change_us)
            await life.sign(stage.pool)
            assert life.outages == ()
        seen = await stage.pool.fetchval("SELECT alive_at FROM server_life")
        assert seen <= await stage.pool.fetchval("SELECT ledger_now()"), "the next sign is believed"
        await stage.pool.execute(
            "INSERT INTO outages (since, until, grace_ms)"
            " SELECT ledger_now(), ledger_now() + 3600000000, 1000"
        )
        await life.sign(stage.pool)
        assert life.outages == (), "one that lies ahead was recorded by a wrong clock"

    play(database, act, stays_sound=False)


def test_a_stale_server_asks_before_it_decides(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without the look at its own clock the first batch would end the lease."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await watched(stage)
        lease = await stage.reserve()
        await be_away(stage, 50)
        monkeypatch.setattr(database_clock, "STALE_US", 10**18)
        assert (await stage.beat(lease, 1, 50_000)).decision == "stop"

    play(database, act)


@pytest.mark.parametrize("gated", [False, True], ids=["without limits", "with limits"])
def test_a_planned_stop_extends_leases_and_names_who_cannot(database: str, gated: bool) -> None:
    """Reports extend; who is short is listed with what is missing; the end frees the holds."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme/rich", credits_each=0)
        await stage.fund("acme", credits_each=0)
        await stage.fund("acme/rich", credits_each=1_000)
        await stage.fund("acme/poor", credits_each=30)
        await watched(stage)
        if gated:
            await set_limits(stage)
        rich, poor = await stage.reserve("acme/rich"), await stage.reserve("acme/poor")
        await change(stage.pool, STAFF, 600_000, "a new kernel")
        await stage.ledger.cache.life.hear(stage.pool)
        state = await read_state(stage.pool, (0, 0), 10)
        assert (state.coverage.live, state.coverage.waiting) == (2, 2)
        assert (await stage.beat(rich, 1, 0)).expires_in_ms > 500_000
        answer = await stage.beat(poor, 1, 0)
        assert (answer.decision, answer.held) == ("continue", 30 * CREDIT)
        state = await read_state(stage.pool, (0, 0), 10)
        assert state.coverage == (2, 1, 0, 1)
        [short] = state.short
        assert short.payer == "acme/poor"
        assert 500 * CREDIT < short.missing <= 570 * CREDIT
        await stage.assert_sound()
        await stage.advance(300)
        assert (await stage.beat(rich, 2, 300_000)).settled == 300 * CREDIT
        await stage.assert_sound()
        await change(stage.pool, STAFF, 0, "")
        await stage.ledger.cache.life.hear(stage.pool)
        await stage.advance(1)
        assert (await stage.beat(rich, 3, 301_000)).held == 10 * CREDIT
        assert (await read_state(stage.pool, (0, 0), 10)).stop is None

    play(database, act)


async def set_limits(stage: Scene) -> None:
    """Limits of every sort that nobody reaches: what is extended counts in all of them."""
    window = Dimension.CREDITS_PER_WINDOW
    await stage.do(
        SetQuota(account="acme", dimension=window, limit=9_000 * CREDIT, rolling_hours=24)
    )
    per_job = Dimension.CREDITS_PER_JOB
    await stage.do(SetQuota(account="acme", dimension=per_job, limit=5_000 * CREDIT))
    most = 9_000 * CREDIT
    await stage.do(SetRateLimit(account="acme", capacity=most, refill_per_hour=CREDIT))


def test_exposure_in_sql_is_that_of_the_rules(database: str) -> None:
    """Every payer's sums are those of core over its live leases, in grace, escrow and overdraft."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision", credits_each=500)
        owing = UpdateAccount(
            path="acme/vision",
            model=Model.POSTPAID,
            credit_limit=7 * CREDIT,
            overdraft_limit=CREDIT,
        )
        await stage.do(owing)
        await watched(stage)
        await stage.reserve()
        await stage.reserve(escrow_windows=3, window_ms=7_000)
        await stage.reserve("acme/vision", milli_gpus=460)
        await compare(stage)
        await be_away(stage, 200)
        await stage.ledger.cache.life.sign(stage.pool)
        await stage.reserve("acme/vision", escrow_windows=1)
        total = await compare(stage)
        assert total.exposure.grace > 0
        await stage.do(Sweep(account_id=1))
        after = (await compare(stage)).exposure
        assert total.exposure.total - 2_000 <= after.total <= total.exposure.total

    play(database, act)


async def compare(stage: Scene) -> PayerExposure:
    """The exposure as the store sums it up, after it was compared with the rules."""
    _, total, found = await exposure_of_payers(stage.pool, 1, ExposureFilter("acme"))
    outages = await read_outages(stage.pool)
    rows = await stage.pool.fetch("SELECT * FROM reservations WHERE state = 0")
    leases = [stored_lease(row) for row in rows]
    for each in found:
        account = await stage.reads.account(each.path)
        assert account is not None
        own = [lease for lease in leases if lease.payer_id == account.account_id]
        assert each.leases == len(own)
        assert each.exposure == sum_of(
            account.spendable, [exposure_of(lease, outages) for lease in own]
        )
    assert total.exposure == tuple(map(sum, zip(*(each.exposure for each in found), strict=True)))
    return total


async def stored(stage: Scene, number: int) -> Reservation:
    """A lease as it is stored."""
    text = "SELECT * FROM reservations WHERE reservation_id = $1"
    return stored_lease(await stage.pool.fetchrow(text, number))
