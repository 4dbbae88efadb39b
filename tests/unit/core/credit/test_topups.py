"""Top-ups: pending, confirmed, failed or reversed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucredits.core.account import Model
from gpucredits.core.bounds import NEVER_US
from gpucredits.core.command import (
    Cancel,
    Command,
    ConfirmTopUp,
    FailTopUp,
    Refund,
    ReverseTopUp,
    Settle,
    Sweep,
    TopUp,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import GrantState, Source
from gpucredits.core.outcome import (
    AccountSaved,
    Closed,
    Refunded,
    Swept,
    ToppedUp,
    Transferred,
)
from gpucredits.core.reasons import Reason
from gpucredits.core.statement import Bill
from gpucredits.core.topup import TopUpStatus
from support.books.ledger import CREDIT, SECOND, START, Ledger


def pending(ledger: Ledger, amount: int = CREDIT, expires_at: int = NEVER_US) -> int:
    """A payment that has not arrived."""
    reference = f"pending-{len(ledger.stored.topups)}"
    command = TopUp(
        account="acme", amount=amount, payment_reference=reference, expires_at=expires_at
    )
    return ledger.accept(command, ToppedUp).topup.topup_id


def spend(ledger: Ledger, account: str, seconds: int) -> int:
    """Run a job to the end of its lease at a cent a second; returns its reservation."""
    lease = ledger.lease(account, window_ms=seconds * 1_000).reservation_id
    ledger.wait(s=seconds)
    ledger.accept(Settle(reservation_id=lease, used_ms=seconds * 1_000), Closed)
    return lease


def move(ledger: Ledger, source: str, target: str, amount: int) -> None:
    """Transfer credits."""
    ledger.accept(Transfer(source=source, target=target, amount=amount), Transferred)


def test_only_a_confirmed_top_up_makes_a_grant(ledger: Ledger) -> None:
    """Museum 15: a pending payment and a declined one add nothing, a confirmed one its amount."""
    waiting, declined = pending(ledger), pending(ledger)
    ledger.accept(FailTopUp(topup_id=declined), ToppedUp)
    assert ledger.account("acme").available == 0
    topped = ledger.accept(ConfirmTopUp(topup_id=waiting), ToppedUp)
    assert topped.grant is not None
    assert topped.grant.source is Source.TOPUP
    assert ledger.account("acme").available == CREDIT
    assert [entry.type for entry in ledger.entries()] == [EntryType.TOPUP]


STATES: dict[str, tuple[list[type], list[type]]] = {
    "pending": ([], [ReverseTopUp]),
    "confirmed": ([ConfirmTopUp], [ConfirmTopUp, FailTopUp]),
    "failed": ([FailTopUp], [ConfirmTopUp, FailTopUp, ReverseTopUp]),
    "reversed": ([ConfirmTopUp, ReverseTopUp], [ConfirmTopUp, FailTopUp, ReverseTopUp]),
}


@pytest.mark.parametrize("state", STATES)
def test_a_top_up_moves_only_forward(ledger: Ledger, state: str) -> None:
    """Museum 15: bursts of the same webhook and late failures change nothing twice."""
    steps, refused = STATES[state]
    number = pending(ledger)
    for step in steps:
        ledger.accept(step(topup_id=number), ToppedUp)
    assert ledger.stored.topups[number].status is TopUpStatus[state.upper()]
    for step in refused:
        assert ledger.reason(step(topup_id=number)) is Reason.TOPUP_STATE


def test_a_reversal_takes_back_what_is_unspent(ledger: Ledger) -> None:
    """A payment reversed before anything was spent leaves no trace in the balance."""
    topped = ledger.pay("acme", 3 * CREDIT)
    ledger.grant("acme", CREDIT)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme")
    assert (account.available, account.debt, account.overrun) == (CREDIT, 0, 0)


def test_a_reversal_after_spending_becomes_debt(ledger: Ledger) -> None:
    """A postpaid account owes it within its limit; the next grant repays it."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=10 * CREDIT)
    topped = ledger.pay("acme/post", CREDIT)
    spend(ledger, "acme/post", 100)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme/post")
    assert (account.available, account.debt, account.overrun) == (-CREDIT, CREDIT, 0)
    ledger.grant("acme/post", 3 * CREDIT)
    assert ledger.account("acme/post").available == 2 * CREDIT


def test_a_prepaid_reversal_after_spending_is_covered_and_collected(ledger: Ledger) -> None:
    """Prepaid keeps its floor: the house covers the reversal and takes it from later credits."""
    topped = ledger.pay("acme", CREDIT)
    spend(ledger, "acme", 100)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme")
    assert (account.available, account.debt, account.overrun) == (0, 0, CREDIT)
    ledger.grant("acme", 3 * CREDIT)
    account = ledger.account("acme")
    assert (account.available, account.overrun) == (2 * CREDIT, 0)


@pytest.mark.parametrize("model", Model)
def test_a_reversal_takes_other_unheld_credits_before_it_owes(ledger: Ledger, model: Model) -> None:
    """An account that owes has no credits left that could expire as if held, or be spent first."""
    ledger.open("acme/post", model=model, credit_limit=10 * CREDIT)
    topped = ledger.pay("acme/post", CREDIT)
    spend(ledger, "acme/post", 100)
    other = ledger.grant("acme/post", 300_000, expires_at=ledger.now + SECOND)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme/post")
    assert account.remaining == 0
    assert account.debt + account.overrun == 700_000
    ledger.wait(s=2)
    assert ledger.lot(other.grant_id).state is not GrantState.HELD_OVER


def test_a_reversal_owes_nothing_for_what_expired_unspent(ledger: Ledger) -> None:
    """Credits that nobody used are gone with the payment; only what was spent is owed."""
    topped = ledger.pay("acme", CREDIT, expires_at=START + 300 * SECOND)
    spend(ledger, "acme", 30)
    ledger.wait(s=300)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme")
    assert (account.available, account.debt, account.overrun) == (0, 0, 300_000)
    ledger.grant("acme", CREDIT)
    assert ledger.account("acme").available == 700_000


def test_a_refund_that_expired_is_not_owed_at_the_reversal(ledger: Ledger) -> None:
    """What was given back to the ended grant of the payment was not used after all."""
    topped = ledger.pay("acme", CREDIT, expires_at=START + 300 * SECOND)
    lease = spend(ledger, "acme", 30)
    ledger.wait(s=300)
    ledger.accept(Refund(reservation_id=lease, amount=300_000), Refunded)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme")
    assert (account.spent, account.debt, account.overrun) == (0, 0, 0)


@pytest.mark.parametrize("sweeps", [True, False])
def test_what_was_moved_on_and_expired_there_is_not_owed(ledger: Ledger, *, sweeps: bool) -> None:
    """Credits that nobody used are gone wherever they were, written down or not."""
    topped = ledger.pay("acme", 3 * CREDIT, expires_at=START + 300 * SECOND)
    move(ledger, "acme", "acme/vision", 2 * CREDIT)
    move(ledger, "acme/vision", "acme/vision/alice", CREDIT)
    move(ledger, "acme/vision/alice", "acme", 400_000)
    spend(ledger, "acme/vision/alice", 25)
    ledger.wait(s=300)
    ledger.grant("acme", 5 * CREDIT)
    for path in ("acme", "acme/vision", "acme/vision/alice"):
        if sweeps:
            ledger.accept(Sweep(account_id=ledger.account(path).account_id), Swept)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    account = ledger.account("acme")
    assert (account.available, account.overrun) == (4_750_000, 0)


def test_what_was_moved_on_is_taken_back_where_it_is(ledger: Ledger) -> None:
    """Unspent credits leave every account of the lineage; nothing is owed and nothing is left."""
    topped = ledger.pay("acme", 3 * CREDIT)
    move(ledger, "acme", "acme/vision", 2 * CREDIT)
    move(ledger, "acme/vision", "acme/vision/alice", CREDIT)
    move(ledger, "acme/vision/alice", "acme", 400_000)
    ledger.grant("acme/vision", CREDIT)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    paths = ("acme", "acme/vision", "acme/vision/alice")
    assert [ledger.account(path).available for path in paths] == [0, CREDIT, 0]
    assert [ledger.account(path).overrun for path in paths] == [0, 0, 0]
    back = [entry for entry in ledger.entries() if entry.type is EntryType.REVERSE]
    assert sum(entry.amount for entry in back) == 3 * CREDIT
    assert {entry.account_id for entry in back} == {ledger.account("acme").account_id}


@pytest.mark.parametrize("hops", [1, 5, 40])
def test_a_lineage_of_any_length_is_followed(ledger: Ledger, hops: int) -> None:
    """Credits that were passed on again and again are found where they are now."""
    topped = ledger.pay("acme", CREDIT)
    around = ["acme", "acme/vision", "acme/vision/alice"]
    for hop in range(hops):
        move(ledger, around[hop % 3], around[(hop + 1) % 3], CREDIT)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    assert [ledger.account(path).available for path in around] == [0, 0, 0]
    assert ledger.account("acme").overrun == 0


def test_what_a_holder_spent_or_holds_is_owed_by_the_account_of_the_payment(
    ledger: Ledger,
) -> None:
    """Of 5 credits moved on 1 is spent and 1.2 are held: the other 2.8 come back, 2.2 are owed."""
    topped = ledger.pay("acme", 5 * CREDIT)
    move(ledger, "acme", "acme/vision", 5 * CREDIT)
    spend(ledger, "acme/vision", 100)
    lease = ledger.lease("acme/vision", window_ms=120_000).reservation_id
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    holder, payer = ledger.account("acme/vision"), ledger.account("acme")
    assert (holder.available, holder.reserved, holder.spent) == (0, 1_200_000, CREDIT)
    assert (holder.debt, holder.overrun) == (0, 0)
    assert (payer.available, payer.overrun) == (0, 2_200_000)
    assert ledger.reservation(lease).held == 1_200_000


def test_a_reversal_takes_nobody_below_nothing(ledger: Ledger) -> None:
    """A postpaid holder that owes keeps its credits' place: its limit pays for no reversal."""
    ledger.open("acme/post", model=Model.POSTPAID, credit_limit=10 * CREDIT)
    topped = ledger.pay("acme", CREDIT)
    spend(ledger, "acme/post", 60)
    move(ledger, "acme", "acme/post", CREDIT)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    holder = ledger.account("acme/post")
    assert (holder.available, holder.debt) == (0, 0)
    assert ledger.account("acme").overrun == 600_000


def test_held_over_credits_of_another_account_are_left_to_its_holds(ledger: Ledger) -> None:
    """They have ended and are kept for a lease, so a reversal does not touch them."""
    topped = ledger.pay("acme", CREDIT, expires_at=START + 60 * SECOND)
    move(ledger, "acme", "acme/vision", CREDIT)
    ledger.lease("acme/vision", window_ms=100_000)
    ledger.wait(s=61)
    ledger.grant("acme/vision", CREDIT)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    holder = ledger.account("acme/vision")
    assert (holder.available, holder.reserved) == (CREDIT, CREDIT)


@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize("reverses_first", [True, False])
def test_refund_and_reversal_after_the_end_leave_nothing_owed(
    ledger: Ledger, model: Model, *, reverses_first: bool
) -> None:
    """Nothing was used and nothing paid, in whichever order that came to light."""
    ledger.open("acme/post", model=model, credit_limit=10 * CREDIT)
    topped = ledger.pay("acme/post", CREDIT, expires_at=START + 300 * SECOND)
    lease = spend(ledger, "acme/post", 100)
    reversal = ReverseTopUp(topup_id=topped.topup.topup_id)
    if reverses_first:
        ledger.accept(reversal, ToppedUp)
    ledger.wait(s=300)
    ledger.accept(Refund(reservation_id=lease, amount=CREDIT), Refunded)
    if not reverses_first:
        ledger.accept(reversal, ToppedUp)
    account = ledger.account("acme/post")
    assert (account.available, account.spent, account.debt, account.overrun) == (0, 0, 0, 0)
    assert ledger.lot(topped.topup.grant_id).remaining == 0


def test_what_a_late_refund_does_not_owe_expires(ledger: Ledger) -> None:
    """A refund to a grant that has ended pays what is owed, and no more."""
    topped = ledger.pay("acme", CREDIT, expires_at=START + 300 * SECOND)
    lease = spend(ledger, "acme", 100)
    ledger.grant("acme", 300_000)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    assert ledger.account("acme").overrun == 700_000
    ledger.wait(s=300)
    ledger.accept(Refund(reservation_id=lease, amount=CREDIT), Refunded)
    kinds = [(entry.type, entry.amount) for entry in ledger.entries()][-3:]
    assert kinds == [
        (EntryType.REFUND, CREDIT),
        (EntryType.COLLECT, 700_000),
        (EntryType.EXPIRE, 300_000),
    ]
    account = ledger.account("acme")
    assert (account.available, account.overrun) == (0, 0)


def test_held_credits_of_a_reversed_payment_cannot_be_freed(ledger: Ledger) -> None:
    """Hold, reverse, cancel: the house collects what the hold lets go of."""
    topped = ledger.pay("acme", 1_200_000)
    lease = ledger.lease("acme").reservation_id
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    assert ledger.account("acme").overrun == 1_200_000
    ledger.accept(Cancel(reservation_id=lease), Closed)
    account = ledger.account("acme")
    assert (account.available, account.remaining, account.overrun) == (0, 0, 0)


def test_held_credits_of_a_reversed_payment_are_collected_at_the_lapse(ledger: Ledger) -> None:
    """Hold, reverse and fall silent: the lapse frees nothing either, before any sweep."""
    topped = ledger.pay("acme", 1_200_000)
    ledger.lease("acme")
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    ledger.wait(s=120)
    account = ledger.account("acme")
    assert (account.available, account.reserved, account.overrun) == (0, 0, 0)


def test_refund_after_dispute_repays_what_is_owed(ledger: Ledger) -> None:
    """Museum 12: refunding a job whose payment was reversed creates no free credits."""
    topped = ledger.pay("acme", CREDIT)
    lease = spend(ledger, "acme", 100)
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    ledger.accept(Refund(reservation_id=lease, amount=CREDIT), Refunded)
    account = ledger.account("acme")
    assert (account.available, account.spent, account.overrun) == (0, 0, 0)


def test_refusals_of_top_ups_in_order_of_precedence(ledger: Ledger) -> None:
    """Unknown, then state, reference, statement, window: the first of several reasons is given."""
    reasons = list(Reason)
    assert ledger.reason(ConfirmTopUp(topup_id=9_999)) is Reason.TOPUP_UNKNOWN
    short = pending(ledger, expires_at=START + SECOND)
    failed = pending(ledger, expires_at=START + SECOND)
    ledger.accept(FailTopUp(topup_id=failed), ToppedUp)
    ledger.wait(s=1)
    both: Command = ConfirmTopUp(topup_id=failed)
    assert ledger.reason(both) is Reason.TOPUP_STATE
    assert ledger.reason(ConfirmTopUp(topup_id=short)) is Reason.WINDOW_ENDED
    assert reasons.index(Reason.TOPUP_STATE) < reasons.index(Reason.WINDOW_ENDED)
    ended = TopUp(account="acme", amount=1, payment_reference="p", expires_at=ledger.now)
    assert ledger.reason(ended) is Reason.WINDOW_ENDED
    used = replace(ended, payment_reference=ledger.stored.topups[short].payment_reference)
    assert ledger.reason(used) is Reason.REFERENCE_USED
    paid = replace(ended, bill=Bill(1, 0, 0, ledger.now))
    assert ledger.reason(paid) is Reason.STATEMENT_PAID
    assert reasons.index(Reason.STATEMENT_PAID) < reasons.index(Reason.WINDOW_ENDED)


def test_a_reference_names_one_payment(ledger: Ledger) -> None:
    """Recorded twice it is refused, whoever it is for; one that failed may come again."""
    first = TopUp(account="acme", amount=CREDIT, payment_reference="wire 1")
    number = ledger.accept(first, ToppedUp).topup.topup_id
    again = TopUp(account="acme/vision", amount=2, payment_reference="wire 1", confirmed=True)
    assert ledger.reason(again) is Reason.REFERENCE_USED
    ledger.accept(FailTopUp(topup_id=number), ToppedUp)
    paid = ledger.accept(again, ToppedUp).topup.topup_id
    assert ledger.reason(first) is Reason.REFERENCE_USED
    ledger.accept(ReverseTopUp(topup_id=paid), ToppedUp)
    assert ledger.reason(first) is Reason.REFERENCE_USED


def test_a_bill_that_is_paid_cannot_be_paid_again(ledger: Ledger) -> None:
    """A part may be paid, and then the rest; after that nothing is outstanding."""
    ledger.accept(
        UpdateAccount(path="acme", model=Model.POSTPAID, credit_limit=10 * CREDIT), AccountSaved
    )
    spend(ledger, "acme", 100)
    bill = Bill(1, CREDIT, CREDIT, ledger.now)
    for part, reference in ((1, "a"), (CREDIT, "b")):
        paid = TopUp(
            account="acme", amount=part, payment_reference=reference, confirmed=True, bill=bill
        )
        ledger.accept(paid, ToppedUp)
    assert ledger.reason(replace(paid, payment_reference="c")) is Reason.STATEMENT_PAID
