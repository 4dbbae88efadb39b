"""Planned stops on the wire: the announcement, and the leases that do not last through it."""

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
        doc("How long leases are to last from now on."),
    ]
    reason: Annotated[Note | None, doc("Why, for the audit log.")] = None


class ShortLeaseAnswer(Struct, kw_only=True):
    """A live lease that was renewed and does not last to the end of the maintenance."""

    reservation_id: Annotated[str, doc("The lease.")]
    account: Annotated[str, doc("Whose job it is for.")]
    payer: Annotated[str, doc("The account that pays.")]
    ends_at: Annotated[InstantText, doc("When the lease ends if no report comes.")]
    missing: Annotated[CreditsText, doc("The credits that the lease lacks to last to the end.")]


class MaintenanceAnswer(Struct, kw_only=True):
    """What is announced, and how many live leases last to its end."""

    state: Annotated[Literal["none", "announced"], doc("Whether maintenance is announced.")]
    live: Annotated[int, doc("Leases that run now.")]
    covered: Annotated[int, doc("Those that last to the end of the maintenance.")]
    waiting: Annotated[int, doc("Those whose nodes have not reported since the announcement.")]
    short: Annotated[int, doc("Those that were renewed and cannot be extended to the end.")]
    announced_at: Annotated[InstantText | None, doc("When it was announced.")] = None
    until: Annotated[InstantText | None, doc("Until when leases are extended.")] = None
    reason: Annotated[str, doc("Why, as announced.")] = ""
    leases: Annotated[
        list[ShortLeaseAnswer], doc("A page of the leases that cannot be extended to the end.")
    ] = []
    next_cursor: Annotated[str | None, doc("The cursor of the next page; null on the last.")] = None
