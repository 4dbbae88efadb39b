"""Calls about ledger entries."""

from __future__ import annotations

from gpucredits.client.call import Call, When, read
from gpucredits.wire.entry import EntryPage, EntryTypeName


def entry_page(  # noqa: PLR0913  # one argument for each field of the query
    *,
    account: str | None = None,
    tree: bool | None = None,
    job_id: str | None = None,
    reservation_id: str | None = None,
    type: EntryTypeName | None = None,  # noqa: A002  # the field's name on the wire
    since: When | None = None,
    until: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[EntryPage]:
    """A page of debit/credit pairs, the latest first; times are those of taking effect."""
    return read(
        "/v1/entries",
        EntryPage,
        account=account,
        tree=tree,
        job_id=job_id,
        reservation_id=reservation_id,
        type=type,
        since=since,
        until=until,
        cursor=cursor,
        limit=limit,
    )
