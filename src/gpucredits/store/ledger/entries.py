"""Reading the ledger's entries by account, job, type and time, one page after the other."""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.entry import Entry, EntryType
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where
from gpucredits.store.ledger.accounts import ACCOUNTS_PROBED_MAX, accounts_under
from gpucredits.store.ledger.reservations import CLOSED

LEASES_READ_MAX = 50  # of a job: above so many its payers' entries are read in one go
ACCOUNTS_TRIED_MAX = 1_000  # above so many accounts, their org is read in order
COLUMNS = """e.entry_id, e.effective_at, e.type, e.account_id, e.amount, e.reserve, e.grant_id,
    e.other_id, e.other_grant_id, e.reservation_id, e.seq, e.recorded_at"""
IN_ORDER = (
    "SELECT [columns] FROM timed_entries e WHERE [where] ORDER BY entry_id DESC LIMIT [limit]"
)
BY_ACCOUNT = """
SELECT DISTINCT s.* FROM unnest([numbers]::bigint[]) AS w(account_id)
CROSS JOIN LATERAL (
    (SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.account_id = w.account_id ORDER BY entry_id DESC LIMIT [limit])
    UNION ALL
    (SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.other_id = w.account_id AND e.other_id <> 0
    ORDER BY entry_id DESC LIMIT [limit])
) AS s ORDER BY entry_id DESC LIMIT [limit]
"""
# The newest entry of each account says which of them can be on the page, and down to which number.
NEWEST = """
WITH newest AS MATERIALIZED (
    SELECT w.account_id, t.entry_id FROM unnest([numbers]::bigint[]) AS w(account_id)
    CROSS JOIN LATERAL (
        SELECT max(entry_id) AS entry_id FROM (
            (SELECT e.entry_id FROM timed_entries e
            WHERE [where] AND e.account_id = w.account_id ORDER BY entry_id DESC LIMIT 1)
            UNION ALL
            (SELECT e.entry_id FROM timed_entries e
            WHERE [where] AND e.other_id = w.account_id AND e.other_id <> 0
            ORDER BY entry_id DESC LIMIT 1)
        ) AS both_sides
    ) AS t WHERE t.entry_id IS NOT NULL ORDER BY t.entry_id DESC LIMIT [limit]
), lowest AS MATERIALIZED (
    SELECT CASE count(*) WHEN [limit] THEN min(entry_id) ELSE 0 END AS entry_id FROM newest
)
SELECT DISTINCT s.* FROM newest w
CROSS JOIN LATERAL (
    (SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.account_id = w.account_id
        AND e.entry_id >= (SELECT l.entry_id FROM lowest l) ORDER BY entry_id DESC LIMIT [limit])
    UNION ALL
    (SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.other_id = w.account_id AND e.other_id <> 0
        AND e.entry_id >= (SELECT l.entry_id FROM lowest l) ORDER BY entry_id DESC LIMIT [limit])
) AS s ORDER BY entry_id DESC LIMIT [limit]
"""
# Entries that took effect before an instant and were recorded after it: the clock alone made them.
LATE = """
SELECT [columns] FROM timed_entries e WHERE [where] AND e.entry_id = ANY (ARRAY(
    SELECT l.entry_id FROM entries l WHERE l.org_id = [org] AND l.effective_at < l.recorded_at
        AND numrange(l.org_id * 1e19 + l.effective_at, l.org_id * 1e19 + l.recorded_at)
            @> [org]::bigint * 1e19 + [until]::bigint - 1))
ORDER BY entry_id DESC LIMIT [limit]
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
# Lease by lease, where they are few: other entries of a payer between two of them are not read.
BY_LEASE = """
SELECT s.* FROM unnest([payers]::bigint[], [leases]::bigint[], [firsts]::bigint[],
    [beyonds]::bigint[]) AS w(account_id, reservation_id, first, beyond)
CROSS JOIN LATERAL (
    SELECT [columns] FROM timed_entries e
    WHERE [where] AND e.account_id = w.account_id AND e.reservation_id = w.reservation_id
        AND e.entry_id >= w.first AND e.entry_id < w.beyond ORDER BY entry_id DESC LIMIT [limit]
) AS s ORDER BY entry_id DESC LIMIT [limit]
"""
FEW_LEASES = f"""
SELECT payer, reservation_id, first_entry_id,
    CASE WHEN {CLOSED} THEN entry_after([org], payer, ended_at) ELSE 9223372036854775807 END
FROM (SELECT * FROM reservations WHERE [where] LIMIT [most]) AS l
CROSS JOIN LATERAL lease_payers(payer_id, payers) AS payer
"""  # noqa: S608  # constant texts only
# By payer: entry_after() knows how late the end was written down.
LEASES = f"""
SELECT payer, array_agg(reservation_id) AS leases, min(first_entry_id) AS first,
    CASE WHEN bool_and({CLOSED}) THEN entry_after([org], payer, max(ended_at)) END AS beyond
FROM reservations l CROSS JOIN LATERAL lease_payers(payer_id, payers) AS payer
WHERE [where] GROUP BY payer
"""  # noqa: S608  # constant texts only
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
        few = await few_leases(connection, org_id, wanted)
        if few is not None:
            return await read_rows(connection, org_id, where, by_lease(where, few, wanted))
        payers = await add_leases(connection, org_id, wanted, where)
    if wanted.account:
        accounts = await accounts_under(connection, org_id, wanted.account, tree=wanted.tree)
        if payers is None:
            payers = accounts
        elif accounts is not None:
            payers = sorted({*payers} & {*accounts})
    if payers == []:
        return []
    return await read_rows(connection, org_id, where, page_of(where, org_id, payers, wanted))


async def read_rows(connection: Connection, org_id: int, where: Where, page: str) -> list[EntryRow]:
    """The entries of a page, with the names of accounts and jobs."""
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
    """The conditions that hold for every entry."""
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


LeaseSpan = tuple[int, int, int, int]  # payer, lease, its first entry, the first one after its last


async def few_leases(
    connection: Connection, org_id: int, wanted: EntryFilter
) -> list[LeaseSpan] | None:
    """The leases of a job, each with the range of its entries; None if there are many."""
    own = Where()
    own.add("org_id + 0 = {}" if wanted.job_id else "org_id = {}", org_id)
    if wanted.job_id:
        own.add("job_id = {}", wanted.job_id)
    if wanted.reservation_id:
        own.add("reservation_id = {}", wanted.reservation_id)
    places = {"org": own.value(org_id), "most": own.value(LEASES_READ_MAX + 1)}
    rows = await connection.fetch(own.into(FEW_LEASES, **places), *own.values)
    if len(rows) > LEASES_READ_MAX:
        return None
    spans = [(row[0], row[1], row[2], row[3]) for row in rows]
    if not wanted.account:
        return spans
    accounts = await accounts_under(connection, org_id, wanted.account, tree=wanted.tree)
    return [span for span in spans if accounts is None or span[0] in accounts]


def by_lease(where: Where, spans: list[LeaseSpan], wanted: EntryFilter) -> str:
    """The query for a page of few leases."""
    columns = [[span[place] for span in spans] for place in range(4)]
    names = ("payers", "leases", "firsts", "beyonds")
    places = {name: where.value(column) for name, column in zip(names, columns, strict=True)}
    return where.into(BY_LEASE, **places, columns=COLUMNS, limit=where.value(wanted.limit))


async def add_leases(
    connection: Connection, org_id: int, wanted: EntryFilter, where: Where
) -> list[int]:
    """Narrow the entries down to those of a job's leases; returns who pays for them.

    The payers' entries from the start of the first lease to the end of the last are read, and up to
    now if a lease runs or was corrected.
    """
    own = Where()
    own.add("org_id + 0 = {}" if wanted.job_id else "org_id = {}", org_id)
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
    """The query for one page: account by account where they are few, else the org in order.

    Up to an instant it is what was recorded before it, and what was recorded late.
    """
    places = {"limit": where.value(wanted.limit), "columns": COLUMNS}
    numbers = "" if accounts is None else where.value(accounts)
    of_accounts = (
        f"(e.account_id = ANY({numbers}::bigint[]) OR e.other_id = ANY({numbers}::bigint[]))"
    )
    recorded = Where(where.texts[:], where.values)
    if wanted.until is not None:
        recorded.add("e.entry_id < (SELECT entry_at({}, {}))", org_id, wanted.until)
    if accounts is None:
        page = recorded.into(IN_ORDER, **places)
    elif len(accounts) <= ACCOUNTS_PROBED_MAX:
        page = recorded.into(BY_ACCOUNT, numbers=numbers, **places)
    elif len(accounts) <= ACCOUNTS_TRIED_MAX and not wanted.types:
        page = recorded.into(NEWEST, numbers=numbers, **places)
    else:
        recorded.texts.append(of_accounts)
        page = recorded.into(IN_ORDER, **places)
    if wanted.until is None or (wanted.types and AT_ONCE.issuperset(wanted.types)):
        return page
    late = Where(where.texts[:], where.values)
    if accounts is not None:
        late.texts.append(of_accounts)
    places |= {"org": where.value(org_id), "until": where.value(wanted.until)}
    late.add("e.entry_id >= (SELECT entry_at({}, {}))", org_id, wanted.until)
    return (
        f"SELECT * FROM (({page}) UNION ALL ({late.into(LATE, **places)})) AS e"  # noqa: S608  # constant texts only
        f" ORDER BY e.entry_id DESC LIMIT {places['limit']}"
    )
