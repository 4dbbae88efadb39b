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


def page_of(*leases: Reservation) -> CachedBook:
    """A page with one account and some leases that drain."""
    page = CachedBook(Book(Org(1, "org")), 0, 1, 1)
    page.book.load([Account(1, "org"), *leases])
    page.book.grants[1] = []
    page.lease_states = {lease.reservation_id: DRAINING for lease in leases}
    return page


def test_a_lease_stands_as_the_newer_page_has_it() -> None:
    """One that no longer drains is not taken for one that does; one that was not read is kept."""
    page, older = page_of(lease_of(1)), page_of(lease_of(1), lease_of(2))
    page.older = older
    renewed = page.book.reservations[1]
    note(page, renewed)
    begin_next_batch(page)
    assert page.book.reservations == {1: renewed, 2: older.book.reservations[2]}
    assert page.book.reservations[1] is renewed
    assert page.lease_states == {2: DRAINING}
    assert page.older is None


def test_a_page_that_cannot_be_turned_is_dropped_and_nothing_else() -> None:
    """Its batch is committed: an error here must reach nobody who would carry it out again."""
    page, older = page_of(), page_of(lease_of(2))
    older.book.accounts[7] = Account(7, "org/unsettled")  # without what was read with it
    page.older = older
    shelf = BookCache()
    shelf.put({1: page, 2: page_of()})
    assert list(shelf.books) == [2]
