"""What pages weigh, and which of them a shelf keeps."""

from __future__ import annotations

import time

from gpucredits.core.account import Account
from gpucredits.core.book import Book, Org
from gpucredits.core.quota import Counter, Tally
from gpucredits.store.needs import Needs
from gpucredits.store.page import Page
from gpucredits.store.shelf import PAGE_WEIGHT, Shelf, weight_of


def page_of(org_id: int, *, accounts: int) -> Page:
    """The page of an org with so many accounts and nothing else."""
    page = Page(Book(Org(org_id, "org")), 0, 1, 1)
    page.book.load(Account(number, f"org/{number}") for number in range(accounts))
    return page


def test_a_page_that_is_too_large_by_itself_drives_nobody_out() -> None:
    """An org of many wallets is read each time; the page of another stays where it is."""
    shelf = Shelf(PAGE_WEIGHT + 5)
    shelf.put({1: page_of(1, accounts=2)})
    shelf.put({2: page_of(2, accounts=6)})
    assert set(shelf.pages) == {1}
    assert shelf.weight == PAGE_WEIGHT + 2


def test_what_limits_have_counted_takes_room() -> None:
    """Counters and past windows of quotas are weighed like any other row."""
    page = page_of(1, accounts=1)
    page.book.limits.index(Counter(1))
    for starts_at in range(3):
        page.book.limits.index(Tally(1, starts_at, starts_at + 1, 1))
    assert weight_of(page) == PAGE_WEIGHT + 5


def test_the_page_that_was_put_first_goes_first() -> None:
    """One that is taken and put again is the newest."""
    shelf = Shelf(3 * (PAGE_WEIGHT + 1))
    for org_id in (1, 2, 3):
        shelf.put({org_id: page_of(org_id, accounts=1)})
    needs = Needs()
    needs.orgs.add(1)
    shelf.put(shelf.take(needs))
    shelf.put({4: page_of(4, accounts=1)})
    assert list(shelf.pages) == [3, 1, 4]
    assert shelf.weight == 3 * (PAGE_WEIGHT + 1)


def test_churn_does_not_make_a_shelf_slow() -> None:
    """To find the oldest of many pages takes no look at the places of those that went before."""
    shelf = Shelf(1_000 * PAGE_WEIGHT)
    pages = {org_id: page_of(org_id, accounts=0) for org_id in range(40_000)}
    started = time.process_time()
    shelf.put(pages)
    assert time.process_time() - started < 1.0
    assert list(shelf.pages) == list(range(39_000, 40_000))
