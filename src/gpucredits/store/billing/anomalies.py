"""Hours of spending at rest: marks of what accounts had spent, and hours that were unusual.

Owns: the rows of spend_marks, anomaly_terms and anomalies.
Must not: judge.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

from gpucredits.core.authority import Authority
from gpucredits.core.risk import FLOOR_DEFAULT, RATIO_PERCENT_DEFAULT
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgRows, TermsByAccount
from gpucredits.store.database.where import Where
from gpucredits.store.ledger.due import DueCursor

MARKS_KEPT_HOURS = 31 * 24
# Marks the hour of the next accounts; gives those that had a mark before and have spent more since
# than their floor ($5 where they have no terms): no hour up to it is unusual, see core/risk.py.
MARK = """
WITH walked AS MATERIALIZED (
    SELECT org_id, account_id, path, spent FROM accounts
    WHERE (org_id, account_id) > ($1::bigint, $2::bigint)
    ORDER BY org_id, account_id LIMIT $3
), compared AS MATERIALIZED (
    SELECT w.*, p.hour AS marked, p.spent AS before FROM walked w
    LEFT JOIN LATERAL (
        SELECT m.hour, m.spent FROM spend_marks m
        WHERE m.org_id = w.org_id AND m.account_id = w.account_id ORDER BY m.hour DESC LIMIT 1
    ) AS p ON true
), added AS (
    INSERT INTO spend_marks (org_id, account_id, hour, spent)
    SELECT org_id, account_id, $4, spent FROM compared
    WHERE marked IS NULL OR (marked < $4 AND spent <> before)
    ON CONFLICT DO NOTHING RETURNING org_id, account_id
)
SELECT c.org_id, c.account_id, c.path, false AS is_last
FROM compared c JOIN added a ON a.org_id = c.org_id AND a.account_id = c.account_id
LEFT JOIN anomaly_terms t ON t.org_id = c.org_id AND t.account_id = c.account_id
WHERE c.marked IS NOT NULL AND c.spent - c.before > coalesce(t.floor, $5)
UNION ALL
(SELECT org_id, account_id, path, true FROM walked ORDER BY org_id DESC, account_id DESC LIMIT 1)
"""
# Of what is old, the last mark of an account stays: what it spends next is compared with that.
OLD_MARKS = """
SELECT a.org_id, a.account_id, kept.hour FROM accounts a
CROSS JOIN LATERAL (
    SELECT m.hour FROM spend_marks m
    WHERE m.org_id = a.org_id AND m.account_id = a.account_id AND m.hour <= $5
    ORDER BY m.hour DESC LIMIT 1
) AS kept
CROSS JOIN LATERAL (
    SELECT m.hour FROM spend_marks m WHERE m.org_id = a.org_id AND m.account_id = a.account_id
    ORDER BY m.hour LIMIT 1
) AS oldest
WHERE (a.org_id, a.account_id) > ($1::bigint, $2::bigint)
    AND (a.org_id, a.account_id) <= ($3::bigint, $4::bigint) AND oldest.hour < kept.hour
"""
FORGET = "DELETE FROM spend_marks WHERE org_id = $1 AND account_id = $2 AND hour < $3"
MARKS = """
SELECT hour, spent FROM spend_marks WHERE org_id = $1 AND account_id = $2 AND hour <= $3
ORDER BY hour DESC LIMIT $4
"""


class Spender(NamedTuple):
    """An account that has spent more than its floor in the hour that was marked."""

    org_id: int
    account_id: int
    path: str


@dataclass(frozen=True, slots=True)
class TermsRow:
    """The terms of an account, and the scope of the key that set them.

    Nobody has set the default terms, so the narrowest scope may change them.
    """

    ratio_percent: int = RATIO_PERCENT_DEFAULT
    floor: int = FLOOR_DEFAULT
    auto_suspend: bool = False
    set_by: Authority = Authority.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyRow:
    """An unusual hour; ``action``: 0 none, 1 to be suspended, 2 suspended, 3 refused."""

    org_id: int
    anomaly_id: int
    account_id: int
    account: str
    starts_at: int
    ends_at: int
    observed: int
    baseline: int
    threshold: int
    ratio_percent: int
    floor: int
    hours: int
    sentence: str
    found_at: int = 0
    action: int = 0


def _terms(ratio_percent: int, floor: int, auto_suspend: bool, set_by: int) -> TermsRow:
    return TermsRow(ratio_percent, floor, auto_suspend, Authority(set_by))


ANOMALIES = OrgRows("anomalies", AnomalyRow, "anomaly_id")
TERMS = TermsByAccount("anomaly_terms", TermsRow, _terms)


async def mark_hour(
    db: Connection, after: DueCursor, *, hour: int, walk_max: int
) -> tuple[list[Spender], DueCursor]:
    """Mark an hour of the next accounts, once; who may have overspent, and where to go on."""
    rows = await db.fetch(MARK, *after, walk_max, hour, FLOOR_DEFAULT)
    spenders = [Spender(row[0], row[1], row[2]) for row in rows if not row[3]]
    last = next((DueCursor(row[0], row[1]) for row in rows if row[3]), DueCursor())
    if last != DueCursor():
        old = await db.fetch(OLD_MARKS, *after, *last, hour - MARKS_KEPT_HOURS)
        await db.executemany(FORGET, [tuple(row) for row in old])
    return spenders, last


async def marks_of(
    db: Connection, spender: Spender, *, hour: int, hours: int
) -> list[tuple[int, int]]:
    """(hour, spent in all by its end), oldest first, as far back as is needed."""
    rows = await db.fetch(MARKS, spender.org_id, spender.account_id, hour, hours + 2)
    return [(row["hour"], row["spent"]) for row in reversed(rows)]


async def terms_of(db: Connection, org_id: int, account_id: int) -> TermsRow:
    """The terms of an account, or the default ones."""
    return await TERMS.of(db, org_id, account_id) or TermsRow()


async def insert(db: Connection, row: AnomalyRow) -> int | None:
    """Add an unusual hour; its number, or None when it is known."""
    once = "org_id, account_id, starts_at"
    return await ANOMALIES.add(db, asdict(row), "anomalies", clock="found_at", once=once)


async def to_suspend(db: Connection, *, limit: int) -> list[AnomalyRow]:
    """Unusual hours whose account is still to be suspended."""
    where = Where()
    where.add("action = 1")
    return await ANOMALIES.such(db, where, limit=limit)


async def note_action(db: Connection, row: AnomalyRow, action: int) -> None:
    """Write down what followed an unusual hour."""
    await db.execute(
        "UPDATE anomalies SET action = $3 WHERE org_id = $1 AND anomaly_id = $2 AND action = 1",
        row.org_id,
        row.anomaly_id,
        action,
    )
