"""Calls whose parameters are not the fields of their requests.

Owns: heartbeats as tuples, and what is sent without a key and is no write like others.
``calls`` has all other calls, written from the route table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpucredits.client.call import Call, write
from gpucredits.wire.billing.usage import UsageRequest, UsageResults
from gpucredits.wire.ledger.heartbeat import HeartbeatsAnswer, HeartbeatsRequest
from gpucredits.wire.system import ClockAnswer, ClockRequest


def heartbeats(
    beats: Sequence[tuple[str, int, int]], *, node: str | None = None
) -> Call[HeartbeatsAnswer]:
    """Report (reservation, seq, used_ms in all) for each lease of a node; one result for each.

    The seq makes a beat safe to repeat, so there is no key.
    """
    names = ("reservation_id", "seq", "used_ms")
    given = {"beats": [dict(zip(names, beat, strict=True)) for beat in beats], "node": node}
    path = "/v1/heartbeats"
    return write(path, HeartbeatsAnswer, given, shape=HeartbeatsRequest, is_keyed=False)


def report_usage(
    events: Sequence[Mapping[str, Any]], *, node: str | None = None
) -> Call[UsageResults]:
    """Report what a node measured: ``reservation_id``, ``seq``, ``start_ms``, ``end_ms`` of each.

    The seq makes an event safe to repeat, so there is no key.
    """
    given = {"events": events, "node": node}
    return write("/v1/usage", UsageResults, given, shape=UsageRequest, is_keyed=False)


def advance_clock(seconds: int) -> Call[ClockAnswer]:
    """Move the clock of a server that was started with ``--test-clock`` forward."""
    given = {"advance_seconds": seconds}
    call = write("/v1/test/clock", ClockAnswer, given, shape=ClockRequest, is_keyed=False)
    return replace(call, is_repeatable=False)
