"""Budget requests at rest.

Owns: the rows of requests.
Must not: decide; whoever changes a row holds its org's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from gpucredits.core.authority import Authority
from gpucredits.core.request import BudgetRequest, RequestKind, RequestState, RequestUnit
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

COLUMNS = ", ".join(each.name for each in fields(BudgetRequest))
INSERTED = tuple(each.name for each in fields(BudgetRequest) if each.name != "request_id")
CHANGED = (
    "state",
    "decided_by",
    "decided_from",
    "decided_at",
    "note",
    "given_amount",
    "given_refill_per_hour",
    "given_ends_at",
    "taken_from",
    "attempt",
    "result",
    "refusal",
)
INSERT = (
    f"INSERT INTO requests ({', '.join(INSERTED)})"  # noqa: S608  # names of fields only
    f" VALUES ({', '.join(f'${number}' for number in range(1, len(INSERTED) + 1))})"
    f" RETURNING {COLUMNS}"
)
UPDATE = (
    f"UPDATE requests SET {', '.join(f'{name} = ${n}' for n, name in enumerate(CHANGED, 3))}"  # noqa: S608  # names of fields only
    " WHERE org_id = $1 AND request_id = $2"
)
LIST = f"SELECT {COLUMNS} FROM requests WHERE [where] ORDER BY request_id DESC LIMIT [limit]"  # noqa: S608  # names of fields only
# Their org takes its turn with everything else; finding them needs no lock.
UNFINISHED = f"""
SELECT {COLUMNS} FROM requests
WHERE state = 1 OR (state = 0 AND expires_at <= (SELECT ledger_now()))
ORDER BY request_id LIMIT $1
"""  # noqa: S608  # names of fields only


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Which requests to list, newest first, before the cursor; an empty scope is everything."""

    scope: str = ""
    org_id: int | None = None
    state: RequestState | None = None
    kind: RequestKind | None = None
    now: int
    before: int
    limit: int = 100


async def insert(db: Connection, ask: BudgetRequest) -> BudgetRequest:
    """Store a new request; it comes back with its number."""
    row = await db.fetchrow(INSERT, *(getattr(ask, name) for name in INSERTED))
    return ask_of(row)


async def update(db: Connection, ask: BudgetRequest) -> None:
    """Store what a decision has changed."""
    await db.execute(UPDATE, ask.org_id, ask.request_id, *(getattr(ask, name) for name in CHANGED))


async def find(db: Connection, org_id: int, request_id: int) -> BudgetRequest | None:
    """One request."""
    where = Where()
    where.add("org_id = {}", org_id)
    where.add("request_id = {}", request_id)
    row = await db.fetchrow(where.into(LIST, limit="1"), *where.values)
    return None if row is None else ask_of(row)


async def count_open(db: Connection, org_id: int, account: str, now: int) -> int:
    """How many requests of an account wait for a decision."""
    number: int = await db.fetchval(
        "SELECT count(*) FROM requests"
        " WHERE org_id = $1 AND account = $2 AND expires_at > $3 AND state < 2",
        org_id,
        account,
        now,
    )
    return number


async def page(db: Connection, which: RequestFilter) -> list[BudgetRequest]:
    """Requests, the latest first; their state is that of ``now``, whether written down or not."""
    where = Where()
    where.add("request_id < {}", which.before)
    if which.org_id is not None:
        where.add("org_id = {}", which.org_id)
    if which.scope:
        where.under("account", which.scope)
    if which.kind is not None:
        where.add("kind = {}", int(which.kind))
    match which.state:
        case None:
            pass
        case RequestState.OPEN:
            where.add("state = 0 AND expires_at > {}", which.now)
        case RequestState.EXPIRED:
            where.add("(state = 5 OR state = 0 AND expires_at <= {})", which.now)
        case _:
            where.add("state = {}", int(which.state))
    rows = await db.fetch(where.into(LIST, limit=where.value(which.limit)), *where.values)
    return [ask_of(row) for row in rows]


async def unfinished(db: Connection, *, limit: int) -> list[BudgetRequest]:
    """Requests on their way into the ledger, and those whose time is over."""
    return [ask_of(row) for row in await db.fetch(UNFINISHED, limit)]


def ask_of(row: Any) -> BudgetRequest:
    """The request that a row holds."""
    values = dict(row)
    values["kind"] = RequestKind(values["kind"])
    values["state"] = RequestState(values["state"])
    values["unit"] = RequestUnit(values["unit"])
    values["decided_from"] = Authority(values["decided_from"])
    return BudgetRequest(**values)
