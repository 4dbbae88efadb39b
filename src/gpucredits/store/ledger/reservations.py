"""Reading reservations whole, as listings and pages of a job show them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.store.book.rows import stored_lease
from gpucredits.store.book.tables import LEASE
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where
from gpucredits.store.ledger.accounts import accounts_of, accounts_under

ACCOUNTS_PROBED_MAX = 1_000  # above so many accounts, reading their org in order is cheaper
NUMBER_MAX = 2**63 - 1

COLUMNS = LEASE.listed("r")
# Nothing was charged after the end: after that only corrections come, and late use, whose last beat
# is then at the end of the lease.
CLOSED = """l.state <> 0 AND l.adjusted = 0 AND l.refunded = 0
    AND (l.state <> 3 OR l.beat_at < l.ended_at)"""
STATES = tuple(int(state) for state in ReservationState)
IN_ORDER = """
SELECT [columns] FROM reservations r
WHERE [where] ORDER BY r.reservation_id DESC LIMIT [limit]
"""
# The newest leases of each account and state, a page of them in all, say down to which number the
# page reaches. The index has (org_id + 0): the planner would read the org in order otherwise.
NEWEST = """
    SELECT w.account_id, v.state, t.reservation_id
    FROM unnest([accounts]::bigint[]) AS w(account_id)
    CROSS JOIN unnest([states]::smallint[]) AS v(state)
    CROSS JOIN LATERAL (
        SELECT r.reservation_id FROM reservations r
        WHERE [where] AND r.account_id = w.account_id AND r.state = v.state
        ORDER BY r.reservation_id DESC LIMIT [each]
    ) AS t ORDER BY t.reservation_id DESC LIMIT [limit]
"""
BY_ACCOUNT = f"""
WITH newest AS MATERIALIZED ({NEWEST})
SELECT s.* FROM (SELECT DISTINCT account_id, state FROM newest) AS w
CROSS JOIN LATERAL (
    SELECT [columns] FROM reservations r
    WHERE [where] AND r.account_id = w.account_id AND r.state = w.state
        AND r.reservation_id >= (
            SELECT CASE count(*) WHEN [limit] THEN min(n.reservation_id) ELSE 0 END FROM newest n)
    ORDER BY r.reservation_id DESC LIMIT [limit]
) AS s ORDER BY s.reservation_id DESC LIMIT [limit]
"""  # noqa: S608  # constant texts only
# Leases that have lapsed and are not written down as such: their payers are due. All of them are
# read (OFFSET 0): in order, the planner would read the whole org once many of its leases are live.
LAPSED = """
SELECT [columns] FROM (
    SELECT * FROM reservations l
    WHERE l.org_id = [org] AND l.state = 0 AND l.expires_at <= [now]
        AND l.payer_id = ANY (ARRAY(
            SELECT a.account_id FROM accounts a WHERE a.org_id = [org] AND a.due_at <= [now]))
    OFFSET 0
) AS r
WHERE [where] AND r.account_id = ANY ([accounts]::bigint[])
ORDER BY r.reservation_id DESC LIMIT [limit]
"""
# All leases with the labels are read, and nothing else.
LABELLED = """
SELECT [columns] FROM (
    SELECT * FROM reservations l WHERE l.metadata <> '{}'
        AND jsonb_set('{}', ARRAY[l.org_id::text], l.metadata) @> [labels]::text::jsonb OFFSET 0
) AS r
WHERE [where] ORDER BY r.reservation_id DESC LIMIT [limit]
"""
# All leases of the job are read, and nothing else, whatever the planner expects of the order.
OF_JOB = """
SELECT [columns] FROM (
    SELECT * FROM reservations WHERE org_id + 0 = [org] AND job_id = [job] OFFSET 0
) AS r
WHERE [where] ORDER BY r.reservation_id DESC LIMIT [limit]
"""
LIST = """
WITH page AS ([page])
SELECT r.*, ARRAY(
    SELECT p.path FROM unnest(r.payers || r.payer_id) WITH ORDINALITY AS paying(account_id, place)
    JOIN accounts p ON p.org_id = [org] AND p.account_id = paying.account_id
    WHERE place % 2 = 1 ORDER BY place
) AS payer_paths FROM page r
ORDER BY r.reservation_id DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationFilter:
    """Which reservations to list, newest first, before the cursor."""

    account: str = ""
    tree: bool = False
    job_id: str = ""
    node: str = ""
    state: ReservationState | None = None
    numbers: tuple[int, ...] = ()
    metadata: dict[str, str] | None = None
    before: int = 0
    limit: int = 100


async def list_reservations(
    connection: Connection, org_id: int, wanted: ReservationFilter, now: int
) -> list[tuple[Reservation, tuple[str, ...]]]:
    """Reservations as stored, with the paths of their payers in turn; states are of ``now``."""
    accounts = None
    if wanted.account:
        accounts = await accounts_under(connection, org_id, wanted.account, tree=wanted.tree)
    if accounts is None and wanted.state is not None:
        accounts = await accounts_of(connection, org_id, at_most=ACCOUNTS_PROBED_MAX)
    if accounts == []:
        return []
    where = Where()
    page = page_of(where, org_id, wanted, accounts, now)
    query = where.into(LIST, page=page, org=where.value(org_id))
    rows = await connection.fetch(query, *where.values)
    return [(stored_lease(row), tuple(row["payer_paths"])) for row in rows]


def page_of(
    where: Where, org_id: int, wanted: ReservationFilter, accounts: list[int] | None, now: int
) -> str:
    """The query for one page: of a job or labels, account by account unless many, else in order."""
    is_narrow = bool(wanted.job_id or wanted.node or wanted.numbers or wanted.metadata)
    places = {"limit": where.value(wanted.limit), "columns": COLUMNS}
    if accounts is not None and len(accounts) <= ACCOUNTS_PROBED_MAX and not is_narrow:
        return by_account(where, org_id, wanted, accounts, now, places)
    where.add("r.org_id = {}", org_id)
    add_filters(where, wanted, now)
    if accounts is not None:
        where.add("r.account_id = ANY({}::bigint[])", accounts)
    if wanted.job_id:
        places |= {"org": where.value(org_id), "job": where.value(wanted.job_id)}
        return where.into(OF_JOB, **places)
    if wanted.metadata and not (wanted.node or wanted.numbers):
        labels = msgspec.json.encode({str(org_id): wanted.metadata}).decode()
        return where.into(LABELLED, **places, labels=where.value(labels))
    return where.into(IN_ORDER, **places)


def by_account(
    where: Where,
    org_id: int,
    wanted: ReservationFilter,
    accounts: list[int],
    now: int,
    places: dict[str, str],
) -> str:
    """The query for a page of some accounts, by states as they are stored."""
    places["accounts"] = where.value(accounts)
    places["each"] = where.value(each_of(wanted.limit, len(accounts)))
    before = Where(values=where.values)
    before.add("r.reservation_id < {}", wanted.before or NUMBER_MAX)
    stored = Where(before.texts[:], where.values)
    stored.add("r.org_id + 0 = {}", org_id)
    states: tuple[int, ...] = STATES
    if wanted.state is not None:
        states = (int(wanted.state),)
    if wanted.state is ReservationState.ACTIVE:
        stored.add("r.expires_at > {}", now)
    page = stored.into(BY_ACCOUNT, **places, states=where.value(list(states)))
    if wanted.state is not ReservationState.EXPIRED:
        return page
    places |= {"org": where.value(org_id), "now": where.value(now)}
    lapsed = before.into(LAPSED, **places)
    return where.into(
        f"SELECT * FROM (({page}) UNION ALL ({lapsed})) AS r"  # noqa: S608  # constant texts only
        f" ORDER BY r.reservation_id DESC LIMIT {places['limit']}"
    )


def each_of(limit: int, accounts: int) -> int:
    """How many leases of each account make a page, if half of the accounts have as many."""
    return min(2 * limit // max(accounts, 1) + 1, limit)


def add_filters(where: Where, wanted: ReservationFilter, now: int) -> None:
    """The conditions that hold for every lease."""
    if wanted.before:
        where.add("r.reservation_id < {}", wanted.before)
    if wanted.numbers:
        where.add("r.reservation_id = ANY({}::bigint[])", list(wanted.numbers))
    if wanted.node:
        where.add("r.node = {} AND r.node <> ''", wanted.node)
    if wanted.state is not None:
        add_state(where, wanted.state, now)
    if wanted.metadata:
        where.add("r.metadata @> {}::text::jsonb", msgspec.json.encode(wanted.metadata).decode())


def add_state(where: Where, state: ReservationState, now: int) -> None:
    """Only leases in this state at ``now``: not every lapse is written down."""
    match state:
        case ReservationState.ACTIVE:
            where.add("r.state = 0 AND r.expires_at > {}", now)
        case ReservationState.EXPIRED:
            where.add("(r.state = 3 OR r.state = 0 AND r.expires_at <= {})", now)
        case _:
            where.add("r.state = {}", int(state))
