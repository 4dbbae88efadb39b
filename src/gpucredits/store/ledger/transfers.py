"""Reading transfers: what moved between which accounts, as the audit log has it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where
from gpucredits.store.ledger.accounts import paths_under

# Each side has its place in the log: the resource is the account that the credits left.
IN_ORDER = """
SELECT l.audit_id, l.recorded_at, l.resource, l.new::text AS new FROM audit_log l
WHERE [where] AND l.action = 'credits.transfer'
ORDER BY l.recorded_at DESC, l.audit_id DESC LIMIT [limit]
"""
BY_ACCOUNT = """
SELECT DISTINCT s.* FROM unnest([paths]::text[]) AS w(path)
CROSS JOIN LATERAL (
    (SELECT l.audit_id, l.recorded_at, l.resource, l.new::text AS new FROM audit_log l
    WHERE [where] AND l.action = 'credits.transfer' AND l.resource = w.path
    ORDER BY l.recorded_at DESC, l.audit_id DESC LIMIT [limit])
    UNION ALL
    (SELECT l.audit_id, l.recorded_at, l.resource, l.new::text AS new FROM audit_log l
    WHERE [where] AND l.action = 'credits.transfer' AND l.new ->> 'to' = w.path
    ORDER BY l.recorded_at DESC, l.audit_id DESC LIMIT [limit])
) AS s ORDER BY s.recorded_at DESC, s.audit_id DESC LIMIT [limit]
"""
PATHS_READ_MAX = 1_000  # above so many accounts, the transfers of their org are read in order


class Moved(msgspec.Struct, rename={"target": "to"}):
    """The audit log's record of a transfer."""

    transfer_id: str
    target: str
    amount: str
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFilter:
    """Which transfers to list, the latest first, before the cursor; times are [since, until)."""

    account: str
    tree: bool = False
    metadata: dict[str, str] | None = None
    since: int | None = None
    until: int | None = None
    before: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class TransferRow:
    """One transfer, with its place in the list."""

    number: int
    recorded_at: int
    source: str
    moved: Moved


async def list_transfers(
    connection: Connection, org_id: int, wanted: TransferFilter
) -> list[TransferRow]:
    """Transfers that left an account or arrived at it."""
    where = Where()
    where.add("l.org_id = {}", org_id)
    if wanted.before:
        where.add(
            "(l.recorded_at, l.audit_id) < (SELECT b.recorded_at, b.audit_id FROM audit_log b"
            " WHERE b.org_id = {} AND b.audit_id = {})",
            org_id,
            wanted.before,
        )
    if wanted.metadata:
        labels = msgspec.json.encode(wanted.metadata).decode()
        where.add("l.new -> 'metadata' @> {}::text::jsonb", labels)
    if wanted.since is not None:
        where.add("l.recorded_at >= {}", wanted.since)
    if wanted.until is not None:
        where.add("l.recorded_at < {}", wanted.until)
    paths: list[str] | None = [wanted.account]
    if wanted.tree:
        paths = await paths_under(connection, org_id, wanted.account, at_most=PATHS_READ_MAX)
    places = {"limit": where.value(wanted.limit)}
    if paths is None:
        add_accounts(where, wanted.account)
        query = where.into(IN_ORDER, **places)
    else:
        query = where.into(BY_ACCOUNT, **places, paths=where.value(paths))
    rows = await connection.fetch(query, *where.values)
    return [
        TransferRow(number, at, source, msgspec.json.decode(new, type=Moved))
        for number, at, source, new in rows
    ]


def add_accounts(where: Where, path: str) -> None:
    """Only transfers that left an account at or below a path, or arrived at one."""
    if "/" not in path:
        return
    left, arrived = Where(values=where.values), Where(values=where.values)
    left.under('l.resource COLLATE "C"', path)
    arrived.under("(l.new ->> 'to') COLLATE \"C\"", path)
    where.texts.append(f"({left.texts[0]} OR {arrived.texts[0]})")
