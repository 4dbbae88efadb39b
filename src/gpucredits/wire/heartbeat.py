"""Heartbeats on the wire: what a node reports of its leases, and whether each may go on."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpucredits.wire.reservation import (
    DecisionName,
    Seq,
    StateName,
    UsedMs,
)
from gpucredits.wire.scalars import CreditsText, Name
from gpucredits.wire.words import BeatFlag, BeatReason

BEATS_MAX = 5_000


class ExtendRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A heartbeat for one lease."""

    seq: Seq
    used_ms: UsedMs


class BeatRequest(Struct, forbid_unknown_fields=True):
    """One beat of many."""

    reservation_id: str
    seq: Seq
    used_ms: UsedMs


class HeartbeatsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What one node reports: a beat for each of its leases."""

    beats: Annotated[list[BeatRequest], Meta(max_length=BEATS_MAX)]
    node: Name | None = None


class BeatAnswer(Struct, omit_defaults=True):
    """What was charged so far, and whether to go on.

    No decision means that there is none yet, for the ``reason`` given: send the beat again. A job
    that is throttled or drains has to end in ``deadline_in_ms``; one that drains is politely told
    in ``signal_in_ms``, and one that is throttled could go on in ``clears_in_ms``, where that is
    known.
    """

    reservation_id: str
    decision: DecisionName | None
    settled: CreditsText
    held: CreditsText
    expires_in_ms: int
    state: StateName | None = None
    reason: BeatReason = ""
    duplicate: bool = False
    flagged: BeatFlag = ""
    deadline_in_ms: int | None = None
    signal_in_ms: int | None = None
    clears_in_ms: int | None = None


class HeartbeatsAnswer(Struct):
    """One result for each beat, in order."""

    results: list[BeatAnswer]
