"""Saving books: only the rows that changed, all of them in one statement.

Owns: which of a row's writes a change needs, and the record of a batch beside its books.
Must not: decide anything, commit, or write what did not change. How many leases a job has is not
written: it is counted from the reservations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from gpucredits.core.account import Account
from gpucredits.core.book import Row
from gpucredits.core.boost import Boost
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally
from gpucredits.core.reasons import invariant
from gpucredits.core.reservation import Reservation
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book import rows
from gpucredits.store.book.cached_book import CachedBook, CachedBooks, new_version, note
from gpucredits.store.book.changes import Changes
from gpucredits.store.book.codecs import literal
from gpucredits.store.book.events import Event, events_of, moved_decision, moved_event
from gpucredits.store.book.guard import Guard, GuardResult, NodeOfJob, guarded_statement, verdict_of
from gpucredits.store.book.sql_batch import Part, numbers, parameters, statement
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import driver_errors, key_conflicts

# Looked up once: these are compared for every heartbeat.
SETTLE = EntryType.SETTLE
PER_WINDOW = Dimension.CREDITS_PER_WINDOW

Answer = tuple[int, str, bytes, bytes, int]  # org, key, hash of the request, outcome, time
DecisionMade = tuple[int, int, str, str, str, int, str, str]
ActRow = tuple[int, int, str, str, str, str | None, str | None, str]  # as audit_log's columns


@dataclass(slots=True)
class BatchRecord:
    """What is written beside the books: answers to keys, refusals and drains, who did what."""

    answers: list[Answer] = field(default_factory=list)
    decisions: list[DecisionMade] = field(default_factory=list)
    acts: list[ActRow] = field(default_factory=list)

    @property
    def keys(self) -> set[tuple[int, str]]:
        """The keys that are answered; one that was answered before cannot be written again."""
        return {(answer[0], answer[1]) for answer in self.answers}


async def save(connection: Connection, books: CachedBooks, record: BatchRecord) -> None:
    """Write everything that changed, with what was answered and decided, in one round trip.

    The transaction that this is a part of has locked the orgs.
    """
    ordered = changes_of(books, record)
    if ordered:
        with key_conflicts():
            await connection.fetchval(statement(tuple(ordered)), *values_of(ordered))


async def save_if(
    connection: Connection, guard: Guard, books: CachedBooks, record: BatchRecord
) -> GuardResult:
    """Write everything and commit it, all in one statement, if the guard's condition holds.

    Otherwise nothing is written, also when a key has been answered elsewhere in the meantime.
    """
    ordered = changes_of(books, record)
    text = guarded_statement(tuple(ordered))
    with driver_errors():
        try:
            row = await connection.fetchrow(text, *guard.parameters, *values_of(ordered))
        except asyncpg.UniqueViolationError:
            return GuardResult(holds=False)
    return verdict_of(guard, row)


def new_on_nodes(books: CachedBooks) -> tuple[NodeOfJob, ...]:
    """Where the leases run that are new."""
    return tuple(
        (org_id, row.account_id, row.job_id, row.node)
        for org_id, cached in books.items()
        for row in cached.book.changed.values()
        if type(row) is Reservation and row.reservation_id >= cached.first_new_id
    )


def changes_of(books: CachedBooks, record: BatchRecord) -> dict[Part, list[Sequence[Any]]]:
    """The rows to write, by the part of the statement that writes them."""
    changes = Changes()
    for cached in books.values():
        collect(changes, cached)
    if changes.renewals:
        changes.rows["renewed_leases"] = changes.renewals
    if changes.settlements:
        changes.rows["new_settlements"] = changes.settlements
    if record.answers:
        changes.rows["new_answers"] = list(record.answers)
    for decision in record.decisions:
        changes.add("new_decisions", decision)
    if record.acts:
        changes.rows["new_acts"] = list(record.acts)
    return changes.in_order()


def values_of(changes: dict[Part, list[Sequence[Any]]]) -> list[object]:
    """The parameters of the statement that writes changes."""
    return [value for part, every in changes.items() for value in parameters(part, every)]


def collect(changes: Changes, cached: CachedBook) -> None:
    """What changed in the book of one org; its clock moves on only if something did."""
    book, now = cached.book, cached.now
    org_id = book.org.org_id
    for late in book.late_use:
        values = (org_id, late.reservation_id, late.seq, late.used_ms, now)
        changes.add("new_late_use", values)
    if not book.changed:
        return
    events: list[Event] = []
    for row in book.changed.values():
        if type(row) is Reservation and is_mere_renewal(cached, row):
            add_renewal(changes, org_id, row)
            continue
        if type(row) is Grant and cached.grant_states.get(row.grant_id) is row.state:
            add_grant(changes, cached, row)
            continue
        if is_metered(cached, row):
            continue
        add_row(changes, cached, row)
        events_of(cached, row, events)
        note(cached, row)
    if cached.metered:
        add_meters(changes, cached)
    add_entries(changes, org_id, now, book.entries)
    add_news(changes, cached, events)
    book.org.clock = now
    cached.next_version = new_version(book.org.version)
    add_org(changes, cached)


def add_news(changes: Changes, cached: CachedBook, events: list[Event]) -> None:
    """What is announced of a batch, and leases that changed payers as decisions too."""
    org_id = cached.book.org.org_id
    for move in cached.book.moves:
        events.append(moved_event(move))
        changes.add("new_decisions", moved_decision(org_id, cached.now, move))
    for event in events:
        changes.add("new_events", (org_id, cached.now, *event))


def add_org(changes: Changes, cached: CachedBook) -> None:
    """The org's counters, and whether it has limits or budgets where some came or went."""
    org = cached.book.org
    if not (cached.came or cached.ended or cached.has_new_budget):
        changes.add("changed_orgs", rows.changed_orgs_row(org, org.org_id, cached.next_version))
        return
    has_limit = cached.came or (cached.gated and not cached.ended)
    row = rows.changed_gated_orgs_row(
        org,
        org.org_id,
        cached.next_version,
        has_limit,
        cached.has_new_budget,
        literal(cached.ended),
    )
    changes.add("changed_gated_orgs", row)


def add_row(changes: Changes, cached: CachedBook, row: Row) -> None:
    """A row that was changed by more than a mere renewal."""
    org_id = cached.book.org.org_id
    match row:
        case Reservation():
            add_lease(changes, cached, row)
        case Account():
            add_account(changes, cached, row)
        case Grant():
            add_grant(changes, cached, row)
        case TopUpRow():
            if row.topup_id < cached.first_new_id:
                changes.add("changed_topups", rows.changed_topups_row(row, org_id))
            else:
                changes.add("new_topups", rows.new_topups_row(row, org_id))
        case _:
            add_limit(changes, cached, row)


def add_limit(changes: Changes, cached: CachedBook, row: Row) -> None:
    """A limit or a budget, or what one of them has counted or given out."""
    org_id = cached.book.org.org_id
    match row:
        case Counter():
            add_counter(changes, cached, row)
        case TokenBucket():
            add_bucket(changes, cached, row)
        case JobLeases():
            pass
        case Tally():
            changes.add("kept_tallies", rows.kept_tallies_row(row, org_id))
        case Quota():
            add_quota(changes, cached, row)
        case Boost():
            if row.boost_id < cached.first_new_id:
                changes.add("changed_boosts", rows.changed_boosts_row(row, org_id))
            else:
                changes.add("new_boosts", rows.new_boosts_row(row, org_id))
        case Budget():
            cached.has_new_budget = not cached.budgeted
            changes.add("kept_budgets", rows.kept_budgets_row(row, org_id))
        case BudgetPeriod():
            changes.add("kept_periods", rows.kept_periods_row(row, org_id))
        case _:
            invariant(holds=False, claim="the store knows how to keep what a rule changed")


def add_counter(changes: Changes, cached: CachedBook, row: Counter) -> None:
    """What a quota on what runs at once counts."""
    org_id = cached.book.org.org_id
    if row.quota_id < cached.first_new_id:
        changes.add("changed_slots", rows.changed_slots_row(row, org_id))
    else:
        changes.add("new_slots", rows.new_slots_row(row, org_id))


def add_entries(changes: Changes, org_id: int, now: int, entries: list[Entry]) -> None:
    """Entries of an org: those of heartbeats, and all others."""
    for entry in entries:
        if entry[2] is SETTLE and entry[1] == now and not entry[7]:
            changes.settlements.append(rows.new_settlements_row(entry, org_id, now))
        else:
            changes.add("new_entries", rows.new_entries_row(entry, org_id, now))


def add_renewal(changes: Changes, org_id: int, row: Reservation) -> None:
    """A lease that runs on: only what a renewal changes."""
    paid = row.paid
    if len(paid) == 1 and paid[0][1] == row.settled:
        changes.renewals.append(rows.renewed_leases_row(row, org_id, paid[0][0]))
    else:
        changes.add("renewed_shared_leases", rows.renewed_shared_leases_row(row, org_id))


def is_mere_renewal(cached: CachedBook, row: Reservation) -> bool:
    """Whether a lease runs on as it did, which is what nearly every heartbeat makes of it."""
    number = row.reservation_id
    return (
        number < cached.first_new_id
        and number not in cached.lease_states
        and number not in cached.book.reshaped
        and rows.is_steady(row)
    )


def add_lease(changes: Changes, cached: CachedBook, row: Reservation) -> None:
    """A lease: what may change of it, and the rest if it is new."""
    org_id = cached.book.org.org_id
    if row.reservation_id < cached.first_new_id:
        changes.add("changed_leases", rows.changed_leases_row(row, org_id))
    else:
        changes.add("new_leases", rows.new_leases_row(row, org_id, cached.first_new_entry_id))


def add_account(changes: Changes, cached: CachedBook, row: Account) -> None:
    """An account: its balance, its settings if they changed, the rest if it is new."""
    org_id = cached.book.org.org_id
    if cached.settings.get(row.account_id) == rows.account_settings(row):
        changes.add("changed_balances", rows.changed_balances_row(row, org_id))
        return
    cached.outdated = True
    if row.account_id < cached.first_new_id:
        changes.add("changed_settings", rows.changed_settings_row(row, org_id))
        return
    parent = cached.book.paths.get(row.path.rpartition("/")[0])
    parent_id = 0 if parent is None else parent.account_id
    changes.add("new_accounts", rows.new_accounts_row(row, org_id, parent_id))


def add_grant(changes: Changes, cached: CachedBook, row: Grant) -> None:
    """A grant: what is left of it, and the rest if it is new."""
    org_id = cached.book.org.org_id
    if row.grant_id < cached.first_new_id:
        changes.add("changed_grants", rows.changed_grants_row(row, org_id))
    else:
        changes.add("new_grants", rows.new_grants_row(row, org_id))


def add_quota(changes: Changes, cached: CachedBook, row: Quota) -> None:
    """A quota: its limit and its end, and the rest if it is new."""
    org_id = cached.book.org.org_id
    note_limit(cached, row.quota_id, row.ended_at)
    if row.dimension is PER_WINDOW:
        cached.metered.add(row.account_id)
    if row.quota_id < cached.first_new_id:
        changes.add("changed_quotas", rows.changed_quotas_row(row, org_id))
    else:
        changes.add("new_quotas", rows.new_quotas_row(row, org_id))


def add_bucket(changes: Changes, cached: CachedBook, row: TokenBucket) -> None:
    """A bucket whose terms changed, and whose it is if it is new; its level is metered."""
    org_id = cached.book.org.org_id
    cached.metered.add(row.account_id)
    cached.terms[row.bucket_id] = rows.bucket_settings(row)
    note_limit(cached, row.bucket_id, row.ended_at)
    if row.bucket_id < cached.first_new_id:
        changes.add("changed_buckets", rows.changed_buckets_row(row, org_id))
    else:
        changes.add("new_buckets", rows.new_buckets_row(row, org_id))


def note_limit(cached: CachedBook, number: int, ended_at: int) -> None:
    """Note whether a limit that changed is one that came or went."""
    if ended_at:
        cached.ended = (*cached.ended, number)
        cached.outdated = True
    elif number >= cached.first_new_id:
        cached.came = cached.outdated = True


def is_metered(cached: CachedBook, row: Row) -> bool:
    """Whether a beat has moved a window or a bucket and nothing else of it: add_meters keeps it."""
    if type(row) is Counter and row.ends_at:
        cached.metered.add(owner_of(cached, row.quota_id))
        return True
    if type(row) is TokenBucket and cached.terms.get(row.bucket_id) == rows.bucket_settings(row):
        cached.metered.add(row.account_id)
        return True
    return False


def owner_of(cached: CachedBook, quota_id: int) -> int:
    """The account that a quota is of."""
    owner = cached.owners.get(quota_id)
    if owner is None:
        [owner] = (
            account_id
            for account_id, quotas in cached.book.limits.quotas.items()
            for quota in quotas
            if quota.quota_id == quota_id
        )
        cached.owners[quota_id] = owner
    return owner


def add_meters(changes: Changes, cached: CachedBook) -> None:
    """The meters that have moved: of each account its windows, and the tokens of its rate limit."""
    limits, org_id = cached.book.limits, cached.book.org.org_id
    name = "kept_meters" if cached.came or cached.ended else "changed_meters"
    for account_id in cached.metered:
        windows: list[int] = []
        for quota in limits.quotas.get(account_id, ()):
            if quota.dimension is PER_WINDOW and not quota.ended_at:
                each = limits.counters[quota.quota_id]
                windows += (
                    each.quota_id,
                    each.used,
                    each.held,
                    each.base,
                    each.starts_at,
                    each.ends_at,
                )
        bucket = limits.buckets.get(account_id)
        tokens = (0, 0, 0)
        if bucket is not None and not bucket.ended_at:
            tokens = (bucket.level, bucket.level_at, bucket.fraction)
        changes.add(name, (org_id, account_id, *tokens, numbers(windows)))
    cached.metered = set()
