"""Reading the ledger's entries by account, job, type and time, one page after the other."""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.entry import Entry, EntryType
from gpucredits.store.connection import Connection
from gpucredits.store.where import Where

ACCOUNTS_PROBED_MAX = 100  # above so many accounts, reading the org's entries in order is cheaper
COLUMNS = """e.entry_id, e.effective_at, e.type, e.account_id, e.amount, e.reserve, e.grant_id,
    e.other_id, e.other_grant_id, e.reservation_id, e.seq, e.recorded_at"""
IN_ORDER = "SELECT [columns] FROM entries e WHERE [where] ORDER BY entry_id DESC LIMIT [limit]"
BY_ACCOUNT = """
SELECT DISTINCT s.* FROM unnest([accounts]::bigint[]) AS w(account_id)
CROSS JOIN LATERAL (
    (SELECT [columns] FROM entries e
    WHERE [where] AND e.account_id = w.account_id ORDER BY entry_id DESC LIMIT [limit])
    UNION ALL
    (SELECT [columns] FROM entries e
    WHERE [where] AND e.other_id = w.account_id AND e.other_id <> 0
    ORDER BY entry_id DESC LIMIT [limit])
) AS s ORDER BY entry_id DESC LIMIT [limit]
"""
LIST = """
WITH page AS ([page])
SELECT e.*, a.path, coalesce(o.path, '') AS other, coalesce(r.job_id, '') AS job_id
FROM page e
JOIN accounts a ON a.org_id = [org] AND a.account_id = e.account_id
LEFT JOIN accounts o ON o.org_id = a.org_id AND o.account_id = e.other_id
LEFT JOIN reservations r ON r.org_id = a.org_id AND r.reservation_id = e.reservation_id
ORDER BY e.entry_id DESC
"""
LEASES = "SELECT reservation_id, payer_id, first_entry_id FROM reservations WHERE [where]"
ACCOUNTS = "SELECT account_id FROM accounts WHERE [where]"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Which entries to list, newest first, before the cursor; times are of taking effect."""

    account: str = ""
    tree: bool = False
    job_id: str = ""
    reservation_id: int = 0
    types: tuple[int, ...] = ()
    since: int | None = None
    until: int | None = None
    before: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A stored entry with the names that people know."""

    entry: Entry
    recorded_at: int
    account: str
    other: str
    job_id: str


async def list_entries(connection: Connection, org_id: int, wanted: EntryFilter) -> list[EntryRow]:
    """Entries of an org, newest first."""
    where = Where()
    where.add("e.org_id = {}", org_id)
    if wanted.before:
        where.add("e.entry_id < {}", wanted.before)
    if wanted.types:
        where.add(
            "(e.type = ANY({0}::smallint[])"
            " OR e.reserve > 0 AND {1} = ANY({0}::smallint[])"
            " OR e.reserve < 0 AND {2} = ANY({0}::smallint[]))",
            list(wanted.types),
            int(EntryType.RESERVE),
            int(EntryType.RELEASE),
        )
    if wanted.since is not None:
        where.add("e.effective_at >= {}", wanted.since)
    if wanted.until is not None:
        where.add("e.effective_at < {}", wanted.until)
    payers: list[int] | None = None
    if wanted.job_id or wanted.reservation_id:
        payers = await add_leases(connection, org_id, wanted, where)
    if wanted.account:
        accounts = await accounts_under(connection, org_id, wanted.account, tree=wanted.tree)
        payers = accounts if payers is None else sorted({*payers} & {*accounts})
    if payers == []:
        return []
    page = page_of(where, payers, wanted.limit)
    query = where.into(LIST, page=page, org=where.value(org_id))
    rows = await connection.fetch(query, *where.values)
    return [
        EntryRow(
            Entry(row[0], row[1], EntryType(row[2]), *row[3:11]),
            row["recorded_at"],
            row["path"],
            row["other"],
            row["job_id"],
        )
        for row in rows
    ]


async def add_leases(
    connection: Connection, org_id: int, wanted: EntryFilter, where: Where
) -> list[int]:
    """Narrow the entries down to those of a job's leases; returns who pays for them."""
    own = Where()
    own.add("org_id = {}", org_id)
    if wanted.job_id:
        own.add("job_id = {}", wanted.job_id)
    if wanted.reservation_id:
        own.add("reservation_id = {}", wanted.reservation_id)
    rows = await connection.fetch(own.into(LEASES), *own.values)
    where.add("e.reservation_id = ANY({}::bigint[])", [row["reservation_id"] for row in rows])
    where.add("e.entry_id >= {}", min((row["first_entry_id"] for row in rows), default=0))
    return sorted({row["payer_id"] for row in rows})


async def accounts_under(
    connection: Connection, org_id: int, path: str, *, tree: bool
) -> list[int]:
    """The numbers of an account, or of all accounts in its subtree."""
    where = Where()
    where.add("org_id = {}", org_id)
    if tree:
        where.under("path", path)
    else:
        where.add("path = {}", path)
    rows = await connection.fetch(where.into(ACCOUNTS), *where.values)
    return [row["account_id"] for row in rows]


def page_of(where: Where, accounts: list[int] | None, limit: int) -> str:
    """The query for one page: account by account where they are few, else the org in order."""
    places = {"limit": where.value(limit), "columns": COLUMNS}
    if accounts is not None and len(accounts) <= ACCOUNTS_PROBED_MAX:
        return where.into(BY_ACCOUNT, accounts=where.value(accounts), **places)
    if accounts is not None:
        place = where.value(accounts)
        where.texts.append(
            f"(e.account_id = ANY({place}::bigint[]) OR e.other_id = ANY({place}::bigint[]))"
        )
    return where.into(IN_ORDER, **places)
