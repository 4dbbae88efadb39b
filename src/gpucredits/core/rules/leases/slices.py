"""Who pays for a report: its slice of time is cut where grants started or ended.

A slice is the time from a lease's last report to this one. Use is spread evenly over the slice, as
for quota windows, and each piece is paid by the grants that could pay then, in the order they had
then. So a bill, and what is left of every grant, does not depend on how often a job reports.

Owns: the plan of a payment, and carrying it out.
Must not: decide how far a lease is renewed.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.grant import DEBT, Grant, GrantState, rank, usable_since
from gpucredits.core.money import cost
from gpucredits.core.reservation import Reservation
from gpucredits.core.rules.upkeep.claims import Kept, is_open, keep_claims, lessened
from gpucredits.core.rules.upkeep.lots import draw

ACTIVE = GrantState.ACTIVE


@dataclass(slots=True)
class Plan:
    """Who pays for a slice, and what becomes of the claims of its lease.

    ``taken`` lists (grant, amount), with grant 0 for a debt. ``still`` are the claims on use to
    come that the lease may keep if active credits do not fund its renewal. ``lost`` expires if it
    keeps them, ``lost_without`` if it does not; ``active`` is how much it may then hold.
    """

    taken: list[tuple[int, int]]
    still: tuple[Kept, ...]
    lost: int
    lost_without: int
    active: int


def plan_slice(
    book: Book, payer: Account, lease: Reservation, used_ms: int, covered: int, now: int
) -> Plan | None:
    """Who pays ``covered`` for the use up to ``used_ms``; None if simply the first in the order."""
    lots = book.grants[payer.account_id]
    if not lease.kept and all_pay_throughout(lots, lease.beat_at, covered):
        return None
    end = min(now, lease.expires_at)
    claims = {
        number: (claim, until) for number, claim, until in lease.kept if is_open(book, number)
    }
    claimed = [book.lots[number] for number in claims]
    payers = [lot for lot in lots if lot.state is ACTIVE] + claimed
    payers.sort(key=rank)
    left = {lot.grant_id: lot.remaining for lot in payers}
    untils = {lot.grant_id: end for lot in payers}
    for number, (claim, until) in claims.items():
        left[number] = min(left[number], claim)
        untils[number] = until
    taken: dict[int, int] = {}
    lacking = covered
    for since, until, due in cut(lease, used_ms, covered, end, instants_of(payers, untils)):
        able = [x for x in payers if usable_since(x) <= since and untils[x.grant_id] >= until]
        ended = [lot for lot in able if lot.expires_at <= since]  # kept for this: they pay first
        others = [lot for lot in able if lot.expires_at > since]
        lacking -= take([*ended, *others], left, taken, due)
    lacking -= take([lot for lot in payers if lot.state is ACTIVE], left, taken, lacking)
    if lacking:
        taken[DEBT] = lacking
    room = lease.held + max(payer.spendable, 0) - covered
    excess = {lot.grant_id: unclaimed(lot, claims, taken) for lot in claimed}
    stay_within(room, excess, taken)
    still = still_claimable(lease, lessened(lease.kept, taken), claims, used_ms, now)
    stays = {number: claim for number, claim, _ in still}
    lost_without = sum(excess.values())
    lost = sum(max(part - stays.get(number, 0), 0) for number, part in excess.items())
    paid = [(number, part) for number, part in taken.items() if part]
    return Plan(paid, still, lost, lost_without, room - lost_without)


def all_pay_throughout(lots: list[Grant], since: int, amount: int) -> bool:
    """Whether the first grants of the order that pay an amount could pay all the time."""
    for lot in lots:
        if amount <= 0 or lot.state is not ACTIVE:
            return True
        if usable_since(lot) > since:
            return False
        amount -= lot.remaining
    return True


def instants_of(payers: list[Grant], untils: dict[int, int]) -> set[int]:
    """When the grants that may pay change, or their order does."""
    return {
        instant
        for lot in payers
        for instant in (usable_since(lot), lot.expires_at, untils[lot.grant_id])
    }


def cut(
    lease: Reservation, used_ms: int, covered: int, end: int, instants: set[int]
) -> list[tuple[int, int, int]]:
    """The slice up to ``end`` in pieces (since, until, due), ``covered`` in all.

    What a piece costs is what the use up to its end costs, less what was due before: rounding
    changes no bill.
    """
    began, rate = lease.beat_at, lease.milli_gpus * lease.price
    more_ms, span = used_ms - lease.used_ms, end - began
    inside = sorted(instant for instant in instants if began < instant < end)
    pieces: list[tuple[int, int, int]] = []
    since, paid = began, 0
    for until in inside:
        due = cost(rate, lease.used_ms + more_ms * (until - began) // span) - lease.settled
        due = min(due, covered)
        pieces.append((since, until, due - paid))
        since, paid = until, due
    pieces.append((since, max(end, since), covered - paid))
    return pieces


def take(lots: list[Grant], left: dict[int, int], taken: dict[int, int], amount: int) -> int:
    """Plan to take an amount from grants in order, as far as they have it; returns how much."""
    missing = amount
    for lot in lots:
        if not missing:
            break
        number = lot.grant_id
        part = min(left[number], missing)
        if part:
            left[number] -= part
            taken[number] = taken.get(number, 0) + part
            missing -= part
    return amount - missing


def unclaimed(grant: Grant, claims: dict[int, tuple[int, int]], taken: dict[int, int]) -> int:
    """The rest of a held-over grant that nobody else may claim, once a lease has taken its part."""
    others = grant.claims - claims[grant.grant_id][0]
    return max(grant.remaining - taken.get(grant.grant_id, 0) - others, 0)


def stay_within(room: int, excess: dict[int, int], taken: dict[int, int]) -> None:
    """Take from claims, before they are lost, what the lease's hold has no other credits for."""
    short = sum(excess.values()) - room
    for number, part in excess.items():
        more = min(part, max(short, 0))
        short -= more
        excess[number] -= more
        taken[number] = taken.get(number, 0) + more
        for other in reversed([each for each in taken if each not in excess]):
            less = min(taken[other], more)
            taken[other] -= less
            more -= less


def still_claimable(
    lease: Reservation,
    kept: tuple[Kept, ...],
    claims: dict[int, tuple[int, int]],
    used_ms: int,
    now: int,
) -> tuple[Kept, ...]:
    """The claims on use that lies ahead: on no more than can be used until then."""
    rate = lease.milli_gpus * lease.price
    still: list[Kept] = []
    before = 0
    for until, number, claim in sorted((until, number, claim) for number, claim, until in kept):
        if until <= now or number not in claims:
            continue
        most = cost(rate, used_ms + (until - now) // 1_000) - cost(rate, used_ms)
        part = min(claim, most - before)
        if part > 0:
            still.append((number, part, until))
            before += part
    return tuple(still)


def carry_out(book: Book, payer: Account, lease: Reservation, plan: Plan) -> list[tuple[int, int]]:
    """Take what was planned; the claims of the lease become less by what they have paid."""
    parts = dict(plan.taken)
    for number, claim, _ in lease.kept:
        if number in parts and is_open(book, number):
            grant = book.lots[number]
            book.touch(grant)
            grant.claims -= min(claim, parts[number])
    lease.kept = lessened(lease.kept, parts)
    for number, part in plan.taken:
        if number == DEBT:
            payer.debt += part
        else:
            draw(book, payer, book.lots[number], part)
    return plan.taken


def keep_needed(book: Book, payer: Account, lease: Reservation, plan: Plan, now: int) -> None:
    """Once a lease is renewed: it keeps claims only where active credits do not fund its hold."""
    still: list[Kept] = []
    room = lease.held if lease.held > plan.active else 0
    for number, claim, until in plan.still:
        part = min(claim, room)
        room -= part
        if part:
            still.append((number, part, until))
    keep_claims(book, payer, lease, tuple(still), now)
