"""Alarms of drift: raised once with their evidence, listed, and acknowledged by people."""

from __future__ import annotations

from typing import Any

import msgspec

from gpucredits.core import ids
from gpucredits.core.money import format_credits
from gpucredits.core.period import instant_text
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reconciliation.comparison import (
    Comparison,
    ReconcilePolicy,
    account_sentence,
    is_alarming,
    job_sentence,
    length_ms,
)
from gpucredits.service.reconciliation.examining import Examined
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.ledger import outbox
from gpucredits.store.reconciliation import comparisons, drift_alarms
from gpucredits.store.reconciliation.drift_alarms import ALARMS, AlarmFilter, AlarmRow

__all__ = [
    "AlarmFilter",
    "AlarmRow",
    "acknowledge",
    "judge_day",
    "judge_job",
    "list_alarms",
    "read_alarm",
]

NODES_TOLD_MAX = 20

UNKNOWN = Refused(Reason.ALARM_UNKNOWN, "There is no such alarm.")


async def list_alarms(pool: Pool, which: AlarmFilter) -> list[AlarmRow]:
    """Alarms, the newest first."""
    async with session(pool) as db:
        return await ALARMS.page(db, which, is_open=which.is_open)


async def read_alarm(pool: Pool, org_id: int, number: int) -> AlarmRow | None:
    """One alarm."""
    async with session(pool) as db:
        return await ALARMS.find(db, org_id, number)


async def acknowledge(pool: Pool, act: Act, number: int, note: str) -> tuple[AlarmRow, bool]:
    """Record that somebody has looked at an alarm; also whether this key had done so before."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        row = await ALARMS.find(db, act.org_id, number)
        assert row is not None  # the edge has seen it, and no alarm is ever taken away
        if row.is_open:
            await drift_alarms.acknowledge(db, row, act.actor, note)
        after = await ALARMS.find(db, act.org_id, number)
        alarm_id = ids.format_id(ids.ALARM, act.org_id, number)
        told = act.note("drift_alarm.acknowledge", alarm_id, new={"note": note})
        return msgspec.json.encode(after), told if row.is_open else None

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=AlarmRow), done.is_replay


async def judge_job(db: Connection, this: Examined, found: Comparison) -> bool:
    """Raise an alarm about a lease that has drifted too far, once."""
    lease, bill = this.lease, max(found.cost + found.beyond_cost, found.settled)
    if not is_alarming(found.exposed, bill, this.policy):
        return False
    return await raise_alarm(
        db,
        AlarmRow(
            org_id=this.due.org_id,
            account_id=lease.account_id,
            account=lease.account,
            reservation_id=lease.reservation_id,
            job_id=lease.job_id,
            starts_at=lease.admitted_at,
            drift=found.exposed,
            settled=found.settled,
            sentence=job_sentence(lease.job_id, found),
            evidence=evidence_of(this, found),
        ),
    )


def evidence_of(this: Examined, found: Comparison) -> dict[str, Any]:
    """The three records of a lease, side by side."""
    lease = this.lease
    return {
        "heartbeats": {"used_ms": lease.used_ms, "seq": lease.seq},
        "measured": {
            "measured_ms": found.measured_ms,
            "beyond_ms": found.beyond_ms,
            "cost": format_credits(found.cost),
            "events": this.events,
            "is_attested": this.is_attested,
            "nodes": [
                {"node": each.node, "measured_ms": length_ms(each.spans), "events": each.events}
                for each in this.nodes[:NODES_TOLD_MAX]
            ],
        },
        "ledger": {
            "settled": format_credits(lease.settled),
            "adjusted": format_credits(lease.adjusted),
            "refunded": format_credits(lease.refunded),
            "reconciled": format_credits(found.reconciled),
            "price": format_credits(lease.price),
        },
    }


async def judge_day(
    pool: Pool, org_id: int, account_id: int, account: str, day: int, policy: ReconcilePolicy
) -> bool:
    """Raise an alarm about an account whose leases of one day have drifted too far, once."""
    async with session(pool) as db, db.transaction():
        _, sums = await comparisons.day_of(db, org_id, account_id, day, policy.tolerance_ms)
        if not is_alarming(sums.drift, sums.bill, policy):
            return False
        date = instant_text(day)[:10]
        evidence = {
            "heartbeats": {"used_ms": sums.used_ms, "leases": sums.leases},
            "measured": {"measured_ms": sums.measured_ms, "cost": format_credits(sums.cost)},
            "ledger": {
                "settled": format_credits(sums.settled),
                "reconciled": format_credits(sums.reconciled),
            },
        }
        return await raise_alarm(
            db,
            AlarmRow(
                org_id=org_id,
                account_id=account_id,
                account=account,
                starts_at=day,
                drift=sums.drift,
                settled=sums.settled,
                sentence=account_sentence(account, date, sums.leases, sums.drift, sums.settled),
                evidence=evidence,
            ),
        )


async def raise_alarm(db: Connection, row: AlarmRow) -> bool:
    """Keep and announce an alarm; False where it was raised before."""
    number = await drift_alarms.insert(db, row)
    if number is None:
        return False
    told = {
        "account": row.account,
        "job_id": row.job_id,
        "drift": format_credits(row.drift),
        "settled": format_credits(row.settled),
        "sentence": row.sentence,
    }
    await outbox.announce(db, row.org_id, "drift.alarm", number, told)
    return True
