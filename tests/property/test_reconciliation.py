"""Corrections against an oracle that counts every millisecond, for any measured use."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.command import Settle, Sweep
from gpucredits.core.entry import EntryType
from gpucredits.core.outcome import Closed, Reconciled, Swept
from gpucredits.core.reconciliation.commands import Reconcile
from gpucredits.core.reconciliation.comparison import clipped, condensed, length_ms, union
from oracle.slow_reconciliation import Lot, used_milliseconds, who_pays
from support.books.ledger import CREDIT, START, Ledger

EACH = 10  # micro-credits a millisecond: one h100 at 36 credits an hour
LEASE_MS = 300
SPANS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 120)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=8,
)
GRANTS = st.lists(
    st.tuples(st.integers(1, 1_500), st.integers(1, 350), st.integers(0, 3)), max_size=4
)


@settings(max_examples=150, deadline=None)
@given(spans=SPANS, used=st.integers(0, LEASE_MS), grants=GRANTS, more=SPANS)
def test_corrections_are_those_of_the_oracle(
    spans: list[tuple[int, int]],
    used: int,
    grants: list[tuple[int, int, int]],
    more: list[tuple[int, int]],
) -> None:
    """The difference, who pays for it, and nothing in a second pass, whatever was measured."""
    ledger = Ledger(fresh=True)
    ledger.price("h100", 36 * CREDIT)
    ledger.open("acme")
    ledger.grant("acme", 9 * CREDIT, priority=500)
    lots = [
        ledger.grant("acme", amount, expires_at=START + ends * 1_000, priority=priority)
        for amount, ends, priority in grants
    ]
    lease = ledger.lease("acme", window_ms=1_000).reservation_id
    ledger.wait(ms=LEASE_MS)
    ledger.accept(Settle(reservation_id=lease, used_ms=used), Closed)
    ledger.wait(s=10)
    ledger.accept(Sweep(account_id=1), Swept)
    expired: dict[int, int] = {}
    for entry in ledger.entries():
        if entry.type is EntryType.EXPIRE:
            expired[entry.grant_id] = expired.get(entry.grant_id, 0) + entry.amount
    ranked = sorted(lots, key=lambda lot: (lot.priority, lot.expires_at, lot.grant_id))
    known = [
        Lot(lot.grant_id, expired.get(lot.grant_id, 0), 0, (lot.expires_at - START) // 1_000, place)
        for place, lot in enumerate(ranked)
    ]
    counted = used_milliseconds(spans, LEASE_MS)
    difference, paid, present = who_pays(counted, used, EACH, known)
    done = ledger.accept(Reconcile(reservation_id=lease, spans=tuple(spans)), Reconciled)
    assert (done.amount, done.measured_ms) == (difference, len(counted))
    if difference > 0:
        given_by = dict(done.lots)
        assert {lot: given_by.get(lot, 0) for lot in paid} == paid
        assert sum(given_by.values()) == sum(paid.values()) + present
    else:
        assert sum(amount for _, amount in done.lots) == -difference
    again = ledger.accept(Reconcile(reservation_id=lease, spans=tuple(spans)), Reconciled)
    assert (again.amount, again.lots) == (0, ())
    every = [*spans, *more]
    later = ledger.accept(Reconcile(reservation_id=lease, spans=tuple(every)), Reconciled)
    assert later.amount == (len(used_milliseconds(every, LEASE_MS)) - len(counted)) * EACH
    row = ledger.reservation(lease)
    assert row.charged == len(used_milliseconds(every, LEASE_MS)) * EACH
    assert row.reconciled == row.adjusted - row.refunded
    assert sum(amount for _, amount in row.paid) == row.charged


@given(spans=SPANS, ends=st.integers(0, 500), most=st.integers(1, 9))
def test_unions_have_the_time_of_the_oracle(
    spans: list[tuple[int, int]], ends: int, most: int
) -> None:
    """Joined, clipped and condensed, the time is the same and the order holds."""
    joined = clipped(union(spans), ends)
    assert length_ms(joined) == len(used_milliseconds(spans, ends))
    few = condensed(joined, most)
    assert len(few) <= max(most, 1)
    assert length_ms(few) == length_ms(joined)
    assert few == union(few)
