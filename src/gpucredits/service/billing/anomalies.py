"""Unusual spending: hours judged by the hours before them, kept with their reasons.

Owns: the order of the steps. An hour is marked and judged in one transaction, so that each is
judged once, whoever does it; a suspension that follows is a command under the anomaly's own key.
Must not: judge (core does), or speak SQL (store does).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import msgspec

from gpucredits.core import ids
from gpucredits.core.account import Status, parent_of
from gpucredits.core.authority import Authority, authority_of, refuse_from_below, scope_word
from gpucredits.core.bounds import HOUR_US
from gpucredits.core.change import Named, merged
from gpucredits.core.command import UpdateAccount
from gpucredits.core.money import format_credits
from gpucredits.core.reasons import Refused
from gpucredits.core.risk import AnomalyTerms, check_spend, hourly_sums
from gpucredits.service.write.acts import Act, ActRefused, perform_on
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.access import acts
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.billing import anomalies
from gpucredits.store.billing.anomalies import ANOMALIES, TERMS, AnomalyRow, Spender, TermsRow
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.database.org_rows import OrgFilter
from gpucredits.store.ledger import outbox
from gpucredits.store.ledger.due import DueCursor

__all__ = ["AnomalyRow", "OrgFilter", "TermsRow"]

DEFAULT: Final = TermsRow()
BOUND: Final = "The rule for unusual spending"
INSTEAD: Final = "Ask the holder of such a key to change it."


async def hour_now(pool: Pool) -> int:
    """The hour under way, since 1970."""
    return await read_clock(pool) // HOUR_US


async def judge_hour(
    pool: Pool, after: DueCursor, *, hour: int, walk_max: int
) -> tuple[int, DueCursor]:
    """Mark and judge an hour of the next accounts; how many were unusual, where to go on."""
    found = 0
    async with session(pool) as db, db.transaction():
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
    async with session(ledger.pool) as db:
        rows = await anomalies.to_suspend(db, limit=limit)
    for row in rows:
        by = await suspending_scope(ledger.pool, row)
        key = f"anomaly {row.anomaly_id}"  # no caller's key has a space in it
        request = Request(
            UpdateAccount(path=row.account, status=Status.SUSPENDED, by=by),
            key,
            hashlib.sha256(key.encode()).digest(),
            SYSTEM,
            ids.format_id(ids.ANOMALY, row.org_id, row.anomaly_id),
        )
        outcome = await ledger.submit(row.org_id, request)
        async with session(ledger.pool) as db:
            action = 3 if isinstance(outcome, Refused) else 2
            await anomalies.note_action(db, row, action)
    return len(rows)


async def suspending_scope(pool: Pool, row: AnomalyRow) -> Authority:
    """The scope that may resume the account: whoever set the terms, and at least the one above."""
    async with session(pool) as db:
        terms = await anomalies.terms_of(db, row.org_id, row.account_id)
    return min(terms.set_by, authority_of(parent_of(row.account)))


async def list_anomalies(pool: Pool, which: OrgFilter) -> list[AnomalyRow]:
    """Unusual hours, the latest first."""
    async with session(pool) as db:
        return await ANOMALIES.page(db, which)


async def read_terms(pool: Pool, org_id: int, account: str) -> TermsRow | None:
    """The terms of an account, or None when there is no such account."""
    async with session(pool) as db:
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
    by: Authority,
    named: Named = None,
) -> tuple[TermsRow, bool]:
    """Set the terms of an account, or the named ones; also whether that was done before.

    Terms from a wider scope than ``by`` stay.
    """

    async def work(db: Connection, account_id: int) -> tuple[bytes, AuditNote | None]:
        before = await anomalies.terms_of(db, act.org_id, account_id)
        if refused := refuse_from_below(by, before.set_by, account, BOUND, INSTEAD):
            raise ActRefused(refused)
        terms = replace(merged(wanted, before, named), set_by=by)
        if replace(terms, set_by=DEFAULT.set_by) == DEFAULT:
            terms = DEFAULT
        await TERMS.set(db, act.org_id, account_id, terms)
        note = act.note("anomaly_terms.set", account, old=shown(before), new=shown(terms))
        return msgspec.json.encode(terms), note

    return await perform_on(pool, act, account, work, TermsRow)


def shown(terms: TermsRow) -> dict[str, str | int | bool]:
    """What the audit log says of terms."""
    return {
        "ratio_percent": terms.ratio_percent,
        "floor": format_credits(terms.floor),
        "auto_suspend": terms.auto_suspend,
        "set_by_scope": scope_word(terms.set_by),
    }
