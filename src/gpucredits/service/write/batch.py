"""One batch: load, decide every command in order, save what is still true, commit.

Owns: the transaction, idempotent replay, all-or-nothing groups and dry runs.
Must not: queue, retry or connect (the funnel does), or decide (the core does).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from gpucredits.core.book import Book, NotInBook, Org
from gpucredits.core.command import Explain
from gpucredits.core.decide import decide, decide_beats
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.service.write.acts import recall
from gpucredits.service.write.batch_record import Request, note, state_before
from gpucredits.service.write.errors import KeyReused
from gpucredits.service.write.heartbeats import BeatJob
from gpucredits.service.write.loop_turns import long_step
from gpucredits.service.write.new_windows import opens_windows, with_spending
from gpucredits.service.write.stored_answers import decode, detached
from gpucredits.store.book.cache.book_cache import BookCache
from gpucredits.store.book.cache.clock_check import steady_us
from gpucredits.store.book.load import CachedBook, CachedBooks, load, load_and_lock, look_up
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.save import BatchRecord, new_on_nodes, save, save_if
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import driver_errors
from gpucredits.store.database.transaction import transaction

BEATS_AT_A_STRETCH = 50  # decided without letting others go
NUMBERS = count()  # of batches: those that began first take their long steps first


@dataclass(slots=True, eq=False)
class CommandJob:
    """Requests of one org that are answered together; several are all or nothing.

    Only a dry run may hold several that stand alone: they are rehearsed one after the other.
    """

    org_id: int
    requests: Sequence[Request]
    answer: asyncio.Future[list[Outcome]]
    dry_run: bool = False
    atomic: bool = True
    is_replay: bool = False
    queued_at: float = 0.0

    @property
    def size(self) -> int:
        """How many commands it is."""
        return len(self.requests)

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.answer.done()

    @property
    def opens_windows(self) -> bool:
        """Whether it may begin to count what was spent before it."""
        return any(opens_windows(request.command) for request in self.requests)

    def add_needs(self, needs: Needs) -> None:
        """The rows and keys that its requests touch."""
        for request in self.requests:
            needs.add(self.org_id, request.command)
            if request.key is not None and not self.dry_run:
                needs.keys.add((self.org_id, request.key))
        needs.must_read = needs.must_read or self.dry_run  # nothing is saved that could be guarded

    def run(self, page: CachedBook | None, minutes: BatchRecord) -> list[Outcome] | KeyReused:
        """Decide it on its org's page; an unknown org's book is empty, and nothing is kept."""
        if page is None:
            nobody = Book(Org(self.org_id, ""))
            return [decide(nobody, each.command, 0) for each in self.requests]
        if self.dry_run or all(isinstance(each.command, Explain) for each in self.requests):
            return rehearse(page, self.requests, atomic=self.atomic)
        self.is_replay = all(is_known(page, request) for request in self.requests)
        if len(self.requests) == 1:
            outcome = decide_request(page, self.requests[0], minutes)
            return outcome if isinstance(outcome, KeyReused) else [outcome]
        return decide_together(page, self.requests, minutes)

    def deliver(self, result: list[Outcome] | KeyReused) -> None:
        """Answer the caller, if there still is one."""
        if self.answer.done():
            return
        if isinstance(result, KeyReused):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)

    def fail(self, error: Exception) -> None:
        """Tell the caller that it was not decided."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def split(self) -> list[CommandJob]:
        """It cannot be taken apart."""
        return [self]


Job = CommandJob | BeatJob
Result = list[Outcome] | KeyReused


async def commit(connection: Connection, jobs: Sequence[Job], shelf: BookCache) -> list[Result]:
    """Carry out a batch whole; what each job is to be told once this returns."""
    needs = Needs()
    for job in jobs:
        job.add_needs(needs)
    # Hardly ever does a lease end with a report; then everything is loaded after all.
    needs.only_renews = all(isinstance(job, BeatJob) for job in jobs)
    number = next(NUMBERS)
    async with shelf.turns.at(needs.orgs):
        shelf.clock_check.require()
        results = None
        if not needs.anew and not shelf.is_contested(needs.orgs):
            results = await commit_if_true(connection, needs, jobs, shelf, number)
        if results is None:
            results = await commit_locked(connection, needs, jobs, shelf, number)
    return results


async def commit_if_true(
    connection: Connection, needs: Needs, jobs: Sequence[Job], shelf: BookCache, number: int
) -> list[Result] | None:
    """Decide on what is known, and save if it is still true; None when it was not.

    Nothing is locked while it is decided: the statement that saves locks, compares and commits.
    """
    minutes = BatchRecord()
    is_large = needs.only_renews
    if is_large:
        await long_step(number)
    with driver_errors():
        pages, guard = await look_up(connection, needs, shelf)
    try:
        results = await run_all(jobs, bounded(pages, shelf), minutes, number)
    except NotInBook:
        needs.only_renews, needs.chains = False, True
        return None
    if not needs.were_read and not needs.only_renews:
        if not needs.keys <= minutes.keys:
            return None  # a key that leaves no trace has to be looked for
        guard = replace(guard, nodes=new_on_nodes(pages))
    if is_large:
        await long_step(number)
    asked_at = steady_us()
    verdict = await save_if(connection, guard, pages, minutes)
    shelf.learn(verdict, asked_at)
    if not verdict.holds:
        shelf.clock_check.require()
        return None
    shelf.put(pages)
    return results


async def commit_locked(
    connection: Connection, needs: Needs, jobs: Sequence[Job], shelf: BookCache, number: int
) -> list[Result]:
    """Lock the orgs, then load, decide and save, in one transaction."""
    minutes = BatchRecord()
    async with transaction(connection):
        pages = await load_and_lock(connection, needs, shelf)
        try:
            if needs.anew:
                await tell_spending(connection, pages, jobs)
            results = await run_all(jobs, bounded(pages, shelf), minutes, number)
        except NotInBook:  # nothing was saved, and the orgs stay locked
            needs.only_renews, needs.counts_anew, minutes = False, True, BatchRecord()
            needs.chains = True
            pages = await load(connection, needs)
            await tell_spending(connection, pages, jobs)
            results = await run_all(jobs, bounded(pages, shelf), minutes, number)
        await asyncio.sleep(0)  # no stride: others wait for the locks
        await save(connection, pages, minutes)
    shelf.put(pages)
    return results


def bounded(pages: CachedBooks, shelf: BookCache) -> CachedBooks:
    """Pages that know how long leases may last on this server now."""
    for page in pages.values():
        page.book.bound_windows(shelf.windows)
    return pages


async def tell_spending(connection: Connection, pages: CachedBooks, jobs: Sequence[Job]) -> None:
    """Tell commands that open windows what was spent in them before."""
    for job in jobs:
        page = pages.get(job.org_id)
        if isinstance(job, CommandJob) and page is not None:
            job.requests = [
                replace(each, command=await with_spending(connection, page, each.command))
                for each in job.requests
            ]


async def run_all(
    jobs: Sequence[Job], pages: CachedBooks, minutes: BatchRecord, number: int
) -> list[Result]:
    """Decide the jobs of a batch in order, and let others go in between."""
    results: list[Result] = []
    beats = 0
    for job in jobs:
        if isinstance(job, BeatJob):
            beats += job.size
            if beats > BEATS_AT_A_STRETCH:
                beats = job.size
                await long_step(number)
            results.append(run_beats(job, pages.get(job.org_id), minutes))
            continue
        if results:
            await asyncio.sleep(0)
        results.append(job.run(pages.get(job.org_id), minutes))
    return results


def run_beats(job: BeatJob, page: CachedBook | None, minutes: BatchRecord) -> list[Outcome]:
    """Decide an org's heartbeats on its page; an unknown org's book is empty."""
    if page is None:
        return decide_beats(Book(Org(job.org_id, "")), job.beats, 0)
    outcomes = decide_beats(page.book, job.beats, page.now)
    job.note(outcomes, page.now, minutes)
    return outcomes


def decide_request(page: CachedBook, request: Request, minutes: BatchRecord) -> Outcome | KeyReused:
    """Decide one request, unless its key says that it was decided before."""
    known = replay(page, request)
    if known is not None:
        return known
    before = state_before(page.book, request.command)
    outcome = detached(decide(page.book, request.command, page.now))
    note(page, request, outcome, minutes, before)
    return outcome


def decide_together(
    page: CachedBook, requests: Sequence[Request], minutes: BatchRecord
) -> list[Outcome] | KeyReused:
    """Decide requests as one: the first refusal takes everything back and is everyone's answer."""
    known = [replay(page, request) for request in requests]
    for each in known:
        if isinstance(each, KeyReused):
            return each
    outcomes: list[Outcome] = []
    book = page.book
    states = [state_before(book, request.command) for request in requests]
    book.begin()
    for request, before in zip(requests, known, strict=True):
        assert not isinstance(before, KeyReused)  # for the type checker
        outcome = before or detached(decide(book, request.command, page.now))
        if isinstance(outcome, Refused) and before is None:
            book.take_back()
            outcomes = [outcome] * len(requests)
            break
        outcomes.append(outcome)
    else:
        book.keep()
    for request, before, outcome, state in zip(requests, known, outcomes, states, strict=True):
        if before is None:
            note(page, request, outcome, minutes, state)
    return outcomes


def rehearse(page: CachedBook, requests: Sequence[Request], *, atomic: bool) -> list[Outcome]:
    """Decide requests for real and take everything back; keys are neither read nor used."""
    page.book.begin()
    outcomes = []
    for request in requests:
        outcomes.append(detached(decide(page.book, request.command, page.now)))
        if atomic and isinstance(outcomes[-1], Refused):
            outcomes = [outcomes[-1]] * len(requests)
            break
    page.book.take_back()
    return outcomes


def is_known(page: CachedBook, request: Request) -> bool:
    """Whether a key was used before."""
    return request.key is not None and request.key in page.answers


def replay(page: CachedBook, request: Request) -> Outcome | KeyReused | None:
    """The answer that a key was given before, if it was used before."""
    if request.key is None:
        return None
    known = recall(request.key, request.fingerprint, page.answers.get(request.key))
    return decode(known) if isinstance(known, bytes) else known
