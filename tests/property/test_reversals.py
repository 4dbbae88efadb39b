"""A reversed payment conserves credits: what comes back, expired and is owed is what was paid."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.account import Account, Model
from gpucredits.core.command import ReverseTopUp, Settle, Transfer
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import GrantState
from gpucredits.core.outcome import ToppedUp
from oracle.ledger_replay import Replay
from support.books.ledger import CREDIT, SECOND, Ledger

CI = settings(max_examples=200, derandomize=True, deadline=None, database=None)
PATHS = ["acme", "acme/a", "acme/b", "acme/b/u"]
places = st.sampled_from(range(len(PATHS)))
steps = st.lists(
    st.tuples(
        st.sampled_from(["move", "move", "move", "hold", "spend", "grant", "wait"]),
        places,
        places,
        st.integers(1, 3 * CREDIT),
    ),
    max_size=25,
)


def act(ledger: Ledger, what: str, here: str, there: str, amount: int) -> None:
    """One step; what is refused changes nothing."""
    match what:
        case "move":
            ledger.do(Transfer(source=here, target=there, amount=amount))
        case "grant":
            ledger.grant(here, amount)
        case "wait":
            ledger.wait(ms=amount // 1_000)
        case _ if ledger.account(here).available >= CREDIT:
            lease = ledger.lease(here, window_ms=100_000).reservation_id
            if what == "spend":
                ledger.wait(s=10)
                ledger.do(Settle(reservation_id=lease, used_ms=amount // 1_000))


def lineage(ledger: Ledger, grant_id: int) -> set[int]:
    """The grant and all that was made of it by transfers."""
    kin = {grant_id}
    for number, lot in sorted(ledger.view().lots.items()):
        if lot.origin_id in kin:
            kin.add(number)
    return kin


def worth(accounts: list[Account]) -> int:
    """What some accounts hold, less what they owe."""
    return sum(each.remaining - each.debt - each.overrun for each in accounts)


@CI
@given(
    steps=steps,
    amount=st.integers(1, 5 * CREDIT),
    life=st.sampled_from([20, 1_000]),
    postpaid=st.booleans(),
    fresh=st.booleans(),
)
def test_a_reversal_conserves_credits(
    steps: list[tuple[str, int, int, int]], amount: int, life: int, postpaid: bool, fresh: bool
) -> None:
    """The org loses what was paid and has not expired; nobody but the payer owes anything new."""
    ledger = Ledger(fresh=fresh)
    ledger.price("h100", 36 * CREDIT)
    for path in PATHS:
        limited = postpaid and path == "acme/a"
        model = Model.POSTPAID if limited else Model.PREPAID
        ledger.open(path, model=model, credit_limit=CREDIT if limited else 0)
    topped = ledger.pay("acme", amount, expires_at=ledger.now + life * SECOND)
    for what, here, there, number in steps:
        act(ledger, what, PATHS[here], PATHS[there], number)
    before = ledger.view()
    kin = lineage(ledger, topped.topup.grant_id)
    first = before.org.next_entry_id
    ledger.accept(ReverseTopUp(topup_id=topped.topup.topup_id), ToppedUp)
    after = ledger.view()
    expired = sum(
        entry.amount
        for entry in ledger.entries()
        if entry.type is EntryType.EXPIRE and entry.grant_id in kin
    )
    old, new = list(before.accounts.values()), list(after.accounts.values())
    assert worth(new) == worth(old) - (amount - expired)
    for was, now in zip(old[1:], new[1:], strict=True):
        assert (now.debt, now.overrun, now.reserved, now.spent) == (
            (was.debt, was.overrun, was.reserved, was.spent)
        )
        assert now.available >= min(was.available, 0)
    for number in kin:
        lot = after.lots[number]
        if lot.state is GrantState.ACTIVE and lot.remaining:
            assert after.accounts[lot.account_id].available <= 0, "what no hold needs was taken"
    posted = [entry for entry in ledger.entries() if entry.entry_id >= first]
    reversed_ = sum(entry.amount for entry in posted if entry.type is EntryType.REVERSE)
    assert reversed_ == amount - expired
    replay = Replay()
    floors = {each.account_id: -each.credit_limit for each in new}
    for entry in ledger.entries():
        replay.next_step()
        replay.feed(entry, floors)
