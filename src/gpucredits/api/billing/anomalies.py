"""Handlers of unusual spending: what was found, and by which terms."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import (
    AnyCall,
    account_filter,
    org_number,
    require_wider,
    unknown_account,
    visible,
)
from gpucredits.api.http.submit import act_of
from gpucredits.core import ids
from gpucredits.core.change import Named
from gpucredits.core.money import format_credits
from gpucredits.service.access.permissions import Permission
from gpucredits.service.billing.anomalies import (
    AnomalyFilter,
    AnomalyRow,
    TermsRow,
    list_anomalies,
    read_terms,
    set_terms,
)
from gpucredits.wire.anomaly import (
    ActionName,
    AnomalyAnswer,
    AnomalyPage,
    AnomalyTermsAnswer,
    AnomalyTermsChange,
    AnomalyTermsRequest,
)
from gpucredits.wire.change import given, named_in
from gpucredits.wire.scalars import AccountPath, Credits, format_instant

_ACTIONS: Final[tuple[ActionName, ...]] = ("none", "suspending", "suspended", "refused")


class AnomalyQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose unusual hours to list: those of an account and of all below it."""

    account: AccountPath | None = None


class TermsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose terms to show."""

    account: AccountPath


async def get_anomalies(call: ApiRequest[None, AnomalyQuery]) -> AnomalyPage:
    """Unusual hours within the caller's scope, the latest first."""
    query = call.query
    scope = account_filter(call, query.account)
    rows = await list_anomalies(
        call.services.pool,
        AnomalyFilter(
            scope=scope,
            org_id=await org_number(call, scope) if scope else None,
            before=number_cursor(query, LAST),
            limit=query.limit + 1,
        ),
    )
    rows, following = page(rows, query, lambda row: row.anomaly_id)
    return AnomalyPage(anomalies=[to_wire(row) for row in rows], next_cursor=following)


async def get_anomaly_terms(call: ApiRequest[None, TermsQuery]) -> AnomalyTermsAnswer:
    """When an hour's spending of an account is unusual, and whether that suspends it."""
    account = visible(call, call.query.account)
    org_id = await org_number(call, account)
    terms = await read_terms(call.services.pool, org_id, account)
    if terms is None:
        raise unknown_account(account)
    return terms_to_wire(account, terms)


async def put_anomaly_terms(call: ApiRequest[AnomalyTermsRequest, NoQuery]) -> AnomalyTermsAnswer:
    """Replace all terms by which an account's spending is unusual, and whether that suspends it."""
    body = call.body
    terms = TermsRow(body.ratio_percent, int(body.floor), body.auto_suspend)
    return await _set(call, body.account, terms, None)


async def patch_anomaly_terms(call: ApiRequest[AnomalyTermsChange, NoQuery]) -> AnomalyTermsAnswer:
    """Change what is named of the terms by which an account's spending is unusual."""
    body, default = call.body, TermsRow()
    terms = TermsRow(
        given(body.ratio_percent, default.ratio_percent),
        int(given(body.floor, Credits(default.floor))),
        given(body.auto_suspend, default.auto_suspend),
    )
    return await _set(call, body.account, terms, named_in(body))


async def _set(call: AnyCall, path: str, terms: TermsRow, named: Named) -> AnomalyTermsAnswer:
    account = visible(call, path)
    require_wider(call, account)
    org_id = await org_number(call, account)
    done = await set_terms(
        call.services.pool,
        act_of(call, org_id),
        account,
        terms,
        named=named,
    )
    if done is None:
        raise unknown_account(account)
    saved, call.replayed = done
    return terms_to_wire(account, saved)


def to_wire(row: AnomalyRow) -> AnomalyAnswer:
    """The unusual hour as it is shown."""
    return AnomalyAnswer(
        anomaly_id=ids.format_id(ids.ANOMALY, row.org_id, row.anomaly_id),
        account=row.account,
        starts_at=format_instant(row.starts_at),
        ends_at=format_instant(row.ends_at),
        observed=format_credits(row.observed),
        baseline=format_credits(row.baseline),
        threshold=format_credits(row.threshold),
        baseline_hours=row.hours,
        ratio_percent=row.ratio_percent,
        floor=format_credits(row.floor),
        sentence=row.sentence,
        found_at=format_instant(row.found_at),
        action=_ACTIONS[row.action],
    )


def terms_to_wire(account: str, terms: TermsRow) -> AnomalyTermsAnswer:
    """The terms as they are shown."""
    return AnomalyTermsAnswer(
        account=account,
        ratio_percent=terms.ratio_percent,
        floor=format_credits(terms.floor),
        auto_suspend=terms.auto_suspend,
    )


ROUTES = [
    Route(
        method="GET",
        path="/v1/anomalies",
        summary="Hours of unusual spending within the caller's scope",
        handler=get_anomalies,
        permission=Permission.READ,
        query=AnomalyQuery,
        answer=AnomalyPage,
        reasons=NO_ACCOUNT,
        tag="anomalies",
    ),
    Route(
        method="GET",
        path="/v1/anomaly-terms",
        summary="When an account's spending is unusual",
        handler=get_anomaly_terms,
        permission=Permission.READ,
        query=TermsQuery,
        answer=AnomalyTermsAnswer,
        reasons=NO_ACCOUNT,
        tag="anomalies",
    ),
    Route(
        method="PUT",
        path="/v1/anomaly-terms",
        summary="Replace all terms by which an account's spending is unusual",
        handler=put_anomaly_terms,
        permission=Permission.SET_POLICY,
        body=AnomalyTermsRequest,
        answer=AnomalyTermsAnswer,
        needs_key=True,
        reasons=NO_ACCOUNT,
        tag="anomalies",
    ),
    Route(
        method="PATCH",
        path="/v1/anomaly-terms",
        summary="Change what is named of the terms by which an account's spending is unusual",
        handler=patch_anomaly_terms,
        permission=Permission.SET_POLICY,
        body=AnomalyTermsChange,
        answer=AnomalyTermsAnswer,
        needs_key=True,
        reasons=NO_ACCOUNT,
        tag="anomalies",
    ),
]
