"""The rule that brings the bill of an ended lease in line with its measured use.

The difference is measured cost at the pinned price, less what was settled, less what was reconciled
before. So a second pass finds no difference, whoever makes it. Too much goes back to the grants
that paid. Too little is charged: the missing use is placed by its own time, and credits that were
active then and have expired unspent since pay first. Present credits pay the rest, as they would
for an adjustment.

Owns: the difference, and who pays for it.
Must not: say which leases are compared, or when (service/reconciliation/passes.py does).
"""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, rank, usable_since
from gpucredits.core.money import cost, format_credits, time_covered_ms
from gpucredits.core.outcome import Reconciled
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused
from gpucredits.core.reconciliation.commands import Reconcile
from gpucredits.core.reconciliation.comparison import Span, clipped, length_ms, measured_cost, union
from gpucredits.core.reservation import Reservation, ReservationState, elapsed_ms
from gpucredits.core.rule import Rule, State, Touches
from gpucredits.core.rules.credit.corrections import charge_before, charge_more, give_all_back
from gpucredits.core.rules.credit.funding import stretches
from gpucredits.core.rules.upkeep.roll import roll
from gpucredits.core.topup import TopUpStatus
from gpucredits.library.timeline import Grant as TimedGrant
from gpucredits.library.timeline import Timeline

Piece = tuple[int, int]  # when, and how much
SIGNS = {EntryType.EXPIRE: 1, EntryType.RESTORE: -1}

LEASE_ACTIVE = Refused(
    Reason.RESERVATION_ACTIVE,
    "The reservation is active. Its use can be compared with its bill after it has ended.",
)


def reconcile(book: Book, command: Reconcile, now: int) -> Reconciled | Refused:
    """Charge measured use that was not settled, or give back settled use that was not measured."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    for account_id, _, _ in stretches(lease):
        roll(book, book.accounts[account_id], now)
    if lease.state is ReservationState.ACTIVE:
        return LEASE_ACTIVE
    spans = clipped(union(command.spans), elapsed_ms(lease, lease.ended_at))
    measured_ms = length_ms(spans)
    base = lease.settled + lease.reconciled
    amount = max(measured_cost(lease, measured_ms) - base, -lease.charged)
    lots: list[tuple[int, int]] = []
    if lease.lost_ms:  # lost work was given back: nothing goes back twice, but use is charged
        amount = max(amount, 0)
    if amount < 0:
        book.touch(lease)
        lots = give_all_back(book, lease, -amount, now)
        lease.refunded -= amount
    elif amount > 0:
        lots = charge_measured(book, lease, pieces_of(lease, spans, base, base + amount), now)
        lease.adjusted += amount
    if amount:
        lease.reconciled += amount
    return Reconciled(lease.reservation_id, amount, measured_ms, lease.reconciled, tuple(lots))


def pieces_of(
    lease: Reservation, spans: tuple[Span, ...], base: int, target: int
) -> list[tuple[Span, int]]:
    """The measured intervals, as instants, that ``base`` does not pay for, with their costs.

    Settled credits pay for the first part of the measured use, so the missing use is the last part.
    """
    pieces: list[tuple[Span, int]] = []
    used_ms = 0
    for start, end in spans:
        before, after = used_ms, used_ms + end - start
        used_ms = after
        least, most = max(cost(lease.rate, before), base), min(cost(lease.rate, after), target)
        if most <= least:
            continue
        covered = min(max(time_covered_ms(lease.rate, least), before), after - 1)
        at = lease.admitted_at + (start + covered - before) * 1_000
        pieces.append(((at, lease.admitted_at + end * 1_000), most - least))
    return pieces


def charge_measured(
    book: Book, lease: Reservation, pieces: list[tuple[Span, int]], now: int
) -> list[tuple[int, int]]:
    """Charge missing use: expired credits of its time first, then present ones."""
    account = book.accounts[lease.payer_id]
    book.touch(lease)
    book.touch(account)
    lots = expired_lots(book, account, pieces, now)
    placed, left = place(lots, pieces)
    for grant_id, amount in placed:
        book.post(EntryType.RESTORE, account, amount, at=now, grant_id=grant_id)
    return charge_more(book, account, lease, left, now, restored=placed)


def expired_lots(
    book: Book, account: Account, pieces: list[tuple[Span, int]], now: int
) -> list[tuple[Grant, int]]:
    """Grants that could have paid for some of the use, with the credits that expired unspent."""
    since, until = pieces[0][0][0], pieces[-1][0][1]
    expired: dict[int, int] = {}
    for entry in (*book.past, *book.entries):
        sign = SIGNS.get(entry.type, 0)
        if sign:
            expired[entry.grant_id] = expired.get(entry.grant_id, 0) + sign * entry.amount
    return [
        (grant, expired[grant.grant_id])
        for grant in book.lots.values()
        if grant.account_id == account.account_id
        and usable_since(grant) < until
        and since < grant.expires_at <= now
        and expired.get(grant.grant_id, 0) > 0
        and not is_reversed(book, grant)
    ]


def is_reversed(book: Book, grant: Grant) -> bool:
    """Whether a grant belongs to a reversed payment; such grants may be missing."""
    taken_back = {
        each.grant_id for each in book.topups.values() if each.status is TopUpStatus.REVERSED
    }
    if not taken_back:
        return False
    origin: Grant | None = grant
    while origin is not None:
        if origin.grant_id in taken_back:
            return True
        origin = book.lots.get(origin.origin_id)
    return False


def place(
    lots: list[tuple[Grant, int]], pieces: list[tuple[Span, int]]
) -> tuple[list[tuple[int, int]], int]:
    """Which expired grants pay for use by its own time, and how much they leave.

    Use is spread evenly over its interval, cut where grants start or end.
    """
    if not lots:
        return [], sum(amount for _, amount in pieces)
    ranks = {str(grant.grant_id): rank(grant) for grant, _ in lots}

    def order(lot: TimedGrant) -> tuple[int, ...]:
        return ranks[lot.name]

    history = Timeline(order=order)
    for grant, amount in lots:
        history.add(str(grant.grant_id), amount, usable_since(grant), grant.expires_at)
    cuts = sorted({at for grant, _ in lots for at in (usable_since(grant), grant.expires_at)})
    left = 0
    for at, amount in cut_up(pieces, cuts):
        paid = min(amount, history.balance(at))
        left += amount - paid
        if paid:
            history.charge(None, paid, at)
    taken: dict[int, int] = {}
    for each in history.consumptions():
        for name, amount in each.taken:
            taken[int(name)] = taken.get(int(name), 0) + amount
    return list(taken.items()), left


def cut_up(pieces: list[tuple[Span, int]], cuts: list[int]) -> list[Piece]:
    """Use as charges at instants, each at the start of a time in which no grant starts or ends."""
    found: list[Piece] = []
    for (since, until), amount in pieces:
        paid, at = 0, since
        for instant in [*(cut for cut in cuts if since < cut < until), until]:
            so_far = amount * (instant - since) // (until - since)
            if so_far > paid:
                found.append((at, so_far - paid))
            paid, at = so_far, instant
    return found


def touches_measured(command: Reconcile) -> Touches:
    """The lease, its payers with what they paid, and what they had that expired."""
    lease = (command.reservation_id,)
    return Touches(leases=lease, corrected=lease)


def reconciled_after(org_id: int, outcome: Reconciled) -> tuple[str, State] | None:
    """The lease, and the amounts posted now and in all; None if nothing was posted."""
    if not outcome.amount:
        return None
    lease_id = ids.format_id(ids.RESERVATION, org_id, outcome.reservation_id)
    return lease_id, {
        "amount": format_credits(outcome.amount),
        "measured_ms": outcome.measured_ms,
        "reconciled": format_credits(outcome.total),
    }


RULES: tuple[Rule, ...] = (
    Rule(
        Reconcile,
        reconcile,
        touches_measured,
        "credits.reconcile",
        charge_before,
        reconciled_after,
    ),
)
