"""Unusual spending: hours judged by the hours before them, kept with their reasons.

Owns: the order of the steps. An hour is marked and judged in one transaction, so that each is
judged once, whoever does it; a suspension that follows is a command under the anomaly's own key.
Must not: judge (core does), or speak SQL (store does).
"""

from __future__ import annotations

import hashlib

import msgspec

from gpucredits.core import ids
from gpucredits.core.account import Status, parent_of
from gpucredits.core.authority import authority_of
from gpucredits.core.bounds import HOUR_US
from gpucredits.core.change import Named, merged
from gpucredits.core.command import UpdateAccount
from gpucredits.core.money import format_credits
from gpucredits.core.reasons import Refused
from gpucredits.core.risk import AnomalyTerms, check_spend, hourly_sums
from gpucredits.service.acts import Act, perform
from gpucredits.service.ledger import Ledger, Request
from gpucredits.store import acts, anomalies, outbox
from gpucredits.store.anomalies import AnomalyFilter, AnomalyRow, Spender, TermsRow
from gpucredits.store.audit import SYSTEM, AuditNote
from gpucredits.store.clock import read_clock
from gpucredits.store.connection import Connection, Pool
from gpucredits.store.due import Place
from gpucredits.store.errors import driver_errors

__all__ = ["AnomalyFilter", "AnomalyRow", "TermsRow"]


async def hour_now(pool: Pool) -> int:
    """The hour under way, since 1970."""
    return await read_clock(pool) // HOUR_US


async def judge_hour(pool: Pool, after: Place, *, hour: int, walk_max: int) -> tuple[int, Place]:
    """Mark and judge an hour of the next accounts; how many were unusual, where to go on."""
    found = 0
    with driver_errors():
        async with pool.acquire() as db, db.transaction():
            spenders, last = await anomalies.mark_hour(db, after, hour=hour, walk_max=walk_max)
            for spender in spenders:
                found += await judge(db, spender, hour)
    return found, last


async def judge(db: Connection, spender: Spender, hour: int) -> bool:
    """Judge an hour of one account; keep it and announce it if it was unusual."""
    terms = await anomalies.terms_of(db, spender.org_id, spender.account_id)
    rule = AnomalyTerms(ratio_percent=terms.ratio_percent, floor=terms.floor)
    marks = await anomalies.marks_of(db, spender, hour=hour, hours=rule.hours)
    hourly = hourly_sums(marks, hour, rule.hours)
    check = check_spend(hourly, rule)
    if not check.unusual:
        return False
    row = AnomalyRow(
        org_id=spender.org_id,
        anomaly_id=0,
        account_id=spender.account_id,
        account=spender.path,
        starts_at=hour * HOUR_US,
        ends_at=(hour + 1) * HOUR_US,
        observed=check.spent,
        baseline=check.baseline,
        threshold=check.threshold,
        ratio_percent=rule.ratio_percent,
        floor=rule.floor,
        hours=check.hours,
        sentence=check.sentence,
        action=int(terms.auto_suspend),
    )
    number = await anomalies.insert(db, row)
    if number is None:
        return False
    told = {
        "account": row.account,
        "observed": format_credits(row.observed),
        "threshold": format_credits(row.threshold),
        "sentence": row.sentence,
    }
    await outbox.announce(db, row.org_id, "spend.unusual", number, told)
    return True


async def suspend_pending(ledger: Ledger, *, limit: int) -> int:
    """Suspend the accounts of unusual hours that say so, once for each; how many there were."""
    with driver_errors():
        async with ledger.pool.acquire() as db:
            rows = await anomalies.to_suspend(db, limit=limit)
    for row in rows:
        by = authority_of(parent_of(row.account))  # who sets the terms may resume the account
        key = f"anomaly {row.anomaly_id}"  # no caller's key has a space in it
        request = Request(
            UpdateAccount(path=row.account, status=Status.SUSPENDED, by=by),
            key,
            hashlib.sha256(key.encode()).digest(),
            SYSTEM,
            ids.format_id(ids.ANOMALY, row.org_id, row.anomaly_id),
        )
        outcome = await ledger.submit(row.org_id, request)
        with driver_errors():
            async with ledger.pool.acquire() as db:
                action = 3 if isinstance(outcome, Refused) else 2
                await anomalies.note_action(db, row, action)
    return len(rows)


async def list_anomalies(pool: Pool, which: AnomalyFilter) -> list[AnomalyRow]:
    """Unusual hours, the latest first."""
    with driver_errors():
        async with pool.acquire() as db:
            return await anomalies.page(db, which)


async def read_terms(pool: Pool, org_id: int, account: str) -> TermsRow | None:
    """The terms of an account, or None when there is no such account."""
    with driver_errors():
        async with pool.acquire() as db:
            account_id = await acts.find_account(db, org_id, account)
            if account_id is None:
                return None
            return await anomalies.terms_of(db, org_id, account_id)


async def set_terms(
    pool: Pool,
    act: Act,
    account: str,
    wanted: TermsRow,
    *,
    named: Named = None,
    actor: str,
    request_id: str,
) -> tuple[TermsRow, bool] | None:
    """Set the terms of an account, or of them what is named; None: no such account.

    Also gives whether that was done before.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        account_id = await acts.find_account(db, act.org_id, account)
        if account_id is None:
            raise AccountMissing(account)
        before = await anomalies.terms_of(db, act.org_id, account_id)
        terms = merged(wanted, before, named)
        await anomalies.set_terms(db, act.org_id, account_id, terms)
        note = AuditNote(
            actor, "anomaly_terms.set", account, request_id, old=shown(before), new=shown(terms)
        )
        return msgspec.json.encode(terms), note

    try:
        done = await perform(pool, act, work)
    except AccountMissing:
        return None
    return msgspec.json.decode(done.answer, type=TermsRow), done.is_replay


def shown(terms: TermsRow) -> dict[str, str | int | bool]:
    """What the audit log says of terms."""
    return {
        "ratio_percent": terms.ratio_percent,
        "floor": format_credits(terms.floor),
        "auto_suspend": terms.auto_suspend,
    }


class AccountMissing(Exception):  # noqa: N818  # it states what happened
    """There is no account at the path."""
