"""Long days of a few busy accounts by chance: the rules, a naive model and the replay agree.

Where ``test_ledger_rules`` lets every command meet every state, here most steps are reports of
leases that run, on credits that end under them, so that what only happens late in a job's life
happens often: several leases and grants at once, debts that are repaid, seqs that are used again.
"""

from __future__ import annotations

from random import Random

import pytest

from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Source
from support.books.ledger import MS, SECOND
from support.books.ledger_machine import LedgerRules

STEPS = 90
PAYERS = ["acme", "acme/vision"]
SPANS = [0, MS, 300 * MS, SECOND, 2 * SECOND, 4 * SECOND]


class Walk:
    """One day: the machine of ``test_ledger_rules``, and dice that prefer what runs."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.machine = LedgerRules()
        self.machine.create("acme", postpaid=False, limit=0)
        limit = self.dice.choice([20_000, 100_000, 1_000_000])
        self.machine.create("acme/vision", postpaid=self.dice.random() < 0.7, limit=limit)
        for payer in PAYERS:
            self.issue(payer)

    def issue(self, payer: str) -> None:
        """Credits that mostly end soon, some to be used before others."""
        dice = self.dice
        amount = dice.choice([5_000, 20_000, 50_000, 120_000])
        life = dice.choice([None, SECOND, 2 * SECOND, 4 * SECOND, 9 * SECOND])
        source = dice.choice([Source.ALLOWANCE, Source.PROMO])
        self.machine.issue(payer, amount, None, life, dice.choice([100, 100, 1, 1_000]), source)

    def step(self) -> None:
        """One thing that happens."""
        dice, machine = self.dice, self.machine
        payer = dice.choice(PAYERS)
        pick = dice.randrange(6)
        chosen = dice.randrange(26)
        if chosen < 7:
            machine.wait(dice.choice(SPANS))
        elif chosen < 8:
            machine.wait_for_a_boundary(dice.randrange(3), dice.choice([-1, 0, 1]))
        elif chosen < 10:
            self.issue(payer)
        elif chosen < 13:
            window = dice.choice([1_000, 3_333, 10_000])
            machine.reserve(
                payer,
                gpu_type="h100",
                milli_gpus=dice.choice([1_000, 1_000, 2_000, 250]),
                window=window,
                escrow=0,
                cap=dice.choice([0, 0, 30_000]),
                payer=payer,
                node="new",
                grace=dice.choice([0, 300]),
            )
        elif machine.model.leases:
            self.report(chosen, pick)

    def report(self, chosen: int, pick: int) -> None:
        """Something of a lease, most often a heartbeat."""
        dice, machine = self.dice, self.machine
        if chosen < 18:
            machine.beat(pick, dice.choice([1, 1, 1, 2, 0]), dice.choice([0, 0, -500, 1_999]))
        elif chosen < 20:
            machine.settle(pick, dice.choice([None, 0, 0, 1, -1]), dice.choice([None, 0, 0, -300]))
        elif chosen < 21:
            machine.cancel(pick)
        elif chosen < 22:
            machine.adjust(pick, dice.choice([3, 7_000, 60_000]))
        elif chosen < 24:
            machine.refund(pick, dice.choice([1, 5_000, 20_000]), dice.random() < 0.5)
        else:
            self.pay()

    def pay(self) -> None:
        """A payment, or what becomes of one."""
        dice, machine = self.dice, self.machine
        if machine.model.payments and dice.random() < 0.5:
            machine.conclude_top_up(dice.randrange(4), "reverse")
        else:
            life = dice.choice([None, SECOND, 4 * SECOND])
            machine.top_up(dice.choice(PAYERS), dice.choice([9_000, 80_000]), True, life)


@pytest.mark.parametrize("seed", range(40))
def test_the_ledgers_the_model_and_the_replay_agree(seed: int) -> None:
    """After every step of a day by chance."""
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()


def test_days_see_what_they_are_for() -> None:
    """The dice are loaded well enough: every type of entry comes up in a few days."""
    seen: set[EntryType] = set()
    for seed in range(40, 46):
        walk = Walk(seed)
        for _ in range(STEPS):
            walk.step()
        seen.update(entry.type for entry in walk.machine.kept.stored.entries)
    repairs = {EntryType.RESTORE, EntryType.WITHDRAW}  # of clocks, which these days have right
    assert seen == set(EntryType) - {EntryType.TRANSFER} - repairs
