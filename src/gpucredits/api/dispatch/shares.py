"""Handlers of shares: the holdings of tenants in a pool, and the decision behind them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction as Rational
from operator import add
from typing import Any

import msgspec

from gpucredits.api.dispatch.pools import pool_param, unknown_pool
from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError
from gpucredits.core.account import is_below, lineage, org_of, scope_of
from gpucredits.core.fairshare.decisions import Share
from gpucredits.core.fairshare.filling import Fraction
from gpucredits.core.fairshare.snapshot import Capacity
from gpucredits.core.money import MILLI_PER_GPU
from gpucredits.service.access.permissions import Permission
from gpucredits.service.dispatch.pools import PoolMissing, Sharing
from gpucredits.wire.dispatch.pool import ShareAnswer, SharesAnswer, SnapshotAnswer
from gpucredits.wire.scalars import format_instant, gpus_to_wire

route = Routes("pools")


@route(
    "GET /v1/pools/{gpu_type}/{region}/shares",
    Permission.READ_POOLS,
    reasons=("pool_unknown",),
    client="shares(gpu_type, region)",
)
async def get_shares(call: ApiRequest[None, NoQuery]) -> SharesAnswer:
    """List how much of a pool each tenant may hold, holds, borrows and waits for.

    A key sees other tenants only in the totals.
    """
    try:
        sharing = await call.services.gpu_pools.sharing(*pool_param(call))
    except PoolMissing as missing:
        raise unknown_pool() from missing
    return shares_to_wire(sharing, within=call.principal.project)


@route(
    "GET /v1/pools/{gpu_type}/{region}/snapshot",
    Permission.READ_SNAPSHOT,
    reasons=("pool_unknown",),
    client="snapshot(gpu_type, region)",
)
async def get_snapshot(call: ApiRequest[None, NoQuery]) -> SnapshotAnswer:
    """Get the last decision about a pool, with its snapshot.

    The decision can be replayed from the snapshot.
    """
    try:
        kept = await call.services.gpu_pools.last_decision(*pool_param(call))
    except PoolMissing as missing:
        raise unknown_pool() from missing
    if kept is None:
        raise ProblemError("not_found", "Nothing has been decided in this pool yet.")
    return SnapshotAnswer(
        taken_at=format_instant(kept.taken_at),
        snapshot=msgspec.json.decode(kept.snapshot),
        decision=msgspec.json.decode(kept.decision),
    )


def shares_to_wire(sharing: Sharing, *, within: str) -> SharesAnswer:
    """Shares of everybody, or of accounts ``within`` a path, and the totals of all."""
    snapshot = sharing.snapshot
    capacity = sharing.pool.milli_gpus
    held: Counter[str] = Counter()
    taken: dict[str, list[int]] = {}
    wanted: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    gates = bool(snapshot.capacity)
    for job in snapshot.running:
        for path in ("", *lineage(job.tenant)):
            held[path] += job.amounts[0]
            taken[path] = list(map(add, taken.get(path) or [0] * len(job.amounts), job.amounts))
    for request in snapshot.waiting:
        for path in ("", *lineage(request.tenant)):
            wanted[path] += request.amounts[0] if gates else 0
            waiting[path] += 1
    stopping = sum(job.amounts[0] for job in snapshot.running if job.stopping_at is not None)
    past = {tenant.path: tenant.usage // 1_000 for tenant in snapshot.tenants}
    shares = sharing.decisions.shares
    shown = [row for row in shares if not within or is_below(row.path, within)]
    return SharesAnswer(
        gpu_type=sharing.pool.gpu_type,
        region=sharing.pool.region,
        capacity=None if capacity is None else gpus_to_wire(capacity),
        held=gpus_to_wire(held[""]),
        stopping=gpus_to_wire(stopping),
        free=gpus_to_wire(max((capacity or 0) - held[""], 0)),
        over=gpus_to_wire(0 if capacity is None else max(held[""] - capacity, 0)),
        tenants=len({org_of(row.path) for row in shares}),
        waiting=waiting[""],
        waiting_gpus=gpus_to_wire(wanted[""]),
        is_dispatched=bool(sharing.dispatcher),
        shares=[
            share_to_wire(
                row,
                capacity or 0,
                dominant(taken.get(row.path, []), snapshot.capacity),
                held=gpus_to_wire(held[row.path]),
                waiting=waiting[row.path],
                waiting_gpus=gpus_to_wire(wanted[row.path]),
                past_gpu_seconds=past.get(row.path, 0),
            )
            for row in shown
        ],
    )


def dominant(amounts: list[int], capacity: Capacity) -> Fraction:
    """The largest part that amounts take of any resource; a drained resource does not count."""
    pairs = zip(amounts, capacity, strict=False)
    parts = [(amount, whole) for amount, (_, whole) in pairs if whole]
    return max(parts, key=lambda part: Rational(*part), default=(0, 1))


def share_to_wire(row: Share, capacity: int, has: Fraction, **counts: Any) -> ShareAnswer:
    """One tenant's share; the tenant borrows what it holds above its target."""
    over = (has[0] * row.fair[1] - row.fair[0] * has[1], has[1] * row.fair[1])
    return ShareAnswer(
        account=row.path,
        scope=scope_of(row.path),
        weight=row.weight,
        target=_decimals(row.fair, capacity, MILLI_PER_GPU),
        target_percent=_decimals(row.fair, 100),
        held_percent=_decimals(has, 100),
        borrowed=_decimals(over if over[0] > 0 else (0, 1), capacity, MILLI_PER_GPU),
        **counts,
    )


def _decimals(part: Fraction, whole: int, unit: int = 1) -> str:
    """A fraction with two decimals, cut off."""
    hundredths = part[0] * whole * 100 // (part[1] * unit)
    return f"{hundredths // 100}.{hundredths % 100:02d}"
