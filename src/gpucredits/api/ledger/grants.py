"""Handlers of grants on the books; credits come in through the credit handlers."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import ProblemError
from gpucredits.api.http.paging import AccountPageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import number_param, page_about
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.service.access.permissions import Permission, sees
from gpucredits.store.ledger.grants import GrantFilter
from gpucredits.wire.credit import GrantAnswer, GrantPage, grant_to_wire
from gpucredits.wire.scalars import MetadataFilter


class GrantQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which grants to list."""

    open: bool = False
    metadata: MetadataFilter | None = None


async def get_grants(call: ApiRequest[None, GrantQuery]) -> GrantPage:
    """Grants, the oldest first."""
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


async def get_grant(call: ApiRequest[None, NoQuery]) -> GrantAnswer:
    """One grant as it stands now."""
    number = number_param(call, "grant", ids.GRANT)
    if number is not None:
        found = await call.services.reads.grant(*number)
        if found is not None and sees(call.principal, found[1]):
            return grant_to_wire(number[0], *found)
    raise ProblemError("grant_unknown", "There is no such grant.")


ROUTES = [
    Route(
        method="GET",
        path="/v1/grants",
        summary="Grants of an account",
        handler=get_grants,
        permission=Permission.READ,
        query=GrantQuery,
        answer=GrantPage,
        reasons=NO_ACCOUNT,
        tag="credits",
    ),
    Route(
        method="GET",
        path="/v1/grants/{grant}",
        summary="One grant",
        handler=get_grant,
        permission=Permission.READ,
        answer=GrantAnswer,
        reasons=("grant_unknown",),
        tag="credits",
    ),
]
