"""Reading top-ups."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gpucredits.core.topup import TopUpRow
from gpucredits.store.book.ledger_rows import TOPUP_STATUSES, from_json
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

LIST = """
SELECT t.*, t.metadata::text AS metadata_text, a.path FROM topups t
JOIN accounts a ON a.org_id = t.org_id AND a.account_id = t.account_id
WHERE [where] ORDER BY t.topup_id DESC LIMIT [limit]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpFilter:
    """Which top-ups to list, newest first, before the cursor."""

    account: str = ""
    status: int | None = None
    number: int = 0
    before: int = 0
    limit: int = 100


async def list_topups(
    connection: Connection, org_id: int, wanted: TopUpFilter
) -> list[tuple[TopUpRow, str]]:
    """Top-ups with the paths of their accounts."""
    where = Where()
    where.add("t.org_id = {}", org_id)
    if wanted.number:
        where.add("t.topup_id = {}", wanted.number)
    if wanted.before:
        where.add("t.topup_id < {}", wanted.before)
    if wanted.account:
        where.add("a.path = {}", wanted.account)
    if wanted.status is not None:
        where.add("t.status = {}", wanted.status)
    rows = await connection.fetch(where.into(LIST, limit=where.value(wanted.limit)), *where.values)
    found = []
    for row in rows:
        values = {each.name: row[each.name] for each in fields(TopUpRow)}
        values["status"] = TOPUP_STATUSES[row["status"]]
        values["metadata"] = from_json(row["metadata_text"])
        found.append((TopUpRow(**values), row["path"]))
    return found
