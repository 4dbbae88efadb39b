"""Budget requests at rest.

Owns: the rows of requests.
Must not: decide; whoever changes a row holds its org's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gpucredits.core.authority import Authority
from gpucredits.core.request import BudgetRequest, RequestKind, RequestState, RequestUnit
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.org_rows import OrgFilter, OrgRows
from gpucredits.store.database.where import Where

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
UPDATE = (
    f"UPDATE requests SET {', '.join(f'{name} = ${n}' for n, name in enumerate(CHANGED, 3))}"  # noqa: S608  # names of fields only
    " WHERE org_id = $1 AND request_id = $2"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter(OrgFilter):
    """Which requests to list."""

    state: RequestState | None = None
    kind: RequestKind | None = None
    now: int


def ask_of(row: Any) -> BudgetRequest:
    """The request that a row holds."""
    values = dict(row)
    values["kind"] = RequestKind(values["kind"])
    values["state"] = RequestState(values["state"])
    values["unit"] = RequestUnit(values["unit"])
    values["decided_from"] = Authority(values["decided_from"])
    return BudgetRequest(**values)


REQUESTS = OrgRows("requests", BudgetRequest, "request_id", read=ask_of)


async def insert(db: Connection, ask: BudgetRequest) -> BudgetRequest:
    """Store a new request; it comes back with its number."""
    values = {name: getattr(ask, name) for name in REQUESTS.columns}
    number = await REQUESTS.add(db, values, "requests", clock="", once="org_id, request_id")
    assert number is not None  # it is the next one
    return replace(ask, request_id=number)


async def update(db: Connection, ask: BudgetRequest) -> None:
    """Store what a decision has changed."""
    await db.execute(UPDATE, ask.org_id, ask.request_id, *(getattr(ask, name) for name in CHANGED))


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
    kind = None if which.kind is None else int(which.kind)
    where = REQUESTS.where(which, kind=kind)
    match which.state:
        case None:
            pass
        case RequestState.OPEN:
            where.add("state = 0 AND expires_at > {}", which.now)
        case RequestState.EXPIRED:
            where.add("(state = 5 OR state = 0 AND expires_at <= {})", which.now)
        case _:
            where.add("state = {}", int(which.state))
    return await REQUESTS.such(db, where, limit=which.limit)


async def unfinished(db: Connection, *, limit: int) -> list[BudgetRequest]:
    """Requests on their way into the ledger, and requests whose time is over.

    Finding them needs no lock: whoever finishes one locks its org.
    """
    where = Where()
    where.add("(state = 1 OR (state = 0 AND expires_at <= (SELECT ledger_now())))")
    return await REQUESTS.such(db, where, limit=limit)
