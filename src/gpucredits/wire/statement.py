"""Statements on the wire: what a month came to, and paying it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpucredits.wire.credit import TopUpAnswer
from gpucredits.wire.scalars import Amount, CreditsText, InstantText, Name

StatementStateName = Literal["open", "paid", "overdue"]


class StatementAnswer(Struct, kw_only=True):
    """A month of an account that pays later; positive amounts are owed.

    ``opening + charges - payments - credits = closing``. ``amount`` is what this statement asks
    for, ``paid`` and ``outstanding`` what has and has not come in for it until now.
    """

    statement_id: str
    account: str
    period: str
    starts_at: InstantText
    ends_at: InstantText
    closed_at: InstantText
    due_at: InstantText
    opening: CreditsText
    charges: CreditsText
    payments: CreditsText
    credits: CreditsText
    closing: CreditsText
    amount: CreditsText
    paid: CreditsText
    outstanding: CreditsText
    state: StatementStateName


class StatementPage(Struct, kw_only=True):
    """Statements, the latest first."""

    statements: list[StatementAnswer]
    next_cursor: str | None = None


class PaymentRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A payment that has arrived; more than is owed stays as credits."""

    amount: Amount
    payment_reference: Name


class PaymentAnswer(Struct, kw_only=True):
    """The statement and the account after the payment, and the top-up that it is."""

    statement: StatementAnswer
    topup: TopUpAnswer
    delinquent: bool
    sentence: str
