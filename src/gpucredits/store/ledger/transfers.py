"""Reading transfers: what moved between which accounts, as the audit log has it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

# Each side has its place in the log: the resource is the account that the credits left.
LIST = """
SELECT l.audit_id, l.recorded_at, l.resource, l.new::text AS new FROM audit_log l
WHERE [where] AND l.action = 'credits.transfer' ORDER BY l.audit_id DESC LIMIT [limit]
"""


class Moved(msgspec.Struct, rename={"target": "to"}):
    """What is written down of a transfer."""

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
        where.add("l.audit_id < {}", wanted.before)
    if wanted.tree:
        left, arrived = Where(values=where.values), Where(values=where.values)
        left.under('l.resource COLLATE "C"', wanted.account)
        arrived.under("(l.new ->> 'to') COLLATE \"C\"", wanted.account)
        where.texts.append(f"({left.texts[0]} OR {arrived.texts[0]})")
    else:
        where.add("{} IN (l.resource, l.new ->> 'to')", wanted.account)
    if wanted.metadata:
        labels = msgspec.json.encode(wanted.metadata).decode()
        where.add("l.new -> 'metadata' @> {}::text::jsonb", labels)
    if wanted.since is not None:
        where.add("l.recorded_at >= {}", wanted.since)
    if wanted.until is not None:
        where.add("l.recorded_at < {}", wanted.until)
    rows = await connection.fetch(where.into(LIST, limit=where.value(wanted.limit)), *where.values)
    return [
        TransferRow(number, at, source, msgspec.json.decode(new, type=Moved))
        for number, at, source, new in rows
    ]
