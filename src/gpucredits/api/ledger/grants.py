"""Handlers of grants on the books; credits come in through the credit handlers."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError
from gpucredits.api.http.paging import AccountPageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import number_param, page_about
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.service.reads.filters import GrantFilter
from gpucredits.wire.documented import doc
from gpucredits.wire.ledger.credit import GrantAnswer, GrantPage, grant_to_wire
from gpucredits.wire.scalars import MetadataFilter

route = Routes("credits")


class GrantQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which grants to list."""

    open: Annotated[bool, doc("Only grants that have not ended and have something left.")] = False
    metadata: Annotated[MetadataFilter | None, doc("Only grants with these labels.")] = None


@route("GET /v1/grants", Permission.READ, reasons=NO_ACCOUNT, client="grant_page(account)")
async def get_grants(call: ApiRequest[None, GrantQuery]) -> GrantPage:
    """List the grants of an account or its tree, the oldest first.

    ``open``: only grants that have not ended and have something left.
    """
    query = call.query
    account, tree, org_id = await page_about(call, query)
    listed = await call.services.reads.grants(
        org_of(account),
        GrantFilter(
            account=account,
            tree=tree,
            open_only=query.open,
            metadata=dict(query.metadata) if query.metadata else None,
            after=number_cursor(query, 0),
            limit=query.limit + 1,
        ),
    )
    listed, following = page(listed, query, lambda row: row[0].grant_id)
    return GrantPage(
        grants=[grant_to_wire(org_id, grant, path) for grant, path in listed],
        next_cursor=following,
    )


@route(
    "GET /v1/grants/{grant}", Permission.READ, reasons=("grant_unknown",), client="grant(grant_id)"
)
async def get_grant(call: ApiRequest[None, NoQuery]) -> GrantAnswer:
    """Get one grant and what remains of it."""
    number = number_param(call, "grant", ids.GRANT)
    if number is not None:
        found = await call.services.reads.grant(*number)
        if found is not None and sees(call.principal, found[1]):
            return grant_to_wire(number[0], *found)
    raise ProblemError("grant_unknown", "There is no such grant.")
