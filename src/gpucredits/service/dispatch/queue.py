"""The queue as its callers know it: asking for a turn, waiting for news, giving up.

Owns: what is written down when somebody begins to wait, one look for everybody who waits for
news, and cancelling.
Must not: let anybody in (the dispatcher does).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import Reserve
from gpucredits.core.outcome import Outcome, Queued
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.dispatch.refusal import CANCELED, EXPIRED
from gpucredits.service.write.acts import Act, perform
from gpucredits.service.write.batch_record import is_remembered
from gpucredits.service.write.stored_answers import decode, encode
from gpucredits.store.access import acts
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import Conflict, Unavailable, driver_errors
from gpucredits.store.dispatch import pools, queue
from gpucredits.store.dispatch.queue import NewTicket, QueuedRequest, QueueState, TicketFilter

__all__ = [
    "DeadlinePassed",
    "QueueFull",
    "QueueOptions",
    "QueuedRequest",
    "RequestQueue",
    "TicketFilter",
]

logger = logging.getLogger(__name__)

ORG_WAITING_MAX: Final = 5_000  # requests of one org that may wait in one pool
PATIENCE_US: Final = 7 * DAY_US
QUICK_US: Final = 5_000_000  # how long a request that does not wait is kept for a cycle
LOOK_AGAIN_S: Final = 1.0
GATHER_S: Final = 0.01
JOIN_AT_ONCE: Final = 8  # requests that are written down at a time, so that others get connections

Key = tuple[int, int]


class QueueFull(Exception):  # noqa: N818  # it states what happened
    """An org has as many requests waiting in a pool as it may."""


class DeadlinePassed(Exception):  # noqa: N818  # it states what happened
    """A request would wait until an instant that is not after ``now``."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.now = now


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """A reserve and how it is to wait."""

    reserve: Reserve
    pool_id: int
    cpus: int = 0
    memory: int = 0
    priority: int = 0
    gang: str = ""
    gang_size: int = 1
    expected_ms: int = 0
    preemptible: bool = True
    is_patient: bool = False
    allow_partial: bool = False
    deadline: int = 0


class RequestQueue:
    """The queue. Start it before the first wait for news."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._watched: dict[Key, list[asyncio.Future[QueuedRequest | None]]] = {}
        self._news = asyncio.Event()
        self._joining = asyncio.Semaphore(JOIN_AT_ONCE)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look for news."""
        self._task = asyncio.create_task(self._look(), name=type(self).__name__)

    async def stop(self) -> None:
        """Look no more; whoever still waits is told what is known."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        for futures in self._watched.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)

    def news(self) -> None:
        """Something about those who wait has changed."""
        self._news.set()

    async def join(
        self,
        act: Act,
        wishes: Sequence[QueueOptions],
        *,
        refused: Refused | None = None,
    ) -> tuple[Outcome, bool]:
        """Write down requests that wait together: ``Queued``, or what the key was told before.

        Requests that are ``refused`` do not wait; their key remembers the refusal.
        """

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            await _check_deadlines(db, wishes)
            if refused is not None:
                return encode(refused), None
            pool_id = wishes[0].pool_id
            waiting = await queue.count_open(
                db, org_id=act.org_id, pool_id=pool_id, most=ORG_WAITING_MAX
            )
            if waiting + len(wishes) > ORG_WAITING_MAX:
                raise QueueFull
            numbers = []
            for wish in wishes:
                ticket = _ticket(act.org_id, wish, act.actor, act.request_id)
                patience_us = PATIENCE_US if wish.is_patient else QUICK_US
                number = await queue.insert(
                    db, ticket, patience_us=patience_us, deadline=wish.deadline
                )
                numbers.append(number)
            await pools.ring(db)
            return encode(Queued(numbers[0], tuple(numbers[1:]))), None

        async with self._joining:
            done = await perform(self._pool, act, work)
        return decode(done.answer), done.is_replay

    async def check_deadlines(self, wishes: Sequence[QueueOptions]) -> None:
        """Raise DeadlinePassed for requests that would never have waited."""
        with driver_errors():
            async with self._pool.acquire() as db:
                await _check_deadlines(db, wishes)

    async def forget(self, act: Act, queued: Queued) -> None:
        """Let a key be used again under which requests joined that were asked to slow down."""
        if act.key is None:
            return
        with driver_errors():
            async with self._pool.acquire() as db, db.transaction():
                await acts.lock_orgs(db, [act.org_id])
                await acts.forget_record(db, act.org_id, act.key, outcome=encode(queued))

    async def read(self, key: Key) -> QueuedRequest | None:
        """A request as it stands."""
        with driver_errors():
            async with self._pool.acquire() as db:
                return (await queue.find(db, [key])).get(key)

    async def page(self, wanted: TicketFilter) -> list[QueuedRequest]:
        """Requests, the latest first."""
        with driver_errors():
            async with self._pool.acquire() as db:
                return await queue.page(db, wanted)

    async def wait(
        self, key: Key, until: Callable[[QueuedRequest], bool], *, timeout_s: float
    ) -> QueuedRequest | None:
        """The request once ``until`` says so, or as it stands when the time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        ticket = await self.read(key)
        while ticket is not None and not until(ticket) and (left := deadline - loop.time()) > 0:
            future: asyncio.Future[QueuedRequest | None] = loop.create_future()
            self._watched.setdefault(key, []).append(future)
            try:
                seen = await asyncio.wait_for(future, left)
            except TimeoutError:
                break
            finally:
                self._forget(key, future)
            if seen is None:
                break
            ticket = seen
        return ticket

    async def cancel(self, act: Act, key: Key) -> tuple[bool, bool]:
        """Give up waiting: (whether it was still waiting, whether this key had done so before)."""

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            closed = await queue.close(db, key, QueueState.CANCELED, encode(CANCELED))
            await queue.tell(db)
            await pools.ring(db)
            if not closed:
                return msgspec.json.encode(closed), None
            [ticket] = (await queue.find(db, [key])).values()
            state = {"account": ticket.account, "job_id": ticket.job_id}
            note = act.note("queue.cancel", f"queue:{key[1]}", old=state)
            return msgspec.json.encode(closed), note

        done = await perform(self._pool, act, work)
        return msgspec.json.decode(done.answer, type=bool), done.is_replay

    async def give_up(self, key: Key) -> None:
        """End a request that does not wait and that no dispatcher has looked at in time."""
        late = Refused(Reason.FAIR_SHARE, "The pool's dispatcher did not answer in time.")
        with driver_errors():
            async with self._pool.acquire() as db:
                await queue.close(db, key, QueueState.REFUSED, encode(late))

    async def _look(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            if not self._watched:
                continue
            await asyncio.sleep(GATHER_S)  # what happens within a moment is read at once
            try:
                await self._answer()
            except (Conflict, Unavailable):
                await asyncio.sleep(LOOK_AGAIN_S)
            except Exception:  # a guard: whoever waits must get news again
                logger.exception("the queue could not be looked at and is looked at again")
                await asyncio.sleep(LOOK_AGAIN_S)

    async def _answer(self) -> None:
        keys = list(self._watched)
        with driver_errors():
            async with self._pool.acquire() as db:
                tickets = await queue.find(db, keys)
        for key in keys:
            for future in self._watched.get(key, ()):
                if not future.done():
                    future.set_result(tickets.get(key))

    def _forget(self, key: Key, future: asyncio.Future[QueuedRequest | None]) -> None:
        futures = self._watched[key]
        futures.remove(future)
        if not futures:
            del self._watched[key]


def answer_of(ticket: QueuedRequest) -> Outcome | None:
    """What the ledger or the pool said in the end; None while nobody has said anything."""
    return None if ticket.outcome is None else decode(ticket.outcome)


def by_the_clock(ticket: QueuedRequest) -> QueuedRequest:
    """A request as its owner sees it: expired at its deadline, whoever writes that down when."""
    if not ticket.is_late:
        return ticket
    outcome = encode(EXPIRED)
    return replace(
        ticket, state=QueueState.EXPIRED, ended_at=ticket.deadline, outcome=outcome, is_late=False
    )


def was_throttled(ticket: QueuedRequest) -> bool:
    """Whether it ended with a request to slow down, which is no answer to its key."""
    return ticket.state == QueueState.REFUSED and not is_remembered(answer_of(ticket))


def has_ended(ticket: QueuedRequest) -> bool:
    """Whether there is nothing more to wait for."""
    return not QueueState(ticket.state).is_open


async def _check_deadlines(db: Connection, wishes: Sequence[QueueOptions]) -> None:
    first = min((wish.deadline for wish in wishes if wish.deadline), default=0)
    if first and first <= (now := await read_clock(db)):
        raise DeadlinePassed(now)


def _ticket(org_id: int, wish: QueueOptions, actor: str, request_id: str) -> NewTicket:
    command = replace(wish.reserve, fair_share=None)
    return NewTicket(
        org_id=org_id,
        pool_id=wish.pool_id,
        account=wish.reserve.account,
        command=msgspec.json.encode(command).decode(),
        gpus=wish.reserve.gpu_count,
        cpus=wish.cpus,
        memory=wish.memory,
        priority=wish.priority,
        gang=wish.gang,
        gang_size=wish.gang_size,
        expected_ms=wish.expected_ms,
        preemptible=wish.preemptible,
        is_patient=wish.is_patient,
        allow_partial=wish.allow_partial,
        actor=actor,
        request_id=request_id,
    )
