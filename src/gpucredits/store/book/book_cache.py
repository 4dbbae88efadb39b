"""What a server remembers between batches: books, prices, turns at orgs, contested orgs.

Owns: which books are kept, the bound on how many rows that is, and what helps to use them: whose
turn it is at an org, what time it is, prices, the bounds on leases of this server and its pools,
outages and maintenance, and which orgs another server changes or holds.
Must not: read or write rows (load and save do), know what a book holds (cached_book does), or be
believed. A decision on a cached book is saved only if the org's version, which every change of the
org moves, is still the one that the book has.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gpucredits.core import bounds
from gpucredits.core.bounds import WindowBounds
from gpucredits.core.price import Price
from gpucredits.store.book.cached_book import CachedBook, CachedBooks, begin_next_batch, weight_of
from gpucredits.store.book.database_clock import ClockCheck, DatabaseClock, ServerLife

logger = logging.getLogger(__name__)

LEASES_MAX = 250_000  # or other rows, where nobody says otherwise (serve does: memory.py)
CONTESTED_S = 10.0  # how long an org that another server has changed is locked before deciding
HELD_S = 10.0  # how long an org goes last that somebody had locked for longer than we wait


@dataclass(frozen=True, slots=True)
class GuardResult:
    """Whether the guard held, the database's time, and the orgs that others have changed."""

    holds: bool
    now: int = 0
    offset_us: int | None = None  # None: not told
    changed: tuple[int, ...] = ()


class BookCache:
    """Cached books by org. A book that is in use is not in the cache."""

    def __init__(self, weight_max: int = LEASES_MAX, windows: WindowBounds | None = None) -> None:
        self.weight_max = weight_max
        self.weight = 0
        self.windows = WindowBounds() if windows is None else windows
        self.turns = OrgTurns()
        self.database_clock = DatabaseClock()
        self.clock_check = ClockCheck()
        self.life = ServerLife()
        self.board = PriceBoard()
        self.books: OrderedDict[int, CachedBook] = OrderedDict()  # the oldest first
        self.contested = RecentOrgs(CONTESTED_S)
        self.held = RecentOrgs(HELD_S)

    def take(self, orgs: Iterable[int], anew: Collection[int] = ()) -> CachedBooks:
        """Take out the books of a batch's orgs; a book whose limits are set anew is dropped."""
        found: CachedBooks = {}
        for org_id in orgs:
            cached = self.books.pop(org_id, None)
            if cached is not None:
                self.weight -= cached.weight
                if org_id not in anew:
                    found[org_id] = cached
        return found

    def put(self, books: CachedBooks) -> None:
        """Keep books whose changes are committed; the oldest ones go when they weigh too much."""
        for org_id, cached in books.items():
            try:
                begin_next_batch(cached)
                cached.weight = weight_of(cached)
            except Exception:  # what is committed must not be carried out again for its sake
                logger.exception("the book of org %d is not cached", org_id)
                continue
            if cached.outdated or cached.weight > self.weight_max:
                continue
            self.weight += cached.weight
            self.books[org_id] = cached
        while self.weight > self.weight_max:
            _, oldest = self.books.popitem(last=False)
            self.weight -= oldest.weight

    def learn(self, verdict: GuardResult, asked_at: int) -> None:
        """Note what time the database had, and which orgs another server has changed."""
        if verdict.offset_us is None:
            return
        if not verdict.holds:
            self.database_clock.doubted()
            self.contested.add(verdict.changed)
        self.database_clock.told(verdict.now, verdict.offset_us)
        self.clock_check.hear(verdict.now, verdict.offset_us, asked_at)

    def is_contested(self, orgs: Iterable[int]) -> bool:
        """Whether another server has changed one of these orgs of late."""
        return bool(self.contested.among(orgs))


class OrgTurns:
    """The last batch in line at each org that has one.

    Batches go in the order of their arrival at each org, so nobody waits in a circle. This only
    keeps a process from getting in its own way; what another process does, the database tells.
    """

    def __init__(self) -> None:
        self.last: dict[int, asyncio.Future[None]] = {}

    def at(self, orgs: Collection[int]) -> OrgTurn:
        """Wait until all who came before at any of the orgs are done: ``async with``."""
        return OrgTurn(self, orgs)


class OrgTurn:
    """One batch in line at its orgs."""

    def __init__(self, turns: OrgTurns, orgs: Collection[int]) -> None:
        self._last = turns.last
        self._orgs = orgs
        self._is_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> None:
        """Stand in line, and wait for those ahead."""
        last = self._last
        ahead = {last[org_id] for org_id in self._orgs if org_id in last}
        last.update(dict.fromkeys(self._orgs, self._is_done))
        if ahead:
            try:
                await asyncio.wait(ahead)
            except BaseException:
                self._leave()
                raise

    async def __aexit__(self, *error: object) -> None:
        """Let those behind go on."""
        self._leave()

    def _leave(self) -> None:
        self._is_done.set_result(None)
        for org_id in self._orgs:
            if self._last.get(org_id) is self._is_done:
                del self._last[org_id]


REMEMBERED_MAX = 100_000


class RecentOrgs:
    """Orgs that were noticed lately, such as locked ones, and until when each is remembered."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._until: dict[int, float] = {}

    def add(self, orgs: Iterable[int]) -> None:
        """Remember orgs from now on."""
        if len(self._until) > REMEMBERED_MAX:
            self._until.clear()
        self._until.update(dict.fromkeys(orgs, time.monotonic() + self._lasts_s))

    def among(self, orgs: Iterable[int]) -> set[int]:
        """Those that are remembered."""
        found: set[int] = set()
        if not self._until:
            return found
        now = time.monotonic()
        for org_id in orgs:
            until = self._until.get(org_id)
            if until is None:
                continue
            if until > now:
                found.add(org_id)
            else:
                del self._until[org_id]
        return found


PriceKey = tuple[int, str, str, str]  # org, GPU type, region, owner
KNOWN_MAX = 100_000


class PriceBoard:
    """The price in force for each question that was asked, None where there is none.

    What was admitted by it is saved only if no price has been added since: every new price draws a
    new version, and that is the board's version.
    """

    def __init__(self) -> None:
        self.version: int | None = None
        self._until = bounds.NEVER_US  # when the first of the prices to come is in force
        self._known: dict[PriceKey, Price | None] = {}

    def learn(
        self, version: int, until: int, asked: Collection[PriceKey], found: dict[PriceKey, Price]
    ) -> None:
        """Keep what the database answered.

        Answers of an older version, or from before a price came into force, are forgotten.
        """
        is_same = version == self.version and until == self._until
        if not is_same or len(self._known) > KNOWN_MAX:
            self._known.clear()
        self.version, self._until = version, until
        self._known.update((key, found.get(key)) for key in asked)

    def answers(self, asked: Collection[PriceKey], now: int) -> bool:
        """Whether every answer is known and still holds."""
        return not asked or (now < self._until and all(key in self._known for key in asked))

    def price(self, key: PriceKey) -> Price | None:
        """The price in force; KeyError where nothing is known."""
        return self._known[key]
