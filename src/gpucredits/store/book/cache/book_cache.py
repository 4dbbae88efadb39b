"""Pages kept from one batch to the next, so that what is known is not read again.

Owns: which pages are kept, the bound on how many rows that is, and what helps to use them: whose
turn it is at an org, what time it is, prices, the bounds on leases of this server and its pools,
and which orgs another server changes or holds.
Must not: be believed. What is decided on a page is saved only if the org's version, which every
change of the org moves, is still the one that the page has.
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
from gpucredits.store.book.cached_book import CachedBook, CachedBooks, turn
from gpucredits.store.book.guard import GuardResult
from gpucredits.store.book.needs import Needs

logger = logging.getLogger(__name__)

LEASES_MAX = 250_000  # or other rows, where nobody says otherwise (serve does: memory.py)
PAGE_WEIGHT = 2  # a page without rows
CONTESTED_S = 10.0  # how long an org that another server has changed is locked before deciding
HELD_S = 10.0  # how long an org goes last that somebody had locked for longer than we wait


class BookCache:
    """Pages by org. One that is in use is not on the shelf."""

    def __init__(self, weight_max: int = LEASES_MAX, windows: WindowBounds | None = None) -> None:
        self.weight_max = weight_max
        self.weight = 0
        self.windows = WindowBounds() if windows is None else windows
        self.turns = OrgTurns()
        self.watch = DatabaseClock()
        self.steadiness = ClockCheck()
        self.board = PriceBoard()
        self.pages: OrderedDict[int, CachedBook] = OrderedDict()  # the oldest first
        self.contested = RecentOrgs(CONTESTED_S)
        self.held = RecentOrgs(HELD_S)

    def take(self, needs: Needs) -> CachedBooks:
        """Take the pages of a batch's orgs off; one whose limits are being set is dropped."""
        found: CachedBooks = {}
        for org_id in needs.orgs:
            page = self.pages.pop(org_id, None)
            if page is not None:
                self.weight -= page.weight
                if org_id not in needs.anew:
                    found[org_id] = page
        return found

    def put(self, pages: CachedBooks) -> None:
        """Keep pages whose changes are committed; the oldest ones go when they weigh too much."""
        for org_id, page in pages.items():
            try:
                turn(page)
                page.weight = weight_of(page)
            except Exception:  # what is committed must not be carried out again for its sake
                logger.exception("the page of org %d is not kept", org_id)
                continue
            if page.outdated or page.weight > self.weight_max:
                continue
            self.weight += page.weight
            self.pages[org_id] = page
        while self.weight > self.weight_max:
            _, oldest = self.pages.popitem(last=False)
            self.weight -= oldest.weight

    def learn(self, verdict: GuardResult, asked_at: int) -> None:
        """Note what time the database had, and which orgs another server has changed."""
        if verdict.offset_us is None:
            return
        if not verdict.holds:
            self.watch.doubted()
            self.contested.add(verdict.changed)
        self.watch.told(verdict.now, verdict.offset_us)
        self.steadiness.hear(verdict.now, verdict.offset_us, asked_at)

    def is_contested(self, orgs: Iterable[int]) -> bool:
        """Whether another server has changed one of these orgs of late."""
        return bool(self.contested.among(orgs))


def weight_of(page: CachedBook) -> int:
    """How many rows a page holds, and what it takes by itself."""
    book = page.book
    rows = len(book.reservations) + len(book.accounts) + len(book.lots)
    if book.gated:
        rows += len(book.limits.counters) + sum(map(len, book.limits.tallies.values()))
    return PAGE_WEIGHT + rows
