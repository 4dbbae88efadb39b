"""What the ledger should do, told as plainly as possible: nothing cached, no code shared.

Every balance is summed from lots and leases each time it is asked for, and time moves by looking
for the next thing that happens, again and again. Slow, and meant to be read.
An answer is a dict; a refusal is ``{"refused": reason}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

NEVER = 2**62
TOLERANCE_MS = 2_000
MS_PER_HOUR = 3_600_000
DEBT, HOUSE = 0, -1
SOURCES = ["promo", "allowance", "transfer", "topup"]
Answer = dict[str, Any]


@dataclass
class Lot:
    """Credits with a window; ``phase`` is pending, live or over (ended, kept for holds)."""

    number: int
    owner: str
    amount: int
    left: int
    starts: int
    ends: int
    priority: int = 100
    source: str = "allowance"
    origin: int = 0
    phase: str = "pending"
    expired: int = 0

    def rank(self) -> tuple[bool, int, int, int, int, int]:
        """Its place in the order of consumption."""
        source = SOURCES.index(self.source)
        over_first = self.phase != "over"
        return (over_first, self.priority, self.ends, source, self.starts, self.number)


@dataclass
class Wallet:
    """An account: what it may owe, and what it owes."""

    path: str
    postpaid: bool
    limit: int
    suspended: bool = False
    debt: int = 0
    overrun: int = 0


@dataclass
class Lease:
    """A reservation; ``bills`` lists who paid what, in order."""

    number: int
    account: str
    payer: str
    rate: int
    window: int
    cap: int
    admitted: int
    ends: int = 0
    held: int = 0
    used: int = 0
    seq: int = 0
    phase: str = "active"
    decision: str = "continue"
    bills: list[tuple[int, int]] = field(default_factory=list)

    def cost(self, used: int) -> int:
        """What so much use costs in all."""
        return self.rate * used // MS_PER_HOUR

    def charged(self) -> int:
        """What was charged and not given back."""
        return sum(amount for _, amount in self.bills)

    def wanted(self) -> int:
        """The hold that pays for one window more."""
        ahead = self.cost(self.used + self.window)
        return max((min(ahead, self.cap) if self.cap else ahead) - self.cost(self.used), 0)

    def funded_ms(self) -> int:
        """How long the hold lasts, at most a window, found by halving."""
        budget = self.cost(self.used) + self.held
        low, high = 0, self.window
        while low < high:
            middle = (low + high + 1) // 2
            if self.cost(self.used + middle) <= budget:
                low = middle
            else:
                high = middle - 1
        return low


@dataclass
class Model:
    """The whole ledger of one org."""

    now: int
    wallets: dict[str, Wallet] = field(default_factory=dict)
    lots: list[Lot] = field(default_factory=list)
    leases: dict[int, Lease] = field(default_factory=dict)
    payments: dict[int, Answer] = field(default_factory=dict)
    prices: list[tuple[str, str, int]] = field(default_factory=list)  # gpu type, account, price
    late: list[tuple[int, int, int]] = field(default_factory=list)
    repaid: list[tuple[str, int, int, int]] = field(default_factory=list)  # whose, what, lot, part
    last_number: int = 0

    def number(self) -> int:
        """The next number of the org."""
        self.last_number += 1
        return self.last_number

    # ---- sums -------------------------------------------------------------------------------

    def usable(self, path: str) -> list[Lot]:
        """Lots that can pay, in the order in which they do."""
        lots = [lot for lot in self.lots if lot.owner == path and lot.phase in ("live", "over")]
        return sorted((lot for lot in lots if lot.left), key=Lot.rank)

    def reserved(self, path: str) -> int:
        """The holds of live leases."""
        return sum(
            lease.held
            for lease in self.leases.values()
            if lease.payer == path and lease.phase == "active"
        )

    def spent(self, path: str) -> int:
        """What leases were charged and not given back."""
        return sum(lease.charged() for lease in self.leases.values() if lease.payer == path)

    def available(self, path: str) -> int:
        """What could be held now, a credit limit not counted."""
        usable = sum(lot.left for lot in self.usable(path))
        return usable - self.reserved(path) - self.wallets[path].debt

    def room(self, path: str) -> int:
        """How far the balance is above its floor."""
        wallet = self.wallets[path]
        return self.available(path) + (wallet.limit if wallet.postpaid else 0)

    # ---- time -------------------------------------------------------------------------------

    def boundaries(self) -> list[tuple[int, int, int]]:
        """(instant, order at one instant, number) of everything that lies ahead."""
        return [
            *((lease.ends, 0, n) for n, lease in self.leases.items() if lease.phase == "active"),
            *((lot.ends, 1, lot.number) for lot in self.lots if lot.phase in ("pending", "live")),
            *((lot.starts, 2, lot.number) for lot in self.lots if lot.phase == "pending"),
        ]

    def advance(self, now: int) -> None:
        """Let everything happen that happens by ``now``, one thing at a time."""
        self.now = now
        while due := [item for item in self.boundaries() if item[0] <= now]:
            _, order, number = min(due)
            if order == 0:
                self.finish(self.leases[number], "expired")
            elif order == 1:
                self.end_lot(self.lot(number))
            else:
                self.start_lot(self.lot(number))

    def lot(self, number: int) -> Lot:
        """A lot by its number."""
        return next(lot for lot in self.lots if lot.number == number)

    def end_lot(self, lot: Lot) -> None:
        """At its end a lot loses what no hold needs."""
        self.lose(lot, min(lot.left, max(self.available(lot.owner), 0)))
        lot.phase = "over"

    def lose(self, lot: Lot, part: int) -> None:
        """Credits of a lot expire unused."""
        lot.left -= part
        lot.expired += part

    def start_lot(self, lot: Lot) -> None:
        """At its start a lot pays what its account owes."""
        lot.phase = "live"
        self.repay(lot, lot.left)

    def repay(self, lot: Lot, arrived: int) -> None:
        """Credits that arrive in a lot repay debt first, then what the house covered."""
        wallet = self.wallets[lot.owner]
        part = min(wallet.debt, arrived)
        wallet.debt -= part
        lot.left -= part
        self.repaid.append((lot.owner, DEBT, lot.number, part))
        part = min(wallet.overrun, lot.left, max(self.available(lot.owner), 0))
        wallet.overrun -= part
        lot.left -= part
        self.repaid.append((lot.owner, HOUSE, lot.number, part))

    def finish(self, lease: Lease, phase: str) -> int:
        """End a lease: its hold goes, and with it credits that were kept for it alone."""
        released, lease.held, lease.phase = lease.held, 0, phase
        self.let_go(lease, released)
        self.collect(lease.payer)
        return released

    def let_go(self, lease: Lease, released: int) -> None:
        """Credits kept for a hold that was let go of expire, those that ended first before others.

        Kept for it are those that ended while it ran. Whoever let go: none are kept for nobody.
        """
        path = lease.payer
        over = [lot for lot in self.usable(path) if lot.phase == "over"]
        over.sort(key=lambda lot: lot.ends)
        budget = min(released, self.available(path))
        for lot in over:
            if lease.admitted < lot.ends and budget > 0:
                part = min(lot.left, budget)
                self.lose(lot, part)
                budget -= part
        for lot in over:
            useless = sum(lot.left for lot in over) - self.reserved(path)
            self.lose(lot, min(lot.left, max(useless, 0)))

    def collect(self, path: str) -> None:
        """The house takes what it is owed from what is free."""
        wallet = self.wallets[path]
        due = min(wallet.overrun, max(self.available(path), 0))
        wallet.overrun -= due
        for lot in self.usable(path):
            part = min(lot.left, due)
            lot.left -= part
            due -= part
            self.repaid.append((path, HOUSE, lot.number, part))

    def take(self, path: str, amount: int) -> list[tuple[int, int]]:
        """Take credits in order; what the floor allows beyond them is debt, the house the rest."""
        wallet = self.wallets[path]
        bills = []
        for lot in self.usable(path):
            part = min(lot.left, amount)
            if part:
                bills.append((lot.number, part))
            lot.left -= part
            amount -= part
        if amount:
            wallet.debt += amount
            bills.append((DEBT, amount))
        return bills

    def charge(self, lease: Lease, amount: int, funds: int) -> list[tuple[int, int]]:
        """Charge a lease: the payer as far as its funds go, the house beyond."""
        bills = self.take(lease.payer, min(amount, funds))
        if amount > funds:
            self.wallets[lease.payer].overrun += amount - funds
            bills.append((HOUSE, amount - funds))
        for who, part in bills:
            if lease.bills and lease.bills[-1][0] == who:
                lease.bills[-1] = (who, lease.bills[-1][1] + part)
            else:
                lease.bills.append((who, part))
        return bills


def lineage(path: str) -> Iterable[str]:
    """The path, its parent, and so on up to the org."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
