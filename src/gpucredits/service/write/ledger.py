"""The one door to writes: commands in, outcomes out.

Owns: finding the org of a request, and what callers see of the funnel.
Must not: decide anything about money (core does) or speak SQL (store does).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from gpucredits.core.account import org_of
from gpucredits.core.book import Book, Org
from gpucredits.core.command import CreateAccount, Sweep
from gpucredits.core.decide import decide
from gpucredits.core.outcome import Outcome, Swept
from gpucredits.core.reasons import InvariantBroken, invariant
from gpucredits.service.write.batch import CommandJob
from gpucredits.service.write.batch_queue import OrgBeat
from gpucredits.service.write.batch_record import Request
from gpucredits.service.write.errors import Busy, complete
from gpucredits.service.write.group_commit import DEFAULTS, Funnel, FunnelOptions
from gpucredits.service.write.heartbeats import BeatCall
from gpucredits.store.clock import read_clock
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.errors import Unavailable
from gpucredits.store.ledger.orgs import ensure_org, find_org

__all__ = ["Answers", "Ledger", "Request", "Undecided"]

Undecided = Busy | Unavailable | InvariantBroken
Part = tuple[int, Sequence[Request]]  # an org's number, and what is asked there
ORGS_KNOWN_MAX = 100_000
SWEPT_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Answers:
    """Outcomes in the order of the requests, and whether all are those of an earlier call."""

    outcomes: list[Outcome]
    is_replay: bool = False


class Ledger:
    """Writes to the ledger. Refusals are values; see service.errors for what is raised.

    Start it before the first write; stopping it carries out what was accepted.
    """

    def __init__(self, pool: Pool, options: FunnelOptions = DEFAULTS) -> None:
        self.pool = pool
        self.funnel = Funnel(pool, options)
        self._org_ids: dict[str, int] = {}

    async def start(self) -> None:
        """Begin to carry out commands."""
        await self.funnel.start()

    async def stop(self) -> None:
        """Take no more commands, and end when all that were taken are answered."""
        await self.funnel.stop()

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
        self.funnel.put_all(jobs)
        complete(await asyncio.gather(*(job.answer for job in jobs), return_exceptions=True))
        return [
            Answers(
                [outcome for job in part for outcome in job.answer.result()],
                is_replay=all(job.is_replay for job in part),
            )
            for part in taken
        ]

    def ensure_room(self, sizes: Mapping[int, int]) -> None:
        """Busy when so many commands, by org, could not all be taken now."""
        self.funnel.ensure_room(sizes)

    async def beat(self, beats: Sequence[OrgBeat]) -> list[Outcome | Undecided]:
        """Record heartbeats given as (org number, beat); answers are in the same order.

        What could not be decided stands in its own place and harms no neighbour: send it again.
        """
        if not beats:
            return []
        count = len(beats)
        call = BeatCall([None] * count, asyncio.get_running_loop().create_future(), count)
        self.funnel.put_beats(beats, call)
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
                self.funnel.put(job, ahead=False)
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

    async def _enqueue(
        self,
        org_id: int,
        requests: Sequence[Request],
        *,
        atomic: bool = True,
        dry_run: bool = False,
    ) -> Answers:
        job = self._job(org_id, requests, dry_run=dry_run, atomic=atomic)
        self.funnel.put(job)
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
        answer = asyncio.get_running_loop().create_future()
        job = CommandJob(org_id, requests, answer, dry_run=dry_run, atomic=atomic)
        invariant(job.size == 1 or not job.opens_windows, "a quota per window is set by itself")
        return job

    async def _without_org(self, path: str, requests: Sequence[Request]) -> list[Outcome]:
        """An org that does not exist has nothing to lock and nowhere to remember answers."""
        book = Book(Org(0, path))
        now = await read_clock(self.pool)
        return [decide(book, request.command, now) for request in requests]
