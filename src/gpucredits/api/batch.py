"""Batches: many commands in one request, each on its own or all or nothing.

Owns: parting a batch by org, and putting the outcomes back in the order of its items.
Must not: know what the commands are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from gpucredits.api.errors import ProblemError, RefusedError
from gpucredits.api.scope import AnyCall, unknown_account
from gpucredits.api.submit import submit_all
from gpucredits.core.account import org_of
from gpucredits.core.command import Command
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.service.ledger import Answers

Item = tuple[str, Command]  # the account it is about, and what to do


class Atomic(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether a batch is all or nothing."""

    atomic: bool = False


async def batch_by_org(
    call: AnyCall, items: Sequence[Item], *, atomic: bool, only: Sequence[int] | None = None
) -> list[Outcome]:
    """Outcomes of a batch in order. All or nothing is possible within one org only.

    ``only``: the places of the items that are meant; the others are somebody else's.
    """
    chosen = range(len(items)) if only is None else only
    by_org: dict[str, list[int]] = {}
    for position in chosen:
        by_org.setdefault(org_of(items[position][0]), []).append(position)
    if atomic and len(by_org) > 1:
        raise ProblemError(
            "invalid_request",
            "items: an atomic batch must stay within one org.",
            field="items",
        )
    parts = await asyncio.gather(
        *(_org_part(call, org, items, places, atomic=atomic) for org, places in by_org.items())
    )
    call.replayed = all(part.is_replay for part in parts)
    outcomes: dict[int, Outcome] = {}
    for places, part in zip(by_org.values(), parts, strict=True):
        outcomes.update(zip(places, part.outcomes, strict=True))
    if atomic:
        for outcome in outcomes.values():
            if isinstance(outcome, Refused):
                raise RefusedError(outcome)
    return [outcomes[position] for position in chosen]


async def _org_part(
    call: AnyCall, org: str, items: Sequence[Item], places: Sequence[int], *, atomic: bool
) -> Answers:
    """The part of one org; items of an org that does not exist are refused in their places."""
    number = await call.services.directory.org_number(org)
    if number is None:
        return Answers([unknown_account(items[place][0]).refused for place in places])
    commands = [(place, items[place][1]) for place in places]
    return await submit_all(call, number, commands, atomic=atomic)
