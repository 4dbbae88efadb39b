"""Reading grants of an account, open or all that ever were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.core.grant import Grant
from gpucredits.store.book.ledger_rows import GRANT_STATES, SOURCES, from_json
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

LIST = """
SELECT g.grant_id, g.account_id, g.amount, g.remaining, g.starts_at, g.expires_at, g.priority,
    g.source, g.state, g.origin_id, g.created_at, g.metadata::text AS metadata, a.path,
    g.budget_id, g.claims
FROM grants g
JOIN accounts a ON a.org_id = g.org_id AND a.account_id = g.account_id
WHERE [where] ORDER BY g.grant_id LIMIT [limit]
"""


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


def grant_from_row(row: Any) -> Grant:
    """A grant as stored."""
    return Grant(
        grant_id=row["grant_id"],
        account_id=row["account_id"],
        amount=row["amount"],
        remaining=row["remaining"],
        starts_at=row["starts_at"],
        expires_at=row["expires_at"],
        priority=row["priority"],
        source=SOURCES[row["source"]],
        state=GRANT_STATES[row["state"]],
        origin_id=row["origin_id"],
        created_at=row["created_at"],
        metadata=from_json(row["metadata"]),
        budget_id=row["budget_id"],
        claims=row["claims"],
    )


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
    return [(grant_from_row(row), row["path"]) for row in rows]
