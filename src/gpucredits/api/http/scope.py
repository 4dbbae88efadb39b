"""What a caller can see: checks that make everything else not exist.

Owns: turning paths and ids of a request into things within the caller's scope, or into the same
answer that a thing which never existed would get.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpucredits.api.http.call import ApiRequest
from gpucredits.api.http.errors import ProblemError, RefusedError, invalid
from gpucredits.api.http.paging import LAST, AccountPageQuery
from gpucredits.core import ids
from gpucredits.core.account import check_path, org_of
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused
from gpucredits.service.access.permissions import Permission, Principal, may, sees, sees_org

AnyCall = ApiRequest[Any, Any]
TOPUP_UNKNOWN = Refused(Reason.TOPUP_UNKNOWN, "There is no such top-up.")


def visible(call: AnyCall, path: str) -> str:
    """The path, if the caller's scope reaches it."""
    if not sees(call.principal, path):
        raise unknown_account(path)
    return str(path)


def account_param(call: AnyCall) -> str:
    """The account in the request's path, if the caller's scope reaches it."""
    try:
        path = check_path(call.params["account"])
    except ValueError as error:
        raise invalid("account", str(error)) from error
    return visible(call, path)


def bounded_account(call: AnyCall) -> str:
    """The account in the request's path, if the caller may decide about its bounds."""
    path = account_param(call)
    require_wider(call, path)
    return path


def account_filter(call: AnyCall, path: str | None) -> str:
    """The account that a list is about: the one asked for, else all that the caller sees."""
    return call.principal.scope if path is None else visible(call, path)


async def page_about(call: AnyCall, query: AccountPageQuery) -> tuple[str, bool, int]:
    """(account, whole subtree, org) that a list is about: what was asked, else the key's scope."""
    if query.account is None and call.principal.is_system:
        raise invalid("account", "must be given with a key for the whole system")
    if query.account is None:
        account, tree = call.principal.scope, query.tree is not False
    else:
        account, tree = visible(call, query.account), query.tree is True
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    return account, tree, org_id


async def org_number(call: AnyCall, path: str) -> int:
    """The number of the org that a visible account lies in."""
    number = await call.services.directory.org_number(org_of(path))
    if number is None:
        raise unknown_account(path)
    return number


async def account_exists(call: AnyCall, org_id: int, path: str) -> None:
    """Refuse an account that is not there."""
    if await call.services.directory.account_number(org_id, path) is None:
        raise unknown_account(path)


async def lease_param(call: AnyCall) -> tuple[int, int]:
    """(org, number) of the reservation in the request's path, if the caller may see it."""
    return await visible_lease(call, call.params["reservation"])


async def visible_lease(call: AnyCall, text: str) -> tuple[int, int]:
    """(org, number) of a reservation that the caller may see."""
    number = ids.lease_number(text)
    if number is None or number not in await visible_leases(call, [number]):
        raise RefusedError(LEASE_UNKNOWN)
    return number


async def visible_leases(call: AnyCall, numbers: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of some reservations that the caller's scope reaches.

    A key for a whole org, or for all, needs no look-up: the ledger knows what does not exist.
    """
    principal = call.principal
    mine = [number for number in numbers if sees_org(principal, number[0])]
    if principal.is_whole_org:
        return set(mine)
    owners = await call.services.directory.leases(mine)
    return {number for number, lease in owners.items() if sees(principal, lease.account)}


def number_param(call: AnyCall, name: str, prefix: str) -> tuple[int, int] | None:
    """(org, number) of the id in the request's path, or None where it can be of nothing seen."""
    try:
        org_id, number = ids.parse_id(prefix, call.params[name])
    except ValueError:
        return None
    if org_id >= 2**31 or not sees_org(call.principal, org_id):
        return None
    return org_id, number


def key_param(call: AnyCall) -> tuple[int, int]:
    """(org, number) of the key in the request's path, if it could be one that the caller sees."""
    found = number_param(call, "key", ids.KEY)
    if found is None or found[1] > LAST:
        raise unknown_key()
    return found


def require(principal: Principal, permission: Permission, why: str) -> None:
    """Refuse what the route's own permission does not settle."""
    if not may(principal, permission):
        raise ProblemError("forbidden", why)


def require_wider(call: AnyCall, path: str) -> None:
    """Refuse a key that would decide about its own bounds: those above it set them."""
    if path == call.principal.scope:
        raise ProblemError("forbidden", f"Only a key for more than {path} may change this of it.")


def unknown_account(path: str) -> RefusedError:
    """The answer for an account that does not exist, or might as well not."""
    message = f"There is no account {path}."
    return RefusedError(Refused(Reason.ACCOUNT_UNKNOWN, message, {"account": str(path)}))


def unknown_key() -> ProblemError:
    """The answer for a key that does not exist, or might as well not."""
    return ProblemError("key_unknown", "There is no such key.")
