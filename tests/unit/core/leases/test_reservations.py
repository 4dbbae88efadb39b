"""Admission: hold, payer, price, refusals in order; and the ends of a lease."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.account import Model, Status
from gpucredits.core.command import (
    Cancel,
    CreateAccount,
    Issue,
    Reserve,
    Settle,
    Sweep,
    UpdateAccount,
)
from gpucredits.core.entry import EntryType
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import AccountSaved, Closed, Reserved, Swept
from gpucredits.core.reasons import Reason, kind_of
from gpucredits.core.reservation import Decision, ReservationState
from support.books.asking import ALICE, ask
from support.books.ledger import CREDIT, SECOND, START, Ledger

A_WINDOW = 1_200_000


HOLDS = {
    "one window of 120 s unless told": ({}, A_WINDOW, 120_000),
    "a window asked for": ({"window_ms": 15_000}, 150_000, 15_000),
    "every GPU": ({"milli_gpus": 4_000, "window_ms": 15_000}, 600_000, 15_000),
    "escrow n holds (1 + n) windows": ({"escrow_windows": 2}, 3 * A_WINDOW, 360_000),
    "never more than the job's cap": ({"max_amount": 500_005}, 500_005, 50_000),
    "rounded down": ({"gpu_type": "odd", "window_ms": 1_001}, 1_001, 1_001),
    "nothing for what costs nothing": ({"gpu_type": "free"}, 0, 120_000),
}


@pytest.mark.parametrize(("fields", "held", "ms"), HOLDS.values(), ids=HOLDS.keys())
def test_a_hold_covers_one_lease_ahead(
    ledger: Ledger, fields: dict[str, Any], held: int, ms: int
) -> None:
    """The hold is the formula for the window; the lease lasts exactly as long as it pays for."""
    ledger.price("odd", 3_600_001)
    ledger.price("free", 0)
    ledger.grant("acme", 100 * CREDIT)
    lease = ledger.lease(ALICE, **fields)
    assert lease.held == held
    assert lease.expires_at == START + ms * 1_000
    assert ledger.account("acme").reserved == held


def test_exactly_enough_is_enough(ledger: Ledger) -> None:
    """A balance of one window admits one job; a micro-credit less admits none, in words."""
    ledger.grant("acme", A_WINDOW - 1)
    refused = ledger.refuse(ask())
    assert refused.reason is Reason.INSUFFICIENT_CREDITS
    assert (
        refused.detail.items()
        >= {
            "account": "acme",
            "scope": "org",
            "available": "1.199999",
            "needed": "1.2",
        }.items()
    )
    ledger.grant("acme", 1)
    ledger.lease(ALICE)


def test_many_opens_admit_exactly_what_is_funded(ledger: Ledger) -> None:
    """Museum 1: n opens against a balance for n - 1 give n - 1 leases."""
    ledger.grant("acme", 4 * A_WINDOW)
    admitted = [ledger.do(ask(node=f"n{n}")).__class__.__name__ for n in range(5)]
    assert admitted == ["Reserved"] * 4 + ["Refused"]


PAYERS = {
    "the nearest scope that has a grant": (["acme", "acme/vision"], "", "acme/vision"),
    "the account itself before those above": (["acme", ALICE], "", ALICE),
    "the org when nobody below has any": (["acme"], "", "acme"),
    "the one named, though a nearer one could pay": (["acme", ALICE], "acme", "acme"),
}


@pytest.mark.parametrize(("funded", "named", "pays"), PAYERS.values(), ids=PAYERS.keys())
def test_the_payer(ledger: Ledger, funded: list[str], named: str, pays: str) -> None:
    """Who pays is settled at admission and pinned."""
    for path in funded:
        ledger.grant(path, 5 * CREDIT)
    lease = ledger.lease(ALICE, payer=named)
    assert lease.payer_id == ledger.account(pays).account_id
    if pays == "acme":
        ledger.grant(ALICE, 5 * CREDIT)
        ledger.wait(s=1)
        ledger.accept(Beat(lease.reservation_id, 1, 1_000), BeatResult)
        assert ledger.account(pays).spent == 10_000


def test_an_account_with_too_little_leaves_the_job_to_the_one_above(ledger: Ledger) -> None:
    """The nearest account that can hold the window pays: a user spends their own credits first."""
    ledger.grant("acme", 5 * CREDIT)
    ledger.grant(ALICE, A_WINDOW + 10_000)
    own, above = ledger.lease(ALICE), ledger.lease(ALICE)
    assert own.payer_id == ledger.account(ALICE).account_id
    assert above.payer_id == ledger.account("acme").account_id


def test_a_postpaid_account_pays_without_a_grant(ledger: Ledger) -> None:
    """Postpaid counts as a budget, and holds go below zero down to the limit, not beyond."""
    ledger.grant("acme", 50 * CREDIT)
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=A_WINDOW)
    ledger.lease("acme/post")
    assert ledger.account("acme/post").available == -A_WINDOW
    assert ledger.reason(ask("acme/post", max_amount=1)) is Reason.MAX_AMOUNT_TOO_SMALL
    assert ledger.reason(ask("acme/post", max_amount=10)) is Reason.INSUFFICIENT_CREDITS


def test_the_price_is_pinned(ledger: Ledger) -> None:
    """A discount applies to its subtree; a price that changes later changes no running job."""
    ledger.grant("acme", 50 * CREDIT)
    ledger.price("h100", 18 * CREDIT, account="acme/vision", since=START)
    discounted, full = ledger.lease(ALICE), ledger.lease("acme")
    assert (discounted.held, full.held) == (A_WINDOW // 2, A_WINDOW)
    ledger.price("h100", 72 * CREDIT, since=START + 1, account="acme/vision")
    ledger.wait(s=10)
    beaten = ledger.accept(Beat(discounted.reservation_id, 1, 10_000), BeatResult)
    assert beaten.settled == 50_000
    assert ledger.lease(ALICE).held == 2 * A_WINDOW


def test_refusals_of_a_reservation_in_order_of_precedence(ledger: Ledger) -> None:
    """With everything wrong at once the first reason is given; mending it shows the next."""
    fields: dict[str, Any] = {"gpu_type": "none", "payer": "acme/audio", "max_amount": 1}
    seen = [ledger.reason(ask("acme/none", **fields))]
    ledger.do(UpdateAccount(path="acme", status=Status.SUSPENDED))
    seen.append(ledger.reason(ask(**fields)))
    ledger.do(UpdateAccount(path="acme", status=Status.ACTIVE))
    seen.append(ledger.reason(ask(**fields)))
    fields["gpu_type"] = "h100"
    seen.append(ledger.reason(ask(**fields)))
    fields["payer"] = ""
    seen.append(ledger.reason(ask(**fields)))
    fields["max_amount"] = 0
    seen.append(ledger.reason(ask(**fields)))
    assert seen == [
        Reason.ACCOUNT_UNKNOWN,
        Reason.ACCOUNT_SUSPENDED,
        Reason.PRICE_UNKNOWN,
        Reason.PAYER_INVALID,
        Reason.MAX_AMOUNT_TOO_SMALL,
        Reason.INSUFFICIENT_CREDITS,
    ]
    assert seen == sorted(seen, key=list(Reason).index)


def test_every_reason_has_a_kind() -> None:
    """No reason is left without a sort."""
    assert all(kind_of(reason).value for reason in Reason)


def test_a_settled_or_canceled_lease_ends_once(ledger: Ledger) -> None:
    """Museum 6: void twice, settle after void and void after settle are refused, and say why."""
    ledger.grant("acme", 10 * CREDIT)
    canceled, settled = (ledger.lease(ALICE).reservation_id for _ in range(2))
    ledger.accept(Cancel(reservation_id=canceled), Closed)
    ledger.accept(Settle(reservation_id=settled), Closed)
    for number, state in ((canceled, "canceled"), (settled, "settled")):
        for command in (Cancel(reservation_id=number), Settle(reservation_id=number)):
            refused = ledger.refuse(command)
            assert refused.reason is Reason.RESERVATION_ENDED
            assert refused.detail == {"state": state}
    assert ledger.account("acme").available == 10 * CREDIT


def test_a_job_that_ran_is_not_canceled(ledger: Ledger) -> None:
    """Cancel is for jobs that never started; what ran is settled."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=1)
    ledger.accept(Beat(lease, 1, 1), BeatResult)
    assert ledger.reason(Cancel(reservation_id=lease)) is Reason.RESERVATION_STARTED
    assert ledger.reason(Cancel(reservation_id=999)) is Reason.RESERVATION_UNKNOWN


@pytest.mark.parametrize("seq", [5, 3, 6, None])
def test_the_end_of_a_job_is_a_report_of_its_own(ledger: Ledger, seq: int | None) -> None:
    """A seq that is taken does not swallow the last word on what was used, nor charge it twice."""
    ledger.grant("acme", 10 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=20)
    ledger.accept(Beat(lease, 5, 10_000), BeatResult)
    closed = ledger.accept(Settle(reservation_id=lease, seq=seq, used_ms=20_000), Closed)
    assert (closed.settled, closed.used_ms) == (200_000, 20_000)
    assert ledger.reservation(lease).seq == 6
    told = [(entry.type, entry.seq, entry.reserve) for entry in ledger.entries()[-2:]]
    # The last row releases the hold too: 120 s were held, and 10 s of them are settled.
    assert told == [(EntryType.SETTLE, 5, 100_000), (EntryType.SETTLE, 6, -1_100_000)]


def test_what_no_report_ended_names_none(ledger: Ledger) -> None:
    """The release of a lapse or a cancellation does not pass for the last report's doing."""
    ledger.grant("acme", 10 * CREDIT)
    silent, canceled = (ledger.lease(ALICE).reservation_id for _ in range(2))
    ledger.wait(s=1)
    ledger.accept(Beat(silent, 1, 1_000), BeatResult)
    ledger.accept(Beat(canceled, 1, 0), BeatResult)
    ledger.accept(Cancel(reservation_id=canceled), Closed)
    ledger.wait(s=121)
    ledger.lease(ALICE)
    released = [entry for entry in ledger.entries() if entry.type is EntryType.RELEASE]
    assert [(entry.reservation_id, entry.seq) for entry in released] == [(canceled, 0), (silent, 0)]


def test_partial_settles_never_exceed_the_hold(ledger: Ledger) -> None:
    """Museum 2: beats in any order charge once for the time in all, never a hold twice."""
    ledger.grant("acme", A_WINDOW)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=60)
    for seq, used in ((2, 40_000), (1, 20_000), (3, 60_000), (3, 60_000)):
        ledger.do(Beat(lease, seq, used))
    account = ledger.account("acme")
    assert (account.spent, account.reserved, account.available) == (600_000, 600_000, 0)


def test_a_lapsed_hold_is_free_without_a_sweep(ledger: Ledger) -> None:
    """Museum 5: at the very instant of the lapse a reader sees the hold gone and another fits."""
    ledger.grant("acme", A_WINDOW)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(us=120 * SECOND - 1)
    assert ledger.account("acme").available == 0
    assert ledger.reason(ask()) is Reason.INSUFFICIENT_CREDITS
    ledger.wait(us=1)
    assert ledger.account("acme").available == A_WINDOW
    ledger.lease(ALICE)
    assert ledger.reservation(lease).state is ReservationState.EXPIRED


def test_thousands_of_holds_end_at_one_instant() -> None:
    """Museum 4: they all lapse in one roll, and the balance is whole again."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    ledger.open("acme")
    ledger.grant("acme", 10_000 * A_WINDOW)
    for _ in range(10_000):
        ledger.lease("acme")
    ledger.wait(s=120)
    ledger.lease("acme")
    account = ledger.account("acme")
    assert (account.available, account.reserved) == (9_999 * A_WINDOW, A_WINDOW)


def test_accounts_open_under_a_parent_once(ledger: Ledger) -> None:
    """A second account of one path, and one without a parent, are refused."""
    assert ledger.reason(CreateAccount(path="acme")) is Reason.ACCOUNT_EXISTS
    assert ledger.reason(CreateAccount(path="acme/x/y")) is Reason.PARENT_UNKNOWN
    assert ledger.reason(Issue(account="acme/x", amount=1)) is Reason.ACCOUNT_UNKNOWN


def test_only_who_pays_later_has_a_credit_limit(ledger: Ledger) -> None:
    """A prepaid account takes none, unless it becomes postpaid at once."""
    limit = UpdateAccount(path="acme", credit_limit=CREDIT)
    assert ledger.reason(limit) is Reason.LIMIT_INVALID
    ledger.accept(UpdateAccount(path="acme", credit_limit=0), AccountSaved)
    ledger.accept(replace(limit, model=Model.POSTPAID), AccountSaved)
    ledger.accept(limit, AccountSaved)
    assert ledger.reason(replace(limit, model=Model.PREPAID)) is Reason.LIMIT_INVALID


def test_who_owes_does_not_become_prepaid(ledger: Ledger) -> None:
    """The refusal says how much of the limit is used; once nothing is, the model may change."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=2 * A_WINDOW)
    lease = ledger.lease("acme/post")
    prepaid = UpdateAccount(path="acme/post", model=Model.PREPAID, credit_limit=0)
    assert ledger.reason(prepaid) is Reason.LIMIT_IN_USE
    ledger.accept(Cancel(reservation_id=lease.reservation_id), Closed)
    ledger.accept(prepaid, AccountSaved)


def test_a_credit_limit_is_lowered_below_the_debt(ledger: Ledger) -> None:
    """Nothing new is admitted, what runs drains at its renewal, and nothing goes further down."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=2 * A_WINDOW)
    lease = ledger.lease("acme/post")
    lowered = UpdateAccount(path="acme/post", credit_limit=A_WINDOW // 2)
    account = ledger.accept(lowered, AccountSaved).account
    assert account.available == -A_WINDOW < account.floor
    wanted = Reserve(account="acme/post", job_id="other", gpu_type="h100", milli_gpus=1_000)
    refused = ledger.refuse(wanted)
    assert refused.reason is Reason.INSUFFICIENT_CREDITS
    used, limit = format_credits(A_WINDOW), format_credits(A_WINDOW // 2)
    assert f"has used {used} of its credit limit of {limit}" in refused.message
    assert refused.detail["available"] == format_credits(-A_WINDOW)
    ledger.wait(s=60)
    told = ledger.accept(Beat(lease.reservation_id, 1, 60_000), BeatResult)
    assert told.decision is Decision.DRAIN
    assert ledger.account("acme/post").available == -A_WINDOW
    ledger.wait(s=120)
    ledger.accept(Sweep(account_id=lease.payer_id), Swept)
    assert ledger.account("acme/post").available == -A_WINDOW // 2
    ledger.grant("acme/post", A_WINDOW)
    ledger.accept(wanted, Reserved)
