"""Every command as a step of a machine that compares the rules, a naive model and a replay.

Two ledgers run side by side: one keeps a single book and is swept at random, the other reads only
what a store would load and is never swept. Their answers and balances are always the same.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gpucredits.core import command as commands
from gpucredits.core.account import Funding, Status
from gpucredits.core.account import Model as AccountModel
from gpucredits.core.command import Command
from gpucredits.core.decide import decide
from gpucredits.core.grant import Source
from gpucredits.core.heartbeat import Beat
from gpucredits.core.reasons import Refused
from oracle.ledger_commands import ModelLedger
from oracle.ledger_model import NEVER
from oracle.ledger_replay import Replay
from support.books.answers import told, told_book, told_model
from support.books.claims import check_claims
from support.books.ledger import MS, SECOND, START, Ledger

PATHS = ["acme", "acme/vision", "acme/vision/alice", "acme/vision/bob", "acme/audio"]
PRICES = [("h100", "", 36_000_000), ("h100", "acme/vision", 35_999_999), ("a100", "", 3_600_001)]
PRICES += [("tiny", "", 7), ("free", "", 0), ("a100", "acme/vision/alice", 1_234_567)]

paths = st.sampled_from(PATHS)
amounts = st.one_of(
    st.sampled_from([1, 2, 3, 9_999, 10_000, 10_001, 20_000, 99_999, 100_000, 1_000_000]),
    st.integers(1, 300_000),
)
limits = st.sampled_from([0, 1, 10_000, 100_000])
spans = st.sampled_from([1, MS, SECOND - 1, SECOND, SECOND + 1, 5 * SECOND, 20 * SECOND])
maybe = st.none() | st.booleans()
picks = st.integers(0, 30)


class LedgerRules(RuleBasedStateMachine):
    """Both ledgers, the model and the replay, one command at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.kept, self.fresh = Ledger(), Ledger(fresh=True)
        self.model = ModelLedger(now=START)
        self.replays = (Replay(), Replay())
        self.history: list[Command] = []
        self.floors: dict[int, int] = {}
        self.model.prices = list(PRICES)
        for gpu_type, account, per_hour in PRICES:
            self.kept.price(gpu_type, per_hour, account=account)
            self.fresh.price(gpu_type, per_hour, account=account)

    @initialize(amount=amounts, limit=limits, postpaid=st.booleans())
    def open_books(self, amount: int, limit: int, postpaid: bool) -> None:
        """Three accounts above each other, the org with some credits."""
        self.create(PATHS[0], postpaid=False, limit=0)
        self.create(PATHS[1], postpaid=postpaid, limit=limit)
        self.create(PATHS[2], postpaid=False, limit=0)
        self.issue(PATHS[0], amount, None, None, 100, Source.ALLOWANCE)

    @rule(path=paths, postpaid=st.booleans(), limit=limits, shares=maybe)
    def create(self, path: str, postpaid: bool, limit: int, shares: bool | None = None) -> None:
        """Open an account."""
        model = AccountModel.POSTPAID if postpaid else AccountModel.PREPAID
        funding = None if shares is None else Funding(shares)
        command = commands.CreateAccount(
            path=path, model=model, credit_limit=limit, funding=funding
        )
        told = self.model.create(path, postpaid=postpaid, limit=limit, shares=shares)
        self.run(command, told)

    @rule(path=paths, suspended=maybe, postpaid=maybe, limit=st.none() | limits, shares=maybe)
    def update(
        self,
        path: str,
        suspended: bool | None,
        postpaid: bool | None,
        limit: int | None,
        shares: bool | None = None,
    ) -> None:
        """Suspend, resume, change the floor, or whose credits it may spend."""
        command = commands.UpdateAccount(
            path=path,
            status=None if suspended is None else Status(suspended),
            model=None if postpaid is None else AccountModel(postpaid),
            credit_limit=limit,
            funding=None if shares is None else Funding(shares),
        )
        told = self.model.update(
            path, suspended=suspended, postpaid=postpaid, limit=limit, shares=shares
        )
        self.run(command, told)

    @rule(
        path=paths,
        amount=amounts,
        wait=st.none() | spans | st.just(-SECOND),
        life=st.none() | spans,
        priority=st.sampled_from([100, 100, 1, 1_000]),
        source=st.sampled_from(Source),
    )
    def issue(
        self,
        path: str,
        amount: int,
        wait: int | None,
        life: int | None,
        priority: int,
        source: Source,
    ) -> None:
        """Make a grant, now or from a later instant on."""
        starts = None if wait is None else self.model.now + wait
        ends = NEVER if life is None else (starts or self.model.now) + life
        command = commands.Issue(
            account=path,
            amount=amount,
            starts_at=starts,
            expires_at=ends,
            priority=priority,
            source=source,
        )
        name = source.name.lower()
        told = self.model.issue(
            path, amount, starts=starts, ends=ends, priority=priority, source=name
        )
        self.run(command, told)

    @rule(path=paths, amount=amounts, confirmed=st.booleans(), life=st.none() | spans)
    def top_up(self, path: str, amount: int, confirmed: bool, life: int | None) -> None:
        """Record a payment, arrived or not."""
        ends = NEVER if life is None else self.model.now + life
        command = commands.TopUp(
            account=path,
            amount=amount,
            payment_reference=f"payment {len(self.model.payments)}",
            confirmed=confirmed,
            expires_at=ends,
        )
        told = self.model.top_up(path, amount, confirmed=confirmed, ends=ends, priority=100)
        self.run(command, told)

    @precondition(lambda self: self.model.payments)
    @rule(pick=picks, what=st.sampled_from(["confirm", "fail", "reverse", "reverse"]))
    def conclude_top_up(self, pick: int, what: str) -> None:
        """Confirm, fail or reverse a payment."""
        number = self.one_of(self.model.payments, pick)
        command: Command
        if what == "confirm":
            command = commands.ConfirmTopUp(topup_id=number)
        elif what == "fail":
            command = commands.FailTopUp(topup_id=number)
        else:
            command = commands.ReverseTopUp(topup_id=number)
        self.run(command, getattr(self.model, what)(number))

    @rule(source=paths, to=paths, amount=amounts, everything=st.booleans())
    def transfer(self, source: str, to: str, amount: int, everything: bool) -> None:
        """Move credits in any direction, often all there are."""
        if everything and source in self.model.wallets:
            amount = max(self.model.available(source), 1)
        command = commands.Transfer(source=source, target=to, amount=amount)
        self.run(command, self.model.transfer(source, to, amount))

    @rule(
        account=paths,
        gpu_type=st.sampled_from(["h100", "h100", "h100", "a100", "tiny", "free", "none"]),
        milli_gpus=st.sampled_from([1_000, 1_000, 2_000, 3_000, 460, 1]),
        window=st.sampled_from([1_000, 1_500, 3_333, 10_000]),
        escrow=st.sampled_from([0, 0, 1, 2]),
        cap=st.sampled_from([0, 0, 0, 1, 5, 10_000, 15_000]),
        payer=st.sampled_from(["", "", "", *PATHS[:3], PATHS[4], "acme/none"]),
        scope=st.sampled_from(["", *PATHS[:3]]),
        node=st.sampled_from(["new", "new", "new", "", "n1"]),
        grace=st.sampled_from([0, 400, 2_000]),
    )
    def reserve(self, account: str, **asked: Any) -> None:
        """Ask for a lease, on a node of its own most often."""
        if asked["node"] == "new":
            asked["node"] = f"node-{len(self.history)}"
        command = commands.Reserve(
            account=account,
            job_id="job",
            gpu_type=asked["gpu_type"],
            milli_gpus=asked["milli_gpus"],
            window_ms=asked["window"],
            escrow_windows=asked["escrow"],
            max_amount=asked["cap"],
            payer=asked["payer"],
            scope=asked.get("scope", ""),
            node=asked["node"],
            grace_ms=asked["grace"],
        )
        self.run(command, self.model.reserve(account, **asked))

    @precondition(lambda self: self.model.leases)
    @rule(
        pick=picks,
        later=st.sampled_from([0, 1, 1, 1, 3, -1]),
        over_ms=st.sampled_from([0, 0, 0, -500, 1_999, 2_000, 2_001, 60_000, -60_000]),
    )
    def beat(self, pick: int, later: int, over_ms: int) -> None:
        """A heartbeat: on time, repeated, out of order, going back or running ahead."""
        number = self.one_of(self.model.leases, pick)
        lease = self.model.leases[number]
        elapsed = (self.model.now - lease.admitted) // MS
        seq, used = lease.seq + later, max(elapsed + over_ms, 0)
        self.run(Beat(number, seq, used), self.model.beat(number, seq, used))

    @precondition(lambda self: self.model.leases)
    @rule(
        pick=picks,
        later=st.none() | st.sampled_from([0, 0, 1, -1, 7]),
        over_ms=st.none() | st.sampled_from([0, -300, 2_001]),
    )
    def settle(self, pick: int, later: int | None, over_ms: int | None) -> None:
        """End a job, with a seq of its own or one that a report had before."""
        number = self.one_of(self.model.leases, pick)
        seq = None if later is None else self.model.leases[number].seq + later
        elapsed = (self.model.now - self.model.leases[number].admitted) // MS
        used = None if over_ms is None else max(elapsed + over_ms, 0)
        command = commands.Settle(reservation_id=number, seq=seq, used_ms=used)
        self.run(command, self.model.settle(number, seq, used))

    @precondition(lambda self: self.model.leases)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        """Give a lease back before its job ran."""
        number = self.one_of(self.model.leases, pick)
        self.run(commands.Cancel(reservation_id=number), self.model.cancel(number))

    @precondition(lambda self: self.model.leases)
    @rule(pick=picks, amount=amounts, everything=st.booleans())
    def refund(self, pick: int, amount: int, everything: bool) -> None:
        """Give back some or all of what a lease was charged."""
        number = self.one_of(self.model.leases, pick)
        if everything:
            amount = max(self.model.leases[number].charged(), 1)
        command = commands.Refund(reservation_id=number, amount=amount)
        self.run(command, self.model.refund(number, amount))

    @precondition(lambda self: self.model.leases)
    @rule(pick=picks, amount=amounts)
    def adjust(self, pick: int, amount: int) -> None:
        """Charge a lease more."""
        number = self.one_of(self.model.leases, pick)
        command = commands.Adjust(reservation_id=number, amount=amount)
        self.run(command, self.model.adjust(number, amount))

    @rule(number=st.just(99_999), what=st.integers(0, 3))
    def unknown(self, number: int, what: int) -> None:
        """Name a reservation that does not exist."""
        unknown: list[Command] = [
            Beat(number, 1, 1),
            commands.Settle(reservation_id=number),
            commands.Cancel(reservation_id=number),
            commands.Refund(reservation_id=number, amount=1),
        ]
        self.run(unknown[what], {"refused": "reservation_unknown"})

    @rule(span=spans)
    def wait(self, span: int) -> None:
        """Let some time pass."""
        self.move_clock(self.model.now + span)

    @rule(pick=picks, past=st.sampled_from([-1, 0, 0, 1, MS]))
    def wait_for_a_boundary(self, pick: int, past: int) -> None:
        """Go to just where something ends or starts."""
        ahead = sorted({at for at, *_ in self.model.boundaries() if at < NEVER})
        if ahead:
            self.move_clock(max(ahead[pick % len(ahead)] + past, self.model.now))

    @rule(pick=picks)
    def sweep(self, pick: int) -> None:
        """Sweep an account of the kept ledger only: nobody can tell."""
        accounts = list(self.kept.stored.accounts)
        self.kept.do(commands.Sweep(account_id=accounts[pick % len(accounts)]))
        self.compare()

    @precondition(lambda self: self.history)
    @rule(chosen=st.lists(picks, min_size=1, max_size=6))
    def take_back(self, chosen: list[int]) -> None:
        """Commands under a savepoint leave no trace once it is taken back."""
        book, before = self.kept.stored, self.kept.dump()
        book.begin()
        for pick in chosen:
            decide(book, self.history[-1 - pick % len(self.history)], self.kept.now)
        book.take_back()
        assert self.kept.dump() == before

    def run(self, command: Command, expected: dict[str, Any]) -> None:
        """Carry a command out in both ledgers and compare with what the model told."""
        for ledger in (self.kept, self.fresh):
            before = ledger.dump()
            outcome = ledger.do(command)
            assert told(outcome) == expected, (command, ledger.fresh)
            if isinstance(outcome, Refused):
                assert ledger.dump() == before, "a refusal leaves everything as it was"
        self.history.append(command)
        self.compare()

    def compare(self) -> None:
        """Both ledgers show what the model shows, and their entries add up to it."""
        expected = told_model(self.model)
        for ledger, replay in zip((self.kept, self.fresh), self.replays, strict=True):
            book = ledger.stored
            floors = {  # who stands below a limit that was lowered goes no further down
                account.account_id: min(account.floor, account.available)
                for account in book.accounts.values()
            }
            lower = {
                account.account_id: min(account.floor, self.floors.get(account.account_id, 0))
                for account in book.accounts.values()
            }
            replay.next_step()
            for entry in book.entries[replay.next_entry - 1 :]:
                replay.feed(entry, lower)  # a floor that rose was the old one until then
            replay.check(book)
            check_claims(book, lower)
            seen = told_book(ledger.view())
            seen["late"] = told_book(book)["late"]
            assert seen == expected, ledger.fresh
        self.floors = floors

    def move_clock(self, now: int) -> None:
        """Time passes for everyone."""
        self.kept.now = self.fresh.now = now
        self.model.advance(now)
        self.compare()

    def one_of(self, numbers: dict[int, Any], pick: int) -> int:
        """One of the numbers there are, the newest most often."""
        known = list(numbers)
        return known[-1 - min(pick, 9) % len(known)]
