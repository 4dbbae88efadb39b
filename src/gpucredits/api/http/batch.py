"""Batches: many commands in one request, each on its own or all or nothing.

Owns: binding a batch's key to the whole of it before anything is begun, parting it by org, and
putting the outcomes back in the order of its items.
Must not: know what the commands are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Struct

from gpucredits.api.http.errors import RefusedError, invalid
from gpucredits.api.http.scope import AnyCall, item_request, unknown_account
from gpucredits.core.account import org_of
from gpucredits.core.command import Command
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.service.write.acts import claim
from gpucredits.wire.documented import ATOMIC

Item = tuple[str, Command]  # the account it is about, and what to do
Orgs = Mapping[str, int | None]  # the numbers of the orgs that a batch names, if they exist


class Atomic(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether a batch is all or nothing."""

    atomic: Annotated[bool, ATOMIC] = False


async def begin(call: AnyCall, accounts: Sequence[str], *, atomic: bool) -> Orgs:
    """Bind the call's key to the whole batch, before anything of it is done; the orgs it names.

    Whatever can be found wrong with the batch itself has been found before. All or nothing is
    possible within one org only. Busy when its items could not all be taken now.
    """
    items = Counter(org_of(account) for account in accounts)
    if atomic and len(items) > 1:
        raise invalid("items", "an atomic batch must stay within one org")
    orgs = {org: await call.services.ledger.org_id(org) for org in items}
    sizes = {number: items[org] for org, number in orgs.items() if number is not None}
    call.services.ledger.ensure_room(sizes)
    if call.key is not None and not call.dry_run:
        bound_in = {call.principal.org_id, *sizes}
        await call.services.run(claim, bound_in, call.key, fingerprint=call.fingerprint)
    return orgs


async def batch_by_org(
    call: AnyCall,
    orgs: Orgs,
    items: Sequence[Item],
    *,
    atomic: bool,
    only: Sequence[int] | None = None,
) -> list[Outcome]:
    """Outcomes of a batch in order; an item of an org that does not exist is refused in its place.

    ``only``: the places of the items that are meant; the others are somebody else's.
    """
    chosen = range(len(items)) if only is None else only
    outcomes: dict[int, Outcome] = {}
    by_org: dict[int, list[int]] = {}
    for position in chosen:
        number = orgs[org_of(items[position][0])]
        if number is None:
            outcomes[position] = unknown_account(items[position][0]).refused
        else:
            by_org.setdefault(number, []).append(position)
    parts = await call.services.ledger.answer_parts(
        [
            (number, [item_request(call, place, items[place][1]) for place in places])
            for number, places in by_org.items()
        ],
        atomic=atomic,
        dry_run=call.dry_run,
    )
    call.replayed = not outcomes and all(part.is_replay for part in parts)
    for places, part in zip(by_org.values(), parts, strict=True):
        outcomes.update(zip(places, part.outcomes, strict=True))
    if atomic:
        for outcome in outcomes.values():
            if isinstance(outcome, Refused):
                raise RefusedError(outcome)
    return [outcomes[position] for position in chosen]
