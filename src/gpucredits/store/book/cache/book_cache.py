"""Pages kept from one batch to the next, so that what is known is not read again.

Owns: which books are kept, the bound on how many rows that is, and what helps to use them: whose
turn it is at an org, what time it is, prices, the bounds on leases of this server and its pools,
and which orgs another server changes or holds.
Must not: be believed. A decision on a cached book is saved only if the org's version, which every
change of the org moves, is still the one that the book has.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable

from gpucredits.core.window_bounds import WindowBounds
from gpucredits.store.book.cache.clock_check import ClockCheck
from gpucredits.store.book.cache.database_clock import DatabaseClock
from gpucredits.store.book.cache.org_turns import OrgTurns
from gpucredits.store.book.cache.price_board import PriceBoard
from gpucredits.store.book.cache.recent_orgs import RecentOrgs
from gpucredits.store.book.cached_book import CachedBook, CachedBooks, begin_next_batch
from gpucredits.store.book.guard import GuardResult
from gpucredits.store.book.needs import Needs

logger = logging.getLogger(__name__)

LEASES_MAX = 250_000  # or other rows, where nobody says otherwise (serve does: memory.py)
BOOK_WEIGHT = 2  # a book without rows
CONTESTED_S = 10.0  # how long an org that another server has changed is locked before deciding
HELD_S = 10.0  # how long an org goes last that somebody had locked for longer than we wait


class BookCache:
    """Cached books by org. A book that is in use is not in the cache."""

    def __init__(self, weight_max: int = LEASES_MAX, windows: WindowBounds | None = None) -> None:
        self.weight_max = weight_max
        self.weight = 0
        self.windows = WindowBounds() if windows is None else windows
        self.turns = OrgTurns()
        self.database_clock = DatabaseClock()
        self.clock_check = ClockCheck()
        self.board = PriceBoard()
        self.books: OrderedDict[int, CachedBook] = OrderedDict()  # the oldest first
        self.contested = RecentOrgs(CONTESTED_S)
        self.held = RecentOrgs(HELD_S)

    def take(self, needs: Needs) -> CachedBooks:
        """Take the books of a batch's orgs out; one whose limits are being set is dropped."""
        found: CachedBooks = {}
        for org_id in needs.orgs:
            cached = self.books.pop(org_id, None)
            if cached is not None:
                self.weight -= cached.weight
                if org_id not in needs.anew:
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


def weight_of(cached: CachedBook) -> int:
    """How many rows a book holds, and what it takes by itself."""
    book = cached.book
    rows = len(book.reservations) + len(book.accounts) + len(book.lots)
    if book.gated:
        rows += len(book.limits.counters) + sum(map(len, book.limits.tallies.values()))
    return BOOK_WEIGHT + rows
