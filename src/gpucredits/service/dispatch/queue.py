"""The queue for callers: joining it, waiting for news, and canceling.

Owns: the row of a new request, one shared read for all callers that wait for news, the places that
are worth writing, and canceling.
Must not: admit a request (the dispatcher does).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from gpucredits.core.bounds import DAY_US
from gpucredits.core.command import Reserve
from gpucredits.core.fairshare.decisions import WaitDecision
from gpucredits.core.outcome import Outcome, Queued
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.write.acts import Act, perform
from gpucredits.service.write.batch_record import decode, encode, is_remembered
from gpucredits.store.access import acts
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.database.errors import Conflict, Unavailable
from gpucredits.store.dispatch import pools, queue
from gpucredits.store.dispatch.queue import Key, QueuedRequest, QueueFilter, QueueState

__all__ = [
    "DeadlinePassed",
    "QueueFilter",
    "QueueFull",
    "QueueOptions",
    "QueueState",
    "QueuedRequest",
    "RequestQueue",
]

logger = logging.getLogger(__name__)

ORG_WAITING_MAX: Final = 5_000  # requests of one org that may wait in one pool
PATIENCE_US: Final = 7 * DAY_US
QUICK_US: Final = 5_000_000  # how long a request that does not wait is kept for a cycle
LOOK_AGAIN_S: Final = 1.0
GATHER_S: Final = 0.01
PLACES_MAX: Final = 2_000  # rows that are written in one cycle
MOVED_US: Final = 2_000_000  # an estimate that moved by less is not news
EXPIRED = Refused(Reason.FAIR_SHARE, "Its turn did not come before its deadline.")
CANCELED = Refused(Reason.FAIR_SHARE, "It was canceled while it waited.")
JOIN_AT_ONCE: Final = 8  # requests that are written down at a time, so that others get connections


class QueueFull(Exception):  # noqa: N818  # it states what happened
    """An org has reached its bound of waiting requests in a pool."""


class DeadlinePassed(Exception):  # noqa: N818  # it states what happened
    """A request has a deadline that is not after ``now``."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.now = now


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """A reserve, and the terms on which it waits."""

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
        """Stop looking; callers that still wait get the request as it stands."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        for futures in self._watched.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)

    def news(self) -> None:
        """Note that a waiting request has changed."""
        self._news.set()

    async def join(
        self,
        act: Act,
        wanted: Sequence[QueueOptions],
        *,
        refused: Refused | None = None,
    ) -> tuple[Outcome, bool]:
        """Write down requests that wait together: ``Queued``, or the stored answer of the key.

        If ``refused`` is given, the requests do not wait, and their key keeps the refusal.
        """

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            await _check_deadlines(db, wanted)
            if refused is not None:
                return encode(refused), None
            pool_id = wanted[0].pool_id
            waiting = await queue.count_open(
                db, org_id=act.org_id, pool_id=pool_id, most=ORG_WAITING_MAX
            )
            if waiting + len(wanted) > ORG_WAITING_MAX:
                raise QueueFull
            numbers = []
            for options in wanted:
                new = queued(act.org_id, options)
                new = new._replace(actor=act.actor, request_id=act.request_id)
                patience_us = PATIENCE_US if options.is_patient else QUICK_US
                numbers.append(await queue.insert(db, new, patience_us=patience_us))
            await pools.ring(db)
            return encode(Queued(numbers[0], tuple(numbers[1:]))), None

        async with self._joining:
            done = await perform(self._pool, act, work)
        return decode(done.answer), done.is_replay

    async def check_deadlines(self, wanted: Sequence[QueueOptions]) -> None:
        """Raise DeadlinePassed if a request's deadline is over."""
        async with session(self._pool) as db:
            await _check_deadlines(db, wanted)

    async def forget(self, act: Act, queued: Queued) -> None:
        """Forget the key of requests that were throttled, so that the key can be used again."""
        if act.key is None:
            return
        async with session(self._pool) as db, db.transaction():
            await acts.lock_orgs(db, [act.org_id])
            await acts.forget_record(db, act.org_id, act.key, outcome=encode(queued))

    async def read(self, key: Key) -> QueuedRequest | None:
        """A request as it stands."""
        async with session(self._pool) as db:
            return (await queue.find(db, [key])).get(key)

    async def page(self, wanted: QueueFilter) -> list[QueuedRequest]:
        """Requests, the latest first."""
        async with session(self._pool) as db:
            return await queue.page(db, wanted)

    async def wait(
        self, key: Key, until: Callable[[QueuedRequest], bool], *, timeout_s: float
    ) -> QueuedRequest | None:
        """The request once ``until`` holds, or as it stands when the time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        request = await self.read(key)
        while request is not None and not until(request) and (left := deadline - loop.time()) > 0:
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
            request = seen
        return request

    async def cancel(self, act: Act, key: Key) -> tuple[bool, bool]:
        """Cancel a request: (whether it was still waiting, whether this key had done so before)."""

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            closed = await queue.close(db, key, QueueState.CANCELED, encode(CANCELED))
            await queue.tell(db)
            await pools.ring(db)
            if not closed:
                return msgspec.json.encode(closed), None
            [request] = (await queue.find(db, [key])).values()
            state = {"account": request.account, "job_id": request.reserve.job_id}
            note = act.note("queue.cancel", f"queue:{key[1]}", old=state)
            return msgspec.json.encode(closed), note

        done = await perform(self._pool, act, work)
        return msgspec.json.decode(done.answer, type=bool), done.is_replay

    async def give_up(self, key: Key) -> None:
        """End a request that cannot wait, because no dispatcher has decided on it in time."""
        late = Refused(Reason.FAIR_SHARE, "The pool's dispatcher did not answer in time.")
        async with session(self._pool) as db:
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
        async with session(self._pool) as db:
            requests = await queue.find(db, keys)
        for key in keys:
            for future in self._watched.get(key, ()):
                if not future.done():
                    future.set_result(requests.get(key))

    def _forget(self, key: Key, future: asyncio.Future[QueuedRequest | None]) -> None:
        futures = self._watched[key]
        futures.remove(future)
        if not futures:
            del self._watched[key]


def answer_of(request: QueuedRequest) -> Outcome | None:
    """The final answer of the ledger or the pool; None while there is none."""
    return None if request.outcome is None else decode(request.outcome)


def by_the_clock(request: QueuedRequest) -> QueuedRequest:
    """A request as shown to callers: expired from its deadline on, even if not yet written."""
    if not request.is_late:
        return request
    return request._replace(
        state=QueueState.EXPIRED, ended_at=request.deadline, outcome=encode(EXPIRED)
    )


def was_throttled(request: QueuedRequest) -> bool:
    """Whether a request ended by throttling, which its key does not keep as an answer."""
    return request.state == QueueState.REFUSED and not is_remembered(answer_of(request))


def has_ended(request: QueuedRequest) -> bool:
    """Whether a request has reached its final state."""
    return not QueueState(request.state).is_open


async def _check_deadlines(db: Connection, wanted: Sequence[QueueOptions]) -> None:
    first = min((options.deadline for options in wanted if options.deadline), default=0)
    if first and first <= (now := await read_clock(db)):
        raise DeadlinePassed(now)


def queued(org_id: int, options: QueueOptions, *, queue_id: int = 0) -> QueuedRequest:
    """The row for a new request."""
    reserve = options.reserve
    return QueuedRequest(
        org_id=org_id,
        queue_id=queue_id,
        pool_id=options.pool_id,
        account=reserve.account,
        command=msgspec.json.encode(replace(reserve, fair_share=None)).decode(),
        milli_gpus=reserve.milli_gpus,
        cpus=options.cpus,
        memory=options.memory,
        priority=options.priority,
        gang=options.gang,
        gang_size=options.gang_size,
        expected_ms=options.expected_ms,
        preemptible=options.preemptible,
        is_patient=options.is_patient,
        allow_partial=options.allow_partial,
        submitted_at=0,
        deadline=options.deadline,
        actor="",
        request_id="",
    )


class Places:
    """Chooses the places to write; remembers for each pool how far the last cycle wrote."""

    def __init__(self) -> None:
        self._told_to: dict[int, int] = {}

    def news(
        self, pool_id: int, waiting: Iterable[tuple[QueuedRequest, WaitDecision]]
    ) -> list[QueuedRequest]:
        """The rows to write now: requests without a place, then from where the last cycle ended."""
        told_to = self._told_to.get(pool_id, 0)
        found = [
            ((bool(request.reason), placed.position <= told_to, placed.position), placed)
            for request, decision in waiting
            if (placed := _placed(request, decision)) is not None
        ]
        if len(found) <= PLACES_MAX:
            self._told_to.pop(pool_id, None)
            return [placed for _, placed in found]
        chosen = sorted(found)[:PLACES_MAX]
        (was_told, *_), last = chosen[-1]
        if was_told:
            self._told_to[pool_id] = last.position
        return [placed for _, placed in chosen]


def _placed(request: QueuedRequest, decision: WaitDecision) -> QueuedRequest | None:
    """The request with its new place and reason; None if they have not changed."""
    starts_at = decision.starts_at or 0
    said = (request.position, request.reason, request.needed, request.available, request.behind)
    says = (
        *(decision.position, decision.reason.value),
        *(decision.needed, decision.available, decision.behind),
    )
    if said == says and abs(starts_at - request.starts_at) < MOVED_US:
        return None
    return request._replace(
        position=decision.position,
        reason=decision.reason.value,
        resource=decision.resource,
        needed=decision.needed,
        available=decision.available,
        behind=decision.behind,
        starts_at=starts_at,
    )
