"""Rows as the core has them, from and to rows as the database has them.

Made by tools/make_rows.py from the declarations in tables: change those, and run ``make rows``.
It is written out because it runs for every heartbeat, and is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, Final

from gpucredits.core.account import Account
from gpucredits.core.book import Org
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.limits import Boost, TokenBucket, Tokens
from gpucredits.core.price import Price
from gpucredits.core.quota import Counter, Quota, Tally
from gpucredits.core.reservation import Decision, Exhaustion, Reservation, ReservationState, Why
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book.codecs import (
    AUTHORITIES,
    DECISIONS,
    DIMENSIONS,
    EXHAUSTIONS,
    FUNDINGS,
    GRANT_STATES,
    LEASE_STATES,
    MODELS,
    NO_METADATA,
    NUMBER_OF_DECISION,
    NUMBER_OF_WHY,
    PLACES,
    ROLLOVERS,
    SOURCES,
    STATUSES,
    TOKENS,
    TOPUP_STATUSES,
    WHYS,
    StoredRow,
    calendar_number,
    calendar_of,
    end_of,
    flat_text,
    from_json,
    list_text,
    pairs,
    place_of,
    to_json,
    triples,
)

# Looked up once: these are compared for every heartbeat.
RESERVATIONSTATE_ACTIVE: Final = ReservationState.ACTIVE
DECISION_CONTINUE: Final = Decision.CONTINUE
WHY_NONE: Final = Why.NONE
EXHAUSTION_DRAIN: Final = Exhaustion.DRAIN

# fmt: off


def changed_orgs_row(row: Org, org_id: int, version: int) -> tuple[object, ...]:
    """What changed_orgs sends for a row."""
    return (org_id, row.next_id, row.next_entry_id, row.clock, version)


def changed_gated_orgs_row(
    row: Org, org_id: int, version: int, has_new_limit: bool, has_new_budget: bool, ended: str,
) -> tuple[object, ...]:
    """What changed_gated_orgs sends for a row."""
    return (
        org_id, row.next_id, row.next_entry_id, row.clock, version, has_new_limit, has_new_budget,
        ended,
    )


def account_of(record: StoredRow) -> Account:
    """The Account of a row of open_book."""
    return Account(
        record[2], record[22], MODELS[record[11]], record[12], STATUSES[record[13]], record[3],
        record[4], record[5], record[6], record[7], record[9], record[10], record[14] == 1,
        record[17], from_json(record[21]), record[15] == 1, record[16], record[8],
        FUNDINGS[record[27][0]], record[27][1], AUTHORITIES[record[27][2]],
    )


def account_beside_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of account in a row of open_book."""
    return (record[18] == 1, record[19] == 1)


def stored_account(record: Mapping[str, Any]) -> Account:
    """The Account of a whole row of accounts."""
    return Account(
        record["account_id"], record["path"], MODELS[record["model"]], record["credit_limit"],
        STATUSES[record["status"]], record["remaining"], record["reserved"], record["spent"],
        record["debt"], record["overrun"], record["version"], record["due_at"],
        record["allocated"] == 1, record["created_at"], from_json(record["metadata"]),
        record["delinquent"] == 1, record["overdraft_limit"], record["promised"],
        FUNDINGS[record["funding"]], record["window_max_ms"], AUTHORITIES[record["suspended_by"]],
    )


def changed_balances_row(row: Account, org_id: int) -> tuple[object, ...]:
    """What changed_balances sends for a row."""
    return (
        org_id, row.account_id, row.remaining, row.reserved, row.spent, row.debt, row.overrun,
        row.promised, row.version, row.due_at,
    )


def changed_settings_row(row: Account, org_id: int) -> tuple[object, ...]:
    """What changed_settings sends for a row."""
    return (
        org_id, row.account_id, row.remaining, row.reserved, row.spent, row.debt, row.overrun,
        row.promised, row.version, row.due_at, row.model, row.credit_limit, row.status,
        row.allocated, to_json(row.metadata), row.delinquent, row.overdraft_limit, row.funding,
        row.window_max_ms, row.suspended_by,
    )


def new_accounts_row(row: Account, org_id: int, parent_id: int) -> tuple[object, ...]:
    """What new_accounts sends for a row."""
    return (
        org_id, row.account_id, row.remaining, row.reserved, row.spent, row.debt, row.overrun,
        row.promised, row.version, row.due_at, row.model, row.credit_limit, row.status,
        row.allocated, to_json(row.metadata), row.delinquent, row.overdraft_limit, row.funding,
        row.window_max_ms, row.suspended_by, parent_id, row.path, row.created_at,
    )


def account_settings(row: Account) -> tuple[object, ...]:
    """What changes rarely, so that it is written only when it did."""
    return (
        row.model, row.credit_limit, row.status, row.allocated, row.metadata, row.delinquent,
        row.overdraft_limit, row.funding, row.window_max_ms, row.suspended_by,
    )


def grant_of(record: StoredRow) -> Grant:
    """The Grant of a row of open_book."""
    return Grant(
        record[2], record[7], record[3], record[4], record[8], record[9], record[10],
        SOURCES[record[11]], GRANT_STATES[record[5]], record[12], record[13], from_json(record[21]),
        record[14], record[6],
    )


def stored_grant(record: Mapping[str, Any]) -> Grant:
    """The Grant of a whole row of grants."""
    return Grant(
        record["grant_id"], record["account_id"], record["amount"], record["remaining"],
        record["starts_at"], record["expires_at"], record["priority"], SOURCES[record["source"]],
        GRANT_STATES[record["state"]], record["origin_id"], record["created_at"],
        from_json(record["metadata"]), record["budget_id"], record["claims"],
    )


def changed_grants_row(row: Grant, org_id: int) -> tuple[object, ...]:
    """What changed_grants sends for a row."""
    return (
        org_id, row.grant_id, row.amount, row.remaining, row.state,
        row.remaining > 0 and row.state is not GrantState.ENDED, row.claims,
    )


def new_grants_row(row: Grant, org_id: int) -> tuple[object, ...]:
    """What new_grants sends for a row."""
    return (
        org_id, row.grant_id, row.amount, row.remaining, row.state,
        row.remaining > 0 and row.state is not GrantState.ENDED, row.claims, row.account_id,
        row.starts_at, row.expires_at, row.priority, row.source, row.origin_id, row.created_at,
        to_json(row.metadata), row.budget_id,
    )


def lease_of(record: StoredRow) -> Reservation:
    """The Reservation of a row of open_book."""
    (
        _, _, reservation_id, held, settled, used_ms, seq, expires_at, state, decision, adjusted,
        refunded, ended_at, payer_id, window_ms, account_id, milli_gpus, price, admitted_at,
        escrow_windows, max_amount, account, job_id, packed, paid, _, _, terms,
    ) = record
    gpu_type, region = PLACES.get(packed) or place_of(packed)
    row = Reservation(
        reservation_id, intern(account), account_id, payer_id, job_id or "", gpu_type, milli_gpus,
        region, "", price, 0, window_ms, admitted_at, expires_at, escrow_windows, max_amount, held,
        settled, adjusted, refunded, used_ms, seq, LEASE_STATES[state], DECISIONS[decision],
        ended_at, pairs(paid), NO_METADATA, expires_at - window_ms * (1 + escrow_windows) * 1_000,
    )
    if terms is not None:
        (
            extended_ms, reprieve_ms, beat_at, overdrawn, leaving, stopping_at, why, promised,
            cap_part, cap_seen, clears_at, stopping_for, authorised, reconciled, lost_ms,
            exhaustion, grace_ms, overdraft, kept_size,
        ) = terms[:19]
        row.extended_ms = extended_ms
        row.reprieve_ms = reprieve_ms
        row.beat_at = max(beat_at, row.beat_at - (row.extended_ms + row.reprieve_ms) * 1_000)
        row.overdrawn = overdrawn
        row.leaving = leaving == 1
        row.stopping_at = stopping_at
        row.why = WHYS[why]
        row.promised = promised
        row.cap_part = cap_part
        row.cap_seen = cap_seen
        row.clears_at = clears_at
        row.stopping_for = stopping_for
        row.authorised = authorised
        row.reconciled = reconciled
        row.lost_ms = lost_ms
        row.exhaustion = EXHAUSTIONS[exhaustion]
        row.grace_ms = grace_ms
        row.overdraft = overdraft
        row.kept = triples(terms[19:19 + kept_size])
        row.payers = pairs(terms[19 + kept_size:])
    return row


def stored_lease(record: Mapping[str, Any]) -> Reservation:
    """The Reservation of a whole row of reservations."""
    return Reservation(
        record["reservation_id"], intern(record["account"]), record["account_id"],
        record["payer_id"], record["job_id"], record["gpu_type"], record["milli_gpus"],
        record["region"], record["node"], record["price"], record["price_id"], record["window_ms"],
        record["admitted_at"], record["expires_at"], record["escrow_windows"], record["max_amount"],
        record["held"], record["settled"], record["adjusted"], record["refunded"],
        record["used_ms"], record["seq"], LEASE_STATES[record["state"]],
        DECISIONS[record["decision"]], record["ended_at"], pairs(record["paid"]),
        from_json(record["metadata"]), record["beat_at"], EXHAUSTIONS[record["exhaustion"]],
        record["grace_ms"], record["overdraft"], record["overdrawn"], record["leaving"] == 1,
        record["stopping_at"], WHYS[record["why"]], record["promised"], record["cap_part"],
        record["cap_seen"], record["clears_at"], record["stopping_for"], record["authorised"],
        triples(record["kept"]), pairs(record["payers"]), record["extended_ms"],
        record["reprieve_ms"], record["reconciled"], record["lost_ms"],
    )


def renewed_leases_row(row: Reservation, org_id: int, grant_id: int) -> tuple[object, ...]:
    """What renewed_leases sends for a row."""
    return (
        org_id, row.reservation_id, row.held, row.settled, row.used_ms, row.seq, row.expires_at,
        grant_id,
    )


def renewed_shared_leases_row(row: Reservation, org_id: int) -> tuple[object, ...]:
    """What renewed_shared_leases sends for a row."""
    return (
        org_id, row.reservation_id, row.held, row.settled, row.used_ms, row.seq, row.expires_at,
        flat_text(row.paid),
    )


def changed_leases_row(row: Reservation, org_id: int) -> tuple[object, ...]:
    """What changed_leases sends for a row."""
    return (
        org_id, row.reservation_id, row.held, row.settled, row.used_ms, row.seq, row.expires_at,
        flat_text(row.paid), row.state, NUMBER_OF_DECISION[row.decision], row.adjusted,
        row.refunded, row.ended_at, row.payer_id, row.window_ms, is_plain(row), row.extended_ms,
        row.reprieve_ms, row.beat_at, row.overdrawn, row.leaving, row.stopping_at,
        NUMBER_OF_WHY[row.why], row.promised, row.cap_part, row.cap_seen, row.clears_at,
        row.stopping_for, row.authorised, row.reconciled, row.lost_ms, flat_text(row.kept),
        flat_text(row.payers),
    )


def new_leases_row(row: Reservation, org_id: int, first_entry_id: int) -> tuple[object, ...]:
    """What new_leases sends for a row."""
    return (
        org_id, row.reservation_id, row.held, row.settled, row.used_ms, row.seq, row.expires_at,
        flat_text(row.paid), row.state, NUMBER_OF_DECISION[row.decision], row.adjusted,
        row.refunded, row.ended_at, row.payer_id, row.window_ms, is_plain(row), row.extended_ms,
        row.reprieve_ms, row.beat_at, row.overdrawn, row.leaving, row.stopping_at,
        NUMBER_OF_WHY[row.why], row.promised, row.cap_part, row.cap_seen, row.clears_at,
        row.stopping_for, row.authorised, row.reconciled, row.lost_ms, flat_text(row.kept),
        flat_text(row.payers), row.account, row.account_id, row.job_id, row.gpu_type,
        row.milli_gpus, row.region, row.node, row.price, row.price_id, row.admitted_at,
        row.escrow_windows, row.max_amount, first_entry_id, to_json(row.metadata), row.exhaustion,
        row.grace_ms, row.overdraft,
    )


def is_plain(row: Reservation) -> bool:
    """Whether all its terms are those of a plain row, so that open_book may leave them out."""
    return (
        not row.extended_ms and not row.reprieve_ms and not row.overdrawn and not row.leaving and
        not row.stopping_at and row.why is WHY_NONE and not row.promised and row.cap_part == -1 and
        not row.cap_seen and not row.clears_at and not row.stopping_for and not row.authorised and
        not row.reconciled and not row.lost_ms and not row.kept and not row.payers and
        row.exhaustion is EXHAUSTION_DRAIN and not row.grace_ms and not row.overdraft and
        row.beat_at <= row.expires_at - row.window_ms * (1 + row.escrow_windows) * 1_000
    )


def is_steady(row: Reservation) -> bool:
    """Whether it is as renewals in full leave it: they write nothing else."""
    return (
        row.state is RESERVATIONSTATE_ACTIVE and row.decision is DECISION_CONTINUE and
        not row.adjusted and not row.refunded and not row.extended_ms and not row.reprieve_ms and
        not row.overdrawn and not row.leaving and not row.stopping_at and row.why is WHY_NONE and
        not row.promised and row.cap_part == -1 and not row.cap_seen and not row.clears_at and
        not row.stopping_for and not row.authorised and not row.reconciled and not row.lost_ms and
        not row.kept and not row.payers and
        row.beat_at <= row.expires_at - row.window_ms * (1 + row.escrow_windows) * 1_000
    )


def topup_of(record: StoredRow) -> TopUpRow:
    """The TopUpRow of a row of open_book."""
    return TopUpRow(
        record[2], record[5], record[6], record[21], TOPUP_STATUSES[record[3]], record[4],
        record[7], record[8], record[9], from_json(record[22]),
    )


def stored_topup(record: Mapping[str, Any]) -> TopUpRow:
    """The TopUpRow of a whole row of topups."""
    return TopUpRow(
        record["topup_id"], record["account_id"], record["amount"], record["payment_reference"],
        TOPUP_STATUSES[record["status"]], record["grant_id"], record["expires_at"],
        record["priority"], record["created_at"], from_json(record["metadata"]),
    )


def changed_topups_row(row: TopUpRow, org_id: int) -> tuple[object, ...]:
    """What changed_topups sends for a row."""
    return (org_id, row.topup_id, row.status, row.grant_id)


def new_topups_row(row: TopUpRow, org_id: int) -> tuple[object, ...]:
    """What new_topups sends for a row."""
    return (
        org_id, row.topup_id, row.status, row.grant_id, row.account_id, row.amount,
        row.payment_reference, row.expires_at, row.priority, row.created_at, to_json(row.metadata),
    )


def entry_of(record: StoredRow) -> Entry:
    """The Entry of a row of open_book."""
    return Entry(
        record[2], 0, EntryType(record[3]), record[4], record[5], 0, record[6], 0, record[7], 0, 0,
    )


def new_entries_row(row: Entry, org_id: int, recorded_at: int) -> tuple[object, ...]:
    """What new_entries sends for a row."""
    (
        entry_id, effective_at, type_, account_id, amount, reserve, grant_id, other_id,
        other_grant_id, reservation_id, seq,
    ) = row
    return (
        org_id, recorded_at, entry_id, effective_at, type_, account_id, amount, reserve, grant_id,
        other_id, other_grant_id, reservation_id, seq,
    )


def new_settlements_row(row: Entry, org_id: int, recorded_at: int) -> tuple[object, ...]:
    """What new_settlements sends for a row."""
    (entry_id, _, _, account_id, amount, reserve, grant_id, _, _, reservation_id, seq) = row
    return (
        org_id, recorded_at, entry_id, account_id, amount, reserve, grant_id, reservation_id, seq,
    )


def quota_of(record: StoredRow) -> Quota:
    """The Quota of a row of open_book."""
    return Quota(
        record[2], record[5], DIMENSIONS[record[6]], record[3], record[21], calendar_of(record[7]),
        record[22], record[8], record[9], 0, record[10], record[11], AUTHORITIES[record[4]],
    )


def quota_beside_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of quota in a row of open_book."""
    return (record[12], record[13], record[14], record[15], record[16], record[17], record[18])


def stored_quota(record: Mapping[str, Any]) -> Quota:
    """The Quota of a whole row of quotas."""
    return Quota(
        record["quota_id"], record["account_id"], DIMENSIONS[record["dimension"]], record["amount"],
        record["gpu_type"], calendar_of(record["calendar"]), record["zone"],
        record["rolling_hours"], record["created_at"], record["ended_at"], record["seeded"],
        record["first_entry_id"], AUTHORITIES[record["set_by"]],
    )


def changed_quotas_row(row: Quota, org_id: int) -> tuple[object, ...]:
    """What changed_quotas sends for a row."""
    return (org_id, row.quota_id, row.limit, row.ended_at, row.set_by)


def new_quotas_row(row: Quota, org_id: int) -> tuple[object, ...]:
    """What new_quotas sends for a row."""
    return (
        org_id, row.quota_id, row.limit, row.ended_at, row.set_by, row.account_id, row.dimension,
        row.gpu_type, calendar_number(row.calendar), row.zone, row.rolling_hours, row.created_at,
        row.seeded, row.first_entry_id,
    )


def changed_slots_row(row: Counter, org_id: int) -> tuple[object, ...]:
    """What changed_slots sends for a row."""
    return (org_id, row.quota_id, row.count, row.leaving)


def new_slots_row(row: Counter, org_id: int) -> tuple[object, ...]:
    """What new_slots sends for a row."""
    return (org_id, row.quota_id, row.count, row.leaving)


def tally_of(record: StoredRow) -> Tally:
    """The Tally of a row of open_book."""
    return Tally(record[2], record[3], record[4], record[5])


def stored_tally(record: Mapping[str, Any]) -> Tally:
    """The Tally of a whole row of tallies."""
    return Tally(record["quota_id"], record["starts_at"], record["ends_at"], record["used"])


def kept_tallies_row(row: Tally, org_id: int) -> tuple[object, ...]:
    """What kept_tallies sends for a row."""
    return (org_id, row.quota_id, row.starts_at, row.ends_at, row.used)


def bucket_of(record: StoredRow) -> TokenBucket:
    """The TokenBucket of a row of open_book."""
    return TokenBucket(
        record[2], record[10], record[3], record[4], record[5], record[6], record[7],
        Tokens.CREDITS, record[8], AUTHORITIES[record[9]],
    )


def stored_bucket(record: Mapping[str, Any]) -> TokenBucket:
    """The TokenBucket of a whole row of token_buckets."""
    return TokenBucket(
        record["bucket_id"], record["account_id"], record["capacity"], record["refill_per_hour"],
        record["level"], record["level_at"], record["fraction"], TOKENS[record["kind"]],
        record["ended_at"], AUTHORITIES[record["set_by"]],
    )


def changed_buckets_row(row: TokenBucket, org_id: int) -> tuple[object, ...]:
    """What changed_buckets sends for a row."""
    return (
        org_id, row.bucket_id, row.capacity, row.refill_per_hour, row.level, row.level_at,
        row.fraction, row.ended_at, row.set_by,
    )


def new_buckets_row(row: TokenBucket, org_id: int) -> tuple[object, ...]:
    """What new_buckets sends for a row."""
    return (
        org_id, row.bucket_id, row.capacity, row.refill_per_hour, row.level, row.level_at,
        row.fraction, row.ended_at, row.set_by, row.account_id, row.kind,
    )


def bucket_settings(row: TokenBucket) -> tuple[object, ...]:
    """What changes rarely, so that it is written only when it did."""
    return (row.capacity, row.refill_per_hour, row.ended_at, row.set_by)


def boost_of(record: StoredRow) -> Boost:
    """The Boost of a row of open_book."""
    return Boost(
        record[2], record[5], record[6], record[7], record[3], record[4], record[8], record[21],
        record[9], AUTHORITIES[record[10]],
    )


def stored_boost(record: Mapping[str, Any]) -> Boost:
    """The Boost of a whole row of boosts."""
    return Boost(
        record["boost_id"], record["account_id"], record["target_id"], record["amount"],
        record["starts_at"], record["ends_at"], record["refill_per_hour"], record["note"],
        record["created_at"], AUTHORITIES[record["set_by"]],
    )


def changed_boosts_row(row: Boost, org_id: int) -> tuple[object, ...]:
    """What changed_boosts sends for a row."""
    return (org_id, row.boost_id, row.starts_at, row.ends_at)


def new_boosts_row(row: Boost, org_id: int) -> tuple[object, ...]:
    """What new_boosts sends for a row."""
    return (
        org_id, row.boost_id, row.starts_at, row.ends_at, row.account_id, row.target_id, row.amount,
        row.refill_per_hour, row.note, row.created_at, row.set_by,
    )


def budget_of(record: StoredRow) -> Budget:
    """The Budget of a row of open_book."""
    return Budget(
        record[2], record[11], record[22], record[3], record[4], calendar_of(record[5]), record[21],
        record[6], ROLLOVERS[record[7]], record[8], record[9], record[10], tuple(record[24]),
        record[12],
    )


def stored_budget(record: Mapping[str, Any]) -> Budget:
    """The Budget of a whole row of budgets."""
    return Budget(
        record["budget_id"], record["account_id"], record["name"], record["allowance"],
        record["next_at"], calendar_of(record["calendar"]), record["zone"], record["ends_at"],
        ROLLOVERS[record["rollover"]], record["rollover_cap"], record["rollover_us"],
        record["priority"], tuple(record["warn_percent"]), record["created_at"],
    )


def kept_budgets_row(row: Budget, org_id: int) -> tuple[object, ...]:
    """What kept_budgets sends for a row."""
    return (
        org_id, row.budget_id, row.allowance, row.next_at, calendar_number(row.calendar), row.zone,
        row.ends_at, row.rollover, row.rollover_cap, row.rollover_us, row.priority,
        list_text(row.warn_percent), row.account_id, row.name, row.created_at,
    )


def period_of(record: StoredRow) -> BudgetPeriod:
    """The BudgetPeriod of a row of open_book."""
    return BudgetPeriod(
        record[2], record[3], record[7], record[8], record[9], record[4], record[5], record[6],
        ROLLOVERS[record[10]], record[11], record[12], calendar_of(record[13]), record[21],
    )


def stored_period(record: Mapping[str, Any]) -> BudgetPeriod:
    """The BudgetPeriod of a whole row of budget_periods."""
    return BudgetPeriod(
        record["budget_id"], record["starts_at"], record["ends_at"], record["allowance"],
        record["grant_id"], record["rolled"], record["rolled_grant_id"], record["warned_percent"],
        ROLLOVERS[record["rollover"]], record["rollover_cap"], record["rollover_us"],
        calendar_of(record["calendar"]), record["zone"],
    )


def kept_periods_row(row: BudgetPeriod, org_id: int) -> tuple[object, ...]:
    """What kept_periods sends for a row."""
    return (
        org_id, row.budget_id, row.starts_at, row.rolled, row.rolled_grant_id, row.warned_percent,
        row.ends_at, row.allowance, row.grant_id, row.rollover, row.rollover_cap, row.rollover_us,
        calendar_number(row.calendar), row.zone,
    )


def answer_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of answer in a row of open_book."""
    return (record[21], record[25], record[26])


def opened_org_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of opened_org in a row of open_book."""
    return (
        record[2], record[3], record[4], record[5], record[6], record[7] == 1, record[8] == 1,
        record[9], record[10], end_of(record[11]), record[12], record[21],
    )


def suspended_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of suspended in a row of open_book."""
    return (record[2], record[3], record[21])


def price_of(record: StoredRow) -> Price:
    """The Price of a row of open_book."""
    return Price(
        record[2], record[21], record[22], record[3], record[4], record[23], end_of(record[5]),
        record[6] == 1,
    )


def job_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of job in a row of open_book."""
    return (record[2], record[3], record[4], record[5], record[21], record[22], record[24])


def node_values(record: StoredRow) -> tuple[Any, ...]:
    """The values of node in a row of open_book."""
    return (record[2], record[3], record[4], record[21], record[22])
