"""Waiting for a lease in a pool's queue, for ``run`` and for the agent.

Owns: asking where the request stands, telling the user of changes, and leaving the queue cleanly.
Must not: know jobs or signals; the caller says when to give up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from gpucredits.client import AsyncClient, Refused
from gpucredits.wire.dispatch.queue import QueueAnswer

POLL_S: Final = 20


class NotAdmitted(Exception):  # noqa: N818  # it states what happened
    """A request left the queue without a lease."""

    def __init__(self, request: QueueAnswer) -> None:
        super().__init__(f"{request.queue_id} is {request.state}. {request.sentence}".strip())


async def wait_in_queue(
    client: AsyncClient,
    account: str,
    fields: Mapping[str, Any],
    say: Callable[[str], None],
    given_up: asyncio.Event,
) -> str | None:
    """Wait for the queue's reservation; None if ``given_up`` was set first.

    Tells the request's place and what it waits for, whenever they change.
    """
    request = await client.enqueue(account, **fields)
    shown = ""
    while request.state == "waiting":
        if (text := place_in_queue(request)) != shown:
            say(shown := text)
        poll = asyncio.create_task(client.queued(request.queue_id, wait_seconds=POLL_S))
        woken = asyncio.create_task(given_up.wait())
        await asyncio.wait({poll, woken}, return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()
        if given_up.is_set():
            poll.cancel()
            await leave_queue(client, request)
            return None
        request = await poll
    if request.reservation_id is None:
        raise NotAdmitted(request)
    return request.reservation_id


async def leave_queue(client: AsyncClient, request: QueueAnswer) -> None:
    """Leave the queue; give the lease back if the request was admitted meanwhile."""
    with suppress(Refused):
        await client.cancel_queued(request.queue_id)
    ended = await client.queued(request.queue_id)
    if ended.reservation_id is not None:
        await client.cancel(ended.reservation_id)


def place_in_queue(request: QueueAnswer) -> str:
    """A sentence on a request's place in the queue, and on what it waits for."""
    place = f"place {request.position} in the queue" if request.position else "in the queue"
    return f"{request.queue_id} waits, {place}: {request.sentence}"
