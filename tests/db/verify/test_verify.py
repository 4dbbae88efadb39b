"""Damage of every kind, done with a superuser's hands, is found and named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpucredits.core.account import Model
from gpucredits.core.budget import Rollover
from gpucredits.core.command import (
    Issue,
    Refund,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.jobs.upkeep import Sealer, Snapshotter
from gpucredits.service.reads.verify import verify
from gpucredits.store.access.audit import AuditNote, insert
from gpucredits.store.verify.rules import CHECKS
from support.damage.row_damage import ROW_DAMAGE
from support.damage.tampering import TAMPERINGS
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

DAMAGE = {
    "entries_balance": "UPDATE entries SET account_id = 4711 WHERE entry_id = 2",
    "trial_balance": "UPDATE entries SET other_id = 4711 WHERE type = 3",
    "entry_ids": "DELETE FROM entries WHERE entry_id = 3",
    "entry_times": "UPDATE entries SET recorded_at = recorded_at - 1000000000 WHERE entry_id = 4",
    "balances": "UPDATE accounts SET spent = spent + 1 WHERE path = 'acme'",
    "debts": "UPDATE accounts SET debt = 1, remaining = remaining + 1 WHERE path = 'acme'",
    "funds": "UPDATE accounts SET remaining = remaining + 1 WHERE path = 'acme'",
    "grants": "UPDATE grants SET remaining = remaining - 1 WHERE remaining > 0",
    "floor": "UPDATE entries SET amount = amount * 1000 WHERE type = 3",
    "holds": "UPDATE reservations SET held = held + 1 WHERE state = 0",
    "authorised": "UPDATE reservations SET max_amount = 1 WHERE settled > 1",
    "settlements": "UPDATE reservations SET used_ms = used_ms + 1000",
    "reservations": "UPDATE reservations SET paid = paid || ARRAY[1, 1]::bigint[]",
    "one_effect": (
        "INSERT INTO entries SELECT org_id, type, 10001, recorded_at + 1, effective_at, account_id,"
        " amount, reserve, grant_id, other_id, other_grant_id, reservation_id, seq"
        " FROM entries WHERE type = 6 LIMIT 1"
    ),
    "ids": "UPDATE orgs SET next_id = 2 WHERE path = 'acme'",
    "directory": "UPDATE org_directory SET path = 'evil' WHERE path = 'acme'",
    "chain": "UPDATE entries SET seq = seq + 1 WHERE entry_id = 1",
    "audit_chain": "UPDATE audit_log SET actor = 'nobody' WHERE place = 2",
    "snapshots": "UPDATE snapshots SET spent = spent + 1",
    "insert_only": "SELECT 1",
    "constraints": "ALTER TABLE accounts DROP CONSTRAINT accounts_floor",
    "counters": "UPDATE meters SET windows[3] = windows[3] + 1 WHERE cardinality(windows) > 0",
    "windows": "UPDATE meters SET windows[2] = windows[2] + 1 WHERE cardinality(windows) > 0",
    "buckets": "UPDATE meters SET level = level - 1000000000000",
    "budgets": "DELETE FROM budget_periods WHERE rolled = 0",
    "rollovers": "UPDATE budget_periods SET rolled = rolled - 1 WHERE rolled > 0",
    "gated_orgs": "UPDATE orgs SET gated = NOT gated WHERE path = 'acme'",
    "claims": "UPDATE grants SET claims = claims + 1 WHERE state = 0 AND is_open",
    "promises": "UPDATE accounts SET promised = promised + 1 WHERE path = 'acme'",
    "plain_leases": "UPDATE reservations SET is_plain = true",
    "entry_types": "UPDATE entry_types SET credit = 'spent' WHERE name = 'issue'",
}
GUARDED = ("entries", "blocks", "audit_log")
CONSTRAINTS = (
    "ALTER TABLE accounts DROP CONSTRAINT accounts_floor",
    "ALTER TABLE grants DROP CONSTRAINT grants_remaining",
)


async def set_up(stage: Scene) -> None:
    """A ledger with something of everything: grants, a transfer, a running and an ended job."""
    await stage.fund("acme", "acme/vision")
    await stage.do(Transfer(source="acme", target="acme/vision", amount=10 * CREDIT))
    await stage.do(UpdateAccount(path="acme", model=Model.POSTPAID, credit_limit=CREDIT))
    lease = await stage.reserve()
    await stage.reserve("acme/vision")
    await stage.advance(5)
    await stage.beat(lease, 1, 5_000)
    await stage.do(Settle(reservation_id=lease.reservation.reservation_id))
    await stage.do(Refund(reservation_id=lease.reservation.reservation_id, amount=CREDIT))
    await set_limits(stage)
    later = (await stage.balance()).as_of + 1_000 * HOUR_US
    await stage.do(Issue(account="acme", amount=CREDIT, starts_at=later))
    await Sealer(stage.pool).tick()
    await Snapshotter(stage.pool, entries_between=1, entries_each=0).tick()


async def set_limits(stage: Scene) -> None:
    """Limits of every kind on a job that runs, and a budget of which something has rolled over."""
    now = (await stage.balance()).as_of
    quota: dict[str, Any] = {"account": "acme", "limit": 1_000 * CREDIT}
    await stage.do(SetQuota(**quota, dimension=Dimension.CREDITS_PER_WINDOW, calendar=Calendar.DAY))
    for dimension in (Dimension.CONCURRENT_GPUS, Dimension.CONCURRENT_JOBS):
        await stage.do(SetQuota(**quota, dimension=dimension))
    await stage.do(SetRateLimit(account="acme", capacity=1_000 * CREDIT, refill_per_hour=CREDIT))
    await stage.do(
        SetBudget(
            account="acme/vision",
            allowance=50 * CREDIT,
            ends_at=now + 2 * CREDIT,
            rollover=Rollover.ALL,
            rollover_us=HOUR_US,
        )
    )
    await stage.do(SetBudget(account="acme", allowance=CREDIT, calendar=Calendar.MONTH))
    lease = await stage.reserve("acme/vision", window_ms=60_000, grace_ms=1_000)
    await stage.advance(3)
    await stage.beat(lease, 1, 2_000)


def test_every_rule_has_its_damage() -> None:
    """No rule goes without a test that breaks it."""
    rules = {check.name for check in CHECKS} | {"entry_types", "answers", "functions"}
    assert set(DAMAGE) | set(ROW_DAMAGE) | set(TAMPERINGS) == rules


@pytest.mark.parametrize("rule", DAMAGE)
def test_damage_is_found(database: str, rule: str) -> None:
    """A sound ledger has no findings; after the damage the rule is named, with rows."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        clean = await verify(stage.pool)
        assert clean.findings == ()
        assert clean.is_clean
        assert clean.entries > 0
        await damage(stage, rule)
        found = {finding.rule: finding for finding in (await verify(stage.pool)).findings}
        assert rule in found, found
        assert "org_id" in found[rule].rows[0]

    play(database, act, stays_sound=False)


async def damage(stage: Scene, rule: str) -> None:
    """Do what only a superuser can: switch the guards off, change rows, switch them on again."""
    guards = [f"ALTER TABLE {table} HOW TRIGGER USER" for table in GUARDED]
    for statement in guards:
        await stage.pool.execute(statement.replace("HOW", "DISABLE"))
    if rule in ("balances", "floor", "debts", "grants"):
        for statement in CONSTRAINTS:
            await stage.pool.execute(statement)
    await stage.pool.execute(DAMAGE[rule])
    if rule != "insert_only":
        for statement in guards:
            await stage.pool.execute(statement.replace("HOW", "ENABLE"))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE reservations SET kept = '{}' WHERE kept <> '{}'",
        "UPDATE reservations SET kept[2] = kept[2] + 1 WHERE kept <> '{}'",
        "UPDATE reservations SET kept[3] = 1 WHERE kept <> '{}'",
        "UPDATE reservations SET kept[2] = held + 1 WHERE kept <> '{}'",
        "UPDATE grants SET remaining = claims + 1 WHERE claims > 0",
        "UPDATE reservations SET kept = '{1,1,1}' WHERE state <> 0",
    ],
)
def test_a_claim_cannot_be_made_up_or_forgotten(database: str, change: str) -> None:
    """Claims are compared with grants, holds and the ends of both, one way and the other."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        assert (await verify(stage.pool)).is_clean
        assert await stage.pool.fetchval("SELECT count(*) FROM reservations WHERE kept <> '{}'")
        await stage.pool.execute(change)
        assert "claims" in {each.rule for each in (await verify(stage.pool)).findings}

    play(database, act, stays_sound=False)


@pytest.mark.parametrize(
    "cut",
    [
        "DELETE FROM audit_log WHERE place = (SELECT max(place) FROM audit_log)",
        "DELETE FROM audit_log WHERE place = 2",
        "UPDATE audit_log SET new = '{}' WHERE place = 1",
        "UPDATE audit_heads SET place = place + 1",
    ],
)
def test_an_act_cannot_be_changed_or_taken_out(database: str, cut: str) -> None:
    """The log's chain shows a change, a gap, a missing end and a head that is not its own."""

    async def act(stage: Scene) -> None:
        await set_up(stage)
        assert (await verify(stage.pool)).is_clean
        await stage.pool.execute("ALTER TABLE audit_log DISABLE TRIGGER USER")
        await stage.pool.execute(cut)
        await stage.pool.execute("ALTER TABLE audit_log ENABLE TRIGGER USER")
        assert "audit_chain" in {each.rule for each in (await verify(stage.pool)).findings}

    play(database, act, stays_sound=False)


def test_acts_at_once_take_their_places_in_turn(database: str) -> None:
    """Acts of one org from many writers, with and without the org's lock, make one chain."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "zeta", credits_each=1)
        notes = [AuditNote("tester", "noted", "acme", f"req-{number}") for number in range(5)]

        async def note() -> None:
            async with stage.pool.acquire() as connection, connection.transaction():
                await insert(connection, 1, notes)

        issues = [
            stage.do(Issue(account=org, amount=CREDIT), org=org) for org in ("acme", "zeta") * 10
        ]
        await asyncio.gather(*(note() for _ in range(6)), *issues)
        rows = await stage.pool.fetch("SELECT place FROM audit_log WHERE org_id = 1 ORDER BY place")
        assert [row["place"] for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) >= 40

    play(database, act)


def test_credits_that_follow_an_earlier_transfer_are_no_finding(database: str) -> None:
    """A second transfer of the same lot goes into the grant that the first one has made."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision")
        for _ in range(2):
            await stage.do(Transfer(source="acme", target="acme/vision", amount=CREDIT))
        moved = "SELECT count(*), count(DISTINCT other_grant_id) FROM entries WHERE type = 3"
        assert tuple(await stage.pool.fetchrow(moved)) == (2, 1)
        assert (await verify(stage.pool)).findings == ()

    play(database, act)
