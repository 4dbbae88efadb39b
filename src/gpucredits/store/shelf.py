"""Pages kept from one batch to the next, so that what is known is not read again.

Owns: which pages are kept, and the bound on how many leases that is.
Must not: be believed. A page is used only under its org's lock and only if the org's version,
which every change of the org moves, is still the one that the page has.
"""

from __future__ import annotations

from gpucredits.store.needs import Needs
from gpucredits.store.page import Kept, Page, Pages, turn

LEASES_MAX = 250_000  # about a kilobyte each


class Shelf:
    """Pages by org. One that is in use is not on the shelf."""

    def __init__(self, leases_max: int = LEASES_MAX) -> None:
        self.leases_max = leases_max
        self.leases = 0
        self._pages: dict[int, Page] = {}

    def find(self, needs: Needs) -> Kept:
        """The pages of a batch's orgs, to be looked at; one that is to be read whole is no use."""
        pages = self._pages
        return {
            org_id: (page, page.book.org.version)
            for org_id in needs.orgs
            if org_id not in needs.whole and (page := pages.get(org_id)) is not None
        }

    def take(self, page: Page) -> bool:
        """Take a page off the shelf for use; False when somebody else did."""
        org_id = page.book.org.org_id
        if self._pages.get(org_id) is not page:
            return False
        del self._pages[org_id]
        self.leases -= page.leases
        return True

    def put(self, pages: Pages) -> None:
        """Keep pages whose changes are committed; the oldest ones go when there are too many."""
        for org_id, page in pages.items():
            turn(page)
            other = self._pages.get(org_id)
            if other is not None:
                if other.book.org.version > page.book.org.version:
                    continue
                self.take(other)
            if page.outdated:
                continue
            page.leases = len(page.book.reservations)
            self.leases += page.leases
            self._pages[org_id] = page
        while self.leases > self.leases_max:
            self.take(next(iter(self._pages.values())))
