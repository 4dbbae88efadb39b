"""Reading reservations whole, as listings and pages of a job show them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.store.book.rows import stored_lease
from gpucredits.store.book.tables import LEASE
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where
from gpucredits.store.ledger.accounts import ACCOUNTS_PROBED_MAX, accounts_under

COLUMNS = LEASE.listed("r")
IN_ORDER = """
SELECT [columns] FROM reservations r
WHERE [where] ORDER BY r.reservation_id DESC LIMIT [limit]
"""
BY_ACCOUNT = """
SELECT s.* FROM unnest([accounts]::bigint[]) AS w(account_id)
CROSS JOIN LATERAL (
    SELECT [columns] FROM reservations r
    WHERE [where] AND r.account_id = w.account_id ORDER BY r.reservation_id DESC LIMIT [limit]
) AS s ORDER BY s.reservation_id DESC LIMIT [limit]
"""
# All leases of the job are read, and nothing else, whatever the planner expects of the order.
OF_JOB = """
SELECT [columns] FROM (
    SELECT * FROM reservations WHERE org_id = [org] AND job_id = [job] OFFSET 0
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
    """The query for one page: of a job, account by account where they are few, else in order."""
    by_account = (
        accounts is not None
        and len(accounts) <= ACCOUNTS_PROBED_MAX
        and not (wanted.job_id or wanted.node or wanted.numbers)
    )
    if by_account and wanted.state is ReservationState.ACTIVE:
        where.add("r.org_id + 0 = {}", org_id)  # as the index of live leases has it
    else:
        where.add("r.org_id = {}", org_id)
    add_filters(where, wanted, now)
    places = {"limit": where.value(wanted.limit), "columns": COLUMNS}
    if by_account:
        return where.into(BY_ACCOUNT, accounts=where.value(accounts), **places)
    if accounts is not None:
        where.add("r.account_id = ANY({}::bigint[])", accounts)
    if wanted.job_id:
        places |= {"org": where.value(org_id), "job": where.value(wanted.job_id)}
        return where.into(OF_JOB, **places)
    return where.into(IN_ORDER, **places)


def add_filters(where: Where, wanted: ReservationFilter, now: int) -> None:
    """What is wanted of each lease, whoever has it."""
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
    """Only those that are so at ``now``: not every lapse is written down."""
    match state:
        case ReservationState.ACTIVE:
            where.add("r.state = 0 AND r.expires_at > {}", now)
        case ReservationState.EXPIRED:
            where.add("(r.state = 3 OR r.state = 0 AND r.expires_at <= {})", now)
        case _:
            where.add("r.state = {}", int(state))
