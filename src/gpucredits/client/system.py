"""Calls about the server itself: health, clocks, and the clock of a test server."""

from __future__ import annotations

from dataclasses import replace

from gpucredits.client.call import Call, body_of, read, write
from gpucredits.wire.clock import ClockRepairAnswer, ClockRepairRequest, OrgClockPage
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


def org_clock_page(*, cursor: str | None = None, limit: int | None = None) -> Call[OrgClockPage]:
    """A page of orgs whose clock is ahead of the database's and needs a repair."""
    return read("/v1/clock/orgs", OrgClockPage, cursor=cursor, limit=limit)


def repair_clock(
    org: str, *, reason: str, key: str | None = None, dry_run: bool = False
) -> Call[ClockRepairAnswer]:
    """Bring an org's clock back to the present, with everything that was stamped ahead of it."""
    body = body_of(ClockRepairRequest, org=org, reason=reason)
    return write("/v1/clock/repairs", ClockRepairAnswer, body=body, key=key, dry_run=dry_run)
