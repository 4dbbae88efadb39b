"""What changed in books, as rows for one statement: the rows themselves, and news.

Owns: the parts of that statement by name, one for each write that tables declares; which of a row's
writes a change needs; which changes are announced as events. Heartbeats are not: the entries are
that stream. What was spent comes from spending_rows.
Must not: decide or read anything, deliver events (exports read the table, see docs/operating.md),
or collect what did not change. How many leases a job has is not written: it is counted from the
reservations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gpucredits.core.account import Account
from gpucredits.core.book import PayerMove, Row, invariant
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.limits import AccountMeter, Boost, TokenBucket
from gpucredits.core.money import format_credits
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book import rows
from gpucredits.store.book.cached_book import CachedBook, new_version, note
from gpucredits.store.book.codecs import list_text
from gpucredits.store.book.spending_rows import SPENDING_PARTS, spending_rows
from gpucredits.store.book.table import Part, part
from gpucredits.store.book.tables import TABLES

Event = tuple[str, int, str]  # type, the number of the row it is about, payload as JSON
Payload = Mapping[str, str | int]
RUNNING = (ReservationState.ACTIVE, Decision.CONTINUE)
ENDINGS = {
    ReservationState.SETTLED: "reservation.settled",
    ReservationState.CANCELED: "reservation.canceled",
    ReservationState.EXPIRED: "reservation.lapsed",
}

# Looked up once: these are compared for every heartbeat.
SETTLE = EntryType.SETTLE
PER_WINDOW = Dimension.CREDITS_PER_WINDOW
FEW_SETTLEMENTS = 64  # twice a batch of commands

LATE_USE = part(
    "new_late_use",
    "bigint bigint bigint bigint bigint",
    """INSERT INTO usage_events (org_id, job_id, node, seq, reservation_id, is_late, used_ms,
        recorded_at)
    SELECT x.org_id, r.job_id, r.node, x.seq, x.reservation_id, true, x.used_ms, x.recorded_at
    FROM ROWS AS x(org_id, reservation_id, seq, used_ms, recorded_at)
    JOIN reservations r ON r.org_id = x.org_id AND r.reservation_id = x.reservation_id
    ON CONFLICT DO NOTHING""",
)
PARTS = {write.name: table.part(write.name) for table in TABLES for write in table.writes}
PARTS |= {each.name: each for each in (LATE_USE, *SPENDING_PARTS)}


@dataclass(slots=True)
class Changes:
    """Rows to write, one list for each part of the statement, in the order of their columns.

    What nearly every heartbeat writes has lists of its own.
    """

    rows: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    renewals: list[Sequence[Any]] = field(default_factory=list)  # two of each heartbeat
    settlements: list[tuple[Entry, int, int]] = field(default_factory=list)  # of which org, when

    def add(self, name: str, row: Sequence[Any]) -> None:
        """One more row for a part."""
        rows = self.rows.get(name)
        if rows is None:
            self.rows[name] = [row]
        else:
            rows.append(row)

    def in_order(self) -> dict[Part, list[Sequence[Any]]]:
        """All rows by part, in one order whatever came first: each order is planned anew."""
        return {PARTS[name]: rows for name, rows in sorted(self.rows.items())}


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
    if book.moved or cached.metered:
        add_meters(changes, cached)
    add_entries(changes, org_id, now, book.entries)
    for name, spent in spending_rows(cached):
        changes.add(name, spent)
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
        list_text(cached.ended),
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
            changes.settlements.append((entry, org_id, now))
        else:
            changes.add("new_entries", rows.new_entries_row(entry, org_id, now))


def add_settlements(changes: Changes) -> None:
    """The settlements of all orgs: a few go with the other entries, where there are any.

    A part of the statement costs as much as several rows in another part.
    """
    if len(changes.settlements) <= FEW_SETTLEMENTS and "new_entries" in changes.rows:
        for entry, org_id, now in changes.settlements:
            changes.add("new_entries", rows.new_entries_row(entry, org_id, now))
    elif changes.settlements:
        changes.rows["new_settlements"] = [
            rows.new_settlements_row(*each) for each in changes.settlements
        ]


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
    """The meters that have moved: of each account its windows, and the tokens of its rate limit.

    Where limits came or went, what a lane remembers of its accounts is of before.
    """
    book, metered = cached.book, cached.metered
    org_id, limits = book.org.org_id, book.limits
    if cached.came or cached.ended:
        for lane in book.moved:
            metered.update([meter.account_id for meter in lane.meters])
        for account_id in metered:
            changes.add("kept_meters", meter_row(org_id, limits.meter(account_id)))
    else:
        added: set[int] = set()
        for lane in book.moved:
            for meter in lane.meters:
                if meter.account_id not in added:
                    added.add(meter.account_id)
                    changes.add("changed_meters", meter_row(org_id, meter))
        for account_id in metered - added:
            changes.add("changed_meters", meter_row(org_id, limits.meter(account_id)))
    if metered:
        cached.metered = set()


def meter_row(org_id: int, meter: AccountMeter) -> tuple[int, int, int, int, int, str]:
    """The row of a meter: an account without a rate limit has no tokens."""
    windows = ",".join(
        [
            f"{each.quota_id},{each.used},{each.held},{each.base},{each.starts_at},{each.ends_at}"
            for each in meter.windows
        ]
    )
    bucket = meter.bucket
    if bucket is None:
        return org_id, meter.account_id, 0, 0, 0, windows
    return org_id, meter.account_id, bucket.level, bucket.level_at, bucket.fraction, windows


def events_of(cached: CachedBook, row: Row, events: list[Event]) -> None:
    """Add what is news about a changed row."""
    match row:
        case Reservation():
            number = row.reservation_id
            if number >= cached.first_new_id or number in cached.lease_states or is_news(row):
                lease_events(cached, row, events)
        case Grant():
            grant_events(cached, row, events)
        case TopUpRow():
            if cached.topup_statuses.get(row.topup_id) is not row.status:
                payload: Payload = {"amount": format_credits(row.amount), "grant": row.grant_id}
                events.append(event(f"topup.{row.status.name.lower()}", row.topup_id, payload))
        case Account():
            account_events(cached, row, events)
        case BudgetPeriod():
            known = (row.budget_id, row.starts_at, row.warned_percent)
            if row.warned_percent and known not in cached.warned:
                warning: Payload = {
                    "percent": row.warned_percent,
                    "allowance": format_credits(row.allowance),
                    "grant": row.grant_id,
                }
                events.append(event("budget.warned", row.budget_id, warning))
        case _:
            pass  # what an operator set is in the audit log


def is_news(row: Reservation) -> bool:
    """Whether a lease that simply ran until now no longer does."""
    return bool(row.state) or row.decision is not Decision.CONTINUE


def lease_events(cached: CachedBook, row: Reservation, events: list[Event]) -> None:
    """A lease was given, began to drain, goes on after all, ended, or was charged late."""
    number = row.reservation_id
    payload: Payload = {"account": row.account, "settled": format_credits(row.settled)}
    if number >= cached.first_new_id:
        opened = {**payload, "job_id": row.job_id, "held": format_credits(row.held)}
        events.append(event("reservation.opened", number, opened))
    state, decision = cached.lease_states.get(number, RUNNING)
    if row.state is not state and row.state in ENDINGS:
        events.append(event(ENDINGS[row.state], number, payload))
    elif any(late.reservation_id == number for late in cached.book.late_use):
        events.append(event("reservation.charged_late", number, payload))
    elif row.decision is Decision.DRAIN and decision is not Decision.DRAIN:
        events.append(event("reservation.draining", number, payload))
    elif row.decision is Decision.CONTINUE and decision is Decision.DRAIN:
        events.append(event("reservation.resumed", number, payload))


def account_events(cached: CachedBook, row: Account, events: list[Event]) -> None:
    """An account was opened, spends other credits, was paused for what it owes, or has paid."""
    told: Payload = {"path": row.path}
    if row.account_id >= cached.first_new_id:
        events.append(event("account.opened", row.account_id, told))
    elif cached.had_other_funding(row):
        funding = {**told, "funding": row.funding.name.lower()}
        events.append(event("account.funding_changed", row.account_id, funding))
    if row.delinquent is not cached.was_delinquent(row.account_id):
        kind = "account.delinquent" if row.delinquent else "account.resumed"
        events.append(event(kind, row.account_id, told))


def moved_event(move: PayerMove) -> Event:
    """Another account pays for a lease from here on."""
    return event("reservation.payer_changed", move.reservation_id, moved_payload(move))


def moved_decision(
    org_id: int, now: int, move: PayerMove
) -> tuple[int, int, str, str, str, int, str, str]:
    """The record of the decision that another account pays, as its columns are stored."""
    detail = msgspec.json.encode(moved_payload(move)).decode()
    short = Reason.INSUFFICIENT_CREDITS.value
    return (org_id, now, "Beat", "change_payer", short, move.reservation_id, "", detail)


def moved_payload(move: PayerMove) -> Payload:
    """Who paid for a lease, who does now, and what that account holds for it."""
    return {"from": move.source, "to": move.target, "held": format_credits(move.held)}


def grant_events(cached: CachedBook, row: Grant, events: list[Event]) -> None:
    """A grant was issued or has expired."""
    before = cached.grant_states.get(row.grant_id)
    if row.state is before:
        return
    payload: Payload = {"account_id": row.account_id, "amount": format_credits(row.amount)}
    if before is None:
        events.append(event("grant.issued", row.grant_id, payload))
    if row.state in (GrantState.ENDED, GrantState.HELD_OVER):
        remaining = {**payload, "held_over": format_credits(row.remaining)}
        events.append(event("grant.expired", row.grant_id, remaining))


def event(kind: str, number: int, payload: Payload) -> Event:
    """An event with its payload as JSON."""
    return kind, number, msgspec.json.encode(payload).decode()
