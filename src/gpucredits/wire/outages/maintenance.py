"""Planned stops on the wire: the announcement, and the leases that end too early."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.core import bounds
from gpucredits.wire.documented import doc
from gpucredits.wire.scalars import CreditsText, InstantText, Note


class MaintenanceRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Announce a planned stop of the server."""

    for_seconds: Annotated[
        int,
        Meta(ge=bounds.MAINTENANCE_MS_MIN // 1_000, le=bounds.MAINTENANCE_MS_MAX // 1_000),
        doc("How long leases must last, counted from now."),
    ]
    reason: Annotated[Note | None, doc("The reason, for the audit log.")] = None


class ShortLeaseAnswer(Struct, kw_only=True):
    """A live lease that was renewed and does not last to the end of the maintenance."""

    reservation_id: Annotated[str, doc("The id of the lease.")]
    account: Annotated[str, doc("The account of the job.")]
    payer: Annotated[str, doc("The account that pays for the lease.")]
    ends_at: Annotated[InstantText, doc("When the lease ends without another report.")]
    missing: Annotated[
        CreditsText, doc("The credits that the payer lacks to extend the lease to the end.")
    ]


class MaintenanceAnswer(Struct, kw_only=True):
    """What is announced, and how many live leases last to its end."""

    state: Annotated[Literal["none", "announced"], doc("Whether maintenance is announced.")]
    live: Annotated[int, doc("Leases that run now.")]
    covered: Annotated[int, doc("Leases that last to the end of the maintenance.")]
    waiting: Annotated[int, doc("Leases without a report since the announcement.")]
    short: Annotated[int, doc("Leases that were renewed and could not be extended to the end.")]
    announced_at: Annotated[
        InstantText | None, doc("When the maintenance was announced; null if none is.")
    ] = None
    until: Annotated[
        InstantText | None,
        doc("The instant to which leases are extended; null if no maintenance is announced."),
    ] = None
    reason: Annotated[str, doc("The reason in the announcement.")] = ""
    ended_until: Annotated[
        InstantText | None,
        doc("The end that was planned for the maintenance that this call ended; null if none."),
    ] = None
    leases: Annotated[
        list[ShortLeaseAnswer],
        doc("The leases of this page that could not be extended to the end."),
    ] = []
    next_cursor: Annotated[str | None, doc("The cursor of the next page; null on the last.")] = None
