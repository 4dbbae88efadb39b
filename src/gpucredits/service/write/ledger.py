"""The one way into the ledger: commands in, outcomes out.

Owns: finding the org of a request, the two queues of writes, and the answers that callers get.
Must not: decide anything about money (core does) or speak SQL (store does).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from gpucredits.core import bounds
from gpucredits.core.account import org_of
from gpucredits.core.book import Book, InvariantBroken, Org
from gpucredits.core.bounds import WindowBounds
from gpucredits.core.command import CreateAccount, Sweep
from gpucredits.core.decide import decide
from gpucredits.core.outcome import Outcome, Swept
from gpucredits.service.write.batch import CommandJob
from gpucredits.service.write.batch_queue import BatchLimits, BatchQueue, OrgBeat
from gpucredits.service.write.batch_record import Request
from gpucredits.service.write.batch_worker import BatchWorker, WriteProgress
from gpucredits.service.write.errors import Undecided, complete
from gpucredits.service.write.heartbeats import BeatCall
from gpucredits.store.book.book_cache import LEASES_MAX, BookCache
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Pool
from gpucredits.store.ledger.orgs import ensure_org, find_org

__all__ = ["Answers", "Ledger", "Request", "Undecided"]

Part = tuple[int, Sequence[Request]]  # an org's number, and what is asked there
ORGS_KNOWN_MAX = 100_000
SWEPT_AT_ONCE = 500

# Two batches of heartbeats keep the server and the database at work at the same time; with more,
# each batch is smaller and visits more orgs for each heartbeat (decision 11).
HEARTBEATS = BatchLimits(at_once=2, batch_max=500, org_batch_max=500, org_waiting_max=20_000)
# One batch of commands at a time, or a second one that is no smaller: two half as large cost half
# as much again. More than 32 in a batch are hardly cheaper, and leave the server idle while the
# database writes them. An org that floods the server has a quarter of a batch while others wait.
COMMANDS = BatchLimits(
    at_once=1, beside=1, batch_max=32, org_batch_max=8, org_waiting_max=2_000, long_s=0.02
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Bounds of the ledger's queues and of the books that it keeps in memory."""

    heartbeats: BatchLimits = HEARTBEATS
    commands: BatchLimits = COMMANDS
    kept_leases_max: int = LEASES_MAX
    window_max_ms: int = bounds.WINDOW_MS_MAX

    @property
    def connections(self) -> int:
        """How many connections the workers of both queues hold."""
        return self.heartbeats.workers + self.commands.workers


DEFAULTS = WriteOptions()


@dataclass(frozen=True, slots=True)
class Answers:
    """Outcomes in the order of the requests, and whether all are those of an earlier call."""

    outcomes: list[Outcome]
    is_replay: bool = False


class Ledger:
    """Writes to the ledger. Refusals are values; see service.errors for what is raised.

    Commands and heartbeats have queues of their own, so that an admission waits for a batch of
    heartbeats only if its own org is in that batch.
    """

    def __init__(self, pool: Pool, options: WriteOptions = DEFAULTS) -> None:
        self.pool = pool
        self.cache = BookCache(options.kept_leases_max, WindowBounds(options.window_max_ms))
        self.progress = WriteProgress()
        self.commands = self._queue(options.commands)
        self.heartbeats = self._queue(options.heartbeats)
        self._org_ids: dict[str, int] = {}

    async def stop(self) -> None:
        """Accept no more commands, and return when all that were accepted are answered."""
        await asyncio.gather(self.commands.stop(), self.heartbeats.stop())

    async def submit(self, org: str | int, request: Request, *, dry_run: bool = False) -> Outcome:
        """Carry out one command. ``org`` is the org's path or number.

        Raises Busy, KeyReused, Unavailable, or InvariantBroken; for several, Incomplete too.
        """
        return (await self.submit_all(org, [request], atomic=True, dry_run=dry_run))[0]

    async def submit_all(
        self, org: str | int, requests: Sequence[Request], *, atomic: bool, dry_run: bool = False
    ) -> list[Outcome]:
        """Carry out several commands of one org; the outcomes are in the order of the requests."""
        return (await self.answer(org, requests, atomic=atomic, dry_run=dry_run)).outcomes

    async def answer(
        self, org: str | int, requests: Sequence[Request], *, atomic: bool, dry_run: bool = False
    ) -> Answers:
        """As ``submit_all``, and say whether the keys had been answered before.

        ``atomic``: all or nothing, and after a refusal every position holds that refusal; a quota
        on credits per window cannot be among several. A dry run of requests that stand alone still
        decides each after those before it.
        """
        if not requests:
            return Answers([])
        org_id = await self.org_id(org, requests[0], dry_run=dry_run)
        if org_id is None:
            return Answers(await self._without_org(str(org), requests))
        if len(requests) == 1:
            return await self._enqueue(org_id, requests, atomic=atomic, dry_run=dry_run)
        [answers] = await self.answer_parts([(org_id, requests)], atomic=atomic, dry_run=dry_run)
        return answers

    async def answer_parts(
        self, parts: Sequence[Part], *, atomic: bool, dry_run: bool = False
    ) -> list[Answers]:
        """As ``answer``, for a batch in several orgs; ``atomic``: in each of them all or nothing.

        Busy when they cannot all be taken, and nothing is begun then; Incomplete when some were
        decided and others could not be. A repeat with the same keys goes on from there.
        """
        taken = [
            [
                self._job(org_id, group, dry_run=dry_run, atomic=atomic)
                for group in ([requests] if atomic or dry_run else [[each] for each in requests])
            ]
            for org_id, requests in parts
        ]
        jobs = [job for part in taken for job in part]
        sizes: Counter[int] = Counter()
        for job in jobs:
            sizes[job.org_id] += job.size
        self.commands.ensure_room(sizes)
        for job in jobs:
            self.commands.put(job)
        complete(await asyncio.gather(*(job.answer for job in jobs), return_exceptions=True))
        return [
            Answers(
                [outcome for job in part for outcome in job.answer.result()],
                is_replay=all(job.is_replay for job in part),
            )
            for part in taken
        ]

    def ensure_room(self, sizes: Mapping[int, int]) -> None:
        """Raise Busy when not all of so many commands, by org, can wait now."""
        self.commands.ensure_room(sizes)

    async def beat(self, beats: Sequence[OrgBeat]) -> list[Outcome | Undecided]:
        """Record heartbeats given as (org number, beat); answers are in the same order.

        What could not be decided stands in its own place and harms no neighbour: send it again.
        """
        if not beats:
            return []
        count = len(beats)
        loop = asyncio.get_running_loop()
        call = BeatCall([None] * count, loop.create_future(), count)
        self.heartbeats.put_beats(beats, call, loop.time())
        await call.done
        return cast("list[Outcome | Undecided]", call.results)

    async def sweep(self, org_id: int, account_ids: Sequence[int]) -> list[Swept]:
        """Write down what the clock has made true of accounts, and what came of it.

        Those that fail are left out, unless none has moved on.
        """
        swept: list[Swept] = []
        failed: list[BaseException] = []
        for start in range(0, len(account_ids), SWEPT_AT_ONCE):
            chosen = account_ids[start : start + SWEPT_AT_ONCE]
            jobs = [self._job(org_id, [Request(Sweep(account_id=each))]) for each in chosen]
            for job in jobs:
                self.heartbeats.put(job)
            answers = (job.answer for job in jobs)
            for group in await asyncio.gather(*answers, return_exceptions=True):
                if isinstance(group, BaseException):
                    failed.append(group)
                else:
                    swept += (each for each in group if isinstance(each, Swept))
        if failed and not any(each.moved_on for each in swept):
            raise failed[0]
        return swept

    async def org_id(
        self, org: str | int, request: Request | None = None, *, dry_run: bool = True
    ) -> int | None:
        """The number of an org; one that a request opens is made first, to be locked."""
        if isinstance(org, int):
            return org
        org_id = self._org_ids.get(org)
        if org_id is None:
            opens = (
                request is not None
                and isinstance(request.command, CreateAccount)
                and request.command.path == org_of(org)
            )
            find = ensure_org if opens and not dry_run else find_org
            org_id = await find(self.pool, org)
            if org_id is not None and len(self._org_ids) < ORGS_KNOWN_MAX:
                self._org_ids[org] = org_id
        return org_id

    def _queue(self, limits: BatchLimits) -> BatchQueue:
        workers = [BatchWorker(self.pool, self.cache, self.progress) for _ in range(limits.workers)]
        return BatchQueue(limits, workers)

    async def _enqueue(
        self,
        org_id: int,
        requests: Sequence[Request],
        *,
        atomic: bool = True,
        dry_run: bool = False,
    ) -> Answers:
        job = self._job(org_id, requests, dry_run=dry_run, atomic=atomic)
        self.commands.put(job)
        outcomes = await job.answer
        return Answers(outcomes, is_replay=job.is_replay)

    def _job(
        self,
        org_id: int,
        requests: Sequence[Request],
        *,
        dry_run: bool = False,
        atomic: bool = True,
    ) -> CommandJob:
        loop = asyncio.get_running_loop()
        job = CommandJob(
            org_id,
            requests,
            loop.create_future(),
            dry_run=dry_run,
            atomic=atomic,
            queued_at=loop.time(),
        )
        if job.size > 1 and job.opens_windows:
            raise InvariantBroken("a quota per window is set by itself")
        return job

    async def _without_org(self, path: str, requests: Sequence[Request]) -> list[Outcome]:
        """An org that does not exist has nothing to lock and nowhere to remember answers."""
        book = Book(Org(0, path))
        now = await read_clock(self.pool)
        return [decide(book, request.command, now) for request in requests]
