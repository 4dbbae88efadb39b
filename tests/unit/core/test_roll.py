"""What the clock makes true of an account: in which order, and when it is next asked."""

from __future__ import annotations

from gpucredits.core.bounds import NEVER_US
from gpucredits.core.command import Issue, Reserve, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import GrantState
from gpucredits.core.outcome import Swept
from gpucredits.core.reasons import Reason
from support.ledger import SECOND, START, Ledger

A_WINDOW = 1_200_000


def sweep(ledger: Ledger) -> None:
    """Write down what is due for the org's own account."""
    ledger.accept(Sweep(account_id=ledger.account("acme").account_id), Swept)


def test_at_one_instant_leases_lapse_before_grants_end(ledger: Ledger) -> None:
    """A hold that ends with its grant frees the credits, and they all expire together."""
    ledger.grant("acme", A_WINDOW + 5, expires_at=START + 120 * SECOND)
    ledger.lease("acme")
    ledger.wait(s=120)
    sweep(ledger)
    last = [(entry.type, entry.amount) for entry in ledger.entries()][-2:]
    assert last == [(EntryType.RELEASE, A_WINDOW), (EntryType.EXPIRE, A_WINDOW + 5)]


def test_at_one_instant_grants_end_before_grants_start(ledger: Ledger) -> None:
    """A hold is carried over the change of month by the credits it was made on."""
    old = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    ledger.grant("acme", A_WINDOW, starts_at=START + SECOND)
    ledger.lease("acme")
    ledger.wait(s=1)
    assert ledger.lot(old).state is GrantState.HELD_OVER
    assert ledger.account("acme").available == A_WINDOW


def test_held_over_credits_expire_when_the_lease_lapses(ledger: Ledger) -> None:
    """The hold that kept them is gone, so they go, at the instant of the lapse."""
    old = ledger.grant("acme", A_WINDOW, expires_at=START + SECOND).grant_id
    ledger.lease("acme")
    ledger.wait(s=500)
    sweep(ledger)
    assert ledger.lot(old).state is GrantState.ENDED
    assert ledger.account("acme").available == 0
    assert ledger.entries()[-1].type is EntryType.EXPIRE
    assert ledger.entries()[-1].effective_at == START + 120 * SECOND


def test_the_next_instant_is_known(ledger: Ledger) -> None:
    """After a roll the account is due at the earliest end or start that lies ahead, or never."""
    ledger.grant("acme", A_WINDOW, expires_at=START + 300 * SECOND)
    ledger.grant("acme", 1, starts_at=START + 200 * SECOND, expires_at=START + 400 * SECOND)
    ledger.lease("acme")
    seen = []
    for at in (0, 120, 200, 300, 400):
        ledger.now = START + at * SECOND
        sweep(ledger)
        due = ledger.stored.paths["acme"].due_at
        seen.append(NEVER_US if due == NEVER_US else (due - START) // SECOND)
    assert seen == [120, 200, 300, 400, NEVER_US]


def test_a_refusal_takes_back_what_the_clock_made_due(ledger: Ledger) -> None:
    """A refused command after a lapse writes nothing; the next one sees the lapse all the same."""
    ledger.grant("acme", A_WINDOW)
    ledger.lease("acme")
    ledger.wait(s=121)
    ask = Reserve(account="acme", job_id="job", gpu_type="h100", gpu_count=2)
    assert ledger.reason(ask) is Reason.INSUFFICIENT_CREDITS
    assert ledger.account("acme").available == A_WINDOW
    ended = Issue(account="acme", amount=1, expires_at=START)
    assert ledger.reason(ended) is Reason.WINDOW_ENDED
    ledger.lease("acme")
