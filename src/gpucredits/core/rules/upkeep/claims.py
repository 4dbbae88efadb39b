"""Claims: what live leases may still take of a grant that has ended.

A lease reports what it used some time after it used it. When a grant ends, the part that leases may
have used before and not reported is held over; each of these leases has a claim on it. Where the
account cannot back its holds without the grant, claims go as far as the holds, until the present
ends of their leases. Several leases may claim the same credits: who reports first takes what it
needs, up to its own claim.

Owns: what is held over at a grant's end, and what expires when claims go. Two things stay true: a
held-over grant holds no more than its claims, and the claims of a lease are no more than its hold.
So credits that are held over back holds that are there, and nobody else counts on them.
Must not: say what a report is paid from (slices does).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter

from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.grant import Grant, GrantState, rank, usable_since
from gpucredits.core.money import cost
from gpucredits.core.reservation import Reservation
from gpucredits.core.rules.upkeep.lots import expire

Kept = tuple[int, int, int]  # grant, claim, until when the use lies that it may pay for


def unreported(lease: Reservation, at: int) -> int:
    """The cost of what a lease may have used by an instant and not reported, within its hold."""
    elapsed_ms = max(at - lease.beat_at, 0) // 1_000
    used = cost(lease.milli_gpus * lease.price, lease.used_ms + elapsed_ms)
    return max(min(used - lease.settled, lease.held), 0)


@dataclass(slots=True)
class Unreported:
    """What a grant that ends would pay of use that is not reported, and for which times."""

    amount: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    def of(self, lease: Reservation) -> int:
        """The cost of one lease in these times, if it ran all the time."""
        return sum(
            unreported(lease, until) - unreported(lease, since) for since, until in self.spans
        )


def would_pay(book: Book, grant: Grant, leases: list[Reservation], at: int) -> Unreported:
    """What a grant that ends now would pay of all unreported use, if leases ran all the time.

    Time is cut where grants start or end; within each piece the same grants pay, in their order.
    """
    found = Unreported()
    since = min((lease.beat_at for lease in leases), default=at)
    lots = [lot for lot in book.grants[grant.account_id] if lot.state is not GrantState.PENDING]
    lots.sort(key=rank)
    instants = {instant for lot in lots for instant in (usable_since(lot), lot.expires_at)}
    left = {lot.grant_id: lot.remaining for lot in lots}
    used = 0
    for until in sorted(instant for instant in {*instants, at} if since < instant <= at):
        total = sum(unreported(lease, until) for lease in leases)
        due = total - used
        used = total
        for lot in lots:
            if usable_since(lot) <= since and lot.expires_at >= until:
                part = min(left[lot.grant_id], due)
                left[lot.grant_id] -= part
                due -= part
                if lot is grant and part:
                    found.amount += part
                    found.spans.append((since, until))
        since = until
    return found


def end(
    book: Book, account: Account, grant: Grant, leases: list[Reservation], used: Unreported, at: int
) -> None:
    """A grant's window has ended: what no live lease may claim expires, the rest is held over."""
    others = account.remaining - grant.remaining
    shortage = max(account.reserved + account.debt - others, 0)
    kept = min(grant.remaining, max(used.amount, shortage))
    if kept:
        kept = give_claims(book, grant, leases, kept, used, shortage, at)
    expire(book, account, grant, grant.remaining - kept, at)


def give_claims(  # how much there is to claim, for use before the end and for holds
    book: Book,
    grant: Grant,
    leases: list[Reservation],
    kept: int,
    used: Unreported,
    shortage: int,
    at: int,
) -> int:
    """Note who may claim how much of what is kept, until when; returns how much can be claimed.

    Claims for use before the end come first. As long as holds are short of credits, leases, the
    oldest first, get claims on what they may use up to their present ends.
    """
    leases = sorted(leases, key=attrgetter("reservation_id"))
    tighten(book, grant, leases)
    claimed: dict[int, Kept] = {}
    rooms: dict[int, int] = {}
    for lease in leases:
        number = lease.reservation_id
        room = lease.held - sum(claim for other, claim, _ in lease.kept if is_open(book, other))
        rooms[number] = room
        claimed[number] = (grant.grant_id, min(used.of(lease), room, kept), at)
    covered = min(used.amount, sum(claim for _, claim, _ in claimed.values()))
    for lease in leases:
        if covered >= shortage:
            break
        number = lease.reservation_id
        most = min(rooms[number], kept)
        covered += min(most, rooms[number] - min(unreported(lease, at), rooms[number]))
        claimed[number] = (grant.grant_id, most, lease.expires_at)
    book.touch(grant)
    for lease in leases:
        item = claimed[lease.reservation_id]
        if item[1]:
            book.touch(lease)
            lease.kept = (*lease.kept, item)
            grant.claims += item[1]
    return min(kept, grant.claims)


def is_open(book: Book, grant_id: int) -> bool:
    """Whether there is something left to claim of a grant."""
    grant = book.lots.get(grant_id)
    return grant is not None and grant.state is GrantState.HELD_OVER and grant.remaining > 0


def tighten(book: Book, grant: Grant, leases: list[Reservation]) -> None:
    """Cut claims on grants that ended earlier to what these hold, those of the newest first.

    Holds then have room for claims on another grant.
    """
    for lot in book.grants[grant.account_id]:
        excess = lot.claims - lot.remaining
        if lot.state is not GrantState.HELD_OVER or excess <= 0:
            continue
        book.touch(lot)
        for lease in reversed(leases):
            for number, claim, _ in lease.kept:
                if number == lot.grant_id and excess:
                    cut = min(claim, excess)
                    excess -= cut
                    lot.claims -= cut
                    book.touch(lease)
                    lease.kept = lessened(lease.kept, {number: cut})


def lessened(kept: tuple[Kept, ...], parts: dict[int, int]) -> tuple[Kept, ...]:
    """Claims less some parts of them, by grant; a claim on nothing is none."""
    return tuple(
        (number, claim - parts.get(number, 0), until)
        for number, claim, until in kept
        if claim > parts.get(number, 0)
    )


def keep_claims(
    book: Book, account: Account, lease: Reservation, kept: tuple[Kept, ...], at: int
) -> None:
    """Leave a lease no claims but these; what nobody may claim any longer expires."""
    if not lease.kept:
        return
    stays = {number: claim for number, claim, _ in kept}
    book.touch(lease)
    for number, claim, _ in lease.kept:
        if not is_open(book, number):
            continue
        grant = book.lots[number]
        book.touch(grant)
        grant.claims += stays.get(number, 0) - claim
        if grant.remaining > grant.claims:
            expire(book, account, grant, grant.remaining - grant.claims, at)
    lease.kept = kept


def drop_claims(book: Book, account: Account, lease: Reservation, at: int) -> None:
    """A lease ends or is paid for by somebody else: whatever was kept for it alone expires."""
    keep_claims(book, account, lease, (), at)
