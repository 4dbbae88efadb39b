"""One batch: load the books, decide every job in order, save the changes, commit.

Owns: the transaction, idempotent replay, all-or-nothing groups, dry runs, and which long step of
work is next at the event loop.
Must not: queue (batch_queue does), retry or connect (batch_worker does), or decide (core does).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from weakref import WeakKeyDictionary

from gpucredits.core.book import Book, NotInBook, Org
from gpucredits.core.command import Explain
from gpucredits.core.decide import decide, decide_beats
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.service.write.acts import recall
from gpucredits.service.write.batch_record import Request, decode, detached, note, state_before
from gpucredits.service.write.errors import KeyReused
from gpucredits.service.write.heartbeats import BEATS_DECIDED_AT_ONCE, BeatJob
from gpucredits.service.write.new_windows import QuotaCommand, opens_windows, with_spending
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.book.cached_book import CachedBook, CachedBooks
from gpucredits.store.book.database_clock import steady_us
from gpucredits.store.book.load import any_answered, load, load_and_lock, look_up
from gpucredits.store.book.needs import Needs
from gpucredits.store.book.save import BatchRecord, new_on_nodes, save, save_if
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import transaction

OTHERS_EVERY = 4  # one step in so many goes to tasks that belong to no batch
STRETCH_S = 0.0005  # of deciding commands without letting others run: a round costs as much as one
REST_ROUNDS = 3  # between two long steps: about as many as a short request needs

Turn = asyncio.Future[None]

NUMBERS = count()  # of batches: the batch that began first takes its long steps first


@dataclass(slots=True, eq=False)
class CommandJob:
    """Requests of one org that are answered together; several are all or nothing.

    Only a dry run may hold several independent requests; each is decided after those before it.
    ``opens_windows``: a request sets a quota that counts spending of the past. ``is_rehearsal``:
    they ask what would be, and change nothing.
    """

    org_id: int
    requests: Sequence[Request]
    answer: asyncio.Future[list[Outcome]]
    dry_run: bool = False
    atomic: bool = True
    is_replay: bool = False
    queued_at: float = 0.0
    size: int = field(init=False)  # the number of commands
    opens_windows: bool = field(init=False)
    is_rehearsal: bool = field(init=False)

    def __post_init__(self) -> None:
        """Look at the requests once: they are asked about in every step."""
        commands = [each.command for each in self.requests]
        self.size = len(commands)
        self.opens_windows = any(
            isinstance(each, QuotaCommand) and opens_windows(each) for each in commands
        )
        self.is_rehearsal = self.dry_run or all(isinstance(each, Explain) for each in commands)

    @property
    def is_abandoned(self) -> bool:
        """Whether no caller waits for the answer any more."""
        return self.answer.done()

    def wrote(self, outcomes: list[Outcome]) -> bool:
        """Whether anything was saved of the requests; a refusal saves the answer to its key."""
        del outcomes
        return not (self.is_rehearsal or self.is_replay)

    def add_needs(self, needs: Needs) -> None:
        """Add the rows and keys that the requests touch."""
        for request in self.requests:
            needs.add(self.org_id, request.command)
            if request.key is not None and not self.dry_run:
                needs.keys.add((self.org_id, request.key))
        needs.must_read = needs.must_read or self.dry_run  # no save will check the guard

    def run(self, cached: CachedBook | None, record: BatchRecord) -> list[Outcome] | KeyReused:
        """Decide the requests on the org's book; an unknown org has an empty book."""
        if cached is None:
            nobody = Book(Org(self.org_id, ""))
            return [decide(nobody, each.command, 0) for each in self.requests]
        if self.is_rehearsal:
            return rehearse(cached, self.requests, atomic=self.atomic)
        self.is_replay = all(is_known(cached, request) for request in self.requests)
        if len(self.requests) == 1:
            outcome = decide_request(cached, self.requests[0], record)
            return outcome if isinstance(outcome, KeyReused) else [outcome]
        return decide_together(cached, self.requests, record)

    def deliver(self, result: list[Outcome] | KeyReused) -> None:
        """Answer the caller, if one still waits."""
        if self.answer.done():
            return
        if isinstance(result, KeyReused):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)

    def fail(self, error: Exception) -> None:
        """Tell the caller that the requests were not decided."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def split(self) -> list[CommandJob]:
        """The job itself: it cannot be split."""
        return [self]


Job = CommandJob | BeatJob
Result = list[Outcome] | KeyReused


async def commit(connection: Connection, jobs: Sequence[Job], cache: BookCache) -> list[Result]:
    """Carry out a whole batch; the results are in the order of the jobs."""
    needs = Needs()
    for job in jobs:
        job.add_needs(needs)
    # A report that ends a lease needs more rows; that is rare, and loads everything then.
    needs.only_renews = all(isinstance(job, BeatJob) for job in jobs)
    number = next(NUMBERS)
    async with cache.turns.at(needs.orgs):
        cache.clock_check.require()
        if cache.life.is_stale:
            await cache.life.sign(connection)
        results = None
        if not needs.anew and not cache.is_contested(needs.orgs):
            results = await commit_if_true(connection, needs, jobs, cache, number)
        if results is None:
            results = await commit_locked(connection, needs, jobs, cache, number)
    return results


async def commit_if_true(
    connection: Connection, needs: Needs, jobs: Sequence[Job], cache: BookCache, number: int
) -> list[Result] | None:
    """Decide on cached books and save if no version has changed; None if one has.

    Nothing is locked while jobs are decided: the saving statement locks, compares and commits.
    """
    record = BatchRecord()
    is_large = needs.only_renews
    if is_large:
        await long_step(number)
    books, guard = await look_up(connection, needs, cache)
    try:
        results = await run_all(jobs, bounded(books, cache), record, number)
    except NotInBook:
        needs.only_renews, needs.chains = False, True
        return None
    if not needs.were_read and not needs.only_renews:
        if await any_answered(connection, needs.keys - record.keys):
            return None  # the answer has to be read
        guard = replace(guard, nodes=new_on_nodes(books))
    if is_large:
        await long_step(number)
    asked_at = steady_us()
    verdict = await save_if(connection, guard, books, record)
    cache.learn(verdict, asked_at)
    if not verdict.holds:
        cache.clock_check.require()
        return None
    cache.put(books)
    return results


async def commit_locked(
    connection: Connection, needs: Needs, jobs: Sequence[Job], cache: BookCache, number: int
) -> list[Result]:
    """Lock the orgs, then load, decide and save in one transaction."""
    record = BatchRecord()
    async with transaction(connection):
        books = await load_and_lock(connection, needs, cache)
        try:
            if needs.anew:
                await tell_spending(connection, books, jobs)
            results = await run_all(jobs, bounded(books, cache), record, number)
        except NotInBook:  # nothing was saved, and the orgs stay locked
            needs.only_renews, needs.counts_anew, record = False, True, BatchRecord()
            needs.chains = True
            books = await load(connection, needs)
            await tell_spending(connection, books, jobs)
            results = await run_all(jobs, bounded(books, cache), record, number)
        await asyncio.sleep(0)  # not a long step: others wait for the locks
        await save(connection, books, record)
    cache.put(books)
    return results


def bounded(books: CachedBooks, cache: BookCache) -> CachedBooks:
    """The books, told how long leases may last on this server now, and of outages."""
    life = cache.life
    for cached in books.values():
        cached.book.bound_windows(cache.windows)
        cached.book.outages, cached.book.maintenance_until = life.outages, life.maintenance_until
    return books


async def tell_spending(connection: Connection, books: CachedBooks, jobs: Sequence[Job]) -> None:
    """Tell commands that open quota windows how much was spent in them before."""
    for job in jobs:
        cached = books.get(job.org_id)
        if isinstance(job, CommandJob) and cached is not None:
            job.requests = [
                replace(each, command=await with_spending(connection, cached, each.command))
                for each in job.requests
            ]


async def run_all(
    jobs: Sequence[Job], books: CachedBooks, record: BatchRecord, number: int
) -> list[Result]:
    """Decide the jobs of a batch in order, and let other tasks run in between."""
    results: list[Result] = []
    beats = 0
    began_at = perf_counter()
    for job in jobs:
        if isinstance(job, BeatJob):
            beats += job.size
            if beats > BEATS_DECIDED_AT_ONCE:
                beats = job.size
                await long_step(number)
            results.append(run_beats(job, books.get(job.org_id), record))
            continue
        if perf_counter() - began_at > STRETCH_S:
            await asyncio.sleep(0)
            began_at = perf_counter()
        results.append(job.run(books.get(job.org_id), record))
    return results


def run_beats(job: BeatJob, cached: CachedBook | None, record: BatchRecord) -> list[Outcome]:
    """Decide an org's heartbeats on its book; an unknown org gets an empty book."""
    if cached is None:
        return decide_beats(Book(Org(job.org_id, "")), job.beats, 0)
    outcomes = decide_beats(cached.book, job.beats, cached.now)
    job.note(outcomes, cached.now, record)
    return outcomes


def decide_request(
    cached: CachedBook, request: Request, record: BatchRecord
) -> Outcome | KeyReused:
    """Decide one request, or replay its answer if its key was used before."""
    known = replay(cached, request)
    if known is not None:
        return known
    before = state_before(cached.book, request.command)
    outcome = detached(decide(cached.book, request.command, cached.now))
    note(cached, request, outcome, record, before)
    return outcome


def decide_together(
    cached: CachedBook, requests: Sequence[Request], record: BatchRecord
) -> list[Outcome] | KeyReused:
    """Decide requests as one: the first refusal undoes them all and is the answer to each."""
    known = [replay(cached, request) for request in requests]
    for each in known:
        if isinstance(each, KeyReused):
            return each
    outcomes: list[Outcome] = []
    book = cached.book
    states = [state_before(book, request.command) for request in requests]
    book.begin()
    for request, before in zip(requests, known, strict=True):
        assert not isinstance(before, KeyReused)  # for the type checker
        outcome = before or detached(decide(book, request.command, cached.now))
        if isinstance(outcome, Refused) and before is None:
            book.take_back()
            outcomes = [outcome] * len(requests)
            break
        outcomes.append(outcome)
    else:
        book.keep()
    for request, before, outcome, state in zip(requests, known, outcomes, states, strict=True):
        if before is None:
            note(cached, request, outcome, record, state)
    return outcomes


def rehearse(cached: CachedBook, requests: Sequence[Request], *, atomic: bool) -> list[Outcome]:
    """Decide requests and undo every change; keys are neither read nor used."""
    cached.book.begin()
    outcomes = []
    for request in requests:
        outcomes.append(detached(decide(cached.book, request.command, cached.now)))
        if atomic and isinstance(outcomes[-1], Refused):
            outcomes = [outcomes[-1]] * len(requests)
            break
    cached.book.take_back()
    return outcomes


def is_known(cached: CachedBook, request: Request) -> bool:
    """Whether the key of a request was used before."""
    return request.key is not None and request.key in cached.answers


def replay(cached: CachedBook, request: Request) -> Outcome | KeyReused | None:
    """The stored answer of a key, or None if the key is new."""
    if request.key is None:
        return None
    record = cached.answers.get(request.key)
    if record is None:
        return None
    known = recall(request.key, request.fingerprint, record)
    return decode(known) if isinstance(known, bytes) else known


class LoopTurns:
    """The long steps that wait for one event loop: they run one at a time, a few rounds apart.

    A round of the event loop runs every callback that is ready. With twenty long steps in each
    round, a short request would wait for twenty of them in each of the six or so rounds that it
    needs. The batch that began first goes first, so that the database has work while the next batch
    is decided. Every fourth step goes to tasks that belong to no batch, so that a stream of batches
    cannot starve them.
    """

    def __init__(self) -> None:
        self._batches: list[tuple[int, int, Turn]] = []  # a heap
        self._others: deque[Turn] = deque()
        self._numbers = count()
        self._is_taken = False
        self._steps = 0
        self._rests = 0

    async def next(self, batch: int | None) -> None:
        """Wait until the step of this task is next."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            self._rests = REST_ROUNDS
            loop.call_soon(self._pass_on)
            return
        turn: Turn = loop.create_future()
        if batch is None:
            self._others.append(turn)
        else:
            heappush(self._batches, (batch, next(self._numbers), turn))
        await turn

    def _pass_on(self) -> None:
        """Count a round of the loop; after the last round of rest, start the next step."""
        if self._rests:
            self._rests -= 1
        else:
            turn = self._next_turn()
            if turn is None:
                self._is_taken = False
                return
            turn.set_result(None)
            self._rests = REST_ROUNDS
        asyncio.get_running_loop().call_soon(self._pass_on)

    def _next_turn(self) -> Turn | None:
        """The next step whose task still waits."""
        self._steps += 1
        is_for_others = self._steps % OTHERS_EVERY == 0
        while self._batches or self._others:
            if self._others and (is_for_others or not self._batches):
                turn = self._others.popleft()
            else:
                turn = heappop(self._batches)[-1]
            if not turn.done():
                return turn
        return None


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = WeakKeyDictionary()


async def long_step(batch: int | None = None) -> None:
    """Wait until this task may take a long step: about a millisecond without an ``await``.

    ``batch`` is the number of the batch that the step belongs to. Steps of earlier batches go
    first, and steps of any batch before steps of none.
    """
    loop = asyncio.get_running_loop()
    turns = _TURNS.get(loop)
    if turns is None:
        turns = _TURNS[loop] = LoopTurns()
    await turns.next(batch)
