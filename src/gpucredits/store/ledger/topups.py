"""Reading top-ups."""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.topup import TopUpRow
from gpucredits.store.book.rows import stored_topup
from gpucredits.store.book.tables import TOPUP
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

LIST = f"""
SELECT {TOPUP.listed("t")}, a.path FROM topups t
JOIN accounts a ON a.org_id = t.org_id AND a.account_id = t.account_id
WHERE [where] ORDER BY t.topup_id DESC LIMIT [limit]
"""  # noqa: S608  # constant texts only


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
    return [(stored_topup(row), row["path"]) for row in rows]
