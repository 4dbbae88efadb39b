"""Handlers of unusual spending: what was found, and by which terms."""

from __future__ import annotations

from typing import Final

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.paging import (
    OneAccountQuery,
    TreePageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import NO_ACCOUNT, SET_ABOVE
from gpucredits.api.http.scope import (
    AnyCall,
    act_of,
    filter_of,
    org_number,
    require_wider,
    unknown_account,
    visible,
)
from gpucredits.core import ids
from gpucredits.core.authority import Authority
from gpucredits.core.change import Named
from gpucredits.core.money import format_credits
from gpucredits.service.access.permissions import Permission
from gpucredits.service.billing.anomalies import (
    AnomalyRow,
    OrgFilter,
    TermsRow,
    list_anomalies,
    read_terms,
    set_terms,
)
from gpucredits.wire.billing.anomaly import (
    ActionName,
    AnomalyAnswer,
    AnomalyPage,
    AnomalyTermsAnswer,
    AnomalyTermsChange,
    AnomalyTermsRequest,
)
from gpucredits.wire.change import filled, named_in
from gpucredits.wire.scalars import format_instant
from gpucredits.wire.words import AUTHORITY_NAMES

_ACTIONS: Final[tuple[ActionName, ...]] = ("none", "suspending", "suspended", "refused")


route = Routes("anomalies")


@route("GET /v1/anomalies", Permission.READ, reasons=NO_ACCOUNT, client="anomaly_page(account)")
async def get_anomalies(call: ApiRequest[None, TreePageQuery]) -> AnomalyPage:
    """List hours of unusual spending, the latest first.

    ``account`` means the account and everything below it; without it, the scope of the key.
    """
    query = call.query
    which = await filter_of(call, OrgFilter)
    rows = await call.services.run(list_anomalies, which)
    rows, following = page(rows, query, lambda row: numbered_place(row.org_id, row.anomaly_id))
    return AnomalyPage(anomalies=[to_wire(row) for row in rows], next_cursor=following)


@route(
    "GET /v1/anomaly-terms", Permission.READ, reasons=NO_ACCOUNT, client="anomaly_terms(account)"
)
async def get_anomaly_terms(call: ApiRequest[None, OneAccountQuery]) -> AnomalyTermsAnswer:
    """Get when an hour's spending of an account is unusual, and whether that suspends it."""
    account = visible(call, call.query.account)
    org_id = await org_number(call, account)
    terms = await call.services.run(read_terms, org_id, account)
    if terms is None:
        raise unknown_account(account)
    return terms_to_wire(account, terms)


@route(
    "PUT /v1/anomaly-terms",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="set_anomaly_terms(account)",
)
async def put_anomaly_terms(call: ApiRequest[AnomalyTermsRequest, NoQuery]) -> AnomalyTermsAnswer:
    """Replace all terms by which an account's spending is unusual."""
    return await _set(call, call.body, None)


@route(
    "PATCH /v1/anomaly-terms",
    Permission.SET_POLICY,
    reasons=(*NO_ACCOUNT, *SET_ABOVE),
    client="set_anomaly_terms(account)",
)
async def patch_anomaly_terms(call: ApiRequest[AnomalyTermsChange, NoQuery]) -> AnomalyTermsAnswer:
    """Change some of the terms by which an account's spending is unusual."""
    return await _set(call, filled(call.body, AnomalyTermsRequest), named_in(call.body))


async def _set(call: AnyCall, body: AnomalyTermsRequest, named: Named) -> AnomalyTermsAnswer:
    terms = TermsRow(body.ratio_percent, int(body.floor), body.auto_suspend)
    account = visible(call, body.account)
    require_wider(call, account)
    org_id = await org_number(call, account)
    saved, call.replayed = await call.services.run(
        set_terms,
        act_of(call, org_id),
        account,
        terms,
        by=call.principal.authority,
        named=named,
    )
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
        set_by_scope=AUTHORITY_NAMES[terms.set_by] if terms.set_by < Authority.USER else None,
    )
