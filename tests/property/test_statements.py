"""Statements against a naive book-keeper who allots every payment to the oldest charge by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpucredits.core.statement import Bill, Totals, figures, outstanding, standing_of

AMOUNT = st.integers(0, 1_000)
STEP = st.tuples(st.sampled_from(["charge", "pay", "grant", "refund", "reverse", "close"]), AMOUNT)


class BookKeeper:
    """Charges in order with what is unpaid of each, and what was paid ahead."""

    def __init__(self) -> None:
        self.charges: list[list[int]] = []  # month, unpaid
        self.ahead = 0
        self.month = 0

    def receive(self, amount: int) -> None:
        """Pay the oldest charge first, and keep the rest."""
        self.ahead += amount
        for charge in self.charges:
            part = min(charge[1], self.ahead)
            charge[1] -= part
            self.ahead -= part

    def charge(self, amount: int) -> None:
        """One more charge, paid at once as far as something was paid ahead."""
        self.charges.append([self.month, amount])
        self.receive(0)

    def unpaid(self, month: int) -> int:
        """What is unpaid of the charges of a month."""
        return sum(charge[1] for charge in self.charges if charge[0] == month)


@given(st.lists(STEP, max_size=40))
def test_every_statement_is_as_paid_as_the_book_keeper_says(steps: list[tuple[str, int]]) -> None:
    """Whatever came in pays the oldest charge first; lines add up; no charge is asked for twice."""
    keeper = BookKeeper()
    now, last = Totals(), Totals()
    bills: list[tuple[int, Bill]] = []
    for kind, amount in steps:
        match kind:
            case "charge":
                now = Totals(now.balance - amount, now.charged + amount, now.payments)
                keeper.charge(amount)
            case "pay":
                now = Totals(now.balance + amount, now.charged, now.payments + amount)
                keeper.receive(amount)
            case "grant" | "refund":
                now = Totals(now.balance + amount, now.charged, now.payments)
                keeper.receive(amount)
            case "reverse":  # only of what was paid ahead: the keeper does not take back
                part = min(amount, keeper.ahead)
                keeper.ahead -= part
                now = Totals(now.balance - part, now.charged, now.payments - part)
            case _:
                lines = figures(last, now)
                total = lines.opening + lines.charges - lines.payments - lines.credits
                assert total == lines.closing == -now.balance
                assert lines.amount == keeper.unpaid(keeper.month)
                bills.append((keeper.month, Bill(len(bills), lines.amount, now.charged, 1)))
                last = now
                keeper.month += 1
    for month, bill in bills:
        assert outstanding(bill, now.received) == keeper.unpaid(month)
    overdue = standing_of([bill for _, bill in bills], now.received, 1).overdue
    assert overdue == sum(keeper.unpaid(month) for month, _ in bills)
    assert standing_of([bill for _, bill in bills], now.received, 0).overdue == 0
