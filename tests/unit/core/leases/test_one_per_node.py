"""A job has one reservation on a node: a second one is refused while the first one lives."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.core.command import Cancel, Explain, Reserve, Settle
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Closed, Reserved
from gpucredits.core.reasons import Kind, Reason, Refused, kind_of
from gpucredits.core.reservation import Reservation
from support.books.ledger import CREDIT, SECOND, Ledger

ALICE, BOB = "acme/vision/alice", "acme/vision/bob"


def ask(account: str = ALICE, **fields: Any) -> Reserve:
    """A reservation of one h100 on node n1."""
    given = {"job_id": "job", "gpu_type": "h100", "milli_gpus": 1_000, "node": "n1", **fields}
    return Reserve(account=account, **given)


@pytest.fixture
def first(ledger: Ledger) -> Reservation:
    """A lease of the job on the node."""
    ledger.open(BOB)
    ledger.grant("acme", 100 * CREDIT)
    return ledger.lease(ALICE, node="n1")


def test_the_second_on_a_node_is_refused_and_told_which_is_the_first(
    ledger: Ledger, first: Reservation
) -> None:
    """The words name the reservation that is there and what can be done; it is a conflict."""
    refused = ledger.refuse(ask())
    assert refused.reason is Reason.RESERVATION_EXISTS
    assert kind_of(refused.reason) is Kind.CONFLICT
    name = f"rsv_1_{first.reservation_id}"
    assert refused.detail == {"job_id": "job", "node": "n1", "reservation_id": name}
    for word in (name, "job", "n1", "settle", "cancel"):
        assert word in refused.message
    assert ledger.do(Explain(reserve=ask())) == refused


OTHERS: dict[str, dict[str, Any]] = {
    "another node": {"node": "n2"},
    "another job": {"job_id": "other"},
    "no node": {"node": ""},
    "another account's job of that name": {"account": BOB},
}


@pytest.mark.parametrize("fields", OTHERS.values(), ids=OTHERS.keys())
def test_others_are_let_in(ledger: Ledger, first: Reservation, fields: dict[str, Any]) -> None:
    """Only the same job of the same account on the same node is in its own way."""
    assert first.node == "n1"
    ledger.accept(ask(**fields), Reserved)
    assert ledger.reason(ask(**fields)) is Reason.RESERVATION_EXISTS


@pytest.mark.parametrize("end", [Settle, Cancel], ids=["settled", "canceled"])
def test_what_has_ended_is_in_nobodys_way(
    ledger: Ledger, first: Reservation, end: type[Settle | Cancel]
) -> None:
    """The job may come back to its node as soon as its lease has ended."""
    ledger.accept(end(reservation_id=first.reservation_id), Closed)
    ledger.accept(ask(), Reserved)
    assert ledger.reason(ask()) is Reason.RESERVATION_EXISTS


def test_what_has_lapsed_is_in_nobodys_way(ledger: Ledger, first: Reservation) -> None:
    """By the clock, not by a sweeper; a heartbeat before keeps its place."""
    at_first = first.expires_at
    ledger.now = at_first - SECOND
    ledger.do(Beat(first.reservation_id, 1, 1_000))
    ledger.now = at_first
    assert ledger.reason(ask()) is Reason.RESERVATION_EXISTS
    ledger.now = ledger.reservation(first.reservation_id).expires_at
    ledger.accept(ask(), Reserved)


def test_a_rehearsal_takes_no_place(ledger: Ledger) -> None:
    """Of one batch the second is refused; what was decided and taken back is in nobody's way."""
    ledger.grant("acme", 100 * CREDIT)
    book = ledger.stored
    book.prices = list(book.prices)
    book.begin()
    assert isinstance(decide(book, ask(), ledger.now), Reserved)
    assert isinstance(decide(book, ask(), ledger.now), Refused)
    book.take_back()
    ledger.accept(ask(job_id="other", node="n2"), Reserved)  # with the number that is free again
    ledger.accept(ask(), Reserved)


def test_what_a_group_ended_and_gave_anew_is_back_when_it_is_refused(
    ledger: Ledger, first: Reservation
) -> None:
    """The first lease lives again, and nobody else gets its place in the same batch."""
    book = ledger.stored
    where = (first.account_id, first.job_id, first.node)
    book.on_nodes[where] = (first.reservation_id, first.expires_at)  # as it is read
    book.begin()
    cancel = Cancel(reservation_id=first.reservation_id)
    assert isinstance(decide(book, cancel, ledger.now), Closed)
    assert isinstance(decide(book, ask(), ledger.now), Reserved)
    book.take_back()
    refused = decide(book, ask(), ledger.now)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.RESERVATION_EXISTS
