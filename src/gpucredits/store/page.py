"""The page of one org: its book, and what is needed to tell what changed in it.

Owns: turning a page, which makes of the book of one batch the book of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucredits.core import bounds
from gpucredits.core.account import Account
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
    terms: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # of each rate limit
    metered: set[int] = field(default_factory=set)  # accounts whose meters have moved
    fresh_until: int = bounds.NEVER_US
    passing: bool = False
    over: list[int] = field(default_factory=list)  # leases that had ended when they were read
    weight: int = 0  # as counted when it was put on the shelf
    outdated: bool = False  # what was set for the org has changed: read it anew
    read_at: int = 0  # the database's time when it was read or last added to

    def was_delinquent(self, account_id: int) -> bool:
        """Whether an account was paused for what it owes when it was read."""
        settings = self.settings.get(account_id)
        return settings is not None and settings[DELINQUENT] is True


Pages = dict[int, Page]


DELINQUENT = 5  # its place among the settings of an account


def settings_of(account: Account) -> tuple[object, ...]:
    """What of an account changes rarely, so that it is written only when it did."""
    return (
        account.model,
        account.credit_limit,
        account.status,
        account.has_budget,
        account.metadata,
        account.delinquent,
        account.overdraft_limit,
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
        or lease.beat_at > lease.expires_at - lease.lease_ms * 1_000
    )


def turn(page: Page) -> None:
    """Make a page whose changes are committed ready for another batch."""
    book = page.book
    org = book.org
    if book.changed:
        org.version += 1
        book.changed = {}
    book.entries = []
    book.late_use = []
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
    counters = book.limits.counters
    return min(
        soonest,
        min(
            (
                counters[quota.quota_id].ends_at
                for quotas in book.limits.quotas.values()
                for quota in quotas
                if quota.dimension is Dimension.CREDITS_PER_WINDOW and not quota.ended_at
            ),
            default=bounds.NEVER_US,
        ),
    )
