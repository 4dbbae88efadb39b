"""Limits, budgets and quotas at rest: one document of each kind for an account.

Owns: the rows of account_settings, and the account's mark that it has a budget.
Must not: read anything into the documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from gpucredits.store.connection import Connection

_ENCODER = msgspec.json.Encoder(decimal_format="number")


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
        encode_document(document).decode(),
    )
    if kind == "budgets":
        await db.execute(
            "UPDATE accounts SET has_budget = $3 WHERE org_id = $1 AND account_id = $2",
            org_id,
            account_id,
            bool(document),
        )
    return _from_row(row)


def encode_document(value: Any) -> bytes:
    """JSON with every number as exact as it was given."""
    return _ENCODER.encode(value)


def decode_row(text: bytes) -> SettingsRow:
    """The row that ``encode_document`` was given."""
    return msgspec.json.Decoder(SettingsRow, float_hook=Decimal).decode(text)


def _from_row(row: Any) -> SettingsRow:
    document = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode(row["document"])
    return SettingsRow(document, row["updated_at"])
