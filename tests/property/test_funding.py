"""Random funding trees: no key spends what its chain does not allow.

Who may pay is worked out anew here, from what was done so far: nothing is shared with the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from gpucredits.core import command as commands
from gpucredits.core.account import Funding, Model, Status
from gpucredits.core.bounds import NEVER_US
from gpucredits.core.command import Command
from gpucredits.core.grant import Source
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.reasons import Refused
from support.books.ledger import CREDIT, SECOND, Ledger

STEPS = 100
TREE = ["acme", "acme/v", "acme/v/a", "acme/v/b", "acme/w", "acme/w/c"]
SCOPES = ["", *TREE]


def above(path: str) -> list[str]:
    """A path and everything above it, nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]


@dataclass
class Oracle:
    """Whose credits each account may spend, as told by what was done."""

    shares: dict[str, bool] = field(default_factory=dict)
    was_given: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)

    def open(self, path: str) -> None:
        """A new account."""
        self.shares[path] = "/" in path

    def give(self, path: str) -> None:
        """Credits of its own; the first ones make a project keep to itself."""
        if path not in self.was_given and path.count("/") == 1:
            self.shares[path] = False
        self.was_given.add(path)

    def chain(self, path: str) -> list[str]:
        """The accounts that may pay, nearest first."""
        chain = [path]
        while self.shares[chain[-1]]:
            chain.append(chain[-1].rpartition("/")[0])
        return chain

    def may_pay(self, path: str, named: str, scope: str) -> list[str]:
        """The accounts that may pay for a job that a key asks for."""
        chain = self.chain(path)
        if not named:
            return chain
        is_seen = not scope or named == scope or named.startswith(f"{scope}/")
        return [named] if named in chain or (named in above(path) and is_seen) else []


class Walk:
    """A ledger, an oracle, and dice."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.ledger = Ledger(fresh=bool(seed % 2))
        self.ledger.price("h100", 36 * CREDIT)
        self.oracle = Oracle()
        self.leases: dict[int, int] = {}  # with the last seq of each
        self.payers: dict[int, list[str]] = {}
        self.seen: set[str] = set()
        for path in TREE:
            self.ledger.open(path)
            self.oracle.open(path)
        self.issue("acme")

    def step(self) -> None:
        """One thing that somebody does."""
        dice = self.dice
        chosen = dice.randrange(20)
        if chosen < 3:
            self.ledger.wait(ms=dice.choice([1, 500, 2_000, 2_000, 5_000, 30_000]))
        elif chosen < 9:
            self.beat()
        elif chosen < 12:
            self.reserve()
        elif chosen < 14:
            self.run_short()
        elif chosen < 17:
            self.give()
        else:
            self.set_terms()

    def do(self, command: Command) -> Outcome:
        """Carry a command out; whatever it posts for a lease is of an account that may pay."""
        known = len(self.ledger.stored.entries)
        outcome = self.ledger.do(command)
        paths = {number: row.path for number, row in self.ledger.stored.accounts.items()}
        for entry in self.ledger.stored.entries[known:]:
            if entry.reservation_id in self.payers and entry.amount:
                named = paths[entry.account_id]
                chain = self.payers[entry.reservation_id]
                lease = self.ledger.stored.reservations[entry.reservation_id]
                assert named in {*chain, *self.oracle.chain(lease.account)}, (command, entry)
        return outcome

    def issue(self, path: str) -> None:
        """Credits, often too few for a window and often ending soon."""
        life = self.dice.choice([None, 20 * SECOND, 200 * SECOND])
        ends = NEVER_US if life is None else self.ledger.now + life
        amount = self.dice.choice([1, 300_000, 350_000, CREDIT, 20 * CREDIT])
        source = self.dice.choice([Source.ALLOWANCE, Source.PROMO])
        self.do(commands.Issue(account=path, amount=amount, source=source, expires_at=ends))
        self.oracle.give(path)

    def give(self) -> None:
        """An allocation of any sort."""
        dice, path = self.dice, self.dice.choice([*TREE, "acme/v/a", "acme/w/c"])
        chosen = dice.randrange(6)
        command: Command
        if chosen < 3:
            self.issue(path)
            return
        if chosen == 3:
            source = dice.choice(TREE)
            command = commands.Transfer(source=source, target=path, amount=100_000)
        elif chosen == 4:
            command = commands.SetBudget(account=path, allowance=CREDIT, calendar=Calendar.DAY)
        else:
            reference = f"{self.ledger.now} {len(self.ledger.stored.topups)} {dice.random()}"
            command = commands.TopUp(
                account=path, amount=CREDIT, payment_reference=reference, confirmed=True
            )
        if not isinstance(self.do(command), Refused):
            self.oracle.give(path)

    def set_terms(self) -> None:
        """An operator sets funding, a credit limit, or suspends and resumes."""
        dice, path = self.dice, self.dice.choice(TREE)
        chosen = dice.randrange(4)
        if chosen == 0:
            funding = dice.choice(list(Funding))
            done = self.do(commands.UpdateAccount(path=path, funding=funding))
            assert isinstance(done, Refused) is (path == "acme" and funding is Funding.SHARED)
            if not isinstance(done, Refused):
                self.oracle.shares[path] = funding is Funding.SHARED
        elif chosen == 1:
            limit = dice.choice([0, 200_000, 3 * CREDIT])
            terms = commands.UpdateAccount(path=path, model=Model.POSTPAID, credit_limit=limit)
            if not isinstance(self.do(terms), Refused) and limit:
                self.oracle.give(path)
        elif chosen == 2 and not self.oracle.suspended:
            self.do(commands.UpdateAccount(path=path, status=Status.SUSPENDED))
            self.oracle.suspended.add(path)
        else:
            for each in sorted(self.oracle.suspended):
                self.do(commands.UpdateAccount(path=each, status=Status.ACTIVE))
            self.oracle.suspended.clear()

    def run_short(self) -> None:
        """A user whose own credits are for one window and no more reports twice."""
        user = self.dice.choice([path for path in TREE if path.count("/") == 2])
        self.do(commands.Issue(account=user, amount=300_000))
        self.oracle.give(user)
        self.reserve(user)
        for _ in range(2):
            self.ledger.wait(ms=2_000)
            self.beat()

    def reserve(self, account: str = "") -> None:
        """A key asks for a lease, and often names who is to pay."""
        dice = self.dice
        account = account or dice.choice(TREE)
        named = dice.choice(["", "", dice.choice(TREE)])
        scope = dice.choice([each for each in SCOPES if not each or each in above(account)])
        gpus = dice.choice([1, 1, 4])
        room = {path: self.ledger.account(path).spendable for path in TREE}
        asked = commands.Reserve(
            account=account,
            job_id=f"job-{len(self.ledger.stored.reservations)}",
            gpu_type="h100",
            milli_gpus=1_000 * gpus,
            window_ms=30_000,
            payer=named,
            scope=scope,
        )
        outcome = self.do(asked)
        funders = self.oracle.may_pay(account, named, scope)
        needed = gpus * 300_000
        able = [path for path in funders if room[path] >= needed]
        if self.oracle.suspended.intersection(above(account)):
            expected = "account_suspended"
        elif not funders:
            expected = "payer_invalid"
        else:
            expected = "admitted" if able else "insufficient_credits"
        self.seen.add(expected)
        told = outcome.reason.value if isinstance(outcome, Refused) else "admitted"
        assert told == expected, asked
        if isinstance(outcome, Reserved):
            assert outcome.payer == able[0], "the nearest account that can hold the window"
            number = outcome.reservation.reservation_id
            self.leases[number], self.payers[number] = 0, [outcome.payer]

    def beat(self) -> None:
        """A lease reports; if its payer has changed, then to one that may follow."""
        if not self.leases:
            return
        number = self.dice.choice(list(self.leases)[-2:])
        before = self.ledger.reservation(number)
        self.leases[number] += 1
        elapsed = (self.ledger.now - before.admitted_at) // 1_000
        room = {path: self.ledger.account(path).spendable for path in TREE}
        answer = self.do(Beat(number, self.leases[number], elapsed))
        assert isinstance(answer, BeatResult)
        after = self.ledger.reservation(number)
        paths = {each: row.path for each, row in self.ledger.stored.accounts.items()}
        was, now_pays = paths[before.payer_id], paths[after.payer_id]
        follow = [each for each in self.oracle.chain(before.account) if len(each) < len(was)]
        if was not in self.oracle.chain(before.account):
            follow = [each for each in follow if self.oracle.shares[was]]
        if was == now_pays:
            if answer.reason == "insufficient_credits":
                wanted = before.rate * 30_000 // 3_600_000_000
                assert all(room[each] < wanted + 1 for each in follow), "somebody could have"
            return
        self.seen.add("moved")
        assert now_pays in follow, (before.account, was, now_pays)
        assert not self.oracle.suspended.intersection(above(before.account))
        assert answer.decision == "continue"
        self.payers[number].append(now_pays)


@pytest.mark.parametrize("seed", range(60))
def test_no_key_spends_what_its_chain_does_not_allow(seed: int) -> None:
    """At every admission and every renewal of a day by chance."""
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()


def test_days_see_what_they_are_for() -> None:
    """The dice are loaded well enough: every answer and a move come up in a few days."""
    seen: set[str] = set()
    for seed in range(100, 112):
        walk = Walk(seed)
        for _ in range(STEPS):
            walk.step()
        seen |= walk.seen
    answers = {"admitted", "payer_invalid", "insufficient_credits", "account_suspended"}
    assert seen == {*answers, "moved"}
