"""Statements on the wire: what a month came to, and paying it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from gpucredits.wire.documented import ACCOUNT, NEXT_CURSOR, PAYMENT_REFERENCE, STATE, doc
from gpucredits.wire.ledger.credit import TopUpAnswer
from gpucredits.wire.scalars import Amount, CreditsText, InstantText, Name

StatementStateName = Literal["open", "paid", "overdue"]


class StatementAnswer(Struct, kw_only=True):
    """A month of an account that pays later; positive amounts are owed.

    ``opening + charges - payments - credits = closing``. ``amount`` is what this statement asks
    for; ``paid`` is what has come in for it until now, and ``outstanding`` the rest.
    """

    statement_id: Annotated[str, doc("The id of the statement.")]
    account: Annotated[str, ACCOUNT]
    period: Annotated[str, doc("The month, such as 2026-03.")]
    starts_at: Annotated[InstantText, doc("The start of the month.")]
    ends_at: Annotated[InstantText, doc("The end of the month.")]
    closed_at: Annotated[InstantText, doc("When the month was closed.")]
    due_at: Annotated[InstantText, doc("When payment is due.")]
    opening: Annotated[CreditsText, doc("Credits owed at the start of the month.")]
    charges: Annotated[CreditsText, doc("Credits charged in the month.")]
    payments: Annotated[CreditsText, doc("Payments that came in during the month.")]
    credits: Annotated[
        CreditsText, doc("Credits that came in other than by payment, such as grants and refunds.")
    ]
    closing: Annotated[CreditsText, doc("Credits owed at the end of the month.")]
    amount: Annotated[CreditsText, doc("The amount of the statement.")]
    paid: Annotated[CreditsText, doc("Credits paid for this statement so far.")]
    outstanding: Annotated[CreditsText, doc("Credits not yet paid for this statement.")]
    state: Annotated[StatementStateName, STATE]


class StatementPage(Struct, kw_only=True):
    """Statements, the latest first."""

    statements: Annotated[list[StatementAnswer], doc("The statements of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class PaymentRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A payment that has arrived; more than is owed stays as credits."""

    amount: Annotated[Amount, doc("Credits that were paid.")]
    payment_reference: Annotated[Name, PAYMENT_REFERENCE]


class PaymentAnswer(Struct, kw_only=True):
    """The statement and the account after a payment, and the top-up that records it."""

    statement: Annotated[StatementAnswer, doc("The statement after the payment.")]
    topup: Annotated[TopUpAnswer, doc("The top-up of the payment.")]
    delinquent: Annotated[bool, doc("Whether anything is still overdue.")]
    sentence: Annotated[str, doc("The standing of the account, in words.")]
