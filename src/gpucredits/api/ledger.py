"""Handlers of what is on the books: grants, top-ups, entries and reservations."""

from __future__ import annotations

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.credit import topup_param
from gpucredits.api.errors import ProblemError, RefusedError
from gpucredits.api.paging import PageQuery, cut, number_cursor
from gpucredits.api.reasons import NO_ACCOUNT, NO_LEASE
from gpucredits.api.scope import (
    LEASE_UNKNOWN,
    TOPUP_UNKNOWN,
    AnyCall,
    account_exists,
    lease_number,
    number_param,
    org_number,
    visible,
)
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.core.outcome import ToppedUp
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.topup import TopUpStatus
from gpucredits.service.access import Permission, sees, sees_org
from gpucredits.store.clock import read_clock
from gpucredits.store.entries import EntryFilter
from gpucredits.store.grants import GrantFilter
from gpucredits.store.reservations import ReservationFilter
from gpucredits.store.topups import TopUpFilter
from gpucredits.wire.credit import (
    GrantAnswer,
    GrantPage,
    TopUpAnswer,
    TopUpPage,
    TopUpStatusName,
    grant_to_wire,
    topup_to_wire,
)
from gpucredits.wire.entry import ENTRY_TYPES, EntryPage, EntryTypeName, entry_to_wire
from gpucredits.wire.reservation import (
    ReservationAnswer,
    ReservationPage,
    StateName,
    reservation_to_wire,
)
from gpucredits.wire.scalars import AccountPath, Instant, MetadataFilter, Name


class AccountPageQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Of which account; a key for the whole system must say."""

    account: AccountPath | None = None
    tree: bool | None = None


class GrantQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which grants to list."""

    open: bool = False
    metadata: MetadataFilter | None = None


class TopUpQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which top-ups to list."""

    status: TopUpStatusName | None = None


class EntryQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which entries to list; times are those of taking effect, [since, until)."""

    job_id: Name | None = None
    reservation_id: Name | None = None
    type: EntryTypeName | None = None
    since: Instant | None = None
    until: Instant | None = None


class ReservationQuery(AccountPageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which reservations to list."""

    job_id: Name | None = None
    node: Name | None = None
    state: StateName | None = None
    metadata: MetadataFilter | None = None


async def get_grants(call: Call[None, GrantQuery]) -> GrantPage:
    """Grants, the oldest first."""
    query = call.query
    account, tree, org_id = await _about(call, query)
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
    listed, last = cut(listed, query.limit)
    following = str(last[0].grant_id) if last else None
    return GrantPage(
        grants=[grant_to_wire(org_id, grant, path) for grant, path in listed],
        next_cursor=following,
    )


async def get_grant(call: Call[None, NoQuery]) -> GrantAnswer:
    """One grant as it stands now."""
    number = number_param(call, "grant", ids.GRANT)
    if number is not None:
        found = await call.services.reads.grant(*number)
        if found is not None and sees(call.principal, found[1]):
            return grant_to_wire(number[0], *found)
    raise ProblemError("grant_unknown", "There is no such grant.")


async def get_topups(call: Call[None, TopUpQuery]) -> TopUpPage:
    """Top-ups of an account, the latest first."""
    query = call.query
    account, _, org_id = await _about(call, query)
    status = None if query.status is None else int(TopUpStatus[query.status.upper()])
    listed = await call.services.reads.topups(
        org_id,
        TopUpFilter(
            account=account, status=status, before=number_cursor(query, 0), limit=query.limit + 1
        ),
    )
    listed, last = cut(listed, query.limit)
    following = str(last[0].topup_id) if last else None
    answers = [topup_to_wire(org_id, ToppedUp(row, path)) for row, path in listed]
    return TopUpPage(topups=answers, next_cursor=following)


async def get_topup(call: Call[None, NoQuery]) -> TopUpAnswer:
    """One top-up."""
    org_id, number = topup_param(call)
    if sees_org(call.principal, org_id):
        for row, path in await call.services.reads.topups(org_id, TopUpFilter(number=number)):
            if sees(call.principal, path):
                return topup_to_wire(org_id, ToppedUp(row, path))
    raise RefusedError(TOPUP_UNKNOWN)


async def get_entries(call: Call[None, EntryQuery]) -> EntryPage:
    """The ledger as debit/credit pairs, the latest first; the limit counts stored rows."""
    query = call.query
    account, tree, org_id = await _about(call, query)
    reservation = 0
    if query.reservation_id is not None:
        number = lease_number(query.reservation_id)
        if number is None or number[0] != org_id:
            return EntryPage(entries=[])
        reservation = number[1]
    listed = await call.services.reads.entries(
        org_of(account),
        EntryFilter(
            account=account,
            tree=tree,
            job_id=str(query.job_id or ""),
            reservation_id=reservation,
            types=() if query.type is None else (int(ENTRY_TYPES[query.type]),),
            since=query.since,
            until=query.until,
            before=number_cursor(query, 0),
            limit=query.limit + 1,
        ),
    )
    listed, last = cut(listed, query.limit)
    following = str(last.entry.entry_id) if last else None
    pairs = [
        pair
        for row in listed
        for pair in entry_to_wire(
            org_id,
            row.entry,
            recorded_at=row.recorded_at,
            account=row.account,
            other=row.other,
            job_id=row.job_id,
        )
        if query.type in {None, pair.type}
    ]
    return EntryPage(entries=pairs, next_cursor=following)


async def get_reservations(call: Call[None, ReservationQuery]) -> ReservationPage:
    """Reservations of an account's jobs, the latest first."""
    query = call.query
    account, tree, org_id = await _about(call, query)
    listed = await call.services.reads.reservations(
        org_id,
        ReservationFilter(
            account=account,
            tree=tree,
            job_id=str(query.job_id or ""),
            node=str(query.node or ""),
            state=None if query.state is None else int(ReservationState[query.state.upper()]),
            metadata=dict(query.metadata) if query.metadata else None,
            before=number_cursor(query, 0),
            limit=query.limit + 1,
        ),
    )
    listed, last = cut(listed, query.limit)
    following = str(last[0].reservation_id) if last else None
    now = await read_clock(call.services.pool)
    answers = [lease_to_wire(org_id, lease, payer, now) for lease, payer in listed]
    return ReservationPage(reservations=answers, next_cursor=following)


async def get_reservation(call: Call[None, NoQuery]) -> ReservationAnswer:
    """One reservation as it stands now."""
    number = lease_number(call.params["reservation"])
    if number is not None and sees_org(call.principal, number[0]):
        wanted = ReservationFilter(numbers=(number[1],))
        for lease, payer in await call.services.reads.reservations(number[0], wanted):
            if sees(call.principal, lease.account):
                now = await read_clock(call.services.pool)
                return lease_to_wire(number[0], lease, payer, now)
    raise RefusedError(LEASE_UNKNOWN)


def lease_to_wire(org_id: int, lease: Reservation, payer: str, now: int) -> ReservationAnswer:
    """The lease as it is shown at an instant."""
    left_ms = (lease.expires_at - now) // 1_000
    is_live = lease.state is ReservationState.ACTIVE
    return reservation_to_wire(
        org_id,
        lease,
        account=lease.account,
        payer=payer,
        expires_in_ms=max(left_ms, 0) if is_live else 0,
    )


async def _about(call: AnyCall, query: AccountPageQuery) -> tuple[str, bool, int]:
    """(account, whole subtree, org) that a list is about: what was asked, else the key's scope."""
    if query.account is None and call.principal.is_system:
        raise ProblemError(
            "invalid_request",
            "account: must be given with a key for the whole system.",
            field="account",
        )
    if query.account is None:
        account, tree = call.principal.scope, query.tree is not False
    else:
        account, tree = visible(call, query.account), query.tree is True
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    return account, tree, org_id


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
    Route(
        method="GET",
        path="/v1/topups",
        summary="Top-ups of an account",
        handler=get_topups,
        permission=Permission.READ,
        query=TopUpQuery,
        answer=TopUpPage,
        reasons=NO_ACCOUNT,
        tag="credits",
    ),
    Route(
        method="GET",
        path="/v1/topups/{topup}",
        summary="One top-up",
        handler=get_topup,
        permission=Permission.READ,
        answer=TopUpAnswer,
        reasons=("topup_unknown",),
        tag="credits",
    ),
    Route(
        method="GET",
        path="/v1/entries",
        summary="The ledger as debit/credit pairs",
        handler=get_entries,
        permission=Permission.READ,
        query=EntryQuery,
        answer=EntryPage,
        reasons=NO_ACCOUNT,
        tag="ledger",
    ),
    Route(
        method="GET",
        path="/v1/reservations",
        summary="Reservations of an account's jobs",
        handler=get_reservations,
        permission=Permission.READ_LEASES,
        query=ReservationQuery,
        answer=ReservationPage,
        reasons=NO_ACCOUNT,
        tag="reservations",
    ),
    Route(
        method="GET",
        path="/v1/reservations/{reservation}",
        summary="One reservation as it stands now",
        handler=get_reservation,
        permission=Permission.READ_LEASES,
        answer=ReservationAnswer,
        reasons=NO_LEASE,
        tag="reservations",
    ),
]
