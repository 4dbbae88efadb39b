"""Heartbeats on the wire: what a node reports of its leases, and whether each may go on."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpucredits.wire.documented import NODE, RESERVATION_ID, RESULTS, SETTLED, USED_MS, doc
from gpucredits.wire.ledger.reservation import (
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

    seq: Annotated[Seq, doc("The number of the node's report.")]
    used_ms: Annotated[UsedMs, USED_MS]


class BeatRequest(Struct, forbid_unknown_fields=True):
    """One beat of many."""

    reservation_id: Annotated[str, RESERVATION_ID]
    seq: Annotated[Seq, doc("The number of the node's report.")]
    used_ms: Annotated[UsedMs, USED_MS]


class HeartbeatsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What one node reports: a beat for each of its leases."""

    beats: Annotated[
        list[BeatRequest], Meta(max_length=BEATS_MAX), doc("One beat for each lease of the node.")
    ]
    node: Annotated[Name | None, NODE] = None


class BeatAnswer(Struct, omit_defaults=True):
    """What was charged so far, and whether to go on.

    No decision means that there is none yet, for the ``reason`` given: send the beat again. A job
    that is throttled or drains has to end in ``deadline_in_ms``; one that drains is signalled in
    ``signal_in_ms``, and one that is throttled could go on in ``clears_in_ms``, where that is
    known.
    """

    reservation_id: Annotated[str, doc("The id of the lease, as it was sent.")]
    decision: Annotated[
        DecisionName | None,
        doc("Whether the job may continue; null means undecided: send the beat again."),
    ]
    settled: Annotated[CreditsText, SETTLED]
    held: Annotated[CreditsText, doc("Credits held for running work.")]
    expires_in_ms: Annotated[int, doc("Time until the lease lapses; 0 if it has ended.")]
    state: Annotated[
        StateName | None, doc("The state of the lease; absent if the lease is unknown.")
    ] = None
    reason: Annotated[
        BeatReason, doc("Why the decision is not a plain continue, or why there is none yet.")
    ] = ""
    duplicate: Annotated[
        bool, doc("Whether this seq or a later one was accepted before; nothing was charged.")
    ] = False
    flagged: Annotated[
        BeatFlag,
        doc(
            "Why the accepted use differs from the reported use. used_ms_went_back: the "
            "report is less than was accepted before, which stands. used_ms_beyond_elapsed:"
            " more than the time since admission, and cut to it; up to two seconds more are cut"
            " without a flag. used_ms_beyond_authorised: cut to what every bound pays for; a"
            " later report may charge the rest. seq_taken: more use than was accepted, with a"
            " seq that was used before. Absent otherwise."
        ),
    ] = ""
    deadline_in_ms: Annotated[int | None, doc("Time until the job must have stopped.")] = None
    signal_in_ms: Annotated[
        int | None, doc("Time until a draining job is to be told, one grace before its end.")
    ] = None
    clears_in_ms: Annotated[
        int | None, doc("Time until a throttled job could continue; absent if unknown.")
    ] = None
    last_seq: Annotated[
        int | None, doc("With seq_taken: the last seq. Report again at once with a higher one.")
    ] = None


class HeartbeatsAnswer(Struct):
    """One result for each beat, in order."""

    results: Annotated[list[BeatAnswer], RESULTS]
