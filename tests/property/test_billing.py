"""The bill depends on the use alone: not on how reports of it were cut, repeated or shuffled."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.command import Settle
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Closed
from support.books.ledger import CREDIT, Ledger

CI = settings(max_examples=150, derandomize=True, deadline=None, database=None)
prices = st.one_of(st.integers(0, 50), st.integers(1, 10**8), st.just(3_600_001))
slices = st.lists(st.integers(0, 9_999), min_size=1, max_size=12)


def ledger_with(price: int, *, fresh: bool) -> Ledger:
    """An account with two grants, the smaller of which pays first."""
    ledger = Ledger(fresh=fresh)
    ledger.price("h100", price)
    ledger.open("acme")
    ledger.grant("acme", 1_001, priority=1)
    ledger.grant("acme", 10_000 * CREDIT)
    return ledger


def remainders(ledger: Ledger) -> list[int]:
    """What every grant has left."""
    return [grant.remaining for grant in ledger.view().lots.values()]


@CI
@given(price=prices, milli=st.integers(1, 9_000), cuts=slices, fresh=st.booleans())
def test_splitting_heartbeats_never_changes_the_bill(
    price: int, milli: int, cuts: list[int], fresh: bool
) -> None:
    """Many beats and one settle charge the same, from the same grants, as one settle alone."""
    many, one = ledger_with(price, fresh=fresh), ledger_with(price, fresh=fresh)
    first = many.lease("acme", milli_gpus=milli).reservation_id
    second = one.lease("acme", milli_gpus=milli).reservation_id
    used = 0
    for seq, cut in enumerate(cuts, start=1):
        many.wait(ms=cut)
        one.wait(ms=cut)
        used += cut
        many.do(Beat(first, seq, used))
    bill = many.accept(Settle(reservation_id=first, used_ms=used), Closed).settled
    one.now = min(one.now, one.reservation(second).expires_at - 1)
    whole = one.accept(Settle(reservation_id=second, used_ms=used), Closed).settled
    assert bill == whole == milli * price * used // 3_600_000_000
    assert remainders(many) == remainders(one)


@CI
@given(price=prices, order=st.permutations(range(1, 9)), again=st.lists(st.integers(1, 8)))
def test_lost_repeated_and_reordered_beats_never_change_the_bill(
    price: int, order: list[int], again: list[int]
) -> None:
    """In whatever order beats arrive, the last of them settles the whole."""
    ledger = ledger_with(price, fresh=False)
    lease = ledger.lease("acme", milli_gpus=3_000).reservation_id
    ledger.wait(ms=8_008)
    for seq in (*order, *again):
        ledger.do(Beat(lease, seq, seq * 1_001))
    account = ledger.account("acme")
    assert account.spent == 3 * price * 8 * 1_001 // 3_600_000
    assert ledger.reservation(lease).used_ms == 8 * 1_001
