"""Handlers of API keys and of the audit log."""

from __future__ import annotations

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import invalid
from gpucredits.api.http.paging import LAST, PageQuery, number_cursor, page
from gpucredits.api.http.scope import account_exists, org_number, unknown_key, visible
from gpucredits.api.http.submit import act_of
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.core.bounds import NEVER_US
from gpucredits.service.access.audit import AuditFilter, AuditRow, list_acts
from gpucredits.service.access.key_acts import (
    Expired,
    create_key,
    list_keys,
    read_key,
    revoke_key,
)
from gpucredits.service.access.permissions import Permission, Role, sees_org
from gpucredits.store.access.keys import KeyRow
from gpucredits.wire.access import (
    SHOWN_ONCE,
    AuditAnswer,
    AuditPage,
    KeyAnswer,
    KeyPage,
    KeyRequest,
    NewKeyAnswer,
    RoleName,
)
from gpucredits.wire.scalars import (
    AccountPath,
    Instant,
    MetadataFilter,
    Name,
    format_end,
    format_instant,
)

_ROLES: dict[Role, RoleName] = {
    Role.ADMIN: "admin",
    Role.OPERATOR: "operator",
    Role.MEMBER: "member",
    Role.AGENT: "agent",
    Role.READ_ONLY: "read-only",
}


class AuditQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which acts to list."""

    account: AccountPath | None = None
    actor: Name | None = None
    action: Name | None = None
    resource: Name | None = None
    metadata: MetadataFilter | None = None
    since: Instant | None = None
    until: Instant | None = None


async def post_key(call: ApiRequest[KeyRequest, NoQuery]) -> NewKeyAnswer:
    """Make a key within the caller's own scope; without a scope, it gets the caller's."""
    scope = call.principal.scope if call.body.scope is None else visible(call, call.body.scope)
    org_id = 0
    if scope:
        org_id = await org_number(call, scope)
        await account_exists(call, org_id, scope)
    end = call.body.expires_at
    try:
        made = await create_key(
            call.services.pool,
            act_of(call, org_id),
            role=call.body.role,
            scope=scope,
            name=str(call.body.name or ""),
            expires_at=NEVER_US if end is None else int(end),
        )
    except Expired as error:
        raise invalid("expires_at", "must be later than now") from error
    call.replayed = made.is_replay
    shown = key_to_wire(made.row)
    return NewKeyAnswer(
        key_id=shown.key_id,
        role=shown.role,
        scope=shown.scope,
        name=shown.name,
        created_at=shown.created_at,
        expires_at=shown.expires_at,
        revoked_at=shown.revoked_at,
        secret=made.secret,
        note=None if made.secret else SHOWN_ONCE,
    )


async def get_keys(call: ApiRequest[None, PageQuery]) -> KeyPage:
    """The keys within the caller's scope, without their secrets."""
    limit = call.query.limit
    rows = await list_keys(
        call.services.pool,
        scope=call.principal.scope,
        after=number_cursor(call.query, 0),
        limit=limit + 1,
    )
    rows, following = page(rows, call.query, lambda row: row.key_id)
    return KeyPage(keys=[key_to_wire(row) for row in rows], next_cursor=following)


async def get_own_key(call: ApiRequest[None, NoQuery]) -> KeyAnswer:
    """The key that asks, whatever it may do: who it is, and nothing of others."""
    principal = call.principal
    row = await read_key(call.services.pool, org_id=principal.org_id, key_id=principal.key_id)
    return key_to_wire(row)


async def post_key_revoke(call: ApiRequest[None, NoQuery]) -> KeyAnswer:
    """End a key; the caller may end its own."""
    try:
        org_id, number = ids.parse_id(ids.KEY, call.params["key"])
    except ValueError as error:
        raise unknown_key() from error
    if org_id >= 2**31 or number > LAST or not sees_org(call.principal, org_id):
        raise unknown_key()
    revoked = await revoke_key(
        call.services.pool,
        act_of(call, org_id),
        call.services.keyring,
        key_id=number,
        scope=call.principal.scope,
    )
    if revoked is None:
        raise unknown_key()
    row, call.replayed = revoked
    return key_to_wire(row)


async def get_audit(call: ApiRequest[None, AuditQuery]) -> AuditPage:
    """Administrative acts within the caller's scope."""
    query = call.query
    scope = call.principal.scope if query.account is None else visible(call, query.account)
    org_id = await org_number(call, org_of(scope)) if scope else None
    rows = await list_acts(
        call.services.pool,
        AuditFilter(
            scope=scope,
            org_id=org_id,
            actor=query.actor,
            action=query.action,
            resource=query.resource,
            metadata=dict(query.metadata) if query.metadata else None,
            since=query.since,
            until=query.until,
        ),
        before=number_cursor(query, LAST),
        limit=query.limit + 1,
    )
    rows, following = page(rows, query, lambda row: row.audit_id)
    return AuditPage(audit=[audit_to_wire(row) for row in rows], next_cursor=following)


def key_to_wire(row: KeyRow) -> KeyAnswer:
    """The key as it is shown."""
    return KeyAnswer(
        key_id=ids.format_id(ids.KEY, row.org_id, row.key_id),
        role=_ROLES[Role(row.role)],
        scope=row.scope,
        name=row.name,
        created_at=format_instant(row.created_at),
        expires_at=format_end(row.expires_at),
        revoked_at=format_instant(row.revoked_at) if row.revoked_at else None,
    )


def audit_to_wire(row: AuditRow) -> AuditAnswer:
    """The act as it is shown."""
    return AuditAnswer(
        audit_id=row.audit_id,
        at=format_instant(row.recorded_at),
        actor=row.actor,
        action=row.action,
        resource=row.resource,
        old=row.old,
        new=row.new,
        request_id=row.request_id,
    )


ROUTES = [
    Route(
        method="POST",
        path="/v1/keys",
        summary="Make an API key",
        handler=post_key,
        permission=Permission.MANAGE_KEYS,
        body=KeyRequest,
        answer=NewKeyAnswer,
        status=201,
        needs_key=True,
        reasons=("account_unknown",),
        tag="access",
    ),
    Route(
        method="GET",
        path="/v1/keys",
        summary="The keys within the caller's scope",
        handler=get_keys,
        permission=Permission.MANAGE_KEYS,
        query=PageQuery,
        answer=KeyPage,
        tag="access",
    ),
    Route(
        method="GET",
        path="/v1/keys/self",
        summary="The key that asks",
        handler=get_own_key,
        permission=Permission.READ_SELF,
        answer=KeyAnswer,
        tag="access",
    ),
    Route(
        method="POST",
        path="/v1/keys/{key}:revoke",
        summary="End a key",
        handler=post_key_revoke,
        permission=Permission.MANAGE_KEYS,
        answer=KeyAnswer,
        needs_key=True,
        reasons=("key_unknown",),
        tag="access",
    ),
    Route(
        method="GET",
        path="/v1/audit",
        summary="Administrative acts",
        handler=get_audit,
        permission=Permission.READ_AUDIT,
        query=AuditQuery,
        answer=AuditPage,
        reasons=("account_unknown",),
        tag="access",
    ),
]
