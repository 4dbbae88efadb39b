"""The database's clock goes wrong for a while: nothing is decided by it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from gpucredits.core.command import Issue, Sweep
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Reserved
from gpucredits.service.reads.verify import verify
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.book.database_clock import ClockCheck, ClockJumped
from support.engines.postgres import sql
from support.scenes.clocks import DAY_US, HOUR_US, clock_off_by, jump
from support.scenes.scene import CREDIT, Scene, play
from support.servers.http import Caller, problem, running_server
from support.waiting import until


async def report(stage: Scene, lease: Reserved, seq: int) -> object:
    """A heartbeat, and what became of it."""
    beat = Beat(lease.reservation.reservation_id, seq, seq)
    return (await stage.ledger.beat([(1, beat)]))[0]


async def clock_goes_wrong(stage: Scene, by_us: int) -> tuple[int, str]:
    """A day ahead for a moment, while work goes on; what is left, and where a lease stands."""
    await stage.fund("acme")
    now = await stage.pool.fetchval("SELECT ledger_now()")
    await stage.do(Issue(account="acme", amount=50 * CREDIT, expires_at=now + HOUR_US))
    lease = await stage.reserve(window_ms=60_000)
    await jump(stage.pool, by_us)
    refused = int(isinstance(await report(stage, lease, 1), ClockJumped))
    for command in (Issue(account="acme", amount=CREDIT), Sweep(account_id=1)):
        try:
            await stage.do(command)
        except ClockJumped:
            refused += 1
    await jump(stage.pool, 0)
    stage.ledger.cache.clock_check.off_us = 0  # the watcher looks every second
    told = await stage.beat(lease, 2, 2)
    return refused, told.decision.value


@pytest.mark.parametrize("by_us", [DAY_US, -DAY_US], ids=["ahead", "behind"])
def test_nothing_is_decided_by_a_clock_that_jumped(database: str, by_us: int) -> None:
    """Heartbeats, commands and sweeps are refused; afterwards the lease runs on."""

    async def act(stage: Scene) -> None:
        assert await clock_goes_wrong(stage, by_us) == (3, "continue")
        assert (await stage.balance()).available == 150 * CREDIT - 60 * CREDIT - 2_000

    play(database, act)


def test_a_clock_that_is_believed_ends_what_runs(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without the comparison the lease is over, and the grant's hour too."""
    monkeypatch.setattr(ClockCheck, "hear", lambda *_: None)

    async def act(stage: Scene) -> None:
        refused, decision = await clock_goes_wrong(stage, DAY_US)
        assert (refused, decision) == (0, "stop")

    play(database, act, stays_sound=False)


def test_a_server_that_starts_later_takes_the_clock_as_it_is(database: str) -> None:
    """A restart is the operator's way to say that the time is right."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await jump(stage.pool, 10_000_000)
        with pytest.raises(ClockJumped):
            await stage.do(Issue(account="acme", amount=CREDIT))
        later = Ledger(stage.pool)
        try:
            await later.submit("acme", stage.request(Issue(account="acme", amount=CREDIT)))
        finally:
            await later.stop()
        found = [each.rule for each in (await verify(stage.pool)).findings]
        assert found == ["functions"]  # this is how the test moves the clock

    play(database, act, stays_sound=False)


def test_callers_are_told_and_health_says_so(data_dir: Path) -> None:
    """503 with a reason for writes, an unhealthy server, and both over as soon as time is right."""
    with running_server(data_dir) as server, httpx.Client(base_url=server.url) as http:
        admin = Caller(http, server.admin_secret)
        admin.made("/v1/accounts", {"path": "acme"})
        dsn = f"postgresql://gpucredits@/gpucredits?host={data_dir / 'run'}"
        sql(dsn, clock_off_by(DAY_US))
        issue = {"account": "acme", "amount": "1"}
        assert problem(admin.post("/v1/credits/issue", issue)) == (503, "clock_jumped")
        health = http.get("/healthz")
        assert (health.status_code, health.json()["status"]) == (503, "clock_jumped")
        key = {"role": "read_only", "scope": "acme"}
        assert problem(admin.post("/v1/keys", key)) == (503, "clock_jumped")
        assert admin.read("/v1/accounts/acme/balance")["available"] == "0"
        sql(dsn, clock_off_by(0))
        assert until(lambda: http.get("/healthz").status_code == 200)
        admin.made("/v1/credits/issue", issue)
    log = (data_dir / "server.log").read_text()
    assert log.count("the database's clock has jumped") == 1
    assert log.count("the database's clock is right again") == 1


def test_the_last_word_is_the_database_s(database: str) -> None:
    """What is decided by our own estimate of the time is not saved by a clock that jumped."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        lease = await stage.reserve(window_ms=60_000)
        await stage.beat(lease, 1, 1)
        await jump(stage.pool, DAY_US)
        assert isinstance(await report(stage, lease, 2), ClockJumped)
        await jump(stage.pool, 0)
        stage.ledger.cache.clock_check.off_us = 0
        assert (await stage.beat(lease, 3, 3)).settled == 3_000

    play(database, act)
