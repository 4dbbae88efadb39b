"""Calls about the server itself: its health, and its clock, and that of a test server."""

from __future__ import annotations

from dataclasses import replace

from gpucredits.client.call import Call, body_of, read, write
from gpucredits.wire.system import ClockAnswer, ClockRequest, HealthAnswer, TimeAnswer


def health() -> Call[HealthAnswer]:
    """Whether work is moving."""
    return read("/healthz", HealthAnswer)


def clock() -> Call[TimeAnswer]:
    """What time it is on the server, whose clock decides."""
    return read("/v1/clock", TimeAnswer)


def advance_clock(seconds: int) -> Call[ClockAnswer]:
    """Move the clock of a server that was started with ``--test-clock`` forward."""
    body = body_of(ClockRequest, advance_seconds=seconds)
    call = write("/v1/test/clock", ClockAnswer, body=body, is_keyed=False)
    return replace(call, is_repeatable=False)
