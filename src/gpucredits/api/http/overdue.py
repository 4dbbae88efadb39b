"""Names the unpaid statement in a refusal for an account that is paused.

Owns: the words of such a refusal. It tells the state at the instant of the refusal, so a repeated
request is answered as the first was. A caller that may not see the owing account is not told what
it owes.
"""

from __future__ import annotations

from dataclasses import replace

from gpucredits.api.http.scope import AnyCall, org_number
from gpucredits.core import ids
from gpucredits.core.money import count_credits, format_credits
from gpucredits.core.period import instant_text
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.statement import Bill
from gpucredits.service.access.permissions import sees
from gpucredits.service.billing.statements import bill_due
from gpucredits.wire.scalars import format_instant

Known = dict[tuple[str, int], Bill | None]  # bills that were looked up, by account and instant


async def name_statement(call: AnyCall, refused: Refused, known: Known) -> Refused:
    """A refusal for an unpaid statement, with the latest that was due; others as they are."""
    if refused.reason is not Reason.ACCOUNT_DELINQUENT:
        return refused
    detail = dict(refused.detail)
    account, at = detail.get("account"), detail.pop("as_of", None)
    if not isinstance(account, str) or not isinstance(at, int) or not sees(call.principal, account):
        return replace(refused, detail=detail)
    org_id = await org_number(call, account)
    if (account, at) not in known:
        known[account, at] = await call.services.run(bill_due, org_id, account, at)
    bill = known[account, at]
    if bill is None:
        return replace(refused, detail=detail)
    number = ids.format_id(ids.STATEMENT, org_id, bill.statement_id)
    return replace(
        refused,
        message=f"Statement {number} of {account} over {count_credits(bill.amount)} was due at "
        f"{instant_text(bill.due_at)} and is not paid in full, so {account} admits nothing; "
        "paying what is overdue resumes it.",
        detail={
            **detail,
            "statement_id": number,
            "amount": format_credits(bill.amount),
            "due_at": format_instant(bill.due_at),
        },
    )
