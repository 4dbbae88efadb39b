"""Statements: what an account that pays later owes for a month, and how much of it is paid.

Owns: the arithmetic. A statement asks for a stretch of everything that was ever charged to its
account, from ``charged_through - amount`` to ``charged_through``; whatever came in pays the oldest
charge first. So nothing has to be allotted: each statement knows from one number whether it is
paid, by whichever way the credits came.
Must not: close or store anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gpucredits.core.account import Account
from gpucredits.core.bounds import DAY_US, MINUTE_US
from gpucredits.core.period import Calendar, period_at
from gpucredits.core.risk import Standing, Statement, standing

DUE_DAYS: Final = 14  # from the closing of a statement, unless the server was told otherwise
DUE_DAYS_MAX: Final = 365
# What took effect in a month's last moment has been written down by then: servers decide at most
# seconds before they save.
CLOSES_AFTER_US: Final = MINUTE_US
SHORTEST_US: Final = 15 * DAY_US  # what is left of a month, for a statement of its own
BILLS_MAX: Final = 60  # of one account that are looked at, the latest


@dataclass(frozen=True, slots=True)
class Bill:
    """What a statement asks for, in the order of charges, and until when."""

    statement_id: int
    amount: int
    charged_through: int
    due_at: int


@dataclass(frozen=True, slots=True)
class Totals:
    """An account's sums from its first day to an instant: what it holds, was charged and paid."""

    balance: int = 0
    charged: int = 0
    payments: int = 0

    @property
    def received(self) -> int:
        """Everything that came in, refunds too, less everything else that went out."""
        return self.balance + self.charged


@dataclass(frozen=True, slots=True)
class StatementLines:
    """The lines of a statement: ``opening + charges - payments - credits = closing``.

    Positive numbers are owed. ``amount`` is what this statement asks for: what is owed and
    no earlier statement asks for.
    """

    opening: int
    charges: int
    payments: int
    credits: int
    closing: int
    amount: int


def month_after(starts_at: int, zone: str) -> tuple[int, int]:
    """The month that an instant lies in."""
    return period_at(Calendar.MONTH, zone, starts_at)


def months_over(now: int, zone: str) -> int:
    """The end of the last month that may be closed: a month closes one minute after its end."""
    until, _ = month_after(now - CLOSES_AFTER_US, zone)
    return until


def month_from(starts_at: int, zone: str) -> tuple[int, int]:
    """The month that a statement from an instant on covers.

    Statements follow each other without a gap. After the zone was changed the last one may end
    some hours before a month does: those belong to the month that follows.
    """
    ends_at = month_after(starts_at, zone)[1]
    if ends_at - starts_at < SHORTEST_US:
        ends_at = month_after(ends_at, zone)[1]
    return starts_at, ends_at


def figures(before: Totals, after: Totals) -> StatementLines:
    """The lines of a statement, from what was so at its start and at its end."""
    opening, closing = -before.balance, -after.balance
    charges = after.charged - before.charged
    payments = after.payments - before.payments
    asked_before = max(0, before.charged - after.received)
    return StatementLines(
        opening=opening,
        charges=charges,
        payments=payments,
        credits=opening + charges - payments - closing,
        closing=closing,
        amount=max(0, closing - asked_before),
    )


def received_by(account: Account, refunded: int) -> int:
    """Everything that came in to an account until now; refunds pay as payments do."""
    return account.available + account.reserved + account.spent + refunded


def outstanding(bill: Bill, received: int) -> int:
    """What is not paid of a bill."""
    return max(0, bill.charged_through - max(received, bill.charged_through - bill.amount))


def standing_of(bills: Iterable[Bill], received: int, now: int, account_id: int = 0) -> Standing:
    """What is overdue of some bills."""
    return standing(
        [
            Statement(
                bill.statement_id,
                account_id,
                bill.amount,
                bill.due_at,
                bill.amount - outstanding(bill, received),
            )
            for bill in bills
        ],
        now,
    )
