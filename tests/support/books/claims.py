"""What has to be true of claims on grants that have ended, after every step."""

from __future__ import annotations

from collections import defaultdict

from gpucredits.core.book import Book
from gpucredits.core.grant import GrantState
from gpucredits.core.reservation import ReservationState


def check_claims(book: Book, floors: dict[int, int] | None = None) -> None:
    """Claims add up, are backed by holds, and nothing is held over that nobody claims.

    ``floors`` are those of accounts whose credit limit may have been lowered.
    """
    claims: defaultdict[int, int] = defaultdict(int)
    for lease in book.reservations.values():
        if lease.state is not ReservationState.ACTIVE:
            assert not lease.kept, "a lease that is over claims nothing"
        live = [item for item in lease.kept if book.lots[item[0]].remaining]
        assert sum(claim for _, claim, _ in live) <= lease.held
        for grant_id, claim, until in live:
            assert claim > 0
            assert until >= book.lots[grant_id].expires_at
            claims[grant_id] += claim
    for grant in book.lots.values():
        assert grant.claims == claims[grant.grant_id]
        if grant.state is GrantState.HELD_OVER:
            assert grant.remaining <= grant.claims
    for account in book.accounts.values():
        floor = min(account.floor, (floors or {}).get(account.account_id, account.floor))
        assert account.available >= floor
