"""Handing commands to the ledger on behalf of a call.

Owns: the key, the fingerprint and the audit note that go with each command, and turning a
refusal into the end of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from gpucredits.api.http.errors import RefusedError
from gpucredits.api.http.scope import AnyCall
from gpucredits.core.command import Command
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused, invariant
from gpucredits.service.write.acts import Act, item_key
from gpucredits.service.write.ledger import Answers, Request

Wanted = TypeVar("Wanted")


async def submit(call: AnyCall, org: str | int, command: Command, kind: type[Wanted]) -> Wanted:
    """Carry out one command; what it gives is of the kind its rule promises."""
    return accepted(await outcome_of(call, org, command), kind)


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
    """What a command would be answered, with everything taken back."""
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
    invariant(isinstance(outcome, kind), f"{type(outcome).__name__} answers {kind.__name__}")
    assert isinstance(outcome, kind)  # for the type checker
    return outcome
