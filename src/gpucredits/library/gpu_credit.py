"""GPUCredit: inclusive windows, and usage that may run into debt.

Owns the checks and answers of that class. Must not hold rules of its own; the timeline has them.
"""

from __future__ import annotations

from gpucredits.library.arguments import check_amount, check_integer, check_name
from gpucredits.library.timeline import Shortage, Timeline, Window


class GPUCredit:
    """Credits with windows, usage that never fails, and balances at any time.

    Operations may arrive in any order; an answer depends on their timestamps only. The credit that
    expires soonest is used first. Usage beyond what is active is debt, which later credits repay.
    """

    def __init__(self) -> None:
        self._timeline = Timeline(window=Window.INCLUSIVE, shortage=Shortage.DEBT)

    def add_credit(self, credit_id: str, amount: int, timestamp: int, expiration: int) -> None:
        """Add a credit that is valid on `[timestamp, timestamp + expiration]`, ends included.

        Two credits with one `credit_id` are two credits.
        """
        name = check_name("credit_id", credit_id)
        amount = check_amount("amount", amount)
        start = check_integer("timestamp", timestamp)
        self._timeline.add(name, amount, start, start + check_amount("expiration", expiration))

    def subtract(self, amount: int, timestamp: int) -> None:
        """Use credits at a timestamp; what is not there becomes debt."""
        amount = check_amount("amount", amount)
        self._timeline.charge(None, amount, check_integer("timestamp", timestamp))

    def get_balance(self, timestamp: int) -> int | None:
        """Balance at a timestamp; None where no credit is active, or in debt."""
        balance, windows = self._timeline.state(check_integer("timestamp", timestamp))
        return balance if windows and balance >= 0 else None
