"""Clocks of orgs on the wire: which stand ahead of the database's, and their repair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Struct

from gpucredits.core import ids
from gpucredits.core.clock_repair import ClockRepair, Left, LeftAsItIs, MendedGrant, MendedLease
from gpucredits.core.money import format_credits
from gpucredits.wire.documented import ACCOUNT, NEXT_CURSOR, RESERVATION_ID, doc
from gpucredits.wire.scalars import AccountPath, CreditsText, InstantText, Note, format_instant

LISTED_MAX = 1_000  # rows of each list of an answer; the counts tell of all
MendName = Literal["restored", "withdrawn", "restamped"]
LeftName = Literal[
    "lease_lapsed",
    "lease_overcharged",
    "grant_started",
    "grant_reversed",
    "allowance_rolled_over",
    "statement_closed",
    "price_later",
    "boost_later",
]
PREFIXES: dict[Left, str] = {
    Left.LEASE_LAPSED: ids.RESERVATION,
    Left.LEASE_OVERCHARGED: ids.RESERVATION,
    Left.GRANT_STARTED: ids.GRANT,
    Left.GRANT_REVERSED: ids.GRANT,
    Left.ALLOWANCE_ROLLED_OVER: ids.GRANT,
    Left.STATEMENT_CLOSED: ids.STATEMENT,
    Left.PRICE_LATER: ids.PRICE,
    Left.BOOST_LATER: ids.BOOST,
}
# What stays as it is, and what an operator can do about it; with the row's one number.
SENTENCES: dict[Left, tuple[str, Callable[[int], str]]] = {
    Left.LEASE_LAPSED: (
        "The lease lapsed as of {}, and its hold is back. Reserve again if the job still runs.",
        format_instant,
    ),
    Left.LEASE_OVERCHARGED: (
        "{} ms more were charged than have passed since the lease began. Refund them.",
        str,
    ),
    Left.GRANT_STARTED: (
        "The grant started early and is in use; {} credits of it stay usable.",
        format_credits,
    ),
    Left.GRANT_REVERSED: (
        "The payment was reversed, so {} credits stay expired.",
        format_credits,
    ),
    Left.ALLOWANCE_ROLLED_OVER: (
        "The allowance rolled over early; {} credits stay expired. Issue them by hand.",
        format_credits,
    ),
    Left.STATEMENT_CLOSED: ("The statement was closed before its period ends, {}.", format_instant),
    Left.PRICE_LATER: ("The price takes effect at {}. Set the price again.", format_instant),
    Left.BOOST_LATER: ("The boost starts at {}. End it and add it again.", format_instant),
}


class OrgClock(Struct, kw_only=True):
    """An org whose clock stands ahead of the database's."""

    org: Annotated[str, doc("The path of the org.")]
    clock: Annotated[InstantText, doc("The time on the org's clock.")]
    ahead_seconds: Annotated[int, doc("How far the org's clock is ahead of the database's.")]


class OrgClockPage(Struct, kw_only=True):
    """Orgs whose clocks stand ahead, by path, and what this server thinks of the database's."""

    now: Annotated[InstantText, doc("The database's time.")]
    off_seconds: Annotated[
        float, doc("How far the database's clock is off, as this server sees it.")
    ]
    jumps: Annotated[int, doc("How often this server saw the database's clock jump.")]
    orgs: Annotated[list[OrgClock], doc("The orgs of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class ClockRepairRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Bring the clock of an org back to the present."""

    org: Annotated[AccountPath, doc("The path of the org.")]
    reason: Annotated[Note, doc("Why the clock is repaired, for the audit log. Must not be empty.")]


class MendedLeaseAnswer(Struct, kw_only=True):
    """A live lease that ends sooner, or was admitted sooner, than its row said."""

    reservation_id: Annotated[str, RESERVATION_ID]
    account: Annotated[str, ACCOUNT]
    admitted_at: Annotated[InstantText, doc("When the lease began.")]
    expires_at: Annotated[InstantText, doc("When the lease ends now.")]
    expires_before: Annotated[InstantText, doc("When the lease would have ended.")]


class MendedGrantAnswer(Struct, kw_only=True):
    """A grant that the repair changed, and the credits that this moved."""

    grant_id: Annotated[str, doc("The id of the grant.")]
    account: Annotated[str, ACCOUNT]
    mend: Annotated[
        MendName, doc("What was done: restored, withdrawn until its start, or restamped.")
    ]
    amount: Annotated[
        CreditsText, doc("The credits that the repair moved into the grant or out of it.")
    ]


class LeftAnswer(Struct, kw_only=True):
    """Something that the wrong clock did and that no repair can undo."""

    kind: Annotated[LeftName, doc("The kind of damage.")]
    id: Annotated[str, doc("The id of the row.")]
    account: Annotated[str, ACCOUNT]
    detail: Annotated[str, doc("What stays as it is, and what to do about it.")]


class ClockRepairAnswer(Struct, kw_only=True):
    """What a repair changed; nothing where ``repaired`` is false: the clock was not ahead."""

    org: Annotated[str, doc("The path of the org.")]
    repaired: Annotated[bool, doc("Whether the clock was ahead, so that something was changed.")]
    now: Annotated[InstantText, doc("The instant that the clock was brought back to.")]
    clock_before: Annotated[InstantText, doc("The time on the org's clock before the repair.")]
    ahead_seconds: Annotated[int, doc("How far the org's clock was ahead of the database's.")]
    lease_count: Annotated[int, doc("The number of live leases that were changed.")]
    grant_count: Annotated[int, doc("The number of grants that were changed.")]
    left_count: Annotated[int, doc("The number of things that could not be mended.")]
    leases: Annotated[
        list[MendedLeaseAnswer], doc("The live leases that were changed; the first of very many.")
    ]
    grants: Annotated[
        list[MendedGrantAnswer], doc("The grants that were changed; the first of very many.")
    ]
    windows: Annotated[list[str], doc("Quotas whose windows were brought back.")]
    rate_limits: Annotated[list[str], doc("Rate limits that were brought back.")]
    left: Annotated[list[LeftAnswer], doc("What could not be mended; the first of very many.")]


def repair_to_wire(org_id: int, done: ClockRepair, *, repaired: bool = True) -> ClockRepairAnswer:
    """A repair as it is told: of long lists the first rows."""
    return ClockRepairAnswer(
        org=done.org,
        repaired=repaired,
        now=format_instant(done.now),
        clock_before=format_instant(done.clock),
        ahead_seconds=max(done.clock - done.now, 0) // 1_000_000,
        lease_count=len(done.leases),
        grant_count=len(done.grants),
        left_count=len(done.left),
        leases=[_lease(org_id, each) for each in done.leases[:LISTED_MAX]],
        grants=[_grant(org_id, each) for each in done.grants[:LISTED_MAX]],
        windows=[ids.format_id(ids.QUOTA, org_id, each) for each in done.windows[:LISTED_MAX]],
        rate_limits=[
            ids.format_id(ids.RATE_LIMIT, org_id, each) for each in done.rate_limits[:LISTED_MAX]
        ],
        left=[_left(org_id, each) for each in done.left[:LISTED_MAX]],
    )


def _lease(org_id: int, row: MendedLease) -> MendedLeaseAnswer:
    return MendedLeaseAnswer(
        reservation_id=ids.format_id(ids.RESERVATION, org_id, row.reservation_id),
        account=row.account,
        admitted_at=format_instant(row.admitted_at),
        expires_at=format_instant(row.expires_at),
        expires_before=format_instant(row.expires_before),
    )


def _grant(org_id: int, row: MendedGrant) -> MendedGrantAnswer:
    return MendedGrantAnswer(
        grant_id=ids.format_id(ids.GRANT, org_id, row.grant_id),
        account=row.account,
        mend=row.mend.value,
        amount=format_credits(row.amount),
    )


def _left(org_id: int, row: LeftAsItIs) -> LeftAnswer:
    prefix = PREFIXES[row.kind]
    text, told = SENTENCES[row.kind]
    owner = 0 if prefix == ids.PRICE else org_id
    return LeftAnswer(
        kind=row.kind.value,
        id=ids.format_id(prefix, owner, row.number),
        account=row.account,
        detail=text.format(told(row.amount)),
    )
