"""Reading accounts: the tree below a path, and sums over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.core.account import Account
from gpucredits.store.book_gates import AUTHORITIES
from gpucredits.store.book_rows import FUNDINGS, MODELS, STATUSES, from_json
from gpucredits.store.connection import Connection
from gpucredits.store.where import Where

ACCOUNTS_PROBED_MAX = 100  # above so many accounts, reading their org in order is cheaper
LIST = """
SELECT account_id, path, model, credit_limit, status, remaining, reserved, spent, debt,
    overrun, version, due_at, allocated, created_at, metadata::text AS metadata,
    delinquent, overdraft_limit, promised, funding, window_max_ms, suspended_by
FROM accounts WHERE [where] ORDER BY path LIMIT [limit]
"""
SUM = """
SELECT coalesce(sum(remaining - reserved - debt), 0)::bigint AS available,
    coalesce(sum(reserved), 0)::bigint AS reserved, coalesce(sum(spent), 0)::bigint AS spent,
    coalesce(sum(overrun), 0)::bigint AS overrun, coalesce(sum(version), 0)::bigint AS version,
    count(*) AS accounts
FROM accounts WHERE [where] AND due_at > [now]
"""
NUMBERS = "SELECT account_id FROM accounts WHERE [where]"
DUE = "SELECT account_id FROM accounts WHERE [where] AND due_at <= [now]"
PENDING = """
SELECT coalesce(sum(g.remaining), 0)::bigint FROM accounts a
JOIN grants g ON g.org_id = a.org_id AND g.account_id = a.account_id AND g.is_open
WHERE [where] AND g.state = 2 AND g.starts_at > [now]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFilter:
    """Which accounts to list; paths come in order, after the cursor."""

    under: str = ""
    model: int | None = None
    status: int | None = None
    metadata: dict[str, str] | None = None
    after: str = ""
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Sums:
    """Balances added up over accounts that the clock has not made due."""

    available: int
    reserved: int
    spent: int
    overrun: int
    version: int
    accounts: int


def account_from_row(row: Any) -> Account:
    """An account as stored."""
    return Account(
        account_id=row["account_id"],
        path=row["path"],
        model=MODELS[row["model"]],
        credit_limit=row["credit_limit"],
        status=STATUSES[row["status"]],
        remaining=row["remaining"],
        reserved=row["reserved"],
        spent=row["spent"],
        debt=row["debt"],
        overrun=row["overrun"],
        version=row["version"],
        due_at=row["due_at"],
        allocated=row["allocated"],
        created_at=row["created_at"],
        metadata=from_json(row["metadata"]),
        delinquent=row["delinquent"],
        overdraft_limit=row["overdraft_limit"],
        promised=row["promised"],
        funding=FUNDINGS[row["funding"]],
        window_max_ms=row["window_max_ms"],
        suspended_by=AUTHORITIES[row["suspended_by"]],
    )


async def list_accounts(
    connection: Connection, org_id: int, wanted: AccountFilter
) -> list[Account]:
    """Accounts of an org in order of their paths."""
    where = Where()
    where.add("org_id = {}", org_id)
    where.add("path > {}", wanted.after)
    if wanted.under:
        where.under("path", wanted.under)
    if wanted.model is not None:
        where.add("model = {}", wanted.model)
    if wanted.status is not None:
        where.add("status = {}", wanted.status)
    if wanted.metadata:
        where.add("metadata @> {}::text::jsonb", msgspec.json.encode(wanted.metadata).decode())
    rows = await connection.fetch(where.into(LIST, limit=where.value(wanted.limit)), *where.values)
    return [account_from_row(row) for row in rows]


async def sum_tree(
    connection: Connection, org_id: int, path: str, now: int
) -> tuple[Sums, list[int]]:
    """The sums over a subtree, and the accounts left out of them because they are due."""
    where = Where()
    where.add("org_id = {}", org_id)
    where.under("path", path)
    place = where.value(now)
    row = await connection.fetchrow(where.into(SUM, now=place), *where.values)
    due = await connection.fetch(where.into(DUE, now=place), *where.values)
    return Sums(*row), [each["account_id"] for each in due]


async def sum_pending(connection: Connection, org_id: int, path: str, now: int) -> int:
    """What the grants of a subtree hold that have not started."""
    where = Where()
    where.add("a.org_id = {}", org_id)
    where.under("a.path", path)
    pending: int = await connection.fetchval(
        where.into(PENDING, now=where.value(now)), *where.values
    )
    return pending


async def accounts_under(
    connection: Connection, org_id: int, path: str, *, tree: bool
) -> list[int] | None:
    """The numbers of an account, or of all accounts in its subtree; None if that is the org."""
    below_org = "/" in path
    where = Where()
    where.add("org_id = {}", org_id)
    if tree and below_org:
        where.under("path", path)
    else:
        where.add("path = {}", path)
    numbers = [
        row["account_id"] for row in await connection.fetch(where.into(NUMBERS), *where.values)
    ]
    return None if tree and numbers and not below_org else numbers
