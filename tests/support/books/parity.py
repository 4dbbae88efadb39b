"""A book that never leaves memory beside the stored ledger, and commands by chance for both."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from copy import deepcopy
from types import ModuleType
from typing import Any

import pytest

from gpucredits.core.account import Model, Status
from gpucredits.core.book import Book, NotInBook, Org
from gpucredits.core.command import (
    Adjust,
    Cancel,
    Command,
    ConfirmTopUp,
    CreateAccount,
    FailTopUp,
    Issue,
    Refund,
    Reserve,
    ReverseTopUp,
    Settle,
    Sweep,
    TopUp,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Outcome, Reserved, ToppedUp
from gpucredits.core.price import Price
from gpucredits.core.reconciliation.commands import Reconcile, RefundLostWork
from gpucredits.service.write import batch
from gpucredits.service.write.batch_record import detached
from gpucredits.store.book import rows, tables
from gpucredits.store.book.book_cache import GuardResult
from gpucredits.store.book.save import save_if
from gpucredits.store.book.table import Table
from gpucredits.store.database.connection import Connection
from support.scenes.scene import CREDIT, HOUR_US, PRICE

PATHS = ("acme", "acme/p", "acme/q", "acme/p/u", "acme/q/v")


class Shadow:
    """Everything that was decided, decided again on one book that never leaves memory."""

    def __init__(self) -> None:
        prices = [Price(1, "h100", "default", PRICE, 0)]
        self.book = Book(Org(1, "acme"), prices=prices, counts_anew=True)
        self.decided = 0
        self.now = 0

    def take_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Decide whatever batches decide; what a batch begins again is begun again here too."""
        run_all = batch.run_all
        before = self.book

        async def followed(*everything: Any) -> Any:
            nonlocal before
            before = deepcopy(self.book)
            try:
                return await run_all(*everything)
            except NotInBook:
                self.book = before
                raise

        async def saved(*everything: Any) -> GuardResult:
            verdict = await save_if(*everything)
            if not verdict.holds:
                self.book = before
            return verdict

        monkeypatch.setattr(batch, "run_all", followed)
        monkeypatch.setattr(batch, "save_if", saved)
        monkeypatch.setattr(batch, "decide", self.decide)
        monkeypatch.setattr(batch, "decide_beats", self.decide_beats)

    def decide_beats(self, book: Book, beats: list[Beat], now: int) -> list[Outcome]:
        """The same for heartbeats."""
        return [self.decide(book, beat, now) for beat in beats]

    def decide(self, book: Book, command: Command, now: int) -> Outcome:
        """Decide on the loaded book, and check that the whole book agrees."""
        assert book.org.org_id == 1
        outcome = decide(book, command, now)
        expected = decide(self.book, command, now)
        self.book.complete.update(self.book.accounts)
        assert detached(expected) == detached(outcome), (command, expected, outcome)
        assert (self.book.org.next_id, self.book.org.next_entry_id) == (
            book.org.next_id,
            book.org.next_entry_id,
        )
        self.decided += 1
        self.now = now
        return outcome


CoreRows = dict[tuple[object, ...], object]  # by key


def core_rows(book: Book) -> list[tuple[Table, CoreRows]]:
    """Every row of a book that has a table of its own, as the rules left it."""
    limits = book.limits
    found: tuple[tuple[Table, list[object]], ...] = (
        (tables.ACCOUNT, [*book.accounts.values()]),
        (tables.GRANT, [*book.lots.values()]),
        (tables.LEASE, [*book.reservations.values()]),
        (tables.TOPUP, [*book.topups.values()]),
        (tables.QUOTA, [quota for every in limits.quotas.values() for quota in every]),
        (tables.TALLY, [tally for every in limits.tallies.values() for tally in every.values()]),
        (tables.BOOST, [boost for every in limits.boosts.values() for boost in every]),
        (tables.BUDGET, [budget for every in book.budgets.values() for budget in every]),
        (tables.PERIOD, [period for every in book.periods.values() for period in every]),
    )
    return [(table, by_key(table, every)) for table, every in found]


async def stored_rows(
    connection: Connection, table: Table, code: ModuleType = rows, org_id: int = 1
) -> CoreRows:
    """Every stored row of an org in a table, as the declaration of the table reads it."""
    records = await connection.fetch(
        f"SELECT {table.listed('t')} FROM {table.name} t WHERE org_id = $1", org_id
    )
    stored = vars(code)[f"stored_{table.singular}"]
    return by_key(table, [stored(record) for record in records])


def by_key(table: Table, every: Iterable[object]) -> CoreRows:
    """Rows by the columns of their key."""
    names = [column.field for column in table.key if column.field]
    return {tuple(getattr(row, name) for name in names): row for row in every}


class Players:
    """Commands by chance, about things that exist more often than not."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.nodes = itertools.count(1)
        self.leases: list[int] = []
        self.topups: list[int] = []
        self.seqs: dict[int, int] = {}

    def note(self, outcome: object) -> None:
        """Remember what was made."""
        if isinstance(outcome, Reserved):
            self.leases.append(outcome.reservation.reservation_id)
        if isinstance(outcome, ToppedUp):
            self.topups.append(outcome.topup.topup_id)

    def beat(self) -> Beat:
        """A heartbeat, now and then one that was sent before."""
        number = self.dice.choice([*self.leases, 999])
        seq = self.seqs.get(number, 0) + self.dice.choice([0, 1, 1, 1, 2])
        self.seqs[number] = seq
        return Beat(number, seq, self.dice.randrange(60_000))

    def command(self, now: int) -> Command:
        """Any command but a heartbeat."""
        dice = self.dice
        path = dice.choice(PATHS)
        amount = dice.randrange(1, 60 * CREDIT)
        lease = dice.choice([*self.leases, 999])
        topup = dice.choice([*self.topups, 999])
        reference = f"r-{len(self.topups)}"
        ends_at = now + dice.choice([1, 5, 1_000]) * HOUR_US // 60
        choices: list[tuple[type[Any], dict[str, Any]]] = [
            (CreateAccount, {"path": path}),
            (UpdateAccount, {"path": path, "status": dice.choice([*Status, Status.ACTIVE])}),
            (
                UpdateAccount,
                {"path": path, "model": dice.choice([*Model]), "credit_limit": amount},
            ),
            (Issue, {"account": path, "amount": amount, "expires_at": ends_at}),
            (Issue, {"account": path, "amount": amount}),
            (Issue, {"account": path, "amount": amount, "starts_at": ends_at}),
            (TopUp, {"account": path, "amount": amount, "payment_reference": reference}),
            (
                TopUp,
                {
                    "account": path,
                    "amount": amount,
                    "payment_reference": reference,
                    "confirmed": True,
                    "expires_at": ends_at,
                },
            ),
            (ConfirmTopUp, {"topup_id": topup}),
            (FailTopUp, {"topup_id": topup}),
            (ReverseTopUp, {"topup_id": topup}),
            (Transfer, {"source": path, "target": dice.choice(PATHS), "amount": amount}),
            *[(Reserve, self.reserve(path))] * 5,
            (Settle, {"reservation_id": lease}),
            (Settle, {"reservation_id": lease, "used_ms": dice.randrange(60_000)}),
            (Cancel, {"reservation_id": lease}),
            *[(Refund, {"reservation_id": lease, "amount": amount // 10 + 1})] * 3,
            *[(Adjust, {"reservation_id": lease, "amount": amount})] * 2,
            *[(Reconcile, {"reservation_id": lease, "spans": self.spans()})] * 3,
            (
                RefundLostWork,
                {
                    "reservation_id": lease,
                    "checkpoint_ms": dice.randrange(20_000),
                    "limit_ms": dice.randrange(1, 40_000),
                },
            ),
            (Sweep, {"account_id": dice.randrange(1, 8)}),
        ]
        kind, values = dice.choice(choices)
        command: Command = kind(**values)
        return command

    def spans(self) -> tuple[tuple[int, int], ...]:
        """What nodes measured, in any order, some of it twice."""
        starts = [self.dice.randrange(60_000) for _ in range(self.dice.randrange(4))]
        return tuple((start, start + self.dice.randrange(30_000)) for start in starts)

    def reserve(self, path: str) -> dict[str, Any]:
        """A job for an account, small or large, in this or that shape."""
        dice = self.dice
        return {
            "account": path,
            "job_id": "j",
            "gpu_type": "h100",
            "milli_gpus": 1_000 * dice.randrange(1, 4),
            "window_ms": dice.choice([1_000, 10_000, 30_000]),
            "escrow_windows": dice.choice([0, 0, 1]),
            "max_amount": dice.choice([0, 0, 20 * CREDIT]),
            "payer": dice.choice(["", "", "acme"]),
            "node": f"node-{next(self.nodes)}",
        }
