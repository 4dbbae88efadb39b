"""Waiting requests on the wire: where they stand, why they wait, and when they may start."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from gpucredits.wire.documented import (
    ACCOUNT,
    ALLOW_PARTIAL,
    DEADLINE,
    ENDED_AT,
    GANG,
    GANG_SIZE,
    GPU_COUNT,
    GPU_TYPE,
    JOB_ID,
    NEXT_CURSOR,
    QUEUE_PRIORITY,
    REGION,
    STATE,
    doc,
)
from gpucredits.wire.scalars import Gpus, InstantText
from gpucredits.wire.words import WaitWord

QueueStateName = Literal["waiting", "admitted", "canceled", "expired", "refused"]


class QueueAnswer(Struct, kw_only=True):
    """A request that waits, or waited.

    ``position`` and ``estimate`` are null while they are unknown; ``waits_for`` is ``capacity``,
    the rest of its ``gang``, or the gate that has to open first. An admitted request names its
    reservation.
    """

    queue_id: Annotated[str, doc("The id of the queued request.")]
    state: Annotated[QueueStateName, STATE]
    account: Annotated[str, ACCOUNT]
    job_id: Annotated[str, JOB_ID]
    gpu_type: Annotated[str, GPU_TYPE]
    region: Annotated[str, REGION]
    gpu_count: Annotated[Gpus, GPU_COUNT]
    admitted_gpus: Annotated[
        Gpus | None, doc("GPUs that were admitted; fewer than asked for only with allow_partial.")
    ]
    priority: Annotated[int, QUEUE_PRIORITY]
    gang: Annotated[str | None, GANG]
    gang_size: Annotated[int, GANG_SIZE]
    allow_partial: Annotated[bool, ALLOW_PARTIAL]
    position: Annotated[int | None, doc("The place in the queue, from 1; null if there is none.")]
    waits_for: Annotated[
        str | None,
        doc("What the request waits for, such as capacity, gang or credits; null if unknown."),
    ]
    reason: Annotated[
        WaitWord | None, doc("Why the request waits, in a word; null if it does not wait.")
    ]
    sentence: Annotated[str, doc("Why the request waits or how it ended, in words.")]
    estimate: Annotated[InstantText | None, doc("When the request may start; null if unknown.")]
    submitted_at: Annotated[InstantText, doc("When the request was made.")]
    deadline: Annotated[InstantText | None, DEADLINE]
    ended_at: Annotated[InstantText | None, ENDED_AT]
    reservation_id: Annotated[
        str | None, doc("The lease of the request; null until it is admitted.")
    ]


class QueuePage(Struct, kw_only=True):
    """Requests, the latest first."""

    queue: Annotated[list[QueueAnswer], doc("Requests that wait or waited.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None
