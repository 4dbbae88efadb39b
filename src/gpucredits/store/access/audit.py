"""The audit log: who did what to which resource, insert-only.

Owns: the rows of audit_log. A row is written in the transaction of the act it records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.store.database.connection import Connection

SYSTEM = "system:"  # the actor of what servers do by themselves
_ENCODER = msgspec.json.Encoder(decimal_format="number")
# The accounts that an act concerns: its resource, whose lease was corrected or request canceled and
# who had paid for it, who received a transfer, and the account that a key is for.
CONCERNED = """
    SELECT FROM unnest(ARRAY[resource, old ->> 'account', old ->> 'payer', new ->> 'to',
        old ->> 'scope', new ->> 'scope']) AS concerned(path)
    WHERE path = $3 OR starts_with(path, $3 || '/')
"""


@dataclass(frozen=True, slots=True)
class AuditNote:
    """The facts of an act to record; ``resource`` is an account path where there is one.

    Other accounts that it concerns are named in its states: see CONCERNED.
    """

    actor: str
    action: str
    resource: str
    request_id: str
    old: Any = None
    new: Any = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A recorded act."""

    audit_id: int
    recorded_at: int
    actor: str
    action: str
    resource: str
    old: Any
    new: Any
    request_id: str


async def insert(db: Connection, org_id: int, notes: list[AuditNote]) -> None:
    """Record acts of one org."""
    await db.executemany(
        "INSERT INTO audit_log (org_id, recorded_at, actor, action, resource, old, new, request_id)"
        " VALUES ($1, ledger_now(), $2, $3, $4, $5::text::jsonb, $6::text::jsonb, $7)",
        [
            (
                org_id,
                note.actor,
                note.action,
                note.resource,
                _json(note.old),
                _json(note.new),
                note.request_id,
            )
            for note in notes
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which acts to list; None means any."""

    scope: str = ""
    org_id: int | None = None
    actor: str | None = None
    action: str | None = None
    resource: str | None = None
    metadata: dict[str, str] | None = None
    since: int | None = None
    until: int | None = None


async def page(db: Connection, which: AuditFilter, *, before: int, limit: int) -> list[AuditRow]:
    """Acts, the latest first. A scope below an org sees the acts that concern its own accounts."""
    rows = await db.fetch(
        "SELECT audit_id, recorded_at, actor, action, resource, old::text AS old,"  # noqa: S608  # constant texts only
        " new::text AS new, request_id FROM audit_log"
        " WHERE ($1::bigint IS NULL OR org_id = $1) AND audit_id < $2"
        f" AND (strpos($3, '/') = 0 OR EXISTS ({CONCERNED}))"
        " AND ($4::text IS NULL OR actor = $4) AND ($5::text IS NULL OR action = $5)"
        " AND ($6::text IS NULL OR resource = $6)"
        " AND ($7::bigint IS NULL OR recorded_at >= $7)"
        " AND ($8::bigint IS NULL OR recorded_at < $8)"
        " AND ($10::text IS NULL OR new -> 'metadata' @> $10::text::jsonb)"
        " ORDER BY audit_id DESC LIMIT $9",
        which.org_id,
        before,
        which.scope,
        which.actor,
        which.action,
        which.resource,
        which.since,
        which.until,
        limit,
        _json(which.metadata),
    )
    return [
        AuditRow(
            row["audit_id"],
            row["recorded_at"],
            row["actor"],
            row["action"],
            row["resource"],
            None if row["old"] is None else msgspec.json.decode(row["old"]),
            None if row["new"] is None else msgspec.json.decode(row["new"]),
            row["request_id"],
        )
        for row in rows
    ]


async def who_ended(db: Connection, org_id: int, resources: list[str]) -> dict[str, str]:
    """Who settled or canceled leases of an org, by their ids; others are absent."""
    rows = await db.fetch(
        "SELECT resource, actor FROM audit_log WHERE org_id = $1 AND resource = ANY($2::text[])"
        " AND action IN ('reservation.settle', 'reservation.cancel')",
        org_id,
        resources,
    )
    return {row["resource"]: row["actor"] for row in rows}


async def is_redeemed(db: Connection, org_id: int, names: Sequence[str]) -> bool:
    """Whether a token of a lease was used up: by the lease's id, or the token's in older rows."""
    found = await db.fetchval(
        "SELECT EXISTS (SELECT FROM audit_log WHERE org_id = $1"
        " AND resource = ANY($2::text[]) AND action = 'token.redeem')",
        org_id,
        list(names),
    )
    return bool(found)


def _json(value: Any) -> str | None:
    return None if value is None else _ENCODER.encode(value).decode()
