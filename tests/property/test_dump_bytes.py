"""Dumps of equal histories are equal bytes, whatever the order of unrelated arrivals."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits import CreditTracker

sizes = st.one_of(st.integers(0, 50), st.integers(0, 1 << 70))
grants = st.lists(
    st.tuples(st.text(max_size=3), sizes, st.integers(-9, 9), st.integers(0, 9)),
    unique_by=lambda grant: (grant[2], grant[3]),
    max_size=12,
)
refunds = st.lists(
    st.tuples(st.sampled_from(["a", "b", "later", "\n"]), st.integers(0, 1), st.integers(-9, 20)),
    max_size=6,
)


@settings(deadline=None)
@given(grants, refunds, st.randoms(use_true_random=False))
def test_shuffled_arrivals_give_the_same_bytes(
    grants: list[Any], refunds: list[Any], shuffler: Any
) -> None:
    """Grants of different windows and refunds may arrive in any order, with questions between."""
    dumps = set()
    for turn in range(4):
        tracker = CreditTracker()
        pending_refunds = list(refunds)
        for name, amount, start, length in grants:
            tracker.add(name, amount, start, start + length)
            if turn % 2:
                tracker.get_balance(start)
            if pending_refunds and shuffler.random() < 0.5:
                tracker.refund(*pending_refunds.pop())
        for charge_id in ("a", "b"):
            if sum(amount for name, amount, _ in refunds if name == charge_id) == 0:
                tracker.charge(0, 0, charge_id)
        for refund in pending_refunds:
            tracker.refund(*refund)
        dumps.add(tracker.dump())
        assert CreditTracker.load(tracker.dump()) == tracker
        shuffler.shuffle(grants)
        shuffler.shuffle(refunds)
    assert len(dumps) == 1
