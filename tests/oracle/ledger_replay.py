"""A second set of books: replays the entries alone and compares with the rows the rules keep.

Shares no code with the ledger; types are known by their stored numbers. ``feed`` checks every
row of the ledger as it comes, ``check`` compares the sums with the rows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

AVAILABLE, RESERVED, SPENT, OTHER = "available", "reserved", "spent", "other"
ISSUE, TOPUP, TRANSFER, RESERVE, RELEASE, SETTLE, REFUND = 1, 2, 3, 4, 5, 6, 7
EXPIRE, ADJUST, OVERRUN, COLLECT, REPAY, REVERSE = 8, 9, 10, 11, 12, 13
RESTORE, WITHDRAW = 14, 15
FROM_TO = {
    ISSUE: ("issuance", AVAILABLE),
    TOPUP: ("payments", AVAILABLE),
    TRANSFER: (AVAILABLE, OTHER),
    RESERVE: (AVAILABLE, RESERVED),
    RELEASE: (RESERVED, AVAILABLE),
    SETTLE: (RESERVED, SPENT),
    REFUND: (SPENT, AVAILABLE),
    EXPIRE: (AVAILABLE, "expired"),
    ADJUST: (AVAILABLE, SPENT),
    OVERRUN: ("house", AVAILABLE),
    COLLECT: (AVAILABLE, "house"),
    REPAY: (AVAILABLE, AVAILABLE),
    REVERSE: (AVAILABLE, "payments"),
    RESTORE: ("expired", AVAILABLE),
    WITHDRAW: (AVAILABLE, "issuance"),
}
INTO_GRANT = {ISSUE, TOPUP, REFUND, RESTORE}
OUT_OF_GRANT = {TRANSFER, SETTLE, EXPIRE, ADJUST, COLLECT, REPAY, REVERSE, WITHDRAW}
HELD_OVER, ACTIVE, PENDING = 0, 1, 2
MS_PER_HOUR = 3_600_000


class Replay:
    """Balances as the entries alone give them."""

    def __init__(self) -> None:
        self.next_entry = 1
        self.balance: dict[tuple[int, str], int] = defaultdict(int)
        self.grant: dict[int, int] = defaultdict(int)
        self.debt: dict[int, int] = defaultdict(int)
        self.overrun: dict[int, int] = defaultdict(int)
        self.net_in: dict[int, int] = defaultdict(int)
        self.held: dict[int, int] = defaultdict(int)
        self.settled: dict[int, int] = defaultdict(int)
        self.adjusted: dict[int, int] = defaultdict(int)
        self.refunded: dict[int, int] = defaultdict(int)
        self.step = 0
        self.floors: dict[int, int] = {}
        self.reports: dict[tuple[int, int], int] = {}

    def next_step(self) -> None:
        """What is fed from here on was done by another command."""
        self.step += 1

    def feed(self, entry: Any, floors: dict[int, int]) -> None:
        """Apply one row: its reserve pair first, then the pair of its type."""
        self.floors = floors  # of who stands below a limit that was lowered: where that was
        assert entry.entry_id == self.next_entry, "entry ids have no gaps"
        self.next_entry += 1
        assert entry.amount > 0, "an entry moves something"
        account, kind = entry.account_id, int(entry.type)
        if entry.seq:
            report = (entry.reservation_id, entry.seq)
            assert self.reports.setdefault(report, self.step) == self.step, "a report counts once"
        if entry.reserve:
            assert kind == SETTLE, "only a settlement carries a renewal"
            self._move(account, AVAILABLE, RESERVED, entry.reserve)
            self.held[entry.reservation_id] += entry.reserve
            self._check_floors(entry, floors)
        source, target = FROM_TO[kind]
        if kind == TRANSFER:
            self.balance[account, AVAILABLE] -= entry.amount
            self.balance[entry.other_id, AVAILABLE] += entry.amount
            self.net_in[account] -= entry.amount
            self.net_in[entry.other_id] += entry.amount
            self.grant[entry.other_grant_id] += entry.amount
        else:
            self._move(account, source, target, entry.amount)
        self._move_lots(account, kind, entry)
        self._check_floors(entry, floors)

    def check(self, book: Any) -> None:
        """Compare every row of a book with the replay."""
        assert book.org.next_entry_id == self.next_entry
        assert sum(self.balance.values()) == 0, "debits equal credits over the ledger"
        for account in book.accounts.values():
            self._check_account(book, account)
        for grant in book.lots.values():
            assert 0 <= grant.remaining <= grant.amount, grant
            expected = 0 if int(grant.state) == PENDING else grant.remaining
            assert self.grant[grant.grant_id] == expected, grant
        for lease in book.reservations.values():
            self._check_lease(lease)

    def _move(self, account: int, source: str, target: str, amount: int) -> None:
        buckets = (AVAILABLE, RESERVED, SPENT)
        self.balance[account, source] -= amount
        self.balance[account, target] += amount
        if source not in buckets:
            self.net_in[account] += amount
        if target not in buckets:
            self.net_in[account] -= amount

    def _move_lots(self, account: int, kind: int, entry: Any) -> None:
        amount, grant, lease = entry.amount, entry.grant_id, entry.reservation_id
        if grant > 0 and kind in INTO_GRANT:
            self.grant[grant] += amount
        if kind == REFUND and entry.other_grant_id:
            assert grant <= 0, "only what was owed goes back to another than paid"
            self.grant[entry.other_grant_id] += amount
        if grant > 0 and kind in OUT_OF_GRANT:
            self.grant[grant] -= amount
            assert self.grant[grant] >= 0, "a grant pays no more than it has"
        if grant == 0 and kind in {SETTLE, ADJUST, REVERSE}:
            self.debt[account] += amount
        if kind == REPAY or (grant == 0 and kind == REFUND and not entry.other_grant_id):
            self.debt[account] -= amount
        if kind in {OVERRUN, COLLECT}:
            self.overrun[account] += amount if kind == OVERRUN else -amount
        if kind in {RESERVE, RELEASE, SETTLE}:
            self.held[lease] += amount if kind == RESERVE else -amount
        totals = {SETTLE: self.settled, ADJUST: self.adjusted, REFUND: self.refunded}.get(kind)
        if totals is not None:
            totals[lease] += amount

    def _check_floors(self, entry: Any, floors: dict[int, int]) -> None:
        for account in {entry.account_id, entry.other_id} - {0}:
            available = self.balance[account, AVAILABLE]
            assert available >= floors[account], ("available keeps its floor", entry, available)
            assert self.balance[account, RESERVED] >= 0, entry
            assert self.balance[account, SPENT] >= 0, entry
            assert self.debt[account] >= 0, entry
            assert self.overrun[account] >= 0, entry

    def _check_account(self, book: Any, account: Any) -> None:
        number = account.account_id
        available, reserved, spent = (
            self.balance[number, bucket] for bucket in (AVAILABLE, RESERVED, SPENT)
        )
        lots = [lot for lot in book.lots.values() if lot.account_id == number]
        remaining = sum(lot.remaining for lot in lots if int(lot.state) in {HELD_OVER, ACTIVE})
        held_over = sum(lot.remaining for lot in lots if int(lot.state) == HELD_OVER)
        holds = sum(
            lease.held
            for lease in book.reservations.values()
            if lease.payer_id == number and int(lease.state) == 0
        )
        assert available + reserved + spent == self.net_in[number]
        assert available + reserved == remaining - self.debt[number]
        assert available == account.remaining - account.reserved - account.debt, account
        floor = -account.credit_limit if int(account.model) else 0
        assert available >= min(floor, self.floors.get(number, 0)), account
        assert (reserved, spent) == (account.reserved, account.spent), account
        assert (self.debt[number], self.overrun[number]) == (account.debt, account.overrun)
        assert remaining == account.remaining, account
        assert reserved == holds, "reserved is the sum of live holds"
        assert held_over <= reserved, "nothing is held over but for a hold"
        assert not account.debt or remaining == held_over, "only who has used up all owes"

    def _check_lease(self, lease: Any) -> None:
        number = lease.reservation_id
        formula = lease.milli_gpus * lease.price * lease.used_ms // (1_000 * MS_PER_HOUR)
        assert lease.settled == formula, "settled is the cost of the accepted use"
        assert self.settled[number] == formula, lease
        assert self.held[number] == lease.held, lease
        assert int(lease.state) == 0 or lease.held == 0, "an ended lease holds nothing"
        assert self.adjusted[number] == lease.adjusted, lease
        assert self.refunded[number] == lease.refunded, lease
        still_paid = lease.settled + lease.adjusted - lease.refunded
        assert sum(amount for _, amount in lease.paid) == still_paid, lease
