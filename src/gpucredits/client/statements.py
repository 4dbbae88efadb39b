"""Calls about statements and their payment."""

from __future__ import annotations

from gpucredits.client.call import Call, Number, body_of, item_path, read, write
from gpucredits.wire.statement import (
    PaymentAnswer,
    PaymentRequest,
    StatementAnswer,
    StatementPage,
)


def statement(statement_id: str) -> Call[StatementAnswer]:
    """One statement."""
    return read(item_path("statements", statement_id), StatementAnswer)


def statement_page(
    account: str | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[StatementPage]:
    """A page of statements, the latest first."""
    return read("/v1/statements", StatementPage, account=account, cursor=cursor, limit=limit)


def pay_statement(
    statement_id: str,
    amount: Number,
    *,
    payment_reference: str,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PaymentAnswer]:
    """A payment for a statement has arrived: it repays what is owed, and resumes the account."""
    body = body_of(PaymentRequest, amount=amount, payment_reference=payment_reference)
    path = item_path("statements", statement_id, ":pay")
    return write(path, PaymentAnswer, body=body, key=key, dry_run=dry_run)
