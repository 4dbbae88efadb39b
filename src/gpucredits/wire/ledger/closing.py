"""Ends of leases on the wire: settle and cancel."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from gpucredits.core.command import Settle
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Closed
from gpucredits.wire.documented import RESERVATION_ID, USED_MS, doc
from gpucredits.wire.ledger.reservation import STATE_NAMES, Seq, StateName, UsedMs
from gpucredits.wire.scalars import CreditsText


class SettleRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The job ended; without ``used_ms`` the last accepted use stands."""

    seq: Annotated[
        Seq | None,
        doc("The number of this last report; the next free number if absent or used before."),
    ] = None
    used_ms: Annotated[
        UsedMs | None, doc("Total use; without it the last accepted use stands.")
    ] = None


class CancelRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The job never started."""


class ClosedAnswer(Struct, kw_only=True):
    """How a reservation ended, what its end released, and why less or more was not charged."""

    reservation_id: Annotated[str, RESERVATION_ID]
    state: Annotated[StateName, doc("The final state of the lease.")]
    settled: Annotated[CreditsText, doc("Total credits that the job was charged.")]
    released: Annotated[CreditsText, doc("Credits of the hold that were given back.")]
    used_ms: Annotated[int, USED_MS]
    flagged: Annotated[
        str,
        doc(
            "Why the charged use differs from the reported use: used_ms_went_back, "
            "used_ms_beyond_elapsed, used_ms_beyond_authorised, or lapsed for a lease that "
            "had lapsed and was charged up to its end. Empty otherwise."
        ),
    ] = ""


def settle_from_wire(reservation: int, request: SettleRequest) -> Settle:
    """The core's command."""
    return Settle(reservation_id=reservation, seq=request.seq, used_ms=request.used_ms)


def closed_to_wire(reservation_id: str, outcome: Closed) -> ClosedAnswer:
    """The answer to a settle or a cancel."""
    return ClosedAnswer(
        reservation_id=reservation_id,
        state=STATE_NAMES[outcome.state],
        settled=format_credits(outcome.settled),
        released=format_credits(outcome.released),
        used_ms=outcome.used_ms,
        flagged=outcome.flagged,
    )
