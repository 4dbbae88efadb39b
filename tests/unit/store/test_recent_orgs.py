"""What was noticed of orgs of late: for a while, and of not too many."""

from __future__ import annotations

import pytest

from gpucredits.store.book import book_cache
from gpucredits.store.book.book_cache import RecentOrgs


def test_an_org_is_remembered_for_a_while() -> None:
    """Those that were noticed are found among others; when the time is over they are not."""
    lasting, over = RecentOrgs(60.0), RecentOrgs(0.0)
    for each in (lasting, over):
        each.add([1, 2])
    assert lasting.among([2, 3]) == {2}
    assert lasting.among([3]) == set()
    assert over.among([1, 2, 3]) == set()


def test_no_more_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """When they are too many, all are forgotten but the last."""
    monkeypatch.setattr(book_cache, "REMEMBERED_MAX", 2)
    some = RecentOrgs(60.0)
    some.add([1, 2, 3])
    some.add([4])
    assert some.among([1, 2, 3, 4]) == {4}
