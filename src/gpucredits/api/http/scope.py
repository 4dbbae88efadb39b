"""What a caller can see, and handing its commands to the ledger.

Owns: turning paths and ids of a request into things within the caller's scope, or into the same
answer that a thing which never existed would get. A caller that may act for one node only is told
so of leases that it sees and that run elsewhere, and the audit log hears of it. Also owns the key,
the fingerprint and the audit note that go with each command, and turning a refusal into the end of
the request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from gpucredits.api.http.call import ApiRequest
from gpucredits.api.http.errors import ProblemError, RefusedError, invalid
from gpucredits.api.http.paging import LAST, LAST_OF_ALL, AccountPageQuery, numbered_cursor
from gpucredits.core import ids
from gpucredits.core.account import check_path, org_of
from gpucredits.core.book import InvariantBroken
from gpucredits.core.command import Command
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused, account_unknown
from gpucredits.service.access.peer import Peer, placed
from gpucredits.service.access.permissions import Permission, Principal, may, sees, sees_org
from gpucredits.service.access.refusals import RefusedAct
from gpucredits.service.reads.filters import OrgFilter
from gpucredits.service.services import Services
from gpucredits.service.write.acts import Act, item_key
from gpucredits.service.write.ledger import Answers, Request

Wanted = TypeVar("Wanted")
Answer = TypeVar("Answer")
Filter = TypeVar("Filter", bound=OrgFilter)

AnyCall = ApiRequest[Any, Any]
TOPUP_UNKNOWN = Refused(Reason.TOPUP_UNKNOWN, "There is no such top-up.")


def caller_from(services: Services, principal: Principal, peer: Peer, request_id: str) -> Principal:
    """The caller as it may act from where it is; a key that is out of place is audited."""
    found = placed(principal, peer)
    if isinstance(found, Principal):
        return found
    services.refusals.add(
        RefusedAct(
            action="node.refuse",
            reason=found.reason,
            actor=principal.actor,
            resource=principal.actor,
            org_id=principal.org_id,
        ),
        now=time.monotonic(),
        request_id=request_id,
        account=principal.scope,
        facts={"node": peer.node},
    )
    raise ProblemError(found.reason, found.detail)


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


async def filter_of(call: AnyCall, shape: type[Filter], /, **own: Any) -> Filter:
    """The filter of a list whose query names an account, with the list's ``own`` conditions."""
    query, scope = call.query, account_filter(call, call.query.account)
    return shape(
        scope=scope,
        org_id=await org_number(call, scope) if scope else None,
        before=numbered_cursor(query, LAST_OF_ALL),
        limit=query.limit + 1,
        **own,
    )


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
    number = await call.services.ledger.org_id(org_of(path))
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
    if number is None:
        raise RefusedError(LEASE_UNKNOWN)
    mine, elsewhere = await visible_leases(call, [number])
    if number in elsewhere:
        raise wrong_node(f"{text} runs on {elsewhere[number]}", call.principal)
    if number not in mine:
        raise RefusedError(LEASE_UNKNOWN)
    return number


async def visible_leases(
    call: AnyCall, numbers: Iterable[tuple[int, int]]
) -> tuple[set[tuple[int, int]], dict[tuple[int, int], str]]:
    """The reservations that the caller may act on, and the nodes of those that it only sees.

    A key for a whole org, or for all, needs no look-up: the ledger knows what does not exist.
    """
    principal = call.principal
    mine = [number for number in numbers if sees_org(principal, number[0])]
    if principal.node:
        return await _leases_here(call, mine)
    if principal.is_whole_org:
        return set(mine), {}
    owners = await call.services.directory.leases(mine)
    return {number for number, lease in owners.items() if sees(principal, lease.account)}, {}


async def _leases_here(
    call: AnyCall, numbers: list[tuple[int, int]]
) -> tuple[set[tuple[int, int]], dict[tuple[int, int], str]]:
    """The leases on the caller's node, and where the others run; the audit log hears of those."""
    owners = await call.services.directory.remembered_leases(numbers)
    seen = {each: owner for each, owner in owners.items() if sees(call.principal, owner.account)}
    elsewhere: dict[tuple[int, int], str] = {}
    for number, owner in seen.items():
        if owner.node != call.principal.node:
            elsewhere[number] = owner.node or "no node"
            note_elsewhere(call, number, owner.account, owner.node)
    return {each for each in seen if each not in elsewhere}, elsewhere


def note_elsewhere(call: AnyCall, number: tuple[int, int], account: str, node: str) -> None:
    """Let the audit log hear of a node that used a lease of another."""
    call.services.refusals.add(
        RefusedAct(
            action="node.refuse",
            reason="wrong_node",
            actor=call.actor,
            resource=ids.format_id(ids.RESERVATION, *number),
            org_id=number[0],
        ),
        now=time.monotonic(),
        request_id=call.request_id,
        account=account,
        facts={"node": call.principal.node, "runs_on": node},
    )


def require_here(call: AnyCall, node: str | None, place: str = "node") -> None:
    """Refuse a caller of one node that names another, or none."""
    if call.principal.node and node != call.principal.node:
        raise wrong_node(f"{place} is {node or 'not given'}", call.principal)


def wrong_node(why: str, principal: Principal) -> ProblemError:
    """The answer to a node that meddles with another."""
    return ProblemError("wrong_node", f"{why}; this caller may act for node {principal.node} only.")


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
    return RefusedError(account_unknown(str(path)))


def unknown_key() -> ProblemError:
    """The answer for a key that does not exist, or might as well not."""
    return ProblemError("key_unknown", "There is no such key.")


async def submit(call: AnyCall, org: str | int, command: Command, kind: type[Wanted]) -> Wanted:
    """Carry out one command; what it gives is of the kind its rule promises."""
    return accepted(await outcome_of(call, org, command), kind)


async def saved(
    call: AnyCall,
    account: str,
    command: Command,
    kind: type[Wanted],
    to_wire: Callable[[int, Wanted], Answer],
) -> Answer:
    """Carry out one command in the org of an account; its outcome as shown to callers."""
    org_id = await org_number(call, account)
    return to_wire(org_id, await submit(call, org_id, command, kind))


async def outcome_of(call: AnyCall, org: str | int, command: Command) -> Outcome:
    """Carry out one command, whatever comes of it."""
    request = Request(command, call.key, call.fingerprint, call.actor, call.request_id)
    answers = await call.services.ledger.answer(org, [request], atomic=True, dry_run=call.dry_run)
    call.replayed = answers.is_replay
    return answers.outcomes[0]


async def submit_together(call: AnyCall, org_id: int, commands: Sequence[Command]) -> Answers:
    """Carry out commands that make up one write, all or nothing; the first has the call's key."""
    first = Request(commands[0], call.key, call.fingerprint, call.actor, call.request_id)
    others = [item_request(call, place, each) for place, each in enumerate(commands) if place]
    return await call.services.ledger.answer(
        org_id, [first, *others], atomic=True, dry_run=call.dry_run
    )


def item_request(call: AnyCall, position: int, command: Command) -> Request:
    """One of the commands of a call that has several, with a key of its own under the call's."""
    key = item_key_of(call, position)
    return Request(command, key, call.fingerprint, call.actor, call.request_id)


def item_key_of(call: AnyCall, position: int) -> str | None:
    """The key of an item of a call that has several."""
    return None if call.key is None else item_key(call.key, call.fingerprint, position)


async def rehearse(call: AnyCall, org_id: int, command: Command) -> Outcome:
    """The answer that a command would get; everything is taken back."""
    request = Request(command, actor=call.actor, request_id=call.request_id)
    return await call.services.ledger.submit(org_id, request, dry_run=True)


def act_of(call: AnyCall, org_id: int) -> Act:
    """The frame of an administrative act that moves no money."""
    return Act(
        org_id=org_id,
        key=call.key,
        fingerprint=call.fingerprint,
        dry_run=call.dry_run,
        actor=call.actor,
        request_id=call.request_id,
    )


def accepted(outcome: Outcome, kind: type[Wanted]) -> Wanted:
    """The outcome, unless it is a refusal."""
    if isinstance(outcome, Refused):
        raise RefusedError(outcome)
    if not isinstance(outcome, kind):
        raise InvariantBroken(f"{type(outcome).__name__} answers {kind.__name__}")
    return outcome
