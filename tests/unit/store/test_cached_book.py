"""A cached book that takes over what an older one of the same version knew."""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Book, Org
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.book.cached_book import CachedBook, begin_next_batch, note

DRAINING = (ReservationState.ACTIVE, Decision.DRAIN)


def lease_of(number: int) -> Reservation:
    """A lease of a second, renewed in full at the beginning of time."""
    return Reservation(number, "org", 1, 1, "job", "h100", 1, "", "", 1, 1, 1_000, 0, 1_000_000)


def book_of(*leases: Reservation) -> CachedBook:
    """A book with one account and some leases that drain."""
    cached = CachedBook(Book(Org(1, "org")), 0, 1, 1)
    cached.book.load([Account(1, "org"), *leases])
    cached.book.grants[1] = []
    cached.lease_states = {lease.reservation_id: DRAINING for lease in leases}
    return cached


def test_a_lease_stands_as_the_newer_page_has_it() -> None:
    """One that no longer drains is not taken for one that does; one that was not read is kept."""
    cached, older = book_of(lease_of(1)), book_of(lease_of(1), lease_of(2))
    cached.older = older
    renewed = cached.book.reservations[1]
    note(cached, renewed)
    begin_next_batch(cached)
    assert cached.book.reservations == {1: renewed, 2: older.book.reservations[2]}
    assert cached.book.reservations[1] is renewed
    assert cached.lease_states == {2: DRAINING}
    assert cached.older is None


def test_a_page_that_cannot_be_turned_is_dropped_and_nothing_else() -> None:
    """Its batch is committed: an error here must reach nobody who would carry it out again."""
    cached, older = book_of(), book_of(lease_of(2))
    older.book.accounts[7] = Account(7, "org/unsettled")  # without what was read with it
    cached.older = older
    cache = BookCache()
    cache.put({1: cached, 2: book_of()})
    assert list(cache.books) == [2]
