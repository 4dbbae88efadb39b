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


def book_of(org_id: int, *, accounts: int) -> CachedBook:
    """The book of an org with so many accounts and nothing else."""
    cached = CachedBook(Book(Org(org_id, "org")), 0, 1, 1)
    cached.book.load(Account(number, f"org/{number}") for number in range(accounts))
    return cached


def test_a_page_that_is_too_large_by_itself_drives_nobody_out() -> None:
    """An org of many wallets is read each time; the book of another stays where it is."""
    cache = BookCache(BOOK_WEIGHT + 5)
    cache.put({1: book_of(1, accounts=2)})
    cache.put({2: book_of(2, accounts=6)})
    assert set(cache.books) == {1}
    assert cache.weight == BOOK_WEIGHT + 2


def test_what_limits_have_counted_takes_room() -> None:
    """Counters and past windows of quotas are weighed like any other row."""
    cached = book_of(1, accounts=1)
    cached.book.gated = True
    cached.book.limits.index(Counter(1))
    for starts_at in range(3):
        cached.book.limits.index(Tally(1, starts_at, starts_at + 1, 1))
    assert weight_of(cached) == BOOK_WEIGHT + 5


def test_a_page_that_was_turned_sees_leases_that_are_read_next() -> None:
    """What was sorted out by payers in one batch is not all that the next one has."""
    cached = CachedBook(Book(Org(1, "org"), complete={1}), 0, 1, 1)
    book, payer = cached.book, Account(1, "org", due_at=0)
    book.load([payer])
    roll(book, payer, 0)
    book.keep()
    begin_next_batch(cached)
    lease = Reservation(2, "org", 1, 1, "job", "h100", 1, "", "", 1, 1, 1, 0, 5)
    book.reservations[2] = lease  # as it is when rows are read into a book
    book.complete, payer.due_at = {1}, 5
    roll(book, payer, 5)
    assert lease.state is ReservationState.EXPIRED


def test_the_page_that_was_put_first_goes_first() -> None:
    """One that is taken and put again is the newest."""
    cache = BookCache(3 * (BOOK_WEIGHT + 1))
    for org_id in (1, 2, 3):
        cache.put({org_id: book_of(org_id, accounts=1)})
    needs = Needs()
    needs.orgs.add(1)
    cache.put(cache.take(needs.orgs))
    cache.put({4: book_of(4, accounts=1)})
    assert list(cache.books) == [3, 1, 4]
    assert cache.weight == 3 * (BOOK_WEIGHT + 1)
