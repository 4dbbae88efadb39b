"""Calls about ledger entries."""

from __future__ import annotations

from gpucredits.client.call import Call, When, read
from gpucredits.wire.entry import EntryPage, EntryTypeName


def entry_page(
    *,
    account: str | None = None,
    job_id: str | None = None,
    type: EntryTypeName | None = None,  # noqa: A002  # the field's name on the wire
    since: When | None = None,
    until: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[EntryPage]:
    """A page of debit/credit pairs in the order they were written."""
    return read(
        "/v1/entries",
        EntryPage,
        account=account,
        job_id=job_id,
        type=type,
        since=since,
        until=until,
        cursor=cursor,
        limit=limit,
    )
