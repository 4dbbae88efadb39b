"""The book takes everything back to a savepoint, exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucredits.core.account import Status
from gpucredits.core.book import InvariantBroken
from gpucredits.core.command import (
    CreateAccount,
    Issue,
    Reserve,
    SetQuota,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from support.books.ledger import CREDIT, Ledger


def test_an_atomic_batch_that_is_taken_back_leaves_nothing() -> None:
    """New rows, changed rows, orders, numbers and entries are all as they were."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    ledger.open("acme")
    ledger.grant("acme", 2 * CREDIT)
    lease = ledger.lease("acme").reservation_id
    ledger.wait(s=1)
    before = ledger.dump()
    book = ledger.stored
    book.begin()
    for command in (
        CreateAccount(path="acme/new"),
        Issue(account="acme/new", amount=5),
        Transfer(source="acme", target="acme/new", amount=700_000),
        Beat(lease, 1, 1_000),
        Issue(account="acme", amount=5, priority=1),
        UpdateAccount(path="acme", status=Status.SUSPENDED),
    ):
        assert not isinstance(decide(book, command, ledger.now), Refused)
    book.take_back()
    assert ledger.dump() == before


def test_a_batch_of_reservations_is_all_or_nothing() -> None:
    """A job over many nodes: the third lease is refused, so the first two go back too."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    ledger.open("acme")
    ledger.grant("acme", 3 * CREDIT)
    before, book = ledger.dump(), ledger.stored
    book.begin()
    ask = Reserve(account="acme", job_id="wide", gpu_type="h100", milli_gpus=1_000)
    outcomes = [decide(book, replace(ask, node=f"n{n}"), ledger.now) for n in range(3)]
    assert [isinstance(outcome, Refused) for outcome in outcomes] == [False, False, True]
    book.take_back()
    assert ledger.dump() == before


@pytest.mark.parametrize("gpu_type", ["", "h100"])
def test_what_is_counted_of_a_job_goes_back_too(gpu_type: str) -> None:
    """A cap on jobs learns of their leases, which is no change, and then changes what it learnt."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    ledger.open("acme")
    ledger.grant("acme", 9 * CREDIT)
    ledger.lease("acme")
    book = ledger.stored
    book.changed.clear()
    before = ledger.dump()
    book.begin()
    for command in (
        SetQuota(
            account="acme",
            dimension=Dimension.CREDITS_PER_JOB,
            limit=5 * CREDIT,
            gpu_type=gpu_type,
        ),
        Reserve(account="acme", job_id="job", gpu_type="h100", milli_gpus=1_000),
        Reserve(account="acme", job_id="another", gpu_type="h100", milli_gpus=1_000),
    ):
        assert not isinstance(decide(book, command, ledger.now), Refused)
    book.take_back()
    assert ledger.dump() == before
    assert (book.changed, book.limits.jobs) == ({}, {})


def test_savepoints_do_not_nest() -> None:
    """A second savepoint, or taking back none, is a broken invariant."""
    book = Ledger().stored
    with pytest.raises(InvariantBroken):
        book.take_back()
    book.begin()
    with pytest.raises(InvariantBroken):
        book.begin()


def test_a_due_account_without_its_leases_is_not_rolled() -> None:
    """A store that forgot to load the leases of a due account is told at once."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    account = ledger.open("acme")
    ledger.grant("acme", 3 * CREDIT)
    ledger.lease("acme")
    ledger.wait(s=120)
    ledger.stored.complete.clear()
    with pytest.raises(InvariantBroken):
        decide(ledger.stored, Issue(account=account.path, amount=1), ledger.now)
