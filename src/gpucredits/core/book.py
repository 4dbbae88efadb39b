"""The book: every row of one org that a batch of commands touches, in memory.

Owns: finding rows, noting which were changed, posting entries, taking everything back to a
savepoint (for refusals, atomic batches and dry runs), and the error for rows that make no sense.
Must not: decide anything, and knows no SQL: the store fills it and writes down what changed.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from gpucredits.core import bounds
from gpucredits.core.account import Account, lineage
from gpucredits.core.bounds import WindowBounds
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant, consumption_order
from gpucredits.core.limits import Boost, LimitChain, LimitRow, Limits, TokenBucket
from gpucredits.core.price import Price
from gpucredits.core.quota import Counter, JobLeases, Quota, Tally
from gpucredits.core.reservation import Outage, Reservation
from gpucredits.core.topup import TopUpRow

SETTLE = EntryType.SETTLE
NOBODY = (0, 0)  # on a node
Row = Account | Grant | Reservation | TopUpRow | Budget | BudgetPeriod | LimitRow


class InvariantBroken(Exception):  # noqa: N818  # it states what happened
    """The rows contradict themselves; nothing may be written on top of them."""


def invariant(holds: bool, claim: str) -> None:
    """Stop the work when a claim that can never be false is false."""
    if not holds:
        raise InvariantBroken(claim)


class NotInBook(Exception):  # noqa: N818  # not an error: whoever filled the book has to read more
    """A command turned out to need rows that were left out: fill the book in full, begin again."""


@dataclass(slots=True)
class Org:
    """The row that is locked before anything of an org changes, with the org's counters."""

    org_id: int
    path: str
    next_id: int = 1
    next_entry_id: int = 1
    clock: int = 0
    version: int = 0


class PayerMove(NamedTuple):
    """A lease that another account pays for from here on, because its payer ran short."""

    reservation_id: int
    source: str
    target: str
    held: int


class LateUse(NamedTuple):
    """Use reported after a lease had lapsed, up to the lapse; some of it may not be charged."""

    reservation_id: int
    seq: int
    used_ms: int


@dataclass(slots=True)
class Savepoint:
    """What to put back: counters, lengths of the lists, and rows as they were first touched."""

    org: Org
    entries: int
    late_use: int
    suspended: dict[str, bool]
    account_windows: dict[str, int]
    moves: int = 0
    became_own: int = 0
    rows: dict[int, tuple[Row, Row]] = field(default_factory=dict)
    added: list[Row] = field(default_factory=list)
    grants: dict[int, list[Grant]] = field(default_factory=dict)
    newly_changed: list[int] = field(default_factory=list)
    on_nodes: dict[tuple[int, str, str], tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Book:
    """Rows of one org.

    ``grants`` holds each account's grants with something left, in consumption order; ``lots`` every
    grant of the book by id.

    An account whose live reservations are all in the book is in ``complete``: whoever fills the
    book makes it so for every account whose ``due_at`` has come, so that lapsed leases are seen.
    ``suspended`` holds the paths of the org's suspended accounts, each with whether that is by
    debt alone. ``changed`` maps id(row) to row; ``moved`` has lanes whose rows beats changed.

    ``gated`` says that the org has a quota or a rate limit; then every account of the org that is
    due is in the book, so that lapsed leases count for nothing. ``counts_anew`` says that every
    live lease below the accounts whose quotas are set is in the book: new quotas count them, and
    raise NotInBook without them. ``rolled_at`` is the time to which all its accounts were brought
    forward, if they were, and ``by_payer`` has every lease by its payer, once that was asked.
    ``partial`` says that the book lacks the rows of limits that a lease's end would change, and
    quotas on what runs at once unless they are exceeded: beats that renew are decided on it, and
    all else raises NotInBook.

    ``past`` holds earlier entries that a correction needs: who repaid what an account owed, who was
    given it back, and what expired of a payment.

    ``bare`` holds accounts whose grants were left out: they limit leases here and pay for nothing.
    ``moves`` has the leases of this batch that changed payers, and ``became_own`` the paths of
    projects that were first given credits of their own.

    ``on_nodes`` has the newest lease of each job on each node, as far as the batch asks for more
    of its leases, with when it ends unless it is itself in the book. Leases without a node are on
    the node ''.

    ``windows`` bounds the leases of this server and of its pools, ``account_windows`` those of the
    org's accounts that have a bound, in ms. No bound is less than ``window_floor``. ``reshaped``
    has the leases whose window was made shorter.

    ``outages`` are those that may still matter, the oldest first. Reports before
    ``maintenance_until`` extend their leases up to it.
    """

    org: Org
    accounts: dict[int, Account] = field(default_factory=dict)
    paths: dict[str, Account] = field(default_factory=dict)
    grants: dict[int, list[Grant]] = field(default_factory=dict)
    lots: dict[int, Grant] = field(default_factory=dict)
    reservations: dict[int, Reservation] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    prices: list[Price] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    late_use: list[LateUse] = field(default_factory=list)
    changed: dict[int, Row] = field(default_factory=dict)
    moved: list[LimitChain] = field(default_factory=list)
    suspended: dict[str, bool] = field(default_factory=dict)
    gated: bool = False
    counts_anew: bool = False
    partial: bool = False
    rolled_at: int = 0
    by_payer: defaultdict[int, list[Reservation]] | None = None
    savepoint: Savepoint | None = None
    past: list[Entry] = field(default_factory=list)
    topups: dict[int, TopUpRow] = field(default_factory=dict)
    budgets: dict[int, list[Budget]] = field(default_factory=dict)
    periods: dict[int, list[BudgetPeriod]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    on_nodes: dict[tuple[int, str, str], tuple[int, int]] = field(default_factory=dict)
    bare: set[int] = field(default_factory=set)
    moves: list[PayerMove] = field(default_factory=list)
    became_own: list[str] = field(default_factory=list)
    windows: WindowBounds = field(default_factory=WindowBounds)
    account_windows: dict[str, int] = field(default_factory=dict)
    window_floor: int = bounds.WINDOW_MS_MAX
    reshaped: set[int] = field(default_factory=set)
    outages: tuple[Outage, ...] = ()
    maintenance_until: int = 0

    def bound_windows(self, windows: WindowBounds) -> None:
        """Take in the bounds on leases that hold now."""
        self.windows = windows
        self.window_floor = (
            min(windows.server_ms, *windows.pools.values(), *self.account_windows.values())
            if windows.pools or self.account_windows
            else windows.server_ms
        )

    def lease_bound(self, account: str, gpu_type: str, region: str) -> tuple[int, str]:
        """The longest that a lease may last without a report, in ms, and where that is set.

        A lease of a silent node holds its GPUs and credits until it lapses. Its window and its
        windows of escrow are bounded by the server, its pool, and every account up to the org.
        """
        windows = self.windows
        bound, where = windows.server_ms, "the server (serve --window-max-seconds)"
        of_pool = windows.pools.get((gpu_type, region), bound)
        if of_pool < bound:
            bound, where = of_pool, f"the pool {gpu_type}/{region}"
        if self.account_windows:
            for path in lineage(account):
                of_account = self.account_windows.get(path, bound)
                if of_account < bound:
                    bound, where = of_account, f"the account {path}"
        return bound, where

    def load(self, rows: Iterable[Row]) -> None:
        """Take in rows as they are stored; grants may come in any order."""
        for row in rows:
            self._index(row)
            if isinstance(row, Grant) and row.remaining:
                self.grants.setdefault(row.account_id, []).append(row)
        for lots in self.grants.values():
            lots.sort(key=consumption_order)

    def add(self, row: Row) -> None:
        """Take in a new row."""
        if self.savepoint is not None:
            self.savepoint.added.append(row)
        self._index(row)
        if isinstance(row, Grant):
            self.place(row)
        self.changed[id(row)] = row

    def learn(self, row: JobLeases) -> None:
        """Take in what was counted from other rows of the book, and is no change."""
        known = self.limits.jobs.get((row.account_id, row.job_id, row.gpu_type))
        if self.savepoint is not None and known is not row:
            self.savepoint.added.append(row)
        self.limits.jobs[row.account_id, row.job_id, row.gpu_type] = row

    def touch(self, row: Row) -> None:
        """Note that a row is about to change; call before the first change."""
        key = id(row)
        savepoint = self.savepoint
        if savepoint is not None and key not in savepoint.rows:
            savepoint.rows[key] = (row, copy(row))
            if key not in self.changed:
                savepoint.newly_changed.append(key)
        self.changed[key] = row

    def place(self, grant: Grant) -> None:
        """Put a grant where its state belongs in the order; a grant with nothing left leaves it."""
        lots = self.grants[grant.account_id]
        if self.savepoint is not None:
            self.savepoint.grants.setdefault(grant.account_id, list(lots))
        for index, lot in enumerate(lots):
            if lot is grant:
                del lots[index]
                break
        if grant.remaining:
            insort(lots, grant, key=consumption_order)

    def post(  # noqa: PLR0913  # one argument for each column of the row
        self,
        kind: EntryType,
        account: Account,
        amount: int,
        *,
        at: int,
        reserve: int = 0,
        grant_id: int = 0,
        other_id: int = 0,
        other_grant_id: int = 0,
        reservation_id: int = 0,
        seq: int = 0,
    ) -> None:
        """Append an entry, unless it moves nothing."""
        if not amount and not reserve:
            return
        org = self.org
        entry_id = org.next_entry_id
        org.next_entry_id = entry_id + 1
        self.entries.append(
            Entry(
                entry_id,
                at,
                kind,
                account.account_id,
                amount,
                reserve,
                grant_id,
                other_id,
                other_grant_id,
                reservation_id,
                seq,
            )
        )

    def post_settlement(  # positions, for speed: one for each column
        self,
        at: int,
        account_id: int,
        amount: int,
        reserve: int,
        grant_id: int,
        reservation_id: int,
        seq: int,
    ) -> None:
        """Append a heartbeat's entry, as ``post`` would, at a third of its cost."""
        org = self.org
        number = org.next_entry_id
        org.next_entry_id = number + 1
        row = (number, at, SETTLE, account_id, amount, reserve, grant_id, 0, 0, reservation_id, seq)
        self.entries.append(tuple.__new__(Entry, row))

    def next_id(self) -> int:
        """A new id, unique within the org and rising."""
        number = self.org.next_id
        self.org.next_id = number + 1
        return number

    def begin(self) -> None:
        """Remember everything from here on, so that it can be taken back."""
        invariant(self.savepoint is None, "savepoints do not nest")
        self.savepoint = Savepoint(
            copy(self.org),
            len(self.entries),
            len(self.late_use),
            self.suspended,
            self.account_windows,
            len(self.moves),
            len(self.became_own),
        )

    def keep(self) -> None:
        """Let what was done since ``begin`` stand."""
        self.savepoint = None

    def take_back(self) -> None:
        """Put everything back as it was at ``begin``."""
        savepoint, self.savepoint = self.savepoint, None
        invariant(savepoint is not None, "nothing to take back")
        assert savepoint is not None  # for the type checker
        for row in reversed(savepoint.added):
            self._forget(row)
        for row, before in savepoint.rows.values():
            put_back(row, before)
        for key in savepoint.newly_changed:
            self.changed.pop(key, None)  # gone already where it was new here
        self.on_nodes.update(savepoint.on_nodes)
        for account_id, lots in savepoint.grants.items():
            if account_id in self.accounts:
                self.grants[account_id] = lots
        put_back(self.org, savepoint.org)
        del self.entries[savepoint.entries :]
        del self.late_use[savepoint.late_use :]
        self.suspended = savepoint.suspended
        if len(self.moves) > savepoint.moves:
            del self.moves[savepoint.moves :]
            self.by_payer = None  # leases that moved are back with their payers
        del self.became_own[savepoint.became_own :]
        self.account_windows = savepoint.account_windows
        self.bound_windows(self.windows)
        self.limits.lanes.clear()
        self.rolled_at = 0

    def _index(self, row: Row) -> None:
        match row:
            case Account():
                self.accounts[row.account_id] = row
                self.paths[row.path] = row
                self.grants.setdefault(row.account_id, [])
            case Grant():
                self.lots[row.grant_id] = row
            case Reservation():
                self.reservations[row.reservation_id] = row
                if self.by_payer is not None:
                    self.by_payer[row.payer_id].append(row)
                where = (row.account_id, row.job_id, row.node)
                if self.savepoint is not None:
                    self.savepoint.on_nodes.setdefault(where, self.on_nodes.get(where, NOBODY))
                self.on_nodes[where] = (row.reservation_id, 0)
            case TopUpRow():
                self.topups[row.topup_id] = row
            case Budget():
                self.budgets.setdefault(row.account_id, []).append(row)
            case BudgetPeriod():
                self.periods.setdefault(row.budget_id, []).append(row)
            case Quota() | Counter() | Tally() | JobLeases() | TokenBucket() | Boost():
                self.gated = True
                self.limits.index(row)

    def _forget(self, row: Row) -> None:
        self.changed.pop(id(row), None)
        match row:
            case Account():
                del self.accounts[row.account_id], self.paths[row.path]
                del self.grants[row.account_id]
                self.complete.discard(row.account_id)
            case Grant():
                del self.lots[row.grant_id]  # the kept order of its account does not hold it
            case Reservation():
                del self.reservations[row.reservation_id]
                self.by_payer = None
            case TopUpRow():
                del self.topups[row.topup_id]
            case Budget():
                self.budgets[row.account_id].remove(row)
            case BudgetPeriod():
                self.periods[row.budget_id].remove(row)
            case Quota() | Counter() | Tally() | JobLeases() | TokenBucket() | Boost():
                self.limits.forget(row)


def put_back(row: Row | Org, before: Row | Org) -> None:
    """Give a row the values of its earlier copy."""
    for each in fields(row):
        setattr(row, each.name, getattr(before, each.name))
