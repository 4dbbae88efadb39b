"""What the clock alone makes true of an account: leases lapse, grants end and start, budgets issue.

Owns: bringing an account forward to ``now``, in order of the instants at which things happened.
Correct whether or not anyone has done it before: reads and writes use the same function.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush

from gpucredits.core.account import Account
from gpucredits.core.book import Book, invariant
from gpucredits.core.budget import Budget
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.reservation import Reservation, ReservationState, lives_until
from gpucredits.core.rules.upkeep.budget_periods import issue_period, next_issue, roll_over
from gpucredits.core.rules.upkeep.claims import drop_claims, end, would_pay
from gpucredits.core.rules.upkeep.counting import leave
from gpucredits.core.rules.upkeep.lots import collect, start

# At one instant: leases lapse, then grants end and roll over, then grants and periods start.
LAPSE, END, START, ISSUE = 0, 1, 2, 3
LIVE = ReservationState.ACTIVE  # looked up once, as for heartbeats
Event = tuple[int, int, int, Reservation | Grant | Budget]  # instant, order, id, row


def roll(book: Book, account: Account, now: int) -> None:
    """Bring an account forward to ``now``; opens a savepoint of the book if anything is due."""
    if now < account.due_at:
        return
    invariant(account.account_id in book.complete, "a due account has all its leases in the book")
    if book.savepoint is None:
        book.begin()
    book.touch(account)
    events = due(book, account, now)
    heapify(events)
    while events:
        at, kind, _, row = heappop(events)
        made = None
        match row:
            case Reservation():
                reprieve_or_lapse(book, account, row, events, now)
            case Grant() if kind == END:
                made = finish(book, account, row, at)
            case Grant():
                start(book, account, row, at)
            case Budget():
                made = issue_period(book, account, row)
                if row.is_open and row.next_at <= now:
                    heappush(events, (row.next_at, ISSUE, row.budget_id, row))
        if made is not None and made.expires_at <= now:
            heappush(events, (made.expires_at, END, made.grant_id, made))
    account.due_at = next_due(book, account)
    account.version += 1


def finish(book: Book, account: Account, grant: Grant, at: int) -> Grant | None:
    """A grant's window ends: a budget may let some of it go on, as a grant that is returned."""
    leases = live_leases(book, account)
    used = would_pay(book, grant, leases, at)
    rolled = roll_over(book, account, grant, used.amount, at) if grant.budget_id else None
    if grant.remaining:
        end(book, account, grant, leases, used, at)
    return rolled


def due(book: Book, account: Account, now: int) -> list[Event]:
    """Everything that has come to pass and is not yet written."""
    found: list[Event] = [
        (lease.expires_at, LAPSE, lease.reservation_id, lease)
        for lease in live_leases(book, account)
        if lease.expires_at <= now
    ]
    for grant in book.grants[account.account_id]:
        if grant.state is GrantState.PENDING and grant.starts_at <= now:
            found.append((grant.starts_at, START, grant.grant_id, grant))
        if grant.state is not GrantState.HELD_OVER and grant.expires_at <= now:
            found.append((grant.expires_at, END, grant.grant_id, grant))
    found += (
        (budget.next_at, ISSUE, budget.budget_id, budget)
        for budget in book.budgets.get(account.account_id, ())
        if budget.is_open and budget.next_at <= now
    )
    return found


def next_due(book: Book, account: Account) -> int:
    """The earliest instant at which the clock may change the account again."""
    soonest = next_issue(book, account)
    for lease in live_leases(book, account):
        soonest = min(soonest, lease.expires_at)
    for grant in book.grants[account.account_id]:
        if grant.state is GrantState.PENDING:
            soonest = min(soonest, grant.starts_at)
        elif grant.state is GrantState.ACTIVE:
            soonest = min(soonest, grant.expires_at)
    return soonest


def live_leases(book: Book, account: Account) -> list[Reservation]:
    """The account's live leases, as far as they are in the book; all of it is sorted out once."""
    if book.by_payer is None:
        book.by_payer = defaultdict(list)
        for lease in book.reservations.values():
            book.by_payer[lease.payer_id].append(lease)
    return [lease for lease in book.by_payer.get(account.account_id, ()) if lease.state is LIVE]


def roll_due(book: Book, now: int) -> None:
    """Bring every account of the book forward, so that no lapsed lease counts against a limit."""
    if book.rolled_at == now:
        return
    for account in list(book.accounts.values()):
        roll(book, account, now)
    book.rolled_at = now


def reprieve_or_lapse(
    book: Book, account: Account, lease: Reservation, events: list[Event], now: int
) -> None:
    """End a lease whose time is over, unless an outage kept it from reporting and it still may."""
    if not reprieve(book, lease):
        lapse(book, account, lease, now, seq=0)
    elif lease.expires_at <= now:
        heappush(events, (lease.expires_at, LAPSE, lease.reservation_id, lease))


def reprieve(book: Book, lease: Reservation) -> bool:
    """Let a lease live that could not report during an outage, if it still has time for that.

    What is kept of ended grants up to the lease's end is kept as long as the lease lives.
    """
    before = lease.expires_at
    more_ms = (lives_until(lease, book.outages) - before) // 1_000
    if more_ms <= 0:
        return False
    book.touch(lease)
    lease.reprieve_ms += more_ms
    lease.expires_at = end = before + more_ms * 1_000
    lease.kept = tuple(
        (number, claim, end if until == before else until) for number, claim, until in lease.kept
    )
    return True


def lapse(book: Book, account: Account, lease: Reservation, now: int, *, seq: int) -> None:
    """A lease ended, by the clock or the report ``seq``: its hold goes, what was settled stays."""
    at = lease.expires_at
    book.touch(lease)
    lease.authorised = lease.settled + lease.ahead
    release(book, account, lease, at, now, seq=seq)
    lease.state = ReservationState.EXPIRED
    lease.ended_at = at
    drop_claims(book, account, lease, at)
    collect(book, account, at)


def release(
    book: Book, account: Account, lease: Reservation, at: int, now: int, *, seq: int
) -> int:
    """Give a lease's hold back to its payer, and its slots to its quotas; returns how much."""
    book.touch(lease)
    book.touch(account)
    released = lease.held
    if book.gated:
        leave(book, lease, now)
    account.reserved -= released
    account.promised -= lease.promised
    lease.held = lease.promised = 0
    book.post(
        EntryType.RELEASE,
        account,
        released,
        at=at,
        reservation_id=lease.reservation_id,
        seq=seq,
    )
    return released
