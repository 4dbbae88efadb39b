"""Calls about the queue: asking for a turn, waiting for it, giving up."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from gpucredits.client.call import Call, When, body_of, item_path, read, write
from gpucredits.client.reservations import ReserveFields
from gpucredits.wire.queue import QueueAnswer, QueuePage, QueueStateName
from gpucredits.wire.reservation import ReserveRequest


class EnqueueFields(ReserveFields, total=False):
    """What may be said of a job that waits: until when, and with whom it starts."""

    deadline: When | None
    gang: str | None
    gang_size: int | None


def enqueue(
    account: str, *, key: str | None = None, **fields: Unpack[EnqueueFields]
) -> Call[QueueAnswer]:
    """Ask for a lease, and wait for capacity, credits or quota if need be."""
    body = body_of(ReserveRequest, account=account, wait=True, **fields)
    return write("/v1/reservations", QueueAnswer, body=body, key=key)


def queued(queue_id: str, *, wait_seconds: int | None = None) -> Call[QueueAnswer]:
    """One request as it stands, or when it no longer waits if that is within ``wait_seconds``."""
    call = read(item_path("queue", queue_id), QueueAnswer, wait_seconds=wait_seconds)
    return replace(call, patience_s=float(wait_seconds or 0))


def queue_page(
    *,
    account: str | None = None,
    pool: str | None = None,
    region: str | None = None,
    state: QueueStateName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[QueuePage]:
    """A page of requests, the latest first; a pool is such as h100 or h100/eu.

    With a ``region``, the pool is the GPU type alone.
    """
    return read(
        "/v1/queue",
        QueuePage,
        account=account,
        pool=pool,
        region=region,
        state=state,
        cursor=cursor,
        limit=limit,
    )


def cancel_queued(
    queue_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[QueueAnswer]:
    """Wait no more."""
    path = item_path("queue", queue_id, ":cancel")
    return write(path, QueueAnswer, key=key, dry_run=dry_run)
