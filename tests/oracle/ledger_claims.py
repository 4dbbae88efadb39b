"""Lots that have ended, in the model: who may still take from them, and who pays for a slice.

The same plain style as ledger_model: everything is found anew each time it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oracle.ledger_model import Lease, Lot, Model

DEBT = 0
Taken = dict[int, int]


def could_have_used(lease: Lease, at: int) -> int:
    """What a lease's use since its last report may have cost by an instant, within its hold."""
    more = max(at - lease.beat, 0) // 1_000
    return max(min(lease.cost(lease.used + more) - lease.cost(lease.used), lease.held), 0)


def live(model: Model, path: str) -> list[Lease]:
    """The leases that a wallet pays for, the oldest first."""
    leases = [x for x in model.leases.values() if x.payer == path and x.phase == "active"]
    return sorted(leases, key=lambda lease: lease.number)


def claims_on(model: Model, lot: Lot) -> int:
    """What all leases together may take of a lot that has ended."""
    found = (x for x in live(model, lot.owner) if lot.number in x.kept)
    return sum(lease.kept[lot.number][0] for lease in found)


def claimed_by(model: Model, lease: Lease) -> dict[int, tuple[int, int]]:
    """The claims of a lease on lots that still have something."""
    return {n: claim for n, claim in lease.kept.items() if model.lot(n).left}


def end_lot(model: Model, lot: Lot) -> None:
    """At its end a lot loses what no live lease may claim."""
    at, leases = lot.ends, live(model, lot.owner) if lot.left else []
    used, times = unreported(model, lot, leases) if leases else (0, [])
    others = sum(x.left for x in model.holding(lot.owner)) - lot.left
    short = max(model.reserved(lot.owner) + model.wallets[lot.owner].debt - others, 0)
    kept = min(lot.left, max(used, short))
    lot.phase = "over"
    if kept:
        cut_claims(model, lot, leases)
        rooms = {
            x.number: x.held - sum(c for c, _ in claimed_by(model, x).values()) for x in leases
        }
        for x in leases:
            own = sum(could_have_used(x, b) - could_have_used(x, a) for a, b in times)
            x.kept[lot.number] = (min(own, rooms[x.number], kept), at)
        covered = min(used, claims_on(model, lot))
        for x in leases:
            if covered < short:
                room = rooms[x.number]
                covered += min(room, kept, room - min(could_have_used(x, at), room))
                x.kept[lot.number] = (min(room, kept), x.ends)
        kept = min(kept, claims_on(model, lot))
    for x in leases:
        if lot.number in x.kept and not x.kept[lot.number][0]:
            del x.kept[lot.number]
    model.lose(lot, lot.left - kept)


def unreported(model: Model, lot: Lot, leases: list[Lease]) -> tuple[int, list[tuple[int, int]]]:
    """What a lot that ends would pay of use that nobody has reported, and for which times."""
    lots = sorted(model.holding(lot.owner), key=lambda x: x.rank())
    left = {x.number: x.left for x in lots}
    first = min((lease.beat for lease in leases), default=lot.ends)
    cuts = {at for x in lots for at in (x.since(), x.ends) if first < at < lot.ends}
    times = []
    for a, b in zip([first, *sorted(cuts)], [*sorted(cuts), lot.ends], strict=True):
        due = sum(could_have_used(x, b) - could_have_used(x, a) for x in leases)
        for x in lots:
            part = min(left[x.number], due) if x.since() <= a and b <= x.ends else 0
            left[x.number] -= part
            due -= part
            if part and x is lot:
                times.append((a, b))
    return lot.left - left[lot.number], times


def cut_claims(model: Model, ending: Lot, leases: list[Lease]) -> None:
    """Claims on lots that ended before become no more than these hold, the newest lease first."""
    for lot in model.holding(ending.owner):
        if lot.phase == "over" and lot is not ending:
            for lease in reversed(leases):
                if lot.number in lease.kept:
                    claim, until = lease.kept[lot.number]
                    excess = max(claims_on(model, lot) - lot.left, 0)
                    lease.kept[lot.number] = (claim - min(claim, excess), until)


def who_pays(model: Model, lease: Lease, used: int, covered: int) -> Taken:
    """Which lots pay for a slice: those that could at each moment, in the order of then."""
    claims = claimed_by(model, lease)
    usable = model.usable(lease.payer)
    lots: list[Lot] = [*usable, *(model.lot(n) for n in claims)]
    left = {lot.number: min(lot.left, claims.get(lot.number, (lot.left, 0))[0]) for lot in lots}
    until = {lot.number: claims.get(lot.number, (0, model.now))[1] for lot in lots}
    instants = {at for x in lots for at in (x.since(), x.ends, until[x.number])}
    cuts = sorted(at for at in instants if lease.beat < at < model.now)
    taken: Taken = {}
    asked = 0
    for a, b in zip([lease.beat, *cuts], [*cuts, model.now], strict=True):
        upto = covered
        if b < model.now:
            share = (used - lease.used) * (b - lease.beat) // (model.now - lease.beat)
            upto = min(lease.cost(lease.used + share) - lease.cost(lease.used), covered)
        able = [x for x in lots if x.since() <= a and b <= until[x.number]]
        able.sort(key=lambda x: x.rank())
        due, asked = upto - asked, upto
        for ended in (True, False):  # what has ended by then is kept for this, and pays first
            due = draw_on([x for x in able if (x.ends <= a) is ended], left, taken, due)
    draw_on(usable, left, taken, covered - sum(taken.values()))
    if covered > sum(taken.values()):
        taken[DEBT] = covered - sum(taken.values())
    spare_others(model, lease, covered, taken)
    return {number: part for number, part in taken.items() if part}


def draw_on(lots: list[Lot], left: dict[int, int], taken: Taken, amount: int) -> int:
    """Count on lots in order for an amount, as far as they have it; returns what they lack."""
    for lot in lots:
        part = min(left[lot.number], amount)
        amount -= part
        left[lot.number] -= part
        if part:
            taken[lot.number] = taken.get(lot.number, 0) + part
    return amount


def spare_others(model: Model, lease: Lease, covered: int, taken: Taken) -> None:
    """What would be lost of claims, and other holds would then lack, pays before others do."""
    funds = lease.held + max(model.room(lease.payer), 0) - covered
    for number in claimed_by(model, lease):
        more = max(min(lost_of(model, lease, number, taken), lost(model, lease, taken) - funds), 0)
        taken[number] = taken.get(number, 0) + more
        for other in reversed(list(taken)):
            if other not in claimed_by(model, lease):
                less = min(more, taken[other])
                taken[other] -= less
                more -= less


def lost_of(model: Model, lease: Lease, number: int, taken: Taken, stays: int = 0) -> int:
    """What of an ended lot nobody may claim once a lease has paid and keeps ``stays``."""
    lot = model.lot(number)
    others = claims_on(model, lot) - lease.kept[number][0]
    return max(lot.left - taken.get(number, 0) - others - stays, 0)


def lost(
    model: Model, lease: Lease, taken: Taken, still: dict[int, tuple[int, int]] | None = None
) -> int:
    """The same for all ended lots that a lease has claims on."""
    stays = {number: claim for number, (claim, _) in (still or {}).items()}
    claims = claimed_by(model, lease)
    return sum(lost_of(model, lease, n, taken, stays.get(n, 0)) for n in claims)


def still_good(model: Model, lease: Lease, used: int, taken: Taken) -> dict[int, tuple[int, int]]:
    """The claims that reach beyond now, each for no more than can be used until it ends."""
    still: dict[int, tuple[int, int]] = {}
    claims = claimed_by(model, lease)
    for number in sorted(claims, key=lambda n: (claims[n][1], n)):
        claim, until = claims[number]
        ahead = lease.cost(used + max(until - model.now, 0) // 1_000) - lease.cost(used)
        before = sum(part for part, _ in still.values())
        part = min(claim - taken.get(number, 0), ahead - before)
        if until > model.now and part > 0:
            still[number] = (part, until)
    return still


def keep_only(model: Model, lease: Lease, still: dict[int, tuple[int, int]]) -> None:
    """A lease has these claims and no others; what nobody claims is lost."""
    numbers, lease.kept = list(lease.kept), dict(still)
    for number in numbers:
        lot = model.lot(number)
        model.lose(lot, max(lot.left - claims_on(model, lot), 0))


def keep_needed(model: Model, lease: Lease, still: dict[int, tuple[int, int]]) -> None:
    """A lease that was renewed keeps of its claims what its hold needs."""
    room = lease.held
    for number, (claim, until) in list(still.items()):
        still[number] = (min(claim, room), until)
        room -= min(claim, room)
        if not still[number][0]:
            del still[number]
    keep_only(model, lease, still)
