"""Reading grants of an account, open or all that ever were."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.core.grant import Grant
from gpucredits.store.book.rows import stored_grant
from gpucredits.store.book.tables import GRANT
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

LIST = f"""
SELECT {GRANT.listed("g")}, a.path
FROM grants g
JOIN accounts a ON a.org_id = g.org_id AND a.account_id = g.account_id
WHERE [where] ORDER BY g.grant_id LIMIT [limit]
"""  # noqa: S608  # constant texts only


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFilter:
    """Which grants to list, oldest first, after the cursor."""

    number: int = 0
    account: str = ""
    tree: bool = False
    open_only: bool = False
    metadata: dict[str, str] | None = None
    after: int = 0
    limit: int = 100


async def list_grants(
    connection: Connection, org_id: int, wanted: GrantFilter
) -> list[tuple[Grant, str]]:
    """Grants with the paths of their accounts."""
    where = Where()
    where.add("g.org_id = {}", org_id)
    where.add("g.grant_id > {}", wanted.after)
    if wanted.number:
        where.add("g.grant_id = {}", wanted.number)
    if wanted.account:
        if wanted.tree:
            where.under("a.path", wanted.account)
        else:
            where.add("a.path = {}", wanted.account)
    if wanted.open_only:
        where.texts.append("g.is_open")
    if wanted.metadata:
        where.add("g.metadata @> {}::text::jsonb", msgspec.json.encode(wanted.metadata).decode())
    rows = await connection.fetch(where.into(LIST, limit=where.value(wanted.limit)), *where.values)
    return [(stored_grant(row), row["path"]) for row in rows]
