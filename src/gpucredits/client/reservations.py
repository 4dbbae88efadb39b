"""Calls about leases: reserve, heartbeat, settle, cancel, and corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict, Unpack

from gpucredits.client.call import Call, Number, body_of, item_path, read, write
from gpucredits.wire.correction import CorrectionAnswer, CorrectionRequest
from gpucredits.wire.heartbeat import BeatAnswer, ExtendRequest, HeartbeatsAnswer, HeartbeatsRequest
from gpucredits.wire.reservation import (
    ClosedAnswer,
    ExhaustionName,
    ReservationAnswer,
    ReservationPage,
    ReserveBatch,
    ReserveRequest,
    ReserveResults,
    SettleRequest,
    StateName,
)


class ReserveFields(TypedDict, total=False):
    """What may be said of a job that wants a lease, asked for or only asked about."""

    job_id: Required[str]
    gpu_type: Required[str]
    gpu_count: int | None
    region: str | None
    node: str | None
    window_seconds: int | None
    escrow_windows: int | None
    max_amount: Number | None
    payer: str | None
    exhaustion: ExhaustionName | None
    grace_seconds: int | None
    overdraft: Number | None
    metadata: Mapping[str, str] | None
    allow_partial: bool | None
    priority: int | None
    expected_seconds: int | None
    preemptible: bool | None
    resources: Mapping[str, int] | None


def reserve(
    account: str,
    *,
    key: str | None = None,
    dry_run: bool = False,
    **fields: Unpack[ReserveFields],
) -> Call[ReservationAnswer]:
    """Ask for a lease: GPUs of one type for a job on one node. To wait for it, ``enqueue``.

    ``exhaustion`` says what becomes of the job when it can no longer be renewed in full.
    """
    body = body_of(ReserveRequest, account=account, **fields)
    return write("/v1/reservations", ReservationAnswer, body=body, key=key, dry_run=dry_run)


def reserve_all(
    items: Sequence[Mapping[str, Any]],
    *,
    atomic: bool = False,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[ReserveResults]:
    """Ask for many leases, as a job over many nodes does; each item has ``reserve``'s fields."""
    body = body_of(ReserveBatch, items=list(items), atomic=atomic)
    return write("/v1/reservations:batch", ReserveResults, body=body, key=key, dry_run=dry_run)


def reservation(reservation_id: str) -> Call[ReservationAnswer]:
    """One lease and what it has cost so far."""
    return read(item_path("reservations", reservation_id), ReservationAnswer)


def reservation_page(
    *,
    account: str | None = None,
    tree: bool | None = None,
    job_id: str | None = None,
    node: str | None = None,
    state: StateName | None = None,
    metadata: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[ReservationPage]:
    """A page of leases, the latest first."""
    return read(
        "/v1/reservations",
        ReservationPage,
        account=account,
        tree=tree,
        job_id=job_id,
        node=node,
        state=state,
        metadata=metadata,
        cursor=cursor,
        limit=limit,
    )


def heartbeats(
    beats: Sequence[tuple[str, int, int]], *, node: str | None = None
) -> Call[HeartbeatsAnswer]:
    """Report (reservation, seq, used_ms in all) for each lease of a node; one result for each.

    A beat is safe to repeat by its seq, so there is no key.
    """
    reports = [
        {"reservation_id": reservation_id, "seq": seq, "used_ms": used_ms}
        for reservation_id, seq, used_ms in beats
    ]
    body = body_of(HeartbeatsRequest, beats=reports, node=node)
    return write("/v1/heartbeats", HeartbeatsAnswer, body=body, is_keyed=False)


def extend(
    reservation_id: str, *, seq: int, used_ms: int, dry_run: bool = False
) -> Call[BeatAnswer]:
    """A heartbeat for one lease: settle the slice that was used and renew."""
    body = body_of(ExtendRequest, seq=seq, used_ms=used_ms)
    path = item_path("reservations", reservation_id, ":extend")
    return write(path, BeatAnswer, body=body, dry_run=dry_run, is_keyed=False)


def settle(
    reservation_id: str,
    *,
    seq: int | None = None,
    used_ms: int | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[ClosedAnswer]:
    """End a job; without ``used_ms`` the last accepted use stands."""
    body = body_of(SettleRequest, seq=seq, used_ms=used_ms)
    path = item_path("reservations", reservation_id, ":settle")
    return write(path, ClosedAnswer, body=body, key=key, dry_run=dry_run)


def cancel(
    reservation_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[ClosedAnswer]:
    """Release the hold of a job that never started."""
    path = item_path("reservations", reservation_id, ":cancel")
    return write(path, ClosedAnswer, key=key, dry_run=dry_run)


def refund(
    reservation_id: str,
    amount: Number,
    *,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[CorrectionAnswer]:
    """Give settled credits back to the grants that paid."""
    body = body_of(CorrectionRequest, reservation_id=reservation_id, amount=amount, note=note)
    return write("/v1/refunds", CorrectionAnswer, body=body, key=key, dry_run=dry_run)


def adjust(
    reservation_id: str,
    amount: Number,
    *,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[CorrectionAnswer]:
    """Charge more for a lease than was settled."""
    body = body_of(CorrectionRequest, reservation_id=reservation_id, amount=amount, note=note)
    return write("/v1/adjustments", CorrectionAnswer, body=body, key=key, dry_run=dry_run)
