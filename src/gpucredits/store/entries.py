"""Reading the ledger's entries by account, job, type and time, one page after the other."""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.entry import Entry, EntryType
from gpucredits.store.accounts import ACCOUNTS_PROBED_MAX, accounts_under
from gpucredits.store.connection import Connection
from gpucredits.store.where import Where

COLUMNS = """e.entry_id, e.effective_at, e.type, e.account_id, e.amount, e.reserve, e.grant_id,
    e.other_id, e.other_grant_id, e.reservation_id, e.seq, e.recorded_at"""
IN_ORDER = (
    "SELECT [columns] FROM timed_entries e WHERE [where] ORDER BY entry_id DESC LIMIT [limit]"
)
BY_ACCOUNT = """
SELECT DISTINCT s.* FROM ([accounts]) AS w(account_id, beyond)
CROSS JOIN LATERAL (
    (SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.account_id = w.account_id AND e.entry_id < w.beyond
    ORDER BY entry_id DESC LIMIT [limit])
    UNION ALL
    (SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.other_id = w.account_id AND e.other_id <> 0 AND e.entry_id < w.beyond
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
ACCOUNTS = "SELECT unnest([numbers]::bigint[]), 9223372036854775807"
ACCOUNTS_UNTIL = """
SELECT w.number, entry_after([org], w.number, [until])
FROM unnest([numbers]::bigint[]) AS w(number) OFFSET 0
"""
# By payer. After the end of a lease only corrections come, and late use, whose last beat is then at
# the end of the lease: entry_after() knows how late the end was written down.
LEASES = """
SELECT payer, array_agg(reservation_id) AS leases, min(first_entry_id) AS first,
    CASE WHEN bool_and(state <> 0 AND adjusted = 0 AND refunded = 0
            AND (state <> 3 OR beat_at < ended_at))
        THEN entry_after([org], payer, max(ended_at)) END AS beyond
FROM reservations CROSS JOIN LATERAL lease_payers(payer_id, payers) AS payer
WHERE [where] GROUP BY payer
"""
# These take effect when they are recorded; the clock alone makes the others, or may.
AT_ONCE = frozenset(
    {
        EntryType.TOPUP,
        EntryType.RESERVE,
        EntryType.SETTLE,
        EntryType.REFUND,
        EntryType.ADJUST,
        EntryType.OVERRUN,
        EntryType.REVERSE,
        EntryType.RESTORE,
        EntryType.WITHDRAW,
    }
)


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
    add_filters(where, org_id, wanted)
    payers: list[int] | None = None
    if wanted.job_id or wanted.reservation_id:
        payers = await add_leases(connection, org_id, wanted, where)
    if wanted.account:
        accounts = await accounts_under(connection, org_id, wanted.account, tree=wanted.tree)
        if payers is None:
            payers = accounts
        elif accounts is not None:
            payers = sorted({*payers} & {*accounts})
    if payers == []:
        return []
    page = page_of(where, org_id, payers, wanted)
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


def add_filters(where: Where, org_id: int, wanted: EntryFilter) -> None:
    """What is wanted of each entry, whoever it is about."""
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
        where.add("e.entry_id >= (SELECT entry_at({}, {}))", org_id, wanted.since)
    if wanted.until is not None:
        where.add("e.effective_at < {}", wanted.until)
        if wanted.types and AT_ONCE.issuperset(wanted.types):
            where.add("e.entry_id < (SELECT entry_at({}, {}))", org_id, wanted.until)


async def add_leases(
    connection: Connection, org_id: int, wanted: EntryFilter, where: Where
) -> list[int]:
    """Narrow the entries down to those of a job's leases; returns who pays for them.

    What their payers have recorded from the beginning of the first to the end of the last is read,
    and up to now if one of them runs or was corrected.
    """
    own = Where()
    own.add("org_id = {}", org_id)
    if wanted.job_id:
        own.add("job_id = {}", wanted.job_id)
    if wanted.reservation_id:
        own.add("reservation_id = {}", wanted.reservation_id)
    rows = await connection.fetch(own.into(LEASES, org=own.value(org_id)), *own.values)
    leases = sorted({number for row in rows for number in row["leases"]})
    where.add("e.reservation_id = ANY({}::bigint[])", leases)
    where.add("e.entry_id >= {}", min((row["first"] for row in rows), default=0))
    beyond = [row["beyond"] for row in rows]
    if beyond and None not in beyond:
        where.add("e.entry_id < {}", max(beyond))
    return sorted(row["payer"] for row in rows)


def page_of(where: Where, org_id: int, accounts: list[int] | None, wanted: EntryFilter) -> str:
    """The query for one page: account by account where they are few, else the org in order."""
    places = {"limit": where.value(wanted.limit), "columns": COLUMNS}
    if accounts is None:
        return where.into(IN_ORDER, **places)
    numbers = where.value(accounts)
    if len(accounts) > ACCOUNTS_PROBED_MAX:
        where.texts.append(
            f"(e.account_id = ANY({numbers}::bigint[]) OR e.other_id = ANY({numbers}::bigint[]))"
        )
        return where.into(IN_ORDER, **places)
    chosen = ACCOUNTS
    if wanted.until is not None:
        chosen = ACCOUNTS_UNTIL
        places |= {"org": where.value(org_id), "until": where.value(wanted.until)}
    return where.into(BY_ACCOUNT, accounts=chosen, numbers=numbers, **places)
