"""Handlers that show leases as they stand; reservations has those that make and end them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.paging import AccountPageQuery, number_cursor, page
from gpucredits.api.http.reasons import NO_ACCOUNT, NO_LEASE
from gpucredits.api.http.scope import (
    AnyCall,
    note_elsewhere,
    page_about,
    require_here,
    wrong_node,
)
from gpucredits.core.ids import lease_number
from gpucredits.core.reasons import LEASE_UNKNOWN
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.service.access.audit import who_ended
from gpucredits.service.access.permissions import Permission, sees, sees_org
from gpucredits.service.reads.clock import read_clock
from gpucredits.service.reads.filters import ReservationFilter
from gpucredits.wire.documented import doc
from gpucredits.wire.ledger.reservation import (
    ReservationAnswer,
    ReservationPage,
    StateName,
    reservation_to_wire,
)
from gpucredits.wire.scalars import MetadataFilter, Name

route = Routes("reservations")


class ReservationQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which reservations to list."""

    job_id: Annotated[Name | None, doc("Only leases of this job.")] = None
    node: Annotated[Name | None, doc("Only leases on this node.")] = None
    state: Annotated[StateName | None, doc("Only leases in this state.")] = None
    metadata: Annotated[MetadataFilter | None, doc("Only leases with these labels.")] = None


@route(
    "GET /v1/reservations", Permission.READ_LEASES, reasons=NO_ACCOUNT, client="reservation_page()"
)
async def get_reservations(call: ApiRequest[None, ReservationQuery]) -> ReservationPage:
    """List the leases of an account's jobs, the latest first."""
    query, own = call.query, call.principal.node
    if own and query.node is not None:
        require_here(call, query.node)
    account, tree, org_id = await page_about(call, query)
    listed = await call.services.reads.reservations(
        org_id,
        ReservationFilter(
            account=account,
            tree=tree,
            job_id=str(query.job_id or ""),
            node=str(query.node or own),
            state=None if query.state is None else ReservationState[query.state.upper()],
            metadata=dict(query.metadata) if query.metadata else None,
            before=number_cursor(query, 0),
            limit=query.limit + 1,
        ),
    )
    listed, following = page(listed, query, lambda row: row[0].reservation_id)
    now = await call.services.run(read_clock)
    enders = await call.services.run(who_ended, org_id, [lease for lease, _ in listed])
    answers = [
        lease_to_wire(org_id, lease, payers, now, enders.get(lease.reservation_id))
        for lease, payers in listed
    ]
    return ReservationPage(reservations=answers, next_cursor=following)


@route(
    "GET /v1/reservations/{reservation}",
    Permission.READ_LEASES,
    reasons=NO_LEASE,
    client="reservation(reservation_id)",
)
async def get_reservation(call: ApiRequest[None, NoQuery]) -> ReservationAnswer:
    """Get one lease and what it has cost so far."""
    org_id, lease, payers = await lease_of(call, call.params["reservation"])
    now = await call.services.run(read_clock)
    enders = await call.services.run(who_ended, org_id, [lease])
    return lease_to_wire(org_id, lease, payers, now, enders.get(lease.reservation_id))


async def lease_of(call: AnyCall, text: str) -> tuple[int, Reservation, Sequence[str]]:
    """The org, the lease and the paths of its payers in turn, if the caller may see the lease."""
    number = lease_number(text)
    if number is not None and sees_org(call.principal, number[0]):
        wanted = ReservationFilter(numbers=(number[1],))
        for lease, payers in await call.services.reads.reservations(number[0], wanted):
            if sees(call.principal, lease.account):
                if call.principal.node not in ("", lease.node):
                    note_elsewhere(call, number, lease.account, lease.node)
                    raise wrong_node(f"{text} runs on {lease.node or 'no node'}", call.principal)
                return number[0], lease, payers
    raise RefusedError(LEASE_UNKNOWN)


def lease_to_wire(
    org_id: int, lease: Reservation, payers: Sequence[str], now: int, ended_by: str | None
) -> ReservationAnswer:
    """The lease as it is shown at an instant."""
    left_ms = (lease.trusted_until - now) // 1_000
    is_live = lease.state is ReservationState.ACTIVE
    return reservation_to_wire(
        org_id,
        lease,
        account=lease.account,
        payers=payers,
        expires_in_ms=max(left_ms, 0) if is_live else 0,
        ended_by=ended_by,
    )
