"""Writing books down: only the rows that changed, all of them in one statement.

Owns: what a row of the core looks like when it is stored.
Must not: decide anything, commit, or write what did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import msgspec

from gpucredits.core.account import Account
from gpucredits.core.book import Row
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book_gates import WHYS, is_plain
from gpucredits.store.book_parts import (
    ACTS,
    ANSWERS,
    BALANCES,
    DECISIONS_MADE,
    ENTRIES,
    GRANTS,
    LATE_USE,
    LEASES,
    NEW_ACCOUNTS,
    NEW_GRANTS,
    NEW_LEASES,
    NEW_TOPUPS,
    ORGS,
    OUTBOX,
    RENEWALS,
    SETTINGS,
    SETTLEMENTS,
    SHARED_RENEWALS,
    TOPUPS,
)
from gpucredits.store.book_rows import DECISIONS
from gpucredits.store.changes import Changes
from gpucredits.store.connection import Connection
from gpucredits.store.errors import driver_errors, key_conflicts
from gpucredits.store.events import Event, events_of, moved_decision, moved_event
from gpucredits.store.gates_save import add_gate, add_gated_org, add_meters, is_metered
from gpucredits.store.guard import Guard, NodeOfJob, Verdict, guarded_statement, verdict_of
from gpucredits.store.page import Page, Pages, new_version, note, settings_of
from gpucredits.store.statement import Part, parameters, statement

# Looked up once: these are compared for every heartbeat.
SETTLE = EntryType.SETTLE
ACTIVE = ReservationState.ACTIVE
CONTINUE = Decision.CONTINUE
NUMBER_OF_DECISION = {decision: number for number, decision in enumerate(DECISIONS)}
NUMBER_OF_WHY = {why: number for number, why in enumerate(WHYS)}

Answer = tuple[int, str, bytes, bytes, int]  # org, key, hash of the request, outcome, time
DecisionMade = tuple[int, int, str, str, str, int, str, str]
ActRow = tuple[int, int, str, str, str, str | None, str | None, str]  # as audit_log's columns


@dataclass(slots=True)
class Minutes:
    """What is written beside the books: answers to keys, refusals and drains, who did what."""

    answers: list[Answer] = field(default_factory=list)
    decisions: list[DecisionMade] = field(default_factory=list)
    acts: list[ActRow] = field(default_factory=list)

    @property
    def keys(self) -> set[tuple[int, str]]:
        """The keys that are answered; one that was answered before cannot be written again."""
        return {(answer[0], answer[1]) for answer in self.answers}


async def save(connection: Connection, pages: Pages, minutes: Minutes) -> None:
    """Write down everything that changed, with what was answered and decided, in one round trip.

    The orgs are locked by the transaction that this is a part of.
    """
    ordered = changes_of(pages, minutes)
    if ordered:
        with key_conflicts():
            await connection.fetchval(statement(tuple(ordered)), *values_of(ordered))


async def save_if(connection: Connection, guard: Guard, pages: Pages, minutes: Minutes) -> Verdict:
    """Write everything down and commit it, all in one statement, if what is guarded holds.

    Otherwise nothing is written, also when a key has been answered elsewhere in the meantime.
    """
    ordered = changes_of(pages, minutes)
    text = guarded_statement(tuple(ordered))
    with driver_errors():
        try:
            row = await connection.fetchrow(text, *guard.parameters, *values_of(ordered))
        except asyncpg.UniqueViolationError:
            return Verdict(holds=False)
    return verdict_of(guard, row)


def new_on_nodes(pages: Pages) -> tuple[NodeOfJob, ...]:
    """Where the leases run that are new on pages."""
    return tuple(
        (org_id, row.account_id, row.job_id, row.node)
        for org_id, page in pages.items()
        for row in page.book.changed.values()
        if type(row) is Reservation and row.reservation_id >= page.first_new_id
    )


def changes_of(pages: Pages, minutes: Minutes) -> dict[Part, list[Sequence[Any]]]:
    """The rows to write, by the part of the statement that writes them."""
    changes = Changes()
    for page in pages.values():
        collect(changes, page)
    if changes.renewals:
        changes.rows[RENEWALS] = changes.renewals
    if changes.settlements:
        changes.rows[SETTLEMENTS] = changes.settlements
    if minutes.answers:
        changes.rows[ANSWERS] = list(minutes.answers)
    for decision in minutes.decisions:
        changes.add(DECISIONS_MADE, decision)
    if minutes.acts:
        changes.rows[ACTS] = list(minutes.acts)
    return changes.in_order()


def values_of(changes: dict[Part, list[Sequence[Any]]]) -> list[object]:
    """The parameters of the statement that writes changes."""
    return [value for kind, rows in changes.items() for value in parameters(kind, rows)]


def collect(changes: Changes, page: Page) -> None:
    """What changed in the book of one org; its clock moves on only if something did."""
    book, now = page.book, page.now
    org_id = book.org.org_id
    for late in book.late_use:
        changes.add(LATE_USE, (org_id, late.reservation_id, late.seq, late.used_ms, now))
    if not book.changed:
        return
    events: list[Event] = []
    for row in book.changed.values():
        if type(row) is Reservation and is_mere_renewal(page, row):
            add_renewal(changes, org_id, row)
            continue
        if type(row) is Grant and page.grant_states.get(row.grant_id) is row.state:
            add_grant(changes, page, row)
            continue
        if is_metered(page, row):
            continue
        add_row(changes, page, row)
        events_of(page, row, events)
        note(page, row)
    if page.metered:
        add_meters(changes, page)
    add_entries(changes, org_id, now, book.entries)
    add_news(changes, page, events)
    book.org.clock = now
    page.next_version = new_version(book.org.version)
    if not add_gated_org(changes, page):
        org = book.org
        changes.add(ORGS, (org_id, org.next_id, org.next_entry_id, now, page.next_version))


def add_news(changes: Changes, page: Page, events: list[Event]) -> None:
    """What is announced of a batch, and leases that changed payers as decisions too."""
    org_id = page.book.org.org_id
    for move in page.book.moves:
        events.append(moved_event(move))
        changes.add(DECISIONS_MADE, moved_decision(org_id, page.now, move))
    for event in events:
        changes.add(OUTBOX, (org_id, page.now, *event))


def add_row(changes: Changes, page: Page, row: Row) -> None:
    """A row that was changed by more than a mere renewal."""
    match row:
        case Reservation():
            add_lease(changes, page, row)
        case Account():
            add_account(changes, page, row)
        case Grant():
            add_grant(changes, page, row)
        case TopUpRow():
            add_topup(changes, page, row)
        case _:
            add_gate(changes, page, row)


def add_entries(changes: Changes, org_id: int, now: int, entries: list[Entry]) -> None:
    """Entries of an org: those of heartbeats, and all others."""
    for entry in entries:
        entry_id, at, kind, account_id, amount, reserve, grant_id, other_id, _, lease_id, seq = (
            entry
        )
        if kind is SETTLE and at == now and not other_id:
            row = (org_id, now, entry_id, account_id, amount, reserve, grant_id, lease_id, seq)
            changes.settlements.append(row)
        else:
            changes.add(ENTRIES, (org_id, now, *entry))


def add_renewal(changes: Changes, org_id: int, row: Reservation) -> None:
    """A lease that runs on: only what a renewal changes."""
    paid = row.paid
    number, held, settled = row.reservation_id, row.held, row.settled
    known = (org_id, number, held, settled, row.used_ms, row.seq, row.expires_at)
    if len(paid) == 1 and paid[0][1] == settled:
        changes.renewals.append((*known, paid[0][0]))
    else:
        changes.add(SHARED_RENEWALS, (*known, to_literal(paid)))


def add_lease(changes: Changes, page: Page, row: Reservation) -> None:
    """A lease: what may change of it, and the rest if it is new."""
    hot = (
        page.book.org.org_id,
        row.reservation_id,
        row.state,
        NUMBER_OF_DECISION[row.decision],
        row.held,
        row.settled,
        row.adjusted,
        row.refunded,
        row.used_ms,
        row.seq,
        row.expires_at,
        row.ended_at,
        to_literal(row.paid),
        row.beat_at,
        row.overdrawn,
        row.leaving,
        is_plain(row),
        row.stopping_at,
        NUMBER_OF_WHY[row.why],
        row.promised,
        row.cap_part,
        row.cap_seen,
        row.clears_at,
        row.stopping_for,
        row.payer_id,
        row.window_ms,
        row.authorised,
        to_literal(row.kept),
        to_literal(row.payers),
    )
    if row.reservation_id < page.first_new_id:
        changes.add(LEASES, hot)
        return
    cold = (
        row.account,
        row.account_id,
        row.job_id,
        row.gpu_type,
        row.gpu_count,
        row.region,
        row.node,
        row.price,
        row.price_id,
        row.admitted_at,
        row.escrow_windows,
        row.max_amount,
        page.first_new_entry_id,
        to_json(row.metadata),
        row.exhaustion,
        row.grace_ms,
        row.overdraft,
    )
    changes.add(NEW_LEASES, hot + cold)


def is_mere_renewal(page: Page, row: Reservation) -> bool:
    """Whether a lease runs on as it did, which is what nearly every heartbeat makes of it."""
    return (
        row.state is ACTIVE
        and row.decision is CONTINUE
        and not row.adjusted
        and not row.refunded
        and not row.payers
        and row.cap_part < 0
        and not row.kept
        and row.reservation_id < page.first_new_id
        and row.reservation_id not in page.lease_states
        and row.reservation_id not in page.book.reshaped
    )


def add_account(changes: Changes, page: Page, row: Account) -> None:
    """An account: its balance, its settings if they changed, the rest if it is new."""
    balance = (
        page.book.org.org_id,
        row.account_id,
        row.remaining,
        row.reserved,
        row.spent,
        row.debt,
        row.overrun,
        row.promised,
        row.version,
        row.due_at,
    )
    settings = settings_of(row)
    if page.settings.get(row.account_id) == settings:
        changes.add(BALANCES, balance)
        return
    page.outdated = True
    whole = (
        *balance,
        row.model,
        row.credit_limit,
        row.status,
        row.allocated,
        to_json(row.metadata),
        row.delinquent,
        row.overdraft_limit,
        row.funding,
        row.window_max_ms,
        row.suspended_by,
    )
    if row.account_id < page.first_new_id:
        changes.add(SETTINGS, whole)
        return
    parent = page.book.paths.get(row.path.rpartition("/")[0])
    parent_id = 0 if parent is None else parent.account_id
    changes.add(NEW_ACCOUNTS, (*whole, parent_id, row.path, row.created_at))


def add_grant(changes: Changes, page: Page, row: Grant) -> None:
    """A grant: what is left of it, and the rest if it is new."""
    is_open = row.remaining > 0 and row.state is not GrantState.ENDED
    hot = (
        page.book.org.org_id,
        row.grant_id,
        row.amount,
        row.remaining,
        row.state,
        is_open,
        row.claims,
    )
    if row.grant_id < page.first_new_id:
        changes.add(GRANTS, hot)
        return
    cold = (
        row.account_id,
        row.starts_at,
        row.expires_at,
        row.priority,
        row.source,
        row.origin_id,
        row.created_at,
        to_json(row.metadata),
        row.budget_id,
    )
    changes.add(NEW_GRANTS, hot + cold)


def add_topup(changes: Changes, page: Page, row: TopUpRow) -> None:
    """A top-up: where it stands, and the rest if it is new."""
    hot = (page.book.org.org_id, row.topup_id, row.status, row.grant_id)
    if row.topup_id < page.first_new_id:
        changes.add(TOPUPS, hot)
        return
    cold = (
        row.account_id,
        row.amount,
        row.payment_reference,
        row.expires_at,
        row.priority,
        row.created_at,
        to_json(row.metadata),
    )
    changes.add(NEW_TOPUPS, hot + cold)


def to_literal(rows: Sequence[tuple[int, ...]]) -> str:
    """Rows of numbers as one flat array literal: grant, amount, grant, amount and so on."""
    return f"{{{','.join([str(number) for row in rows for number in row])}}}"


def to_json(metadata: dict[str, str]) -> str:
    """Metadata as stored."""
    return msgspec.json.encode(metadata).decode() if metadata else "{}"
