"""Waiting requests on the wire: where they stand, why they wait, and when they may start."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpucredits.wire.scalars import InstantText
from gpucredits.wire.words import WaitWord

QueueStateName = Literal["waiting", "admitted", "canceled", "expired", "refused"]


class QueueAnswer(Struct, kw_only=True):
    """A request that waits, or waited.

    ``position`` is null while it has none, ``estimate`` while nobody can know; ``waits_for`` is
    ``capacity``, the rest of its ``gang``, or the gate that has to open first. An admitted one
    names its reservation.
    """

    queue_id: str
    state: QueueStateName
    account: str
    job_id: str
    gpu_type: str
    region: str
    gpu_count: int
    admitted_gpus: int | None
    priority: int
    gang: str | None
    gang_size: int
    allow_partial: bool
    position: int | None
    waits_for: str | None
    reason: WaitWord | None
    sentence: str
    estimate: InstantText | None
    submitted_at: InstantText
    deadline: InstantText | None
    ended_at: InstantText | None
    reservation_id: str | None


class QueuePage(Struct, kw_only=True):
    """Requests, the latest first."""

    queue: list[QueueAnswer]
    next_cursor: str | None = None
