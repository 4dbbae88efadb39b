"""Stored rows as a book is filled with them."""

from __future__ import annotations

from gpucredits.core.book import Book, Org
from gpucredits.store.book.cached_book import CachedBook, StoredRow
from gpucredits.store.book.ledger_rows import fill_suspended


def suspended_row(path: str, status: int) -> StoredRow:
    """A suspended account as it is read."""
    return [1, 1, None, status, *[None] * 17, path, *[None] * 6]


def test_suspended_accounts_are_noted_one_by_one() -> None:
    """However many there are, none is copied for the sake of the next."""
    page = CachedBook(Book(Org(1, "acme")), 0, 1, 1)
    noted = page.book.suspended
    fill_suspended(page, suspended_row("acme/gone", 1))
    fill_suspended(page, suspended_row("acme/owing", 0))
    assert page.book.suspended is noted
    assert noted == {"acme/gone": False, "acme/owing": True}
