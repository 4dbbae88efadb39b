"""A cached book: the rows of one org, and notes on what has changed and what is complete.

Owns: the notes beside the rows: the rows' values when they were read or last saved, and the
accounts and jobs that are complete for any command; what a book keeps for the next batch, and what
it takes over from an older book of the same version; the weight of a book.
Must not: keep books (book_cache does), or read and write rows (load and save do).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import getrandbits

from gpucredits.core import bounds
from gpucredits.core.account import Account, lineage
from gpucredits.core.book import Book, Row
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.limits import TokenBucket
from gpucredits.core.quota import Counter, Dimension, JobLeases, Quota, Tally, reach
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow, TopUpStatus
from gpucredits.store.book.rows import is_steady
from gpucredits.store.book.table import RARELY
from gpucredits.store.book.tables import ACCOUNT

BOOK_WEIGHT = 2  # a book without rows
JOBS = Dimension.CONCURRENT_JOBS
JobKey = tuple[int, str, str]  # account, job, and GPU type or ""


@dataclass(slots=True)
class CachedBook:
    """The book of one org, with what is needed to tell what changed in it.

    ``fresh_until`` is when the clock alone makes something due that a book read anew would hold:
    an account's rows, or the past of a window. ``passing`` says that the book holds rows that were
    read for the commands of one batch only. ``lease_states`` has the leases that were not steady
    (see rows) when they were read or last saved.

    For accounts in ``counted``, the book has every limit with its counters; for accounts in
    ``tallied``, it has the past of rolling windows too, as far as they reach. For accounts
    ``with_budgets``, it has every budget with its last period. ``unread_jobs`` are the (account,
    job) that this batch assumes to have no leases; the guard checks that.
    """

    book: Book
    now: int
    first_new_id: int
    first_new_entry_id: int
    settings: dict[int, tuple[object, ...]] = field(default_factory=dict)
    grant_states: dict[int, GrantState] = field(default_factory=dict)
    lease_states: dict[int, tuple[ReservationState, Decision]] = field(default_factory=dict)
    topup_statuses: dict[int, TopUpStatus] = field(default_factory=dict)
    answers: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    gated: bool = False
    budgeted: bool = False
    warned: tuple[tuple[int, int, int], ...] = ()  # budget, start and warning of each period
    came: bool = False  # a limit that is new
    ended: tuple[int, ...] = ()  # limits that ended
    has_new_budget: bool = False
    owners: dict[int, int] = field(default_factory=dict)  # the account of each quota
    terms: dict[int, tuple[object, ...]] = field(default_factory=dict)  # of each rate limit
    metered: set[int] = field(default_factory=set)  # accounts whose meters have moved
    spend_day: int = 0  # the day of which these rows of spend_days and lease_days are there
    spend_keys: set[tuple[int, int, str]] = field(default_factory=set)
    spend_leases: set[int] = field(default_factory=set)
    spend_hour: int = 0  # the hour in which these have rows of spend_hours
    spend_hour_keys: set[tuple[int, int, str]] = field(default_factory=set)
    fresh_until: int = bounds.NEVER_US
    passing: bool = False
    over: list[int] = field(default_factory=list)  # leases that had ended when they were read
    weight: int = 0  # as counted when it was put into the cache
    outdated: bool = False  # what was set for the org has changed: read it anew
    read_at: int = 0  # the database's time when it was read or last added to
    next_version: int = 0  # of the org once what changed is saved
    older: CachedBook | None = None  # of the same version: what was known when this was read
    counted: set[int] = field(default_factory=set)
    tallied: set[int] = field(default_factory=set)
    with_budgets: set[int] = field(default_factory=set)
    jobs_read: dict[JobKey, JobLeases] = field(default_factory=dict)  # in the last reading
    new_jobs: list[JobLeases] = field(default_factory=list)  # that this batch has read or changed
    unread_jobs: set[tuple[int, str]] = field(default_factory=set)

    def was_delinquent(self, account_id: int) -> bool:
        """Whether an account was paused for what it owes when it was read."""
        settings = self.settings.get(account_id)
        return settings is not None and settings[DELINQUENT] is True

    def had_other_funding(self, account: Account) -> bool:
        """Whether an account might spend other credits when it was read than it may now."""
        settings = self.settings.get(account.account_id)
        return settings is not None and settings[FUNDING] is not account.funding


CachedBooks = dict[int, CachedBook]


def new_version(known: int) -> int:
    """A version that an org has never had, to replace the known one.

    Versions are drawn, not counted: a database that was restored, or that a standby took over
    from before the last commits reached it, would count up to the same numbers again, and a
    cached book of what was lost would pass for true.
    """
    while (drawn := getrandbits(62)) == known:
        pass
    return drawn


def settings_place(attribute: str) -> int:
    """The place of an attribute among the settings of an account."""
    names = [column.field for column in ACCOUNT.columns if column.written is RARELY]
    return [name for name in names if name].index(attribute)


DELINQUENT, FUNDING = settings_place("delinquent"), settings_place("funding")


def note(cached: CachedBook, row: Row) -> None:
    """Note the new state of a row that was changed by more than a mere renewal."""
    match row:
        case Reservation():
            if row.state is not ReservationState.ACTIVE:
                cached.over.append(row.reservation_id)
            elif not is_steady(row):
                cached.lease_states[row.reservation_id] = (row.state, row.decision)
            else:
                cached.lease_states.pop(row.reservation_id, None)
        case Grant():
            cached.grant_states[row.grant_id] = row.state
        case Account():
            cached.fresh_until = min(cached.fresh_until, row.due_at)
        case Counter() | TokenBucket() | Tally():
            pass
        case JobLeases():
            cached.new_jobs.append(row)
        case TopUpRow():
            cached.passing = True
        case _:
            cached.outdated = True


def windows_of(book: Book, account_id: int) -> Iterator[Counter]:
    """The counters of an account's quotas on credits per window."""
    for quota in book.limits.quotas.get(account_id, ()):
        if quota.dimension is Dimension.CREDITS_PER_WINDOW and not quota.ended_at:
            yield book.limits.counters[quota.quota_id]


def begin_next_batch(cached: CachedBook) -> None:
    """Make a book whose changes are committed ready for another batch."""
    if cached.older is not None:
        take_over(cached, cached.older)
    book = cached.book
    org = book.org
    if book.changed:
        org.version = cached.next_version
        book.changed, book.moved = {}, []
    book.entries = []
    book.late_use = []
    book.moves, book.became_own = [], []
    if book.reshaped:
        book.reshaped = set()
    cached.first_new_id, cached.first_new_entry_id = org.next_id, org.next_entry_id
    for lease_id in cached.over:
        book.reservations.pop(lease_id, None)
        cached.lease_states.pop(lease_id, None)
    cached.over = []
    if cached.passing or cached.answers:
        forget_passing(cached)
    if cached.new_jobs or cached.jobs_read:
        forget_idle_jobs(cached)
    if cached.unread_jobs:
        cached.unread_jobs = set()
    if book.complete:
        book.complete = set()
    book.rolled_at, book.by_payer = 0, None
    if cached.fresh_until <= cached.now:
        cached.fresh_until = next_change(book)


def take_over(cached: CachedBook, older: CachedBook) -> None:
    """Take over what an older book of the same version holds beyond this one.

    Nothing of that has changed, because a batch changes only rows that it has read. Accounts with
    something due by the clock stay behind, with the leases that they pay for or limit. So do leases
    whose next slice reaches back into a window that is over.
    """
    cached.older = None
    cached.fresh_until = 0  # to be found anew
    book, known = cached.book, older.book
    book.gated = book.gated or known.gated
    book.limits.lanes.clear()
    behind = {
        number
        for number in known.accounts
        if number not in book.accounts and is_due(known, number, cached.now)
    }
    for number, account in known.accounts.items():
        if number in behind:
            continue
        if number in book.accounts:
            take_over_grants(cached, older, number)
        else:
            take_over_account(cached, older, account)
        take_over_limits(cached, older, number)
    taken = {
        number: lease
        for number, lease in known.reservations.items()
        if number not in book.reservations
        and lease.payer_id not in behind
        and not reaches_back(lease, cached, behind)
    }
    book.reservations.update(taken)
    for number, state in older.lease_states.items():
        if number in taken:
            cached.lease_states[number] = state
    if older.spend_day == cached.spend_day:
        cached.spend_keys |= older.spend_keys
        cached.spend_leases |= older.spend_leases
    if older.spend_hour == cached.spend_hour:
        cached.spend_hour_keys |= older.spend_hour_keys
    jobs = book.limits.jobs
    for key, row in known.limits.jobs.items():
        if key not in jobs and key[0] in book.accounts:
            jobs[key] = row


def take_over_grants(cached: CachedBook, older: CachedBook, account_id: int) -> None:
    """Take over the grants of an account if only its limits were read this time."""
    account = cached.book.accounts[account_id]
    if cached.book.grants[account_id] or id(account) in cached.book.changed:
        return
    if account_id not in older.book.bare:
        cached.book.bare.discard(account_id)
    cached.book.grants[account_id] = older.book.grants[account_id]
    for grant in older.book.grants[account_id]:
        cached.book.lots[grant.grant_id] = grant
        cached.grant_states[grant.grant_id] = older.grant_states[grant.grant_id]


def take_over_account(cached: CachedBook, older: CachedBook, account: Account) -> None:
    """Take over an account with its grants."""
    number = account.account_id
    cached.book.accounts[number] = cached.book.paths[account.path] = account
    cached.settings[number] = older.settings[number]
    cached.book.grants[number] = []
    if number in older.book.bare:
        cached.book.bare.add(number)
    take_over_grants(cached, older, number)


def take_over_limits(cached: CachedBook, older: CachedBook, number: int) -> None:
    """Take over the limits and budgets of an account that were not read this time."""
    if number in older.with_budgets and number not in cached.with_budgets:
        cached.with_budgets.add(number)
        for budget in older.book.budgets.get(number, ()):
            cached.book.budgets.setdefault(number, []).append(budget)
            if budget.budget_id in older.book.periods:
                cached.book.periods[budget.budget_id] = older.book.periods[budget.budget_id]
    if not cached.gated:
        return
    limits, others = cached.book.limits, older.book.limits
    if number not in cached.counted:
        take_over_quotas(cached, older, number)
        if number in older.counted:
            cached.counted.add(number)
    bucket = others.buckets.get(number)
    if bucket is not None and number not in limits.buckets:
        limits.buckets[number] = bucket
        cached.terms[bucket.bucket_id] = older.terms[bucket.bucket_id]
        if bucket.bucket_id in others.boosts:
            limits.boosts[bucket.bucket_id] = others.boosts[bucket.bucket_id]
    if number in older.tallied:
        cached.tallied.add(number)
        take_over_past(cached, older, number)


def take_over_quotas(cached: CachedBook, older: CachedBook, number: int) -> None:
    """Take over the quotas of an account that this book lacks, with what they count."""
    limits, others = cached.book.limits, older.book.limits
    known = limits.quotas.get(number, [])
    lacking = [
        quota
        for quota in others.quotas.get(number, ())
        if all(quota.quota_id != each.quota_id for each in known)
    ]
    if not lacking:
        return
    limits.quotas[number] = sorted([*known, *lacking], key=quota_number)
    for quota in lacking:
        target = quota.quota_id
        cached.owners[target] = number
        if target in others.counters:
            limits.counters[target] = others.counters[target]
        if target in others.boosts:
            limits.boosts[target] = others.boosts[target]


def quota_number(quota: Quota) -> int:
    """Quotas are read in the order of their numbers."""
    return quota.quota_id


def take_over_past(cached: CachedBook, older: CachedBook, account_id: int) -> None:
    """Take over what was spent in past cells of rolling windows, as far as they reach."""
    limits, others = cached.book.limits, older.book.limits
    for quota in limits.quotas.get(account_id, ()):
        number = quota.quota_id
        if quota.rolling_hours and number in others.tallies:
            oldest = limits.counters[number].starts_at - reach(quota)
            known = limits.tallies.setdefault(number, {})
            for starts_at, tally in others.tallies[number].items():
                if starts_at >= oldest:
                    known.setdefault(starts_at, tally)


def is_due(book: Book, account_id: int, now: int) -> bool:
    """Whether the clock has made something of an account or of its windows due."""
    if book.accounts[account_id].due_at <= now:
        return True
    return book.gated and any(window.ends_at <= now for window in windows_of(book, account_id))


def reaches_back(lease: Reservation, cached: CachedBook, behind: set[int]) -> bool:
    """Whether a limit of a lease stays behind, or its window has turned since the last beat."""
    if not cached.gated:
        return False
    for path in lineage(lease.account):
        account = cached.book.paths.get(path)
        if account is None or account.account_id in behind:
            return True
        windows = windows_of(cached.book, account.account_id)
        if any(window.starts_at > lease.beat_at for window in windows):
            return True
    return False


def forget_passing(cached: CachedBook) -> None:
    """Let go of what was read for the commands of one batch only."""
    book = cached.book
    book.prices, book.past, book.on_nodes = [], [], {}
    book.topups = {}
    cached.topup_statuses, cached.answers, cached.warned = {}, {}, ()
    cached.passing = False


def forget_idle_jobs(cached: CachedBook) -> None:
    """Let go of jobs that this batch has read or changed and that no quota counts from here on.

    The leases of a job that runs under a quota on jobs stay counted, for the next one of them that
    starts or ends.
    """
    jobs = cached.book.limits.jobs
    for row in cached.new_jobs:
        key = (row.account_id, row.job_id, row.gpu_type)
        if jobs.get(key) is row and not (row.live > 0 and is_counted(cached.book, row)):
            del jobs[key]
    cached.new_jobs, cached.jobs_read = [], {}


def is_counted(book: Book, row: JobLeases) -> bool:
    """Whether a quota on jobs of the row's GPU type limits the job."""
    account = book.accounts.get(row.account_id)
    if account is None:
        return False
    for path in lineage(account.path):
        above = book.paths.get(path)
        if above is None:
            return False
        for quota in book.limits.quotas.get(above.account_id, ()):
            if quota.dimension is JOBS and quota.gpu_type == row.gpu_type and not quota.ended_at:
                return True
    return False


def next_change(book: Book) -> int:
    """When the clock next makes something due of the accounts and windows of a book."""
    soonest = min((each.due_at for each in book.accounts.values()), default=bounds.NEVER_US)
    if not book.gated:
        return soonest
    ends = (window.ends_at for number in book.limits.quotas for window in windows_of(book, number))
    return min(soonest, min(ends, default=bounds.NEVER_US))


def weight_of(cached: CachedBook) -> int:
    """The number of rows in a book, plus the weight of an empty one."""
    book = cached.book
    rows = len(book.reservations) + len(book.accounts) + len(book.lots) + len(book.budgets)
    if book.gated:
        limits = book.limits
        rows += len(limits.counters) + len(limits.jobs) + sum(map(len, limits.tallies.values()))
    return BOOK_WEIGHT + rows
