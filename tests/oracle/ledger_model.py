"""What the ledger should do, told as plainly as possible: nothing cached, no code shared.

Every balance is summed from lots and leases each time it is asked for, and time moves by looking
for the next thing that happens, again and again. Slow, and meant to be read.
An answer is a dict; a refusal is ``{"refused": reason}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from oracle import ledger_claims

NEVER = 2**62
TOLERANCE_MS = 2_000
LATE_US = 7 * 24 * 3_600_000_000
MS_PER_HOUR = 3_600_000_000  # of thousandths of GPUs
DEBT, HOUSE = 0, -1
SOURCES = ["promo", "allowance", "transfer", "topup"]
Answer = dict[str, Any]


@dataclass
class Lot:
    """Credits with a window; ``phase`` is pending, live or over (ended, kept for claims)."""

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
    made: int = 0

    def rank(self) -> tuple[int, int, int, int, int]:
        """Its place in the order of consumption."""
        source = SOURCES.index(self.source)
        return (self.priority, self.ends, source, self.starts, self.number)

    def since(self) -> int:
        """From when on it could pay."""
        return max(self.starts, self.made)


@dataclass
class Wallet:
    """An account: what it may owe, what it owes, and whether it spends its parent's credits too."""

    path: str
    postpaid: bool
    limit: int
    suspended: bool = False
    debt: int = 0
    overrun: int = 0
    shares: bool = False
    was_given: bool = False

    def give(self) -> None:
        """Note credits of its own: from its first ones on a project spends no others."""
        if not self.was_given and self.path.count("/") == 1:
            self.shares = False
        self.was_given = True


@dataclass
class Lease:
    """A reservation; ``bills`` lists which lots paid what, in order, and ``owners`` whose.

    ``beat`` is when it last reported. ``kept`` is what it may take of lots that have ended, and
    until when the use lies that this may pay for.
    """

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
    reason: str = ""
    bills: list[tuple[int, int]] = field(default_factory=list)
    beat: int = 0
    kept: dict[int, tuple[int, int]] = field(default_factory=dict)
    owners: list[str] = field(default_factory=list)
    node: str = ""
    grace: int = 0
    authorised: int = 0

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
        """How long the hold lasts, at most a window."""
        budget = self.cost(self.used) + self.held
        return self.paid_for(budget, self.used + self.window) - self.used

    def paid_for(self, budget: int, used: int) -> int:
        """How much of some use a budget pays for, of what is not paid yet, found by halving."""
        low, high = self.used, used
        while low < high:
            middle = (low + high + 1) // 2
            if self.cost(middle) <= budget:
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
        """Lots that can pay for anything, in the order in which they do."""
        return sorted((x for x in self.holding(path) if x.phase == "live"), key=Lot.rank)

    def holding(self, path: str) -> list[Lot]:
        """Lots with something left that have begun."""
        lots = [lot for lot in self.lots if lot.owner == path and lot.phase in ("live", "over")]
        return [lot for lot in lots if lot.left]

    def reserved(self, path: str) -> int:
        """The holds of live leases."""
        return sum(
            lease.held
            for lease in self.leases.values()
            if lease.payer == path and lease.phase == "active"
        )

    def spent(self, path: str) -> int:
        """What leases were charged and not given back."""
        return sum(
            amount
            for lease in self.leases.values()
            for (_, amount), owner in zip(lease.bills, lease.owners, strict=True)
            if owner == path
        )

    def available(self, path: str) -> int:
        """What could be held now, a credit limit not counted."""
        usable = sum(lot.left for lot in self.holding(path))
        return usable - self.reserved(path) - self.wallets[path].debt

    def room(self, path: str) -> int:
        """How far the balance is above its floor."""
        wallet = self.wallets[path]
        return self.available(path) + (wallet.limit if wallet.postpaid else 0)

    def chain(self, account: str) -> list[str]:
        """Whose credits an account may spend: its own, then those that its parent may."""
        paths = [account]
        while self.wallets[paths[-1]].shares:
            paths.append(paths[-1].rpartition("/")[0])
        return paths

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
                ledger_claims.end_lot(self, self.lot(number))
            else:
                self.start_lot(self.lot(number))

    def lot(self, number: int) -> Lot:
        """A lot by its number."""
        return next(lot for lot in self.lots if lot.number == number)

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
        left = arrived - part if lot.phase == "over" else lot.left
        part = min(wallet.overrun, left, max(self.available(lot.owner), 0))
        wallet.overrun -= part
        lot.left -= part
        self.repaid.append((lot.owner, HOUSE, lot.number, part))

    def finish(self, lease: Lease, phase: str) -> int:
        """End a lease: its hold goes, and with it credits that were kept for it alone."""
        if phase == "expired":
            lease.authorised = lease.cost(lease.used) + lease.held
        released, lease.held, lease.phase = lease.held, 0, phase
        ledger_claims.keep_only(self, lease, {})
        self.collect(lease.payer)
        return released

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

    def pay(self, lease: Lease, parts: dict[int, int]) -> list[tuple[int, int]]:
        """Lots pay their parts, by which the lease claims less; a debt is a part too."""
        for number, part in parts.items():
            if number == DEBT:
                self.wallets[lease.payer].debt += part
                continue
            self.lot(number).left -= part
            if number in lease.kept:
                claim, until = lease.kept[number]
                lease.kept[number] = (claim - part, until)
        return list(parts.items())

    def bill(
        self, lease: Lease, bills: list[tuple[int, int]], uncovered: int
    ) -> list[tuple[int, int]]:
        """Note who paid, and the house for what nobody could."""
        if uncovered:
            self.wallets[lease.payer].overrun += uncovered
            bills.append((HOUSE, uncovered))
        for who, part in bills:
            if lease.bills and (lease.bills[-1][0], lease.owners[-1]) == (who, lease.payer):
                lease.bills[-1] = (who, lease.bills[-1][1] + part)
            else:
                lease.bills.append((who, part))
                lease.owners.append(lease.payer)
        return bills


def lineage(path: str) -> Iterable[str]:
    """The path, its parent, and so on up to the org."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
