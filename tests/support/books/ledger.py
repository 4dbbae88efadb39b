"""A ledger in memory, for tests of the rules: one org, a clock that tests move, and a book.

A kept ledger holds every row in one book from first to last. A fresh one reads, before each
command, copies of only those rows that a store would load, so that no rule can lean on leftovers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from typing import Any, TypeVar

from gpucredits.core import command as commands
from gpucredits.core.account import Account, Status, is_below
from gpucredits.core.book import Book, NotInBook, Org, Row
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.command import Command
from gpucredits.core.decide import decide, roll
from gpucredits.core.entry import Entry, EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.limits import Boost, TokenBucket
from gpucredits.core.outcome import Granted, Outcome, Reserved, ToppedUp
from gpucredits.core.price import Price
from gpucredits.core.quota import Counter, JobLeases, Quota, Tally
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reconciliation.commands import Reconcile, RefundLostWork
from gpucredits.core.reservation import Outage, Reservation, ReservationState
from gpucredits.core.rules.credit.funding import stretches
from gpucredits.core.rules.upkeep.counting import add_leases
from gpucredits.core.topup import TopUpRow

CREDIT = 1_000_000
MS = 1_000
SECOND = 1_000_000
START = 1_750_000_000 * SECOND


Expected = TypeVar("Expected", bound=Outcome)


def stored_policies(book: Book) -> Iterator[Row]:
    """Every budget, quota, count, bucket and boost of a book."""
    for by_owner in (book.budgets, book.periods, book.limits.quotas, book.limits.boosts):
        for rows in by_owner.values():
            yield from rows
    yield from book.limits.counters.values()
    yield from book.limits.buckets.values()
    for tallies in book.limits.tallies.values():
        yield from tallies.values()


def changed_rows(book: Book) -> list[Row]:
    """Every row that has changed, with what beats have moved."""
    rows = dict(book.changed)
    for lane in book.moved:
        rows |= {id(counter): counter for counter in lane.counters}
        rows |= {id(bucket): bucket for bucket, _, _ in lane.buckets}
    return list(rows.values())


def put(rows: list[Any], row: Row, key: str) -> None:
    """Put a row in the place of an older version of it, or at the end."""
    for index, known in enumerate(rows):
        if getattr(known, key) == getattr(row, key):
            rows[index] = row
            return
    rows.append(row)


def keep_policy(book: Book, row: Row) -> None:
    """Keep the new version of a budget, a limit, or what it has counted."""
    match row:
        case Budget():
            put(book.budgets.setdefault(row.account_id, []), row, "budget_id")
        case BudgetPeriod():
            put(book.periods.setdefault(row.budget_id, []), row, "starts_at")
        case Quota():
            put(book.limits.quotas.setdefault(row.account_id, []), row, "quota_id")
        case Boost():
            put(book.limits.boosts.setdefault(row.target_id, []), row, "boost_id")
        case TokenBucket():
            book.limits.buckets[row.account_id] = row
        case Counter() | Tally():
            book.limits.index(row)
        case _:
            pass  # leases of jobs are counted from the reservations whenever they are needed


def counted_path(command: Command) -> str:
    """The account below which a command sees what runs: new quotas do, and suspensions."""
    match command:
        case commands.SetQuota() | commands.ReplaceQuotas():
            return command.account
        case commands.UpdateAccount() | commands.ReviewStanding():
            return command.path
        case _:
            return ""


CORRECTS = (commands.Refund, Reconcile, RefundLostWork)


class Ledger:
    """One org's rows and a clock; ``do`` decides a command at ``now``."""

    def __init__(self, *, fresh: bool = False) -> None:
        self.fresh = fresh
        self.now = START
        self.stored = Book(Org(1, "acme"), counts_anew=True)
        self.batch = self.stored

    def do(self, command: Command) -> Outcome:
        """Decide a command; a fresh ledger loads what it touches and saves what it changed."""
        if not self.fresh:
            return decide(self.stored, command, self.now)
        self.batch = self._load(command)
        try:
            outcome = decide(self.batch, command, self.now)
        except NotInBook:
            self.batch = self._load(command, counts_anew=True)
            outcome = decide(self.batch, command, self.now)
        if isinstance(outcome, Refused):
            assert not self.batch.changed, "a refusal changes no row"
            assert not self.batch.entries, "a refusal posts no entry"
            assert self.batch.org == self.stored.org, "a refusal uses up no number"
        assert self.batch.savepoint is None
        self._save()
        return deepcopy(outcome)

    def accept(self, command: Command, kind: type[Expected]) -> Expected:
        """Decide a command that must be accepted, and say what sort of outcome it has."""
        outcome = self.do(command)
        assert isinstance(outcome, kind), outcome
        return outcome

    def refuse(self, command: Command) -> Refused:
        """Decide a command that must be refused and must change nothing."""
        before = self.dump()
        outcome = self.do(command)
        assert isinstance(outcome, Refused), outcome
        assert self.dump() == before, "a refusal leaves everything as it was"
        return outcome

    def reason(self, command: Command) -> Reason:
        """Why a command is refused."""
        return self.refuse(command).reason

    def wait(self, *, s: float = 0, ms: int = 0, us: int = 0) -> None:
        """Let time pass."""
        self.now += round(s * SECOND) + ms * MS + us

    def away(self, *, s: float, grace_ms: int = 120_000) -> None:
        """Let time pass in which no server lives; it ends now."""
        since = self.now
        self.wait(s=s)
        self.stored.outages += (Outage(since, self.now, grace_ms),)

    def maintain(self, *, s: float) -> None:
        """Announce a planned stop of so many seconds from now on, or end it with 0."""
        self.stored.maintenance_until = self.now + round(s * SECOND) if s else 0

    def open(self, path: str, **fields: object) -> Account:
        """Create an account that must be new."""
        command = commands.CreateAccount(path=path, **fields)  # type: ignore[arg-type]
        self.do(command)
        return self.account(path)

    def grant(self, account: str, amount: int, **fields: object) -> Grant:
        """Issue a grant that must be accepted."""
        command = commands.Issue(account=account, amount=amount, **fields)  # type: ignore[arg-type]
        return self.accept(command, Granted).grant

    def lease(self, account: str, **fields: object) -> Reservation:
        """Reserve what must be admitted: one h100 for the default window unless told.

        Every lease is on a node of its own unless told.
        """
        node = f"node-{len(self.stored.reservations) + 1}"
        given: dict[str, object] = {"job_id": "job", "gpu_type": "h100", "milli_gpus": 1_000}
        given |= {"node": node, **fields}
        command = commands.Reserve(account=account, **given)  # type: ignore[arg-type]
        return self.accept(command, Reserved).reservation

    def pay(self, account: str, amount: int, **fields: object) -> ToppedUp:
        """Top up by a payment that has arrived."""
        command = commands.TopUp(
            account=account,
            amount=amount,
            payment_reference=f"p-{len(self.stored.topups)}",
            confirmed=True,
            **fields,  # type: ignore[arg-type]
        )
        return self.accept(command, ToppedUp)

    def price(self, gpu_type: str, per_hour: int, *, since: int = 0, account: str = "") -> None:
        """Put a price in force."""
        prices = self.stored.prices
        prices.append(Price(len(prices) + 1, gpu_type, "default", per_hour, since, account))

    def view(self) -> Book:
        """What a reader sees now: a copy of every row, rolled forward, with nothing written."""
        book = self.copied()
        for account in book.accounts.values():
            roll(book, account, self.now)
        return book

    def copied(self) -> Book:
        """A copy of every row."""
        stored = self.stored
        book = Book(copy(stored.org), complete=set(stored.accounts), counts_anew=True)
        for rows in (stored.accounts, stored.lots, stored.reservations, stored.topups):
            book.load(copy(row) for row in rows.values())
        book.load(copy(row) for row in stored_policies(stored))
        book.load(self._jobs(book))
        book.outages, book.maintenance_until = stored.outages, stored.maintenance_until
        return book

    def account(self, path: str) -> Account:
        """An account as a reader sees it now."""
        return self.view().paths[path]

    def lot(self, grant_id: int) -> Grant:
        """A grant as a reader sees it now."""
        return self.view().lots[grant_id]

    def reservation(self, reservation_id: int) -> Reservation:
        """A reservation as a reader sees it now."""
        return self.view().reservations[reservation_id]

    def entries(self) -> list[Entry]:
        """Every entry written so far."""
        return self.stored.entries

    def dump(self) -> str:
        """Everything the ledger holds, as text that is equal only where all of it is equal."""
        book = self.stored
        return repr(
            [
                [book.org, book.accounts, book.lots, book.grants, book.reservations, book.topups],
                [book.suspended, book.entries, book.late_use, sorted(book.complete)],
                [sorted(book.paths), book.savepoint, sorted(book.changed)],
                [book.budgets, book.periods, list(stored_policies(book)), book.limits.jobs],
            ]
        )

    def _load(self, command: Command, *, counts_anew: bool = False) -> Book:
        stored = self.stored
        book = Book(copy(stored.org), prices=list(stored.prices), counts_anew=counts_anew)
        due = {a.account_id for a in stored.accounts.values() if a.due_at <= self.now}
        book.complete = due
        book.load(copy(row) for row in self._wanted(command, due, counts_anew=counts_anew))
        book.load(copy(row) for row in stored_policies(stored) if self._needed(row, book, command))
        book.load(self._jobs(book, command))
        book.past = list(self._past(command))
        for lease in stored.reservations.values():
            if lease.state is ReservationState.ACTIVE:
                where = (lease.account_id, lease.job_id, lease.node)
                book.on_nodes[where] = (lease.reservation_id, lease.expires_at)
        book.account_windows = {
            account.path: account.window_max_ms
            for account in stored.accounts.values()
            if account.window_max_ms
        }
        book.bound_windows(stored.windows)
        book.outages, book.maintenance_until = stored.outages, stored.maintenance_until
        book.suspended = {
            account.path: account.is_overdue
            for account in stored.accounts.values()
            if account.status is Status.SUSPENDED or account.delinquent
        }
        return book

    def _needed(self, row: Row, book: Book, command: Command) -> bool:
        """Past windows are loaded for what crosses them or asks about them, and nothing else."""
        if not isinstance(row, Tally):
            return True
        counter = self.stored.limits.counters[row.quota_id]
        since = min((lease.beat_at for lease in book.reservations.values()), default=self.now)
        asks = isinstance(command, commands.Reserve | commands.Explain)
        return asks or self.now >= counter.ends_at or since < counter.starts_at

    def _jobs(self, book: Book, command: Command | None = None) -> list[JobLeases]:
        """Leases of each job that the batch is about, counted from the reservations."""
        asked = command.reserve if isinstance(command, commands.Explain) else command
        named = {(lease.account_id, lease.job_id) for lease in book.reservations.values()}
        if isinstance(asked, commands.Reserve) and asked.account in book.paths:
            named.add((book.paths[asked.account].account_id, asked.job_id))
        rows: dict[tuple[int, str, str], JobLeases] = {}
        for lease in self.stored.reservations.values():
            job = (lease.account_id, lease.job_id)
            if job not in named:
                continue
            for gpu_type in ("", lease.gpu_type):
                add_leases(rows.setdefault((*job, gpu_type), JobLeases(*job, gpu_type)), [lease])
        for job in named:
            rows.setdefault((*job, ""), JobLeases(*job, ""))
        return list(rows.values())

    def _past(self, command: Command) -> Iterator[Entry]:
        """Entries that a correction looks back at: repayments, or what expired of a payment."""
        stored = self.stored
        lease = stored.reservations.get(getattr(command, "reservation_id", 0))
        payment = stored.topups.get(getattr(command, "topup_id", 0))
        for entry in stored.entries:
            repays = entry.type in (EntryType.REPAY, EntryType.COLLECT) or (
                entry.type is EntryType.REFUND and entry.other_grant_id
            )
            corrects = isinstance(command, CORRECTS)
            payers = {number for number, _, _ in stretches(lease)} if lease else set()
            if corrects and repays and entry.account_id in payers:
                yield entry
            expires = entry.type is EntryType.EXPIRE
            if payment and expires and entry.grant_id in self._kin(payment):
                yield entry
            restores = expires or entry.type is EntryType.RESTORE
            if isinstance(command, Reconcile) and restores and entry.account_id in payers:
                yield entry

    def _kin(self, payment: TopUpRow) -> set[int]:
        """The grant of a payment, and those that transfers have made of it."""
        kin = {payment.grant_id}
        for number, lot in sorted(self.stored.lots.items()):
            if lot.origin_id in kin:
                kin.add(number)
        return kin

    def _job(self, command: Command) -> tuple[int, str] | None:
        """The job that a command is about, whose leases share its cap."""
        asked = command.reserve if isinstance(command, commands.Explain) else command
        if isinstance(asked, commands.Reserve) and asked.account in self.stored.paths:
            return self.stored.paths[asked.account].account_id, asked.job_id
        lease = self.stored.reservations.get(getattr(command, "reservation_id", 0))
        return None if lease is None else (lease.account_id, lease.job_id)

    def _wanted(self, command: Command, due: set[int], *, counts_anew: bool) -> Iterator[Row]:
        stored = self.stored
        named = getattr(command, "reservation_id", 0)
        payment = stored.topups.get(getattr(command, "topup_id", 0))
        paid = self._kin(payment) if payment else set()
        if named in stored.reservations and isinstance(command, CORRECTS):
            paid |= {grant_id for grant_id, _ in stored.reservations[named].paid}
            paid |= {entry.grant_id for entry in self._past(command)}
        for grant in reversed(stored.lots.values()):
            if (grant.remaining and grant.state is not GrantState.ENDED) or grant.grant_id in paid:
                yield grant
        yield from stored.accounts.values()
        for lease in stored.reservations.values():
            live = lease.state is ReservationState.ACTIVE
            wanted = lease.payer_id in due
            if counts_anew and (path := counted_path(command)):
                wanted = wanted or is_below(lease.account, path)
            wanted = wanted or (lease.account_id, lease.job_id) == self._job(command)
            if lease.reservation_id == named or (live and wanted):
                yield lease
        if payment:
            yield payment
        reference = getattr(command, "payment_reference", None)
        looks_back = isinstance(command, Reconcile)
        yield from (
            row
            for row in stored.topups.values()
            if looks_back or row.payment_reference == reference
        )

    def _save(self) -> None:
        stored, batch = self.stored, self.batch
        stored.org = copy(batch.org)
        for row in changed_rows(batch):
            kept = copy(row)
            match kept:
                case Account():
                    stored.accounts[kept.account_id] = stored.paths[kept.path] = kept
                case Grant():
                    stored.lots[kept.grant_id] = kept
                case Reservation():
                    stored.reservations[kept.reservation_id] = kept
                case TopUpRow():
                    stored.topups[kept.topup_id] = kept
                case _:
                    keep_policy(stored, kept)
        stored.entries += batch.entries
        stored.late_use += batch.late_use
        stored.grants = {number: [] for number in stored.accounts}
        stored.load(list(stored.lots.values()))
