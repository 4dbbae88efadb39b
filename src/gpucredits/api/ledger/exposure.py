"""Handlers of exposure: the most that live leases could still cost if no server answered."""

from __future__ import annotations

import msgspec

from gpucredits.api.http.call import ApiRequest, Routes
from gpucredits.api.http.paging import TreePageQuery, page, path_cursor
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import account_exists, account_filter, org_number
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reads.exposure import ExposureFilter, exposure_of_payers
from gpucredits.wire.outages.exposure import (
    ExposurePage,
    ExposureSum,
    PayerExposureAnswer,
    exposure_to_wire,
)
from gpucredits.wire.scalars import format_instant

route = Routes("ledger")


@route("GET /v1/exposure", Permission.READ, reasons=NO_ACCOUNT, client="exposure_page()")
async def get_exposure(call: ApiRequest[None, TreePageQuery]) -> ExposurePage:
    """Get the most that live leases could still cost without another answer of the server.

    The total, and the exposure of each account that pays for leases.
    """
    query = call.query
    account = account_filter(call, query.account)
    org_id = None
    if account:
        org_id = await org_number(call, account)
        await account_exists(call, org_id, account)
    wanted = ExposureFilter(account, path_cursor(query), query.limit + 1)
    now, total, found = await call.services.run(exposure_of_payers, org_id, wanted)
    rows, following = page(found, query, lambda row: row.path)
    return ExposurePage(
        as_of=format_instant(now),
        total=msgspec.convert(exposure_to_wire(total.leases, total.exposure), ExposureSum),
        exposures=[
            msgspec.convert(
                {"account": row.path, **exposure_to_wire(row.leases, row.exposure)},
                PayerExposureAnswer,
            )
            for row in rows
        ],
        next_cursor=following,
    )
