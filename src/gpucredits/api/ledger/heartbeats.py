"""The hot path: one node, many beats, one answer for each.

Owns: sorting a node's beats into those that may be asked about and those that do not exist.
Must not: await once per beat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.scope import visible_leases
from gpucredits.core.heartbeat import Beat
from gpucredits.core.ids import lease_number
from gpucredits.core.outcome import Outcome
from gpucredits.service.access.permissions import Permission
from gpucredits.service.write.batch import long_step
from gpucredits.service.write.heartbeats import (
    LeaseNumber,
    answers_to,
    beats_of,
    numbers_of,
    unknown,
)
from gpucredits.service.write.ledger import Ledger, Request, Undecided
from gpucredits.wire.ledger.heartbeat import BeatAnswer, HeartbeatsAnswer, HeartbeatsRequest

ANSWERED_AT_ONCE = 25  # reports: to write more down takes a while
REHEARSED_AT_ONCE = 500  # of one org: whoever comes behind them waits for no more
_BEAT_FIELDS = (b'"reservation_id"', b'"seq"', b'"used_ms"')


route = Routes("reservations")


def has_no_repeats(sent: bytes, body: HeartbeatsRequest) -> bool:
    """Whether the bytes alone prove that no beat has a field twice; looking closer costs more.

    Each beat has each of its fields, so a name that stands as often as there are beats stands once
    in each. Names can be written otherwise with a backslash only.
    """
    count = len(body.beats)
    return (
        b"\\" not in sent
        and all(sent.count(name) == count for name in _BEAT_FIELDS)
        and sent.count(b'"beats"') == 1
        and sent.count(b'"node"') <= 1
    )


@route(
    "POST /v1/heartbeats",
    Permission.BEAT,
    needs_key=False,
    client="heartbeats",
    has_no_repeats=has_no_repeats,
)
async def post_heartbeats(call: ApiRequest[HeartbeatsRequest, NoQuery]) -> HeartbeatsAnswer:
    """Settle what a node's leases used and renew them.

    The results are in the order of the beats. The seq of a beat makes the beat safe to repeat.
    """
    reports = call.body.beats
    numbers = numbers_of(reports)
    elsewhere: Collection[LeaseNumber] = ()
    if call.principal.node or not call.principal.is_system:
        asked = {number for number in numbers if number is not None}
        mine, elsewhere = await visible_leases(call, asked)
        numbers = [number if number in mine else None for number in numbers]
    beats = beats_of(reports, numbers)
    if not beats:
        unheard = [unknown(report.reservation_id) for report in reports]
        return HeartbeatsAnswer(told_elsewhere(unheard, elsewhere))
    outcomes = await (_rehearse(call, beats) if call.dry_run else call.services.ledger.beat(beats))
    _raise_when_none_was_decided(outcomes)
    if len(reports) > ANSWERED_AT_ONCE:
        await long_step()
    return HeartbeatsAnswer(told_elsewhere(answers_to(reports, numbers, outcomes), elsewhere))


def told_elsewhere(
    answers: list[BeatAnswer], elsewhere: Collection[LeaseNumber]
) -> list[BeatAnswer]:
    """The answers; beats of leases that run on other nodes say so."""
    if elsewhere:
        for answer in answers:
            if lease_number(answer.reservation_id) in elsewhere:
                answer.reason = "wrong_node"
    return answers


async def _rehearse(
    call: ApiRequest[HeartbeatsRequest, NoQuery], beats: list[tuple[int, Beat]]
) -> list[Outcome | Undecided]:
    """The answer that each beat would get after the beats before it."""
    by_org: dict[int, list[Request]] = {}
    for org_id, beat in beats:
        by_org.setdefault(org_id, []).append(Request(beat))
    ledger = call.services.ledger
    told = await asyncio.gather(*(_rehearse_org(ledger, *each) for each in by_org.items()))
    following = dict(zip(by_org, map(iter, told), strict=True))
    return [next(following[org_id]) for org_id, _ in beats]


async def _rehearse_org(ledger: Ledger, org_id: int, requests: list[Request]) -> list[Outcome]:
    told: list[Outcome] = []
    for start in range(0, len(requests), REHEARSED_AT_ONCE):
        some = requests[start : start + REHEARSED_AT_ONCE]
        told += await ledger.submit_all(org_id, some, atomic=False, dry_run=True)
    return told


def _raise_when_none_was_decided(outcomes: list[Outcome | Undecided]) -> None:
    """A node whose every beat failed for the same cause had better be told so at once."""
    first = outcomes[0]
    if isinstance(first, Exception) and all(isinstance(each, Exception) for each in outcomes):
        raise first
