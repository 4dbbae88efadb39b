"""Handlers of statements: what a month came to, and paying it."""

from __future__ import annotations

from typing import Annotated, cast

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.paging import (
    LAST_OF_ALL,
    PageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import GRANTING
from gpucredits.api.http.scope import (
    AnyCall,
    accepted,
    filter_of,
    number_param,
    submit_together,
)
from gpucredits.core import ids
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Reviewed, ToppedUp
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.risk import Standing
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.billing.statements import (
    StatementAt,
    StatementFilter,
    list_statements,
    payment,
)
from gpucredits.wire.billing.statement import (
    PaymentAnswer,
    PaymentRequest,
    StatementAnswer,
    StatementPage,
    StatementStateName,
)
from gpucredits.wire.documented import doc
from gpucredits.wire.ledger.credit import topup_to_wire
from gpucredits.wire.scalars import AccountPath, format_instant

_UNKNOWN = Refused(Reason.STATEMENT_UNKNOWN, "There is no such statement.")


route = Routes("statements")


class StatementQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose statements to list."""

    account: Annotated[AccountPath | None, doc("Only statements of this account.")] = None


@route(
    "GET /v1/statements",
    Permission.READ,
    reasons=("account_unknown",),
    client="statement_page(account)",
)
async def get_statements(call: ApiRequest[None, StatementQuery]) -> StatementPage:
    """List statements, the latest first."""
    query = call.query
    which = await filter_of(call, StatementFilter)
    listed = await call.services.run(list_statements, which)
    listed, following = page(listed, query, place_of)
    return StatementPage(statements=[to_wire(seen) for seen in listed], next_cursor=following)


@route(
    "GET /v1/statements/{statement}",
    Permission.READ,
    reasons=("statement_unknown",),
    client="statement(statement_id)",
)
async def get_statement(call: ApiRequest[None, NoQuery]) -> StatementAnswer:
    """Get one statement."""
    return to_wire(await _found(call))


@route(
    "POST /v1/statements/{statement}:pay",
    Permission.DECIDE_TOPUP,
    reasons=("statement_unknown", "statement_paid", "reference_used", *GRANTING),
    client="pay_statement(statement_id, amount)",
)
async def post_statement_pay(call: ApiRequest[PaymentRequest, NoQuery]) -> PaymentAnswer:
    """Record a payment for a statement.

    The payment repays what is owed. The account is resumed once nothing is overdue.
    """
    row = (await _found(call)).row
    commands = await call.services.run(
        payment, row, int(call.body.amount), str(call.body.payment_reference)
    )
    answers = await submit_together(call, row.org_id, commands)
    call.replayed = answers.is_replay
    topup = accepted(answers.outcomes[0], ToppedUp)
    reviewed = accepted(answers.outcomes[1], Reviewed)
    return PaymentAnswer(
        statement=to_wire(StatementAt(row, reviewed.received, reviewed.at)),
        topup=topup_to_wire(row.org_id, topup),
        delinquent=reviewed.account.delinquent,
        sentence=Standing(reviewed.overdue, reviewed.since).sentence,
    )


def place_of(seen: StatementAt) -> str:
    """Where a statement stands in a list."""
    return numbered_place(seen.row.org_id, seen.row.statement_id)


async def _found(call: AnyCall) -> StatementAt:
    """The statement in the path, if the caller's scope reaches its account."""
    number = number_param(call, "statement", ids.STATEMENT)
    if number is not None:
        which = StatementFilter(org_id=number[0], number=number[1], before=LAST_OF_ALL, limit=1)
        for seen in await call.services.run(list_statements, which):
            if sees(call.principal, seen.row.account):
                return seen
    raise RefusedError(_UNKNOWN)


def to_wire(seen: StatementAt) -> StatementAnswer:
    """The statement as it is shown."""
    row = seen.row
    return StatementAnswer(
        statement_id=ids.format_id(ids.STATEMENT, row.org_id, row.statement_id),
        account=row.account,
        period=row.period,
        starts_at=format_instant(row.starts_at),
        ends_at=format_instant(row.ends_at),
        closed_at=format_instant(row.closed_at),
        due_at=format_instant(row.due_at),
        opening=format_credits(row.opening),
        charges=format_credits(row.charges),
        payments=format_credits(row.payments),
        credits=format_credits(row.credits),
        closing=format_credits(row.closing),
        amount=format_credits(row.amount),
        paid=format_credits(row.amount - seen.outstanding),
        outstanding=format_credits(seen.outstanding),
        state=cast("StatementStateName", seen.state),
    )
