"""Limits, budgets and quotas at rest: one document of each kind for an account.

Owns: the rows of account_settings, and the account's mark that it has a budget.
Must not: read anything into the documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.store.connection import Connection


@dataclass(frozen=True, slots=True)
class SettingsRow:
    """A document and when it was set; never set is an empty one at 0."""

    document: dict[str, Any]
    updated_at: int


async def load(db: Connection, *, org_id: int, account_id: int, kind: str) -> SettingsRow:
    """The document of an account."""
    row = await db.fetchrow(
        "SELECT document::text AS document, updated_at FROM account_settings"
        " WHERE org_id = $1 AND account_id = $2 AND kind = $3",
        org_id,
        account_id,
        kind,
    )
    return SettingsRow({}, 0) if row is None else _from_row(row)


async def save(
    db: Connection, *, org_id: int, account_id: int, kind: str, document: dict[str, Any]
) -> SettingsRow:
    """Replace the document; the caller holds the org's lock."""
    row = await db.fetchrow(
        "INSERT INTO account_settings (org_id, account_id, kind, document, updated_at)"
        " VALUES ($1, $2, $3, $4::text::jsonb, ledger_now())"
        " ON CONFLICT (org_id, account_id, kind) DO UPDATE"
        " SET document = excluded.document, updated_at = excluded.updated_at"
        " RETURNING document::text AS document, updated_at",
        org_id,
        account_id,
        kind,
        msgspec.json.encode(document).decode(),
    )
    if kind == "budgets":
        await db.execute(
            "UPDATE accounts SET has_budget = $3 WHERE org_id = $1 AND account_id = $2",
            org_id,
            account_id,
            bool(document),
        )
    return _from_row(row)


def _from_row(row: Any) -> SettingsRow:
    return SettingsRow(msgspec.json.decode(row["document"]), row["updated_at"])
