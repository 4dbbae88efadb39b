"""Budget requests: asked, decided, and carried out once.

Owns: the order of the steps. An approval is written down first, with its terms; then the ledger
does what it stands for, under a key of the request's own; then that is written down. Killed in
between, whoever comes next (the caller's retry, or the job) goes on from there: the ledger answers
a key that it knows with what it did.
Must not: decide who may (the edge does), or speak SQL (store does).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from gpucredits.core import ids, request
from gpucredits.core.authority import Authority
from gpucredits.core.book import Book, invariant
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Boosted, BudgetSaved, Granted, Outcome, Transferred
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.request import BudgetRequest, RequestKind, RequestState, RequestTerms
from gpucredits.service.write.acts import Act, ActRefused, perform
from gpucredits.service.write.ledger import Ledger
from gpucredits.service.write.ledger import Request as LedgerRequest
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.billing import budget_requests
from gpucredits.store.billing.budget_requests import REQUESTS, RequestFilter
from gpucredits.store.book.load import load
from gpucredits.store.book.needs import Needs
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.ledger import outbox
from gpucredits.wire.scalars import format_end

__all__ = ["RequestFilter"]

ACTIONS = {
    RequestState.APPROVING: "request.approve",
    RequestState.DECLINED: "request.decline",
    RequestState.CANCELED: "request.cancel",
    RequestState.EXPIRED: "request.expire",
}
UNKNOWN = Refused(Reason.REQUEST_UNKNOWN, "There is no such request.")
Decide = Callable[[BudgetRequest, int], BudgetRequest | Refused]


async def ask(pool: Pool, act: Act, wanted: BudgetRequest) -> tuple[BudgetRequest, bool]:
    """Store a new request and announce it; also whether that was done before."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        book = await book_of(db, act.org_id, wanted.account)
        aimed = request.aim(wanted, book)
        if isinstance(aimed, Refused):
            raise ActRefused(aimed)
        now = await read_clock(db)
        open_now = await budget_requests.count_open(db, act.org_id, wanted.account, now)
        refused = request.check_new(aimed.account, aimed.asked, open_now=open_now, now=now)
        if refused is not None:
            raise ActRefused(refused)
        timed = replace(aimed, asked_at=now, expires_at=now + request.OPEN_US)
        row = await budget_requests.insert(db, timed)
        await outbox.announce(db, row.org_id, "request.asked", row.request_id, facts(row))
        return msgspec.json.encode(row), act.note("request.ask", row.account, new=shown(row))

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=BudgetRequest), done.is_replay


async def close(  # which request, what becomes of it, and who says so
    pool: Pool, act: Act, request_id: int, *, state: RequestState, note: str
) -> tuple[BudgetRequest, bool]:
    """Decline or cancel a request."""

    def decide(row: BudgetRequest, now: int) -> BudgetRequest | Refused:
        return request.close(row, state, actor=act.actor, note=note, now=now)

    return await change(pool, act, request_id, decide)


async def approve(  # which request, on which terms, and who says so
    ledger: Ledger,
    act: Act,
    request_id: int,
    *,
    terms: RequestTerms,
    note: str,
    by: Authority = Authority.SYSTEM,
) -> tuple[BudgetRequest, bool]:
    """Approve a request and carry it out; a refusal of the ledger opens it again.

    ``by`` is the scope of the key that approves.
    """

    def decide(row: BudgetRequest, now: int) -> BudgetRequest | Refused:
        return request.approve(row, terms, actor=act.actor, by=by, note=note, now=now)

    pinned, is_replay = await change(ledger.pool, act, request_id, decide)
    if act.dry_run:
        outcome = await submit(ledger, pinned, act, dry_run=True)
        if isinstance(outcome, Refused):
            raise ActRefused(outcome)
        return replace(request.applied(pinned, ""), result=""), False
    return await carry_out(ledger, pinned, act), is_replay


async def change(
    pool: Pool, act: Act, request_id: int, decide: Decide
) -> tuple[BudgetRequest, bool]:
    """Change a request under its org's lock, once for each key."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        before = await REQUESTS.find(db, act.org_id, request_id)
        if before is None:
            raise ActRefused(UNKNOWN)
        after = decide(before, await read_clock(db))
        if isinstance(after, Refused):
            raise ActRefused(after)
        return msgspec.json.encode(after), await record(db, before, after, act)

    done = await perform(pool, act, work)
    return msgspec.json.decode(done.answer, type=BudgetRequest), done.is_replay


async def carry_out(ledger: Ledger, pinned: BudgetRequest, act: Act) -> BudgetRequest:
    """Do what an approval stands for, unless it was done, and write that down."""
    current = await find(ledger.pool, pinned.org_id, pinned.request_id)
    if current is None:
        raise ActRefused(UNKNOWN)
    if current.attempt != pinned.attempt or current.state is not RequestState.APPROVING:
        return settled(current, pinned)
    outcome = await submit(ledger, pinned, act)
    if isinstance(outcome, Refused):
        await finish(ledger.pool, request.reopened(pinned, encode_refusal(outcome)), act)
        raise ActRefused(outcome)
    after = request.applied(pinned, result_of(pinned, outcome))
    await finish(ledger.pool, after, act)
    return after


def settled(current: BudgetRequest, pinned: BudgetRequest) -> BudgetRequest:
    """What an approval that is over came to: what was done, or the refusal once more."""
    if current.attempt == pinned.attempt and current.state is RequestState.APPROVED:
        return current
    if current.attempt == pinned.attempt and current.refusal:
        raise ActRefused(msgspec.json.decode(current.refusal, type=Refused))
    word = current.state.name.lower()
    raise ActRefused(
        Refused(
            Reason.REQUEST_STATE,
            f"The request is {word}: this approval was refused, and others came after it.",
            {"account": current.account, "state": word},
        )
    )


async def submit(ledger: Ledger, ask: BudgetRequest, act: Act, *, dry_run: bool = False) -> Outcome:
    """Hand what an approval stands for to the ledger, under the request's own key."""
    command = request.command_of(ask)
    fingerprint = hashlib.sha256(ask.key.encode()).digest()
    wanted = LedgerRequest(command, ask.key, fingerprint, ask.decided_by, act.request_id)
    return await ledger.submit(ask.org_id, wanted, dry_run=dry_run)


async def finish(pool: Pool, after: BudgetRequest, act: Act) -> None:
    """Write down how an approval ended, unless another process has."""

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        before = await REQUESTS.find(db, after.org_id, after.request_id)
        if (
            before is None
            or before.state is not RequestState.APPROVING
            or before.attempt != after.attempt
        ):
            return b"", None
        decider = replace(act, actor=before.decided_by)
        return b"", await record(db, before, after, decider)

    await perform(pool, Act(org_id=after.org_id), work)


async def repair(ledger: Ledger, *, limit: int) -> int:
    """Finish approvals left half-way, and expire requests whose time is over; how many in all."""
    async with session(ledger.pool) as db:
        rows = await budget_requests.unfinished(db, limit=limit)
    for row in rows:
        if row.state is RequestState.APPROVING:
            try:
                await carry_out(ledger, row, Act(org_id=row.org_id, actor=row.decided_by))
            except ActRefused:
                continue  # it is open again and says why
        else:
            await expire(ledger.pool, row)
    return len(rows)


async def expire(pool: Pool, row: BudgetRequest) -> None:
    """Write down that nobody decided in time."""
    act = Act(org_id=row.org_id, actor=SYSTEM)

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        before = await REQUESTS.find(db, row.org_id, row.request_id)
        now = await read_clock(db)
        if (
            before is None
            or before.state is not RequestState.OPEN
            or request.state_at(before, now) is not RequestState.EXPIRED
        ):
            return b"", None
        return b"", await record(db, before, request.expired(before), act)

    await perform(pool, act, work)


async def record(
    db: Connection, before: BudgetRequest, after: BudgetRequest, act: Act
) -> AuditNote:
    """Store a change, announce it, and give what the audit log is to say."""
    await budget_requests.update(db, after)
    if after.state is RequestState.APPROVED:
        action = "request.apply"
    elif after.state is RequestState.OPEN:
        action = "request.reopen"
    else:
        action = ACTIONS[after.state]
    kind = f"request.{after.state.name.lower()}"
    await outbox.announce(db, after.org_id, kind, after.request_id, facts(after))
    return act.note(action, after.account, old=shown(before), new=shown(after))


async def find(pool: Pool, org_id: int, request_id: int) -> BudgetRequest | None:
    """One request as it stands now."""
    async with session(pool) as db:
        row = await REQUESTS.find(db, org_id, request_id)
        return None if row is None else as_of(row, await read_clock(db))


async def list_requests(pool: Pool, which: RequestFilter) -> list[BudgetRequest]:
    """Requests, the latest first, as they stand now."""
    async with session(pool) as db:
        now = await read_clock(db)
        rows = await budget_requests.page(db, replace(which, now=now))
        return [as_of(row, now) for row in rows]


def as_of(row: BudgetRequest, now: int) -> BudgetRequest:
    """A request with the state that it has at an instant."""
    is_over = row.state is not request.state_at(row, now)
    return request.expired(row) if is_over else row


async def book_of(db: Connection, org_id: int, account: str) -> Book:
    """The account with its limits and budgets, to look at."""
    needs = Needs(orgs={org_id}, paths={(org_id, account)})
    pages = await load(db, needs)
    return pages[org_id].book


def result_of(ask: BudgetRequest, outcome: Outcome) -> str:
    """The id of what an approval made."""
    match outcome:
        case Granted(grant=grant):
            return ids.format_id(ids.GRANT, ask.org_id, grant.grant_id)
        case Transferred(transfer_id=number):
            return ids.format_id(ids.TRANSFER, ask.org_id, number)
        case BudgetSaved(budget=budget):
            return ids.format_id(ids.BUDGET, ask.org_id, budget.budget_id)
        case Boosted(boost=boost):
            return ids.format_id(ids.BOOST, ask.org_id, boost.boost_id)
        case _:
            invariant(holds=False, claim=f"{type(outcome).__name__} answers an approval")
            return ""


def encode_refusal(refused: Refused) -> str:
    """A refusal as it is kept: without the reports, which are of that moment."""
    return msgspec.json.encode(replace(refused, reports=())).decode()


def shown(row: BudgetRequest) -> dict[str, Any]:
    """What the audit log says of a request."""
    state: dict[str, Any] = {
        "request_id": ids.format_id(ids.REQUEST, row.org_id, row.request_id),
        "kind": row.kind.name.lower(),
        "state": row.state.name.lower(),
        "amount": row.shown(row.amount),
        "ends_at": format_end(row.ends_at),
        "reason": row.reason,
        "asked_by": row.asked_by,
        "expires_at": format_end(row.expires_at),
    }
    if row.refill_per_hour:
        state["refill_per_hour"] = format_credits(row.refill_per_hour)
    if row.target_id:
        state["target"] = row.target_id
    if row.budget:
        state["budget"] = row.budget
    if row.decided_by:
        state["decided_by"] = row.decided_by
        state["decided_from"] = row.decided_from.name.lower()
        state["note"] = row.note
    if row.attempt:
        state["attempt"] = row.attempt
    if row.given_refill_per_hour:
        state["given_refill_per_hour"] = format_credits(row.given_refill_per_hour)
    if row.given_amount:
        state["given_amount"] = row.shown(row.given_amount)
        state["given_ends_at"] = format_end(row.given_ends_at)
        state["taken_from"] = row.taken_from
    if row.result:
        state["result"] = row.result
    if row.refusal:
        state["refusal"] = msgspec.json.decode(row.refusal, type=Refused).message
    return state


def facts(row: BudgetRequest) -> dict[str, str | int]:
    """What an event says of a request."""
    return {
        "account": row.account,
        "kind": row.kind.name.lower(),
        "amount": row.shown(row.amount),
        "state": row.state.name.lower(),
    }


def is_about_credit(kind: RequestKind) -> bool:
    """Whether approving it makes credits, now or in every period to come."""
    return kind in (RequestKind.CREDITS, RequestKind.BUDGET)
