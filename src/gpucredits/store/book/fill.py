"""Putting the rows that open_book returns into a cached book.

Owns: where each kind of row goes, and what is noted of it for the time when the book is saved.
Must not: read (load does), know a column's place (rows does), or decide anything.

Leases are loaded without the columns that no rule reads (node and metadata; the job too where the
org has no limits): tens of thousands are loaded each second. store/ledger/reservations.py reads
whole leases.
"""

from __future__ import annotations

from collections.abc import Callable

from gpucredits.core.book import Book, Org
from gpucredits.core.quota import Counter, Dimension, JobLeases
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.codecs import StoredRow
from gpucredits.store.book.rows import (
    account_beside_values,
    account_of,
    account_settings,
    answer_values,
    boost_of,
    bucket_of,
    bucket_settings,
    budget_of,
    entry_of,
    grant_of,
    is_steady,
    job_values,
    lease_of,
    node_values,
    opened_org_values,
    period_of,
    price_of,
    quota_beside_values,
    quota_of,
    suspended_values,
    tally_of,
    topup_of,
)
from gpucredits.store.book.tables import (
    ACCOUNT,
    ANSWER,
    BOOST,
    BUCKET,
    BUDGET,
    ENTRY,
    GRANT,
    JOB,
    LEASE,
    NODE,
    PERIOD,
    PRICE,
    QUOTA,
    SUSPENDED,
    TALLY,
    TOPUP,
)

ID = 2  # the place of a row's number


def open_book(row: StoredRow) -> CachedBook:
    """The empty book of an org."""
    values = opened_org_values(row)
    now, next_id, next_entry_id, clock, version, gated, budgeted, read_at, _, _, _, path = values
    org = Org(row[1], path, next_id, next_entry_id, clock, version)
    cached = CachedBook(Book(org), now, next_id, next_entry_id, read_at=read_at)
    cached.gated, cached.budgeted = gated, budgeted
    return cached


def fill_suspended(cached: CachedBook, row: StoredRow) -> None:
    """An account that is suspended, by an operator (1) or by debt alone (0), or that bounds leases.

    Its status is None where it is not suspended, its bound 0 where it has none.
    """
    status, window_max_ms, path = suspended_values(row)
    if status is not None:
        cached.book.suspended[path] = not status
    if window_max_ms:
        cached.book.account_windows[path] = window_max_ms


def fill_account(cached: CachedBook, row: StoredRow) -> None:
    """An account with its balance, and whether the clock has made something of it due."""
    account_id = row[ID]
    book = cached.book
    is_bare, is_due = account_beside_values(row)
    account = account_of(row)
    if is_due:
        book.complete.add(account_id)
    cached.fresh_until = min(cached.fresh_until, account.due_at)
    if not is_bare:
        book.bare.discard(account_id)
    if account_id in book.accounts:
        return
    if is_bare:
        book.bare.add(account_id)
    book.accounts[account_id] = account
    book.paths[account.path] = account
    if account_id not in book.grants:
        book.grants[account_id] = []
    cached.settings[account_id] = account_settings(account)


def fill_grant(cached: CachedBook, row: StoredRow) -> None:
    """A grant; it may come twice, as an open one and as one that is named."""
    book = cached.book
    if row[ID] in book.lots:
        return
    grant = grant_of(row)
    book.lots[grant.grant_id] = grant
    cached.grant_states[grant.grant_id] = grant.state
    if grant.remaining:
        book.grants.setdefault(grant.account_id, []).append(grant)


def fill_lease(cached: CachedBook, row: StoredRow) -> None:
    """A lease, as far as the rules read it; it may come twice, as named and as due."""
    leases = cached.book.reservations
    lease = lease_of(row)
    lease_id = lease.reservation_id
    if lease_id in leases:
        return
    leases[lease_id] = lease
    if not is_steady(lease):
        cached.lease_states[lease_id] = (lease.state, lease.decision)
        if lease.state:
            cached.over.append(lease_id)


def fill_topup(cached: CachedBook, row: StoredRow) -> None:
    """A top-up."""
    topup = topup_of(row)
    cached.passing = True
    cached.book.topups[topup.topup_id] = topup
    cached.topup_statuses[topup.topup_id] = topup.status


def fill_past(cached: CachedBook, row: StoredRow) -> None:
    """An earlier entry, as far as corrections read it; entries come in the order of their ids."""
    cached.passing = True
    cached.book.past.append(entry_of(row))


def fill_price(cached: CachedBook, row: StoredRow) -> None:
    """The version of a price that is in force, or the end of the last."""
    cached.passing = True
    cached.book.prices.append(price_of(row))


def fill_answer(cached: CachedBook, row: StoredRow) -> None:
    """The stored answer of a key, with a hash of its request."""
    cached.passing = True
    key, request_hash, outcome = answer_values(row)
    cached.answers[key] = (request_hash, outcome)


def fill_quota(cached: CachedBook, row: StoredRow) -> None:
    """A quota that has not ended, and what it counts."""
    book = cached.book
    book.gated = True
    limits = book.limits
    quota = quota_of(row)
    quota_id, account_id = quota.quota_id, quota.account_id
    known = limits.quotas.get(account_id)
    if known is not None and any(each.quota_id == quota_id for each in known):
        return
    limits.lanes.clear()
    cached.owners[quota_id] = account_id
    if known is None:
        limits.quotas[account_id] = [quota]
    else:
        known.append(quota)
    count, leaving, used, held, base, starts_at, ends_at = quota_beside_values(row)
    if count is not None:
        limits.counters[quota_id] = Counter(
            quota_id, count, leaving, used, held, base, starts_at, ends_at
        )
    if quota.dimension is Dimension.CREDITS_PER_WINDOW:
        cached.fresh_until = min(cached.fresh_until, ends_at)


def fill_tally(cached: CachedBook, row: StoredRow) -> None:
    """A window, or a cell of one, that is over."""
    tally = tally_of(row)
    cached.book.limits.tallies.setdefault(tally.quota_id, {}).setdefault(tally.starts_at, tally)


def fill_job(cached: CachedBook, row: StoredRow) -> None:
    """The leases of one GPU type that a job has; those of any type are added up.

    They take the place of what was known of the job.
    """
    account_id, live, leaving, settled, job_id, gpu_type, leases = job_values(row)
    jobs, read = cached.book.limits.jobs, cached.jobs_read
    for each in ("", gpu_type) if live is not None else ("",):  # or none of any type
        key = (account_id, job_id, each)
        known = read.get(key)
        if known is None:
            known = read[key] = jobs[key] = JobLeases(*key)
            cached.new_jobs.append(known)
        if live is None:
            return
        known.live += live
        known.leaving += leaving
        known.settled += settled
        known.leases += tuple(leases)


def fill_node(cached: CachedBook, row: StoredRow) -> None:
    """A live lease of a job that is asked for, on its node or ''; account 0 begins anew."""
    account_id, lease_id, expires_at, job_id, node = node_values(row)
    on_nodes = cached.book.on_nodes
    cached.passing = True
    if account_id:
        on_nodes[account_id, job_id, node] = (lease_id, expires_at)
    else:
        on_nodes.clear()


def fill_bucket(cached: CachedBook, row: StoredRow) -> None:
    """A rate limit, or the last one that ended, where another may be set."""
    limits = cached.book.limits
    bucket = bucket_of(row)
    if bucket.ended_at:
        limits.index(bucket)
        return
    cached.book.gated = True
    if bucket.account_id not in limits.buckets:
        limits.buckets[bucket.account_id] = bucket
        cached.terms[bucket.bucket_id] = bucket_settings(bucket)
        limits.lanes.clear()


def fill_boost(cached: CachedBook, row: StoredRow) -> None:
    """A boost that has not lapsed, or whose lapse its bucket has not seen."""
    boost = boost_of(row)
    limits = cached.book.limits
    known = limits.boosts.setdefault(boost.target_id, [])
    if all(each.boost_id != boost.boost_id for each in known):
        known.append(boost)
        limits.lanes.clear()


def fill_budget(cached: CachedBook, row: StoredRow) -> None:
    """A budget, whether or not it has ended; all budgets of an account are read together."""
    budget = budget_of(row)
    known = cached.book.budgets.setdefault(budget.account_id, [])
    if all(each.budget_id != budget.budget_id for each in known):
        known.append(budget)
    cached.with_budgets.add(budget.account_id)


def fill_period(cached: CachedBook, row: StoredRow) -> None:
    """The last period of a budget."""
    period = period_of(row)
    cached.passing = True
    known = cached.book.periods.setdefault(period.budget_id, [])
    if all(each.starts_at != period.starts_at for each in known):
        known.append(period)
    warned = (period.budget_id, period.starts_at, period.warned_percent)
    cached.warned = (*cached.warned, warned)


FILL: dict[int, Callable[[CachedBook, StoredRow], None]] = {
    SUSPENDED.kind: fill_suspended,
    ACCOUNT.kind: fill_account,
    GRANT.kind: fill_grant,
    LEASE.kind: fill_lease,
    TOPUP.kind: fill_topup,
    PRICE.kind: fill_price,
    ANSWER.kind: fill_answer,
    QUOTA.kind: fill_quota,
    TALLY.kind: fill_tally,
    JOB.kind: fill_job,
    NODE.kind: fill_node,
    BUCKET.kind: fill_bucket,
    BOOST.kind: fill_boost,
    BUDGET.kind: fill_budget,
    PERIOD.kind: fill_period,
    ENTRY.kind: fill_past,
}
