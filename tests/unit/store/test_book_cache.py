"""What cached books weigh, and which of them the cache keeps."""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book, Org
from gpucredits.core.quota import Counter, Tally
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rules.upkeep.roll import roll
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.book.cached_book import BOOK_WEIGHT, CachedBook, begin_next_batch, weight_of
from gpucredits.store.book.needs import Needs


def page_of(org_id: int, *, accounts: int) -> CachedBook:
    """The page of an org with so many accounts and nothing else."""
    page = CachedBook(Book(Org(org_id, "org")), 0, 1, 1)
    page.book.load(Account(number, f"org/{number}") for number in range(accounts))
    return page


def test_a_page_that_is_too_large_by_itself_drives_nobody_out() -> None:
    """An org of many wallets is read each time; the page of another stays where it is."""
    shelf = BookCache(BOOK_WEIGHT + 5)
    shelf.put({1: page_of(1, accounts=2)})
    shelf.put({2: page_of(2, accounts=6)})
    assert set(shelf.books) == {1}
    assert shelf.weight == BOOK_WEIGHT + 2


def test_what_limits_have_counted_takes_room() -> None:
    """Counters and past windows of quotas are weighed like any other row."""
    page = page_of(1, accounts=1)
    page.book.gated = True
    page.book.limits.index(Counter(1))
    for starts_at in range(3):
        page.book.limits.index(Tally(1, starts_at, starts_at + 1, 1))
    assert weight_of(page) == BOOK_WEIGHT + 5


def test_a_page_that_was_turned_sees_leases_that_are_read_next() -> None:
    """What was sorted out by payers in one batch is not all that the next one has."""
    page = CachedBook(Book(Org(1, "org"), complete={1}), 0, 1, 1)
    book, payer = page.book, Account(1, "org", due_at=0)
    book.load([payer])
    roll(book, payer, 0)
    book.keep()
    begin_next_batch(page)
    lease = Reservation(2, "org", 1, 1, "job", "h100", 1, "", "", 1, 1, 1, 0, 5)
    book.reservations[2] = lease  # as it is when rows are read into a page
    book.complete, payer.due_at = {1}, 5
    roll(book, payer, 5)
    assert lease.state is ReservationState.EXPIRED


def test_the_page_that_was_put_first_goes_first() -> None:
    """One that is taken and put again is the newest."""
    shelf = BookCache(3 * (BOOK_WEIGHT + 1))
    for org_id in (1, 2, 3):
        shelf.put({org_id: page_of(org_id, accounts=1)})
    needs = Needs()
    needs.orgs.add(1)
    shelf.put(shelf.take(needs.orgs))
    shelf.put({4: page_of(4, accounts=1)})
    assert list(shelf.books) == [3, 1, 4]
    assert shelf.weight == 3 * (BOOK_WEIGHT + 1)
