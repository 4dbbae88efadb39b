"""Reading accounts: the tree below a path, and sums over it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gpucredits.core.account import Account
from gpucredits.store.book.rows import stored_account
from gpucredits.store.book.tables import ACCOUNT
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

ACCOUNTS_PROBED_MAX = 100  # above so many accounts, reading their org in order is cheaper
LIST = f"""
SELECT {ACCOUNT.listed("accounts")}
FROM accounts WHERE [where] ORDER BY path LIMIT [limit]
"""  # noqa: S608  # constant texts only
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
    return [stored_account(row) for row in rows]


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


async def accounts_of(connection: Connection, org_id: int, *, at_most: int) -> list[int] | None:
    """The numbers of all accounts of an org; None if they are more."""
    rows = await connection.fetch(
        "SELECT account_id FROM accounts WHERE org_id = $1 LIMIT $2", org_id, at_most + 1
    )
    return None if len(rows) > at_most else [row["account_id"] for row in rows]


async def paths_under(
    connection: Connection, org_id: int, path: str, *, at_most: int
) -> list[str] | None:
    """The paths of an account and all below it; None if that is the org, or they are more."""
    if "/" not in path:
        return None
    where = Where()
    where.add("org_id = {}", org_id)
    where.under("path", path)
    limit = where.value(at_most + 1)
    query = where.into("SELECT path FROM accounts WHERE [where] LIMIT [limit]", limit=limit)
    rows = await connection.fetch(query, *where.values)
    return None if len(rows) > at_most else [row["path"] for row in rows]
