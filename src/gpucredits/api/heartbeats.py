"""The hot path: one node, many beats, one answer for each.

Owns: sorting a node's beats into those that may be asked about and those that do not exist.
Must not: await once per beat.
"""

from __future__ import annotations

import asyncio

from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.scope import LEASE_UNKNOWN, lease_number, visible_leases
from gpucredits.core.command import Beat
from gpucredits.core.outcome import Beaten, Outcome
from gpucredits.core.reasons import InvariantBroken
from gpucredits.service.access import Permission
from gpucredits.service.errors import Busy
from gpucredits.service.ledger import Request, Undecided
from gpucredits.wire.reservation import (
    BeatAnswer,
    BeatRequest,
    HeartbeatsAnswer,
    HeartbeatsRequest,
    beaten_to_wire,
)


async def post_heartbeats(call: Call[HeartbeatsRequest, NoQuery]) -> HeartbeatsAnswer:
    """Settle and renew every lease of a node; results are in the order of the beats."""
    reports = call.body.beats
    numbers = [lease_number(report.reservation_id) for report in reports]
    if call.principal.is_system:
        positions = [position for position, number in enumerate(numbers) if number is not None]
    else:
        mine = await visible_leases(call, {number for number in numbers if number is not None})
        positions = [position for position, number in enumerate(numbers) if number in mine]
    beats = [_beat(numbers[position], reports[position]) for position in positions]
    results: list[BeatAnswer] = [_unknown(report.reservation_id) for report in reports]
    if not beats:
        return HeartbeatsAnswer(results)
    outcomes = await (_rehearse(call, beats) if call.dry_run else call.services.ledger.beat(beats))
    decided = 0
    for position, outcome in zip(positions, outcomes, strict=True):
        text = reports[position].reservation_id
        if isinstance(outcome, Beaten):
            results[position] = beaten_to_wire(text, outcome)
            decided += 1
        else:
            results[position] = _other(text, outcome)
    if not decided:
        _raise_when_none_was_decided(outcomes)
    return HeartbeatsAnswer(results)


async def _rehearse(
    call: Call[HeartbeatsRequest, NoQuery], beats: list[tuple[int, Beat]]
) -> list[Outcome | Undecided]:
    """What each beat alone would be told."""
    ledger = call.services.ledger
    rehearsals = [ledger.submit(org_id, Request(beat), dry_run=True) for org_id, beat in beats]
    return list(await asyncio.gather(*rehearsals))


def _beat(number: tuple[int, int] | None, report: BeatRequest) -> tuple[int, Beat]:
    assert number is not None  # positions are those of readable ids
    return number[0], Beat(number[1], report.seq, report.used_ms)


def _unknown(text: str) -> BeatAnswer:
    return BeatAnswer(text, "stop", "0", "0", 0, None, LEASE_UNKNOWN.reason.value)


def _other(text: str, outcome: Outcome | Undecided) -> BeatAnswer:
    if isinstance(outcome, InvariantBroken):
        return BeatAnswer(text, None, "0", "0", 0, None, "internal")
    if isinstance(outcome, Exception):
        reason = "busy" if isinstance(outcome, Busy) else "unavailable"
        return BeatAnswer(text, None, "0", "0", 0, None, reason)
    return _unknown(text)


def _raise_when_none_was_decided(outcomes: list[Outcome | Undecided]) -> None:
    """A node whose every beat failed for the same cause had better be told so at once."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if len(failures) == len(outcomes):
        raise failures[0]


ROUTES = [
    Route(
        method="POST",
        path="/v1/heartbeats",
        summary="Settle and renew every lease of a node",
        handler=post_heartbeats,
        permission=Permission.BEAT,
        body=HeartbeatsRequest,
        answer=HeartbeatsAnswer,
        tag="reservations",
    ),
]
