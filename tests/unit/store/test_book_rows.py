"""Stored rows as a book is filled with them."""

from __future__ import annotations

from gpucredits.core.book import Book, Org
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.codecs import StoredRow
from gpucredits.store.book.fill import fill_suspended
from gpucredits.store.book.rows import suspended_values


def suspended_row(path: str, status: int) -> StoredRow:
    """A suspended account as it is read."""
    row = [1, 1, status, *[None] * 18, path, *[None] * 6]
    assert suspended_values(row) == (status, None, path)
    return row


def test_suspended_accounts_are_noted_one_by_one() -> None:
    """However many there are, none is copied for the sake of the next."""
    cached = CachedBook(Book(Org(1, "acme")), 0, 1, 1)
    noted = cached.book.suspended
    fill_suspended(cached, suspended_row("acme/gone", 1))
    fill_suspended(cached, suspended_row("acme/owing", 0))
    assert cached.book.suspended is noted
    assert noted == {"acme/gone": False, "acme/owing": True}
