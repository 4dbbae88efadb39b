"""Handlers of API keys and of the audit log."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import invalid, no_key
from gpucredits.api.http.paging import (
    LAST,
    PageQuery,
    in_order,
    number_cursor,
    numbered_cursor,
    numbered_place,
    page,
)
from gpucredits.api.http.scope import (
    account_exists,
    act_of,
    key_param,
    org_number,
    unknown_key,
    visible,
)
from gpucredits.core import ids
from gpucredits.core.account import org_of
from gpucredits.service.access.audit import AuditFilter, AuditRow, list_acts
from gpucredits.service.access.key_acts import (
    Expired,
    KeyRow,
    MakerEnded,
    Outlives,
    create_key,
    list_keys,
    read_key,
    revoke_key,
)
from gpucredits.service.access.permissions import BINDABLE, NoKey, Permission, Role
from gpucredits.wire.access.keys import (
    SHOWN_ONCE,
    AuditAnswer,
    AuditPage,
    KeyAnswer,
    KeyPage,
    KeyRequest,
    NewKeyAnswer,
    RoleName,
)
from gpucredits.wire.documented import SINCE, UNTIL, doc
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


route = Routes("access")


class AuditQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which acts to list."""

    account: Annotated[
        AccountPath | None, doc("Only acts that concern this account or one below it.")
    ] = None
    actor: Annotated[Name | None, doc("Only acts of this actor.")] = None
    action: Annotated[Name | None, doc("Only acts of this name.")] = None
    resource: Annotated[Name | None, doc("Only acts on this resource.")] = None
    metadata: Annotated[MetadataFilter | None, doc("Only acts with these labels.")] = None
    since: Annotated[Instant | None, SINCE] = None
    until: Annotated[Instant | None, UNTIL] = None


@route(
    "POST /v1/keys",
    Permission.MANAGE_KEYS,
    reasons=("account_unknown",),
    status=201,
    client="create_key(role)",
)
async def post_key(call: ApiRequest[KeyRequest, NoQuery]) -> NewKeyAnswer:
    """Make an API key within the caller's own scope, which ends no later than the caller's key.

    Only this answer shows the secret. A key with a ``node`` acts for leases of that node only, and
    has no other permission but to read prices and the clock. Without a ``scope`` the key gets the
    caller's scope, and without an ``expires_at`` the end of the caller's key.
    """
    scope = call.principal.scope if call.body.scope is None else visible(call, call.body.scope)
    org_id = 0
    if scope:
        org_id = await org_number(call, scope)
        await account_exists(call, org_id, scope)
    end, node = call.body.expires_at, str(call.body.node or "")
    if node and call.body.role not in BINDABLE:
        raise invalid("node", f"goes with role {' or '.join(sorted(BINDABLE))} only")
    try:
        made = await call.services.run(
            create_key,
            act_of(call, org_id),
            maker=call.principal,
            role=call.body.role,
            scope=scope,
            name=str(call.body.name or ""),
            expires_at=None if end is None else int(end),
            node=node,
        )
    except Expired as error:
        raise invalid("expires_at", "must be later than now") from error
    except Outlives as error:
        why = f"must not be later than {format_instant(error.last)}, the end of this key"
        raise invalid("expires_at", why) from error
    except MakerEnded as error:
        call.services.keyring.forget_all()
        raise no_key(NoKey.UNKNOWN) from error
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
        node=shown.node,
        secret=made.secret,
        note=None if made.secret else SHOWN_ONCE,
    )


@route("GET /v1/keys", Permission.MANAGE_KEYS, client="key_page()")
async def get_keys(call: ApiRequest[None, PageQuery]) -> KeyPage:
    """List the API keys within the caller's scope, without their secrets."""
    limit = call.query.limit
    rows = await call.services.run(
        list_keys,
        scope=call.principal.scope,
        after=numbered_cursor(call.query, (0, 0)),
        limit=limit + 1,
    )
    rows, following = page(rows, call.query, lambda row: numbered_place(row.org_id, row.key_id))
    return KeyPage(keys=[key_to_wire(row) for row in rows], next_cursor=following)


@route("GET /v1/keys/self", Permission.READ_SELF, client="whoami()")
async def get_own_key(call: ApiRequest[None, NoQuery]) -> KeyAnswer:
    """Get the API key of this request: its name, role, scope and node.

    The node is that of the key, or of the certificate that the request came over.
    """
    principal = call.principal
    row = await call.services.run(read_key, org_id=principal.org_id, key_id=principal.key_id)
    answer = key_to_wire(row)
    answer.node = principal.node or answer.node
    return answer


@route(
    "POST /v1/keys/{key}:revoke",
    Permission.MANAGE_KEYS,
    reasons=("key_unknown",),
    client="revoke_key(key_id)",
)
async def post_key_revoke(call: ApiRequest[None, NoQuery]) -> KeyAnswer:
    """Revoke an API key for good.

    A key may revoke itself.
    """
    org_id, number = key_param(call)
    revoked = await call.services.run(
        revoke_key,
        act_of(call, org_id),
        call.services.keyring,
        key_id=number,
        scope=call.principal.scope,
    )
    if revoked is None:
        raise unknown_key()
    row, call.replayed = revoked
    return key_to_wire(row)


@route("GET /v1/audit", Permission.READ_AUDIT, reasons=("account_unknown",), client="audit_page()")
async def get_audit(call: ApiRequest[None, AuditQuery]) -> AuditPage:
    """List administrative acts within the caller's scope, the latest first."""
    query = call.query
    in_order(query.since, query.until)
    scope = call.principal.scope if query.account is None else visible(call, query.account)
    org_id = await org_number(call, org_of(scope)) if scope else None
    rows = await call.services.run(
        list_acts,
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
        node=row.node or None,
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
