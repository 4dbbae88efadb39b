"""Writing books down: only the rows that changed, all of them in one statement.

Owns: what a row of the core looks like when it is stored.
Must not: decide anything, commit, or write what did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gpucredits.core.account import Account
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.reasons import invariant
from gpucredits.core.reservation import Reservation
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book import DECISIONS, Page, Pages, settings_of
from gpucredits.store.connection import Connection
from gpucredits.store.events import Event, events_of
from gpucredits.store.statement import Part, parameters, part, statement

NUMBER_OF_DECISION = {decision: number for number, decision in enumerate(DECISIONS)}

ORGS = part(
    "changed_orgs",
    "integer bigint bigint bigint",
    """UPDATE orgs t SET next_id = x.next_id, next_entry_id = x.next_entry_id, clock = x.clock,
        version = t.version + 1
    FROM ROWS AS x(org_id, next_id, next_entry_id, clock) WHERE t.org_id = x.org_id""",
)
BALANCES = part(
    "changed_balances",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint bigint",
    """UPDATE accounts t SET remaining = x.remaining, reserved = x.reserved, spent = x.spent,
        debt = x.debt, overrun = x.overrun, version = x.version, due_at = x.due_at,
        funded_until = x.funded_until
    FROM ROWS AS x(org_id, account_id, remaining, reserved, spent, debt, overrun, version, due_at,
        funded_until)
    WHERE t.org_id = x.org_id AND t.account_id = x.account_id""",
)
SETTINGS = part(
    "changed_settings",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint bigint"
    " code bigint code boolean text",
    """UPDATE accounts t SET remaining = x.remaining, reserved = x.reserved, spent = x.spent,
        debt = x.debt, overrun = x.overrun, version = x.version, due_at = x.due_at,
        funded_until = x.funded_until, model = x.model, credit_limit = x.credit_limit,
        credit_limit_max = greatest(t.credit_limit_max, x.model * x.credit_limit),
        status = x.status, has_budget = x.has_budget, metadata = x.metadata::jsonb
    FROM ROWS AS x(org_id, account_id, remaining, reserved, spent, debt, overrun, version, due_at,
        funded_until, model, credit_limit, status, has_budget, metadata)
    WHERE t.org_id = x.org_id AND t.account_id = x.account_id""",
)
NEW_ACCOUNTS = part(
    "new_accounts",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint bigint"
    " code bigint code boolean text bigint text bigint",
    """INSERT INTO accounts (org_id, account_id, remaining, reserved, spent, debt, overrun, version,
        due_at, funded_until, model, credit_limit, credit_limit_max, status, has_budget, metadata,
        parent_id, path, created_at)
    SELECT x.org_id, x.account_id, x.remaining, x.reserved, x.spent, x.debt, x.overrun, x.version,
        x.due_at, x.funded_until, x.model, x.credit_limit, x.model * x.credit_limit, x.status,
        x.has_budget, x.metadata::jsonb, x.parent_id, x.path, x.created_at
    FROM ROWS AS x(org_id, account_id, remaining, reserved, spent, debt, overrun, version, due_at,
        funded_until, model, credit_limit, status, has_budget, metadata, parent_id, path,
        created_at)""",
)
GRANTS = part(
    "changed_grants",
    "integer bigint bigint bigint code boolean",
    """UPDATE grants t SET amount = x.amount, remaining = x.remaining, state = x.state,
        is_open = x.is_open
    FROM ROWS AS x(org_id, grant_id, amount, remaining, state, is_open)
    WHERE t.org_id = x.org_id AND t.grant_id = x.grant_id""",
)
NEW_GRANTS = part(
    "new_grants",
    "integer bigint bigint bigint code boolean"
    " bigint bigint bigint integer code bigint bigint text",
    """INSERT INTO grants (org_id, grant_id, amount, remaining, state, is_open, account_id,
        starts_at, expires_at, priority, source, origin_id, created_at, metadata)
    SELECT x.org_id, x.grant_id, x.amount, x.remaining, x.state, x.is_open, x.account_id,
        x.starts_at, x.expires_at, x.priority, x.source, x.origin_id, x.created_at,
        x.metadata::jsonb
    FROM ROWS AS x(org_id, grant_id, amount, remaining, state, is_open, account_id, starts_at,
        expires_at, priority, source, origin_id, created_at, metadata)""",
)
LEASES = part(
    "changed_leases",
    "integer bigint code code bigint bigint bigint bigint bigint bigint bigint bigint text",
    """UPDATE reservations t SET state = x.state, decision = x.decision, held = x.held,
        settled = x.settled, adjusted = x.adjusted, refunded = x.refunded, used_ms = x.used_ms,
        seq = x.seq, expires_at = x.expires_at, ended_at = x.ended_at, paid = x.paid::bigint[]
    FROM ROWS AS x(org_id, reservation_id, state, decision, held, settled, adjusted, refunded,
        used_ms, seq, expires_at, ended_at, paid)
    WHERE t.org_id = x.org_id AND t.reservation_id = x.reservation_id""",
)
NEW_LEASES = part(
    "new_leases",
    "integer bigint code code bigint bigint bigint bigint bigint bigint bigint bigint text"
    " text bigint bigint text text bigint text text bigint bigint bigint bigint bigint bigint"
    " bigint text",
    """INSERT INTO reservations (org_id, reservation_id, state, decision, held, settled, adjusted,
        refunded, used_ms, seq, expires_at, ended_at, paid, account, account_id, payer_id, job_id,
        gpu_type, gpu_count, region, node, price, price_id, window_ms, admitted_at,
        escrow_windows, max_amount, first_entry_id, metadata)
    SELECT x.org_id, x.reservation_id, x.state, x.decision, x.held, x.settled, x.adjusted,
        x.refunded, x.used_ms, x.seq, x.expires_at, x.ended_at, x.paid::bigint[], x.account,
        x.account_id, x.payer_id, x.job_id, x.gpu_type, x.gpu_count, x.region, x.node, x.price,
        x.price_id, x.window_ms, x.admitted_at, x.escrow_windows, x.max_amount,
        x.first_entry_id, x.metadata::jsonb
    FROM ROWS AS x(org_id, reservation_id, state, decision, held, settled, adjusted, refunded,
        used_ms, seq, expires_at, ended_at, paid, account, account_id, payer_id, job_id, gpu_type,
        gpu_count, region, node, price, price_id, window_ms, admitted_at, escrow_windows,
        max_amount, first_entry_id, metadata)""",
)
TOPUPS = part(
    "changed_topups",
    "integer bigint code bigint",
    """UPDATE topups t SET status = x.status, grant_id = x.grant_id
    FROM ROWS AS x(org_id, topup_id, status, grant_id)
    WHERE t.org_id = x.org_id AND t.topup_id = x.topup_id""",
)
NEW_TOPUPS = part(
    "new_topups",
    "integer bigint code bigint bigint bigint text bigint integer bigint text",
    """INSERT INTO topups (org_id, topup_id, status, grant_id, account_id, amount,
        payment_reference, expires_at, priority, created_at, metadata)
    SELECT x.org_id, x.topup_id, x.status, x.grant_id, x.account_id, x.amount,
        x.payment_reference, x.expires_at, x.priority, x.created_at, x.metadata::jsonb
    FROM ROWS AS x(org_id, topup_id, status, grant_id, account_id, amount, payment_reference,
        expires_at, priority, created_at, metadata)""",
)
ENTRIES = part(
    "new_entries",
    "integer bigint bigint bigint code bigint bigint bigint bigint bigint bigint bigint bigint",
    """INSERT INTO entries (org_id, recorded_at, entry_id, effective_at, type, account_id, amount,
        reserve, grant_id, other_id, other_grant_id, reservation_id, seq)
    SELECT * FROM ROWS""",
)
LATE_USE = part(
    "new_late_use",
    "integer bigint bigint bigint bigint",
    """INSERT INTO usage_events (org_id, job_id, node, seq, reservation_id, is_late, used_ms,
        recorded_at)
    SELECT x.org_id, r.job_id, r.node, x.seq, x.reservation_id, true, x.used_ms, x.recorded_at
    FROM ROWS AS x(org_id, reservation_id, seq, used_ms, recorded_at)
    JOIN reservations r ON r.org_id = x.org_id AND r.reservation_id = x.reservation_id
    ON CONFLICT DO NOTHING""",
)
ANSWERS = part(
    "new_answers",
    "integer text bytea bytea bigint",
    """INSERT INTO idempotency (org_id, key, request_hash, outcome, created_at)
    SELECT * FROM ROWS""",
)
DECISIONS_MADE = part(
    "new_decisions",
    "integer bigint text text text bigint text text",
    """INSERT INTO decisions (org_id, decided_at, command, decision, reason, reservation_id, actor,
        detail)
    SELECT x.org_id, x.decided_at, x.command, x.decision, x.reason, x.reservation_id, x.actor,
        x.detail::jsonb
    FROM ROWS AS x(org_id, decided_at, command, decision, reason, reservation_id, actor, detail)""",
)
ACTS = part(
    "new_acts",
    "integer bigint text text text text text text",
    """INSERT INTO audit_log (org_id, recorded_at, actor, action, resource, old, new, request_id)
    SELECT x.org_id, x.recorded_at, x.actor, x.action, x.resource, x.old::jsonb, x.new::jsonb,
        x.request_id
    FROM ROWS AS x(org_id, recorded_at, actor, action, resource, old, new, request_id)""",
)
OUTBOX = part(
    "new_events",
    "integer bigint text bigint text",
    """INSERT INTO outbox (org_id, recorded_at, type, subject_id, payload)
    SELECT x.org_id, x.recorded_at, x.type, x.subject_id, x.payload::jsonb
    FROM ROWS AS x(org_id, recorded_at, type, subject_id, payload)""",
)

Answer = tuple[int, str, bytes, bytes, int]  # org, key, hash of the request, outcome, time
DecisionMade = tuple[int, int, str, str, str, int, str, str]
Act = tuple[int, int, str, str, str, str | None, str | None, str]


@dataclass(slots=True)
class Changes:
    """Rows to write, one list for each part of the statement, in the order of their columns."""

    rows: dict[Part, list[Sequence[Any]]] = field(default_factory=dict)

    def add(self, kind: Part, row: Sequence[Any]) -> None:
        """One more row of a kind."""
        rows = self.rows.get(kind)
        if rows is None:
            self.rows[kind] = [row]
        else:
            rows.append(row)


async def save(
    connection: Connection,
    pages: Pages,
    answers: Sequence[Answer] = (),
    decisions: Sequence[DecisionMade] = (),
    acts: Sequence[Act] = (),
) -> None:
    """Write down everything that changed, with what was answered and decided, in one round trip."""
    changes = Changes()
    for page in pages.values():
        collect(changes, page)
    if answers:
        changes.rows[ANSWERS] = list(answers)
    if decisions:
        changes.rows[DECISIONS_MADE] = list(decisions)
    if acts:
        changes.rows[ACTS] = list(acts)
    if not changes.rows:
        return
    text = statement(tuple(changes.rows))
    values = [value for kind, rows in changes.rows.items() for value in parameters(kind, rows)]
    await connection.fetchval(text, *values)


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
                invariant(holds=False, claim="the store knows how to keep what a rule changed")
        events_of(page, row, events)
    if book.entries:
        stored = changes.rows.setdefault(ENTRIES, [])
        stored.extend([(org_id, now, *entry) for entry in book.entries])
    for event in events:
        changes.add(OUTBOX, (org_id, now, *event))
    book.org.clock = now
    changes.add(ORGS, (org_id, book.org.next_id, book.org.next_entry_id, now))


def add_lease(changes: Changes, page: Page, row: Reservation) -> None:
    """A lease: what a heartbeat changes, and the rest if it is new."""
    paid = ",".join([f"{grant},{amount}" for grant, amount in row.paid])
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
        f"{{{paid}}}",
    )
    if row.reservation_id < page.first_new_id:
        changes.add(LEASES, hot)
        return
    cold = (
        row.account,
        row.account_id,
        row.payer_id,
        row.job_id,
        row.gpu_type,
        row.gpu_count,
        row.region,
        row.node,
        row.price,
        row.price_id,
        row.window_ms,
        row.admitted_at,
        row.escrow_windows,
        row.max_amount,
        page.first_new_entry_id,
        to_json(row.metadata),
    )
    changes.add(NEW_LEASES, hot + cold)


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
        row.version,
        row.due_at,
        row.funded_until,
    )
    settings = settings_of(row)
    if page.settings.get(row.account_id) == settings:
        changes.add(BALANCES, balance)
        return
    whole = (
        *balance,
        row.model,
        row.credit_limit,
        row.status,
        row.has_budget,
        to_json(row.metadata),
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
    hot = (page.book.org.org_id, row.grant_id, row.amount, row.remaining, row.state, is_open)
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


def to_json(metadata: dict[str, str]) -> str:
    """Metadata as stored."""
    return msgspec.json.encode(metadata).decode() if metadata else "{}"
