"""The page of one org: its book, and what is needed to tell what changed in it.

Owns: turning a page, which makes of the book of one batch the book of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any

from gpucredits.core import bounds
from gpucredits.core.account import Account, lineage
from gpucredits.core.book import Book, Row
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.quota import Counter, Dimension, JobLeases, Tally
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.token_bucket import TokenBucket
from gpucredits.core.topup import TopUpRow, TopUpStatus

StoredRow = Sequence[Any]  # a row as the driver gives it, its columns in the order of book_row


@dataclass(slots=True)
class Page:
    """The book of one org, with what is needed to tell what changed in it.

    ``fresh_until`` is when the clock alone makes something due that a page read anew would hold:
    an account's rows, or the past of a window. ``passing`` says that it holds rows that are read
    for the commands of one batch only.
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
    terms: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)  # of each rate limit
    metered: set[int] = field(default_factory=set)  # accounts whose meters have moved
    fresh_until: int = bounds.NEVER_US
    passing: bool = False
    over: list[int] = field(default_factory=list)  # leases that had ended when they were read
    weight: int = 0  # as counted when it was put on the shelf
    outdated: bool = False  # what was set for the org has changed: read it anew
    read_at: int = 0  # the database's time when it was read or last added to
    next_version: int = 0  # of the org once what changed is saved
    older: Page | None = None  # what was known of the org, of the same version, when it was read

    def was_delinquent(self, account_id: int) -> bool:
        """Whether an account was paused for what it owes when it was read."""
        settings = self.settings.get(account_id)
        return settings is not None and settings[DELINQUENT] is True

    def had_other_funding(self, account: Account) -> bool:
        """Whether an account might spend other credits when it was read than it may now."""
        settings = self.settings.get(account.account_id)
        return settings is not None and settings[FUNDING] is not account.funding


Pages = dict[int, Page]


def new_version(known: int) -> int:
    """A version that an org has never had, in the place of the one that is known.

    Versions are drawn, not counted: a database that was restored, or that a standby took over
    from before the last commits reached it, would count up to the same numbers again, and a page
    of what was lost would pass for true.
    """
    while (drawn := getrandbits(62)) == known:
        pass
    return drawn


DELINQUENT, FUNDING = 5, 7  # their places among the settings of an account


def settings_of(account: Account) -> tuple[object, ...]:
    """What of an account changes rarely, so that it is written only when it did."""
    return (
        account.model,
        account.credit_limit,
        account.status,
        account.allocated,
        account.metadata,
        account.delinquent,
        account.overdraft_limit,
        account.funding,
        account.window_max_ms,
        account.suspended_by,
    )


def note(page: Page, row: Row) -> None:
    """Note how a row stands that was changed by more than a mere renewal."""
    match row:
        case Reservation():
            if row.state is not ReservationState.ACTIVE:
                page.over.append(row.reservation_id)
            elif is_special(row):
                page.lease_states[row.reservation_id] = (row.state, row.decision)
            else:
                page.lease_states.pop(row.reservation_id, None)
        case Grant():
            page.grant_states[row.grant_id] = row.state
        case Account():
            page.fresh_until = min(page.fresh_until, row.due_at)
        case Counter() | TokenBucket() | Tally():
            pass
        case TopUpRow() | JobLeases():
            page.passing = True
        case _:
            page.outdated = True


def is_special(lease: Reservation) -> bool:
    """Whether the renewal of a live lease may change more than a mere renewal does."""
    return bool(
        lease.decision is not Decision.CONTINUE
        or lease.adjusted
        or lease.refunded
        or lease.overdraft
        or lease.overdrawn
        or lease.leaving
        or lease.stopping_at
        or lease.cap_part >= 0
        or lease.kept
        or lease.payers
        or lease.beat_at > lease.expires_at - lease.lease_ms * 1_000
    )


def turn(page: Page) -> None:
    """Make a page whose changes are committed ready for another batch."""
    if page.older is not None:
        take_over(page, page.older)
    book = page.book
    org = book.org
    if book.changed:
        org.version = page.next_version
        book.changed = {}
    book.entries = []
    book.late_use = []
    book.moves, book.became_own = [], []
    if book.reshaped:
        book.reshaped = set()
    page.first_new_id, page.first_new_entry_id = org.next_id, org.next_entry_id
    for lease_id in page.over:
        book.reservations.pop(lease_id, None)
        page.lease_states.pop(lease_id, None)
    page.over = []
    if page.passing or page.answers:
        forget_passing(page)
    if book.complete:
        book.complete = set()
    book.rolled_at, book.by_payer = 0, None
    if page.fresh_until <= page.now:
        page.fresh_until = next_change(book)


def take_over(page: Page, older: Page) -> None:
    """Take over what an older page of the same version holds beyond this one.

    Nothing of that has changed, because a batch changes only rows that it has read. Accounts of
    which the clock has made something due stay behind, with the leases that they pay for or limit,
    and so do leases whose next slice reaches back into a window that is over.
    """
    page.older = None
    page.fresh_until = 0  # to be found anew
    book, known = page.book, older.book
    book.gated = book.gated or known.gated
    behind = {
        number
        for number in known.accounts
        if number not in book.accounts and is_due(known, number, page.now)
    }
    for number, account in known.accounts.items():
        if number in book.accounts:
            take_over_grants(page, older, number)
        elif number not in behind:
            take_over_account(page, older, account)
    taken = {
        number: lease
        for number, lease in known.reservations.items()
        if number not in book.reservations
        and lease.payer_id not in behind
        and not reaches_back(lease, page, behind)
    }
    book.reservations.update(taken)
    for number, state in older.lease_states.items():
        if number in taken:
            page.lease_states[number] = state


def take_over_grants(page: Page, older: Page, account_id: int) -> None:
    """Take over the grants of an account of which only the limits were read this time."""
    account = page.book.accounts[account_id]
    if page.book.grants[account_id] or id(account) in page.book.changed:
        return
    if account_id not in older.book.bare:
        page.book.bare.discard(account_id)
    page.book.grants[account_id] = older.book.grants[account_id]
    for grant in older.book.grants[account_id]:
        page.book.lots[grant.grant_id] = grant
        page.grant_states[grant.grant_id] = older.grant_states[grant.grant_id]


def take_over_account(page: Page, older: Page, account: Account) -> None:
    """Take over an account with its grants and limits."""
    number = account.account_id
    page.book.accounts[number] = page.book.paths[account.path] = account
    page.settings[number] = older.settings[number]
    page.book.grants[number] = []
    if number in older.book.bare:
        page.book.bare.add(number)
    take_over_grants(page, older, number)
    if not page.gated:
        return
    limits, others = page.book.limits, older.book.limits
    targets = [quota.quota_id for quota in others.quotas.get(number, ())]
    if targets:
        limits.quotas[number] = others.quotas[number]
    for quota_id in targets:
        page.owners[quota_id] = number
        if quota_id in others.counters:
            limits.counters[quota_id] = others.counters[quota_id]
    bucket = others.buckets.get(number)
    if bucket is not None:
        limits.buckets[number] = bucket
        page.terms[bucket.bucket_id] = older.terms[bucket.bucket_id]
        targets.append(bucket.bucket_id)
    for target in targets:
        if target in others.boosts:
            limits.boosts[target] = others.boosts[target]


def is_due(book: Book, account_id: int, now: int) -> bool:
    """Whether the clock has made something of an account or of its windows due."""
    if book.accounts[account_id].due_at <= now:
        return True
    return book.gated and any(window.ends_at <= now for window in windows_of(book, account_id))


def reaches_back(lease: Reservation, page: Page, behind: set[int]) -> bool:
    """Whether what limits a lease stays behind, or has turned since its last beat."""
    if not page.gated:
        return False
    for path in lineage(lease.account):
        account = page.book.paths.get(path)
        if account is None or account.account_id in behind:
            return True
        windows = windows_of(page.book, account.account_id)
        if any(window.starts_at > lease.beat_at for window in windows):
            return True
    return False


def windows_of(book: Book, account_id: int) -> Iterator[Counter]:
    """What the quotas of an account on credits in windows count."""
    for quota in book.limits.quotas.get(account_id, ()):
        if quota.dimension is Dimension.CREDITS_PER_WINDOW and not quota.ended_at:
            yield book.limits.counters[quota.quota_id]


def forget_passing(page: Page) -> None:
    """Let go of what was read for the commands of one batch only."""
    book = page.book
    book.prices, book.past, book.on_nodes = [], [], {}
    book.topups, book.budgets, book.periods = {}, {}, {}
    book.limits.jobs = {}
    page.topup_statuses, page.answers, page.warned = {}, {}, ()
    page.passing = False


def next_change(book: Book) -> int:
    """When the clock next makes something due of the accounts and windows of a book."""
    soonest = min((each.due_at for each in book.accounts.values()), default=bounds.NEVER_US)
    if not book.gated:
        return soonest
    ends = (window.ends_at for number in book.limits.quotas for window in windows_of(book, number))
    return min(soonest, min(ends, default=bounds.NEVER_US))
