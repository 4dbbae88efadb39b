"""An org that has lived by a wrong clock is brought back, and its books are sound."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gpucredits.core.command import Issue, SetBudget, SetQuota, SetRateLimit, Sweep, TopUp, Transfer
from gpucredits.core.outcome import Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.service.reads.verify import verify
from gpucredits.store.book.database_clock import ClockCheck
from support.damage.damage import found_by
from support.damage.powers import use_every_power
from support.scenes.clocks import DAY_US, HOUR_US, jump, repair
from support.scenes.scene import CREDIT, Scene, play


@pytest.fixture(autouse=True)
def nobody_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server notices that the clock is wrong."""
    monkeypatch.setattr(ClockCheck, "hear", lambda *_: None)


class Leases(NamedTuple):
    """A lease from before the jump, and one that was admitted by the wrong clock."""

    before: Reserved
    during: Reserved


async def live_by_a_wrong_clock(stage: Scene, by_us: int = DAY_US) -> Leases:
    """The clock is a day ahead while work goes on, and then right again."""
    await stage.fund("acme")
    now = await stage.pool.fetchval("SELECT ledger_now()")
    await stage.do(Issue(account="acme", amount=50 * CREDIT, expires_at=now + HOUR_US))
    await stage.do(Issue(account="acme", amount=7 * CREDIT, starts_at=now + HOUR_US))
    before = await stage.reserve(job_id="before")
    await jump(stage.pool, by_us)
    await stage.do(Sweep(account_id=1))
    during = await stage.reserve(job_id="during", window_ms=60_000)
    await jump(stage.pool, 0)
    return Leases(before, during)


async def expires_in_us(stage: Scene, lease: Reserved) -> int:
    """How long a lease lives from now on by the database's clock."""
    left: int = await stage.pool.fetchval(
        "SELECT expires_at - ledger_now() FROM reservations"
        " WHERE org_id = 1 AND reservation_id = $1",
        lease.reservation.reservation_id,
    )
    return left


def test_a_wrong_clock_has_lasting_effects(database: str) -> None:
    """Control: without a repair credits are gone, use is free, and a lease lives for a day."""

    async def act(stage: Scene) -> None:
        leases = await live_by_a_wrong_clock(stage)
        assert (await stage.balance()).available == (100 + 7 - 60) * CREDIT
        assert await expires_in_us(stage, leases.during) > DAY_US - HOUR_US
        await stage.advance(30)
        assert (await stage.beat(leases.during, 1, 30_000)).settled == 0
        found = [each.rule for each in (await verify(stage.pool)).findings]
        assert found == ["org_clocks"]

    play(database, act, stays_sound=False)


def test_a_repair_brings_the_org_back(database: str) -> None:
    """Credits are back or wait for their start, use is charged, and the lease ends when it does."""

    async def act(stage: Scene) -> None:
        leases = await live_by_a_wrong_clock(stage)
        answer = await repair(stage)
        assert answer.repaired
        assert [(row.mend, row.amount) for row in answer.grants] == [
            ("restored", "50"),
            ("withdrawn", "7"),
        ]
        assert [row.kind for row in answer.left] == ["lease_lapsed"]
        assert answer.lease_count == 1
        assert (await stage.balance()).available == (100 + 50 - 60) * CREDIT
        assert 0 < await expires_in_us(stage, leases.during) <= 60_000_000
        await stage.advance(30)
        assert (await stage.beat(leases.during, 1, 30_000)).settled == 30 * CREDIT
        await stage.advance(3_600)
        now = await stage.balance()  # the grant that was restored has paid, and ended
        assert (now.available, now.spent) == ((100 + 7) * CREDIT, 30 * CREDIT)

    play(database, act)


def test_a_second_repair_changes_nothing(database: str) -> None:
    """Nor does one that was only rehearsed, nor one of an org whose clock is right."""

    async def act(stage: Scene) -> None:
        await live_by_a_wrong_clock(stage)
        acts = "SELECT count(*) FROM audit_log WHERE action = 'clock.repair'"
        rows = "SELECT count(*) FROM entries"
        entries = await stage.pool.fetchval(rows)
        rehearsed = await repair(stage, dry_run=True)
        assert rehearsed.repaired
        assert (await stage.pool.fetchval(acts), await stage.pool.fetchval(rows)) == (0, entries)
        done = await repair(stage)
        assert (done.grants, done.left) == (rehearsed.grants, rehearsed.left)
        entries = await stage.pool.fetchval(rows)
        again = await repair(stage)
        assert (again.repaired, again.grants, again.leases) == (False, [], [])
        assert (await stage.pool.fetchval(acts), await stage.pool.fetchval(rows)) == (1, entries)

    play(database, act)


def test_the_audit_log_has_old_and_new_values(database: str) -> None:
    """Who repaired, why, and every stamp that moved."""

    async def act(stage: Scene) -> None:
        leases = await live_by_a_wrong_clock(stage)
        done = await repair(stage)
        row = await stage.pool.fetchrow(
            "SELECT actor, resource, old ->> 'clock' AS old, new ->> 'clock' AS new,"
            " new ->> 'reason' AS reason, old -> 'expires_at' ->> $1 AS before"
            " FROM audit_log WHERE action = 'clock.repair'",
            done.leases[0].reservation_id,
        )
        assert dict(row) == {
            "actor": "tester",
            "resource": "acme",
            "old": done.clock_before,
            "new": done.now,
            "reason": "NTP was wrong",
            "before": done.leases[0].expires_before,
        }
        assert done.leases[0].reservation_id.endswith(
            f"_{leases.during.reservation.reservation_id}"
        )

    play(database, act)


def test_balances_of_the_past_are_right_again(database: str) -> None:
    """What the wrong clock stamped counts as of the repair, and never comes after what followed."""

    async def act(stage: Scene) -> None:
        leases = await live_by_a_wrong_clock(stage)
        await repair(stage)
        at = await stage.pool.fetchval("SELECT clock FROM orgs WHERE org_id = 1")
        then = await stage.balance(at=at)
        assert (then.available, then.reserved) == (90 * CREDIT, 60 * CREDIT)
        await stage.advance(2)
        await stage.beat(leases.during, 1, 2_000)
        await stage.advance(90)
        now = await stage.balance()
        past = await stage.balance(at=now.as_of)
        assert (past.available, past.reserved, past.spent) == (148 * CREDIT, 0, 2 * CREDIT)

    play(database, act)


@pytest.mark.parametrize("days", [1, 40, 400])
def test_books_with_everything_are_sound_after_a_repair(database: str, days: int) -> None:
    """Budgets, quotas, windows, rate limits, payments and transfers, and then work goes on."""

    async def act(stage: Scene) -> None:
        await use_every_power(stage)
        await jump(stage.pool, days * DAY_US)
        accounts = await stage.pool.fetch("SELECT account_id, path FROM accounts WHERE org_id = 1")
        for row in accounts:
            await stage.do(Sweep(account_id=row["account_id"]))
        await stage.do(
            TopUp(account="acme/p", amount=9 * CREDIT, payment_reference="r", confirmed=True)
        )
        await stage.do(Transfer(source="acme/p", target="acme/q", amount=CREDIT))
        await stage.do(SetBudget(account="acme/q", allowance=CREDIT, calendar=Calendar.DAY))
        await stage.do(
            SetQuota(
                account="acme/q",
                dimension=Dimension.CREDITS_PER_WINDOW,
                limit=900 * CREDIT,
                calendar=Calendar.DAY,
            )
        )
        await stage.do(SetRateLimit(account="acme/q", capacity=CREDIT, refill_per_hour=CREDIT))
        lease = await stage.reserve("acme/p", job_id="later", window_ms=60_000)
        await stage.advance(1)
        await stage.beat(lease, 1, 1_000)
        await jump(stage.pool, 0)
        assert (await repair(stage)).repaired
        await stage.assert_sound()
        await stage.advance(2)
        await stage.beat(lease, 2, 3_000)
        await stage.advance(days * DAY_US // 1_000_000 + 60)
        for row in accounts:
            await stage.do(Sweep(account_id=row["account_id"]))

    play(database, act)


TAMPERINGS = (
    ("clock_repairs", "DELETE FROM clock_repairs"),
    ("clock_repairs", "UPDATE clock_repairs SET repaired_at = repaired_at + 1"),
    ("clock_repairs", "UPDATE clock_repairs SET clock = clock + 86400000000"),
    ("clock_repairs", "UPDATE clock_repairs SET next_entry_id = next_entry_id + 1"),
    ("clock_repairs", "INSERT INTO clock_repairs VALUES (1, 5, 10, 1, 1)"),
    ("entry_times", "DELETE FROM clock_repairs"),
    ("entry_times", "UPDATE orgs SET clock = clock - 3600000000 WHERE org_id = 1"),
    ("insert_only", "ALTER TABLE clock_repairs DISABLE TRIGGER clock_repairs_insert_only"),
)


def test_a_repair_that_nobody_made_is_seen(database: str) -> None:
    """Who moves a clock back past the server, or changes what a repair covers, is found."""

    async def act(stage: Scene) -> None:
        await live_by_a_wrong_clock(stage)
        await repair(stage)

    play(database, act)
    for rule, tampering in TAMPERINGS:
        assert found_by(database, rule, tampering), tampering
