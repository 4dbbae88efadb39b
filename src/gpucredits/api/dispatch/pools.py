"""Handlers of pools: the capacity of a GPU type in a region, and how it is shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import AnyCall, act_of, unknown_account
from gpucredits.core.account import is_below
from gpucredits.core.change import Named
from gpucredits.service.access.permissions import Permission
from gpucredits.service.dispatch.pools import (
    AccountMissing,
    GpuPool,
    NoCapacity,
    PoolMissing,
    Reweigh,
    Weight,
)
from gpucredits.wire.change import filled, given, named_in
from gpucredits.wire.dispatch.pool import (
    WEIGHTS_MAX,
    PoolAnswer,
    PoolChange,
    PoolList,
    PoolPolicy,
    PoolRequest,
    PoolResources,
    WeightAnswer,
    WeightChange,
    WeightsAnswer,
    WeightsChange,
    WeightsRequest,
)
from gpucredits.wire.scalars import GpuType, Name, Region, format_instant, from_wire, gpus_to_wire

NO_POOL = ("pool_unknown",)
_COLUMNS: Final = {"capacity": "milli_gpus", "cpu": "cpus"}  # of terms that rows call otherwise


route = Routes("pools")


@route("GET /v1/pools", Permission.READ_POOLS, client="pools()")
async def get_pools(call: ApiRequest[None, NoQuery]) -> PoolList:
    """List every pool with its capacity and its terms of sharing."""
    return PoolList(pools=[pool_to_wire(each) for each in await call.services.gpu_pools.refresh()])


@route(
    "GET /v1/pools/{gpu_type}/{region}",
    Permission.READ_POOLS,
    reasons=NO_POOL,
    client="pool(gpu_type, region)",
)
async def get_pool(call: ApiRequest[None, NoQuery]) -> PoolAnswer:
    """Get one pool."""
    pool, _ = await _read(call)
    return pool_to_wire(pool)


@route(
    "PUT /v1/pools/{gpu_type}/{region}",
    Permission.SET_POOL,
    reasons=NO_POOL,
    client="set_pool(gpu_type, region)",
)
async def put_pool(call: ApiRequest[PoolRequest, NoQuery]) -> PoolAnswer:
    """Make a pool, or replace all terms of it."""
    return await _set(call, call.body, None)


@route(
    "PATCH /v1/pools/{gpu_type}/{region}",
    Permission.SET_POOL,
    reasons=NO_POOL,
    client="set_pool(gpu_type, region)",
)
async def patch_pool(call: ApiRequest[PoolChange, NoQuery]) -> PoolAnswer:
    """Make a pool, or change some terms of it.

    Reserves into a pool with a capacity take turns; a pool without a capacity does not gate.
    """
    body = call.body
    whole = PoolRequest(
        capacity=given(body.capacity, None),
        resources=filled(body.resources, PoolResources),
        policy=filled(body.policy, PoolPolicy),
    )
    return await _set(call, whole, named_of(body))


async def _set(call: AnyCall, whole: PoolRequest, named: Named) -> PoolAnswer:
    wanted = pool_from_wire(*pool_param(call), whole)
    try:
        saved, call.replayed = await call.services.gpu_pools.set(
            act_of(call, 0), wanted, named=named
        )
    except NoCapacity as error:
        raise invalid("capacity", "must be given with other resources") from error
    return pool_to_wire(saved)


def named_of(change: PoolChange) -> frozenset[str]:
    """The terms of a pool that a change names, by the names of their columns."""
    named = named_in(change) & {"capacity"}
    for name, shape in (("resources", PoolResources), ("policy", PoolPolicy)):
        part = getattr(change, name)
        if part is None:
            named |= frozenset(shape.__struct_fields__)  # back to their defaults
        elif part is not UNSET:
            named |= named_in(part)
    return frozenset(_COLUMNS.get(each, each.replace("_seconds", "_ms")) for each in named)


@route(
    "DELETE /v1/pools/{gpu_type}/{region}",
    Permission.SET_POOL,
    reasons=NO_POOL,
    client="remove_pool(gpu_type, region)",
)
async def delete_pool(call: ApiRequest[None, NoQuery]) -> PoolAnswer:
    """Remove a pool.

    Requests that wait in the pool no longer wait for capacity.
    """
    try:
        pool, call.replayed = await call.services.gpu_pools.remove(
            act_of(call, 0), *pool_param(call)
        )
    except PoolMissing as missing:
        raise unknown_pool() from missing
    return pool_to_wire(pool)


@route(
    "GET /v1/pools/{gpu_type}/{region}/weights",
    Permission.READ_POOLS,
    reasons=NO_POOL,
    client="weights(gpu_type, region)",
)
async def get_weights(call: ApiRequest[None, NoQuery]) -> WeightsAnswer:
    """List the weights of a pool that the key may see.

    A key for an org or a project sees the weights of its own org or project.
    """
    pool, weights = await _read(call)
    return _weights(call, pool, weights)


@route(
    "PUT /v1/pools/{gpu_type}/{region}/weights",
    Permission.SET_POOL,
    reasons=(*NO_POOL, *NO_ACCOUNT),
    client="set_weights(gpu_type, region)",
)
async def put_weights(call: ApiRequest[WeightsRequest, NoQuery]) -> WeightsAnswer:
    """Replace all weights of a pool.

    Each item has ``account``, ``weight`` and ``may_borrow``.
    """
    weights = [
        Weight(str(each.account), each.weight, each.may_borrow) for each in call.body.weights
    ]
    return await _weigh(call, lambda _pool, _before: weights)


@route(
    "PATCH /v1/pools/{gpu_type}/{region}/weights",
    Permission.SET_POOL,
    reasons=(*NO_POOL, *NO_ACCOUNT),
    client="change_weights(gpu_type, region)",
)
async def patch_weights(call: ApiRequest[WeightsChange, NoQuery]) -> WeightsAnswer:
    """Change some weights of a pool.

    Accounts and fields that are left out stay as they are.
    """
    changes = call.body.weights
    return await _weigh(call, lambda pool, before: merged_weights(pool, before, changes))


def merged_weights(
    pool: GpuPool, before: Sequence[Weight], changes: Sequence[WeightChange]
) -> list[Weight]:
    """The weights of a pool after a change; new accounts may borrow if the pool allows it."""
    weights = {each.path: each for each in before}
    for each in changes:
        path = str(each.account)
        row = weights.get(path, Weight(path, 1, pool.borrowing))
        weights[path] = Weight(
            path,
            row.weight if each.weight is None else each.weight,
            row.may_borrow if each.may_borrow is None else each.may_borrow,
        )
    if len(weights) > WEIGHTS_MAX:
        raise invalid("weights", f"must leave the pool with at most {WEIGHTS_MAX} of them")
    return list(weights.values())


async def _weigh(
    call: ApiRequest[WeightsRequest, NoQuery] | ApiRequest[WeightsChange, NoQuery], wanted: Reweigh
) -> WeightsAnswer:
    if len({each.account for each in call.body.weights}) < len(call.body.weights):
        raise invalid("weights", "must name each account once")
    try:
        (pool, saved), call.replayed = await call.services.gpu_pools.weigh(
            act_of(call, 0), pool_param(call), wanted
        )
    except PoolMissing as missing:
        raise unknown_pool() from missing
    except AccountMissing as missing:
        raise unknown_account(missing.path) from missing
    return _weights(call, pool, saved)


def pool_from_wire(gpu_type: str, region: str, request: PoolRequest) -> GpuPool:
    """The pool that a request describes."""
    resources = request.resources or PoolResources()
    policy = request.policy
    return GpuPool(
        gpu_type=gpu_type,
        region=region,
        milli_gpus=None if request.capacity is None else int(request.capacity),
        cpus=resources.cpu,
        memory=resources.memory,
        preemption=policy.preemption,
        grace_ms=policy.grace_seconds * 1_000,
        min_runtime_ms=policy.min_runtime_seconds * 1_000,
        preemptions_max=policy.preemptions_max,
        backfill=policy.backfill,
        backfill_depth=policy.backfill_depth,
        hold_after_ms=policy.hold_after_seconds * 1_000,
        priority_scope=policy.priority_scope,
        usage_order=policy.usage_order,
        half_life_ms=policy.half_life_seconds * 1_000,
        borrowing=policy.borrowing,
        window_max_ms=policy.window_max_seconds * 1_000,
    )


def pool_to_wire(pool: GpuPool) -> PoolAnswer:
    """A pool as it is shown."""
    settings: dict[str, Any] = {
        "preemption": pool.preemption,
        "grace_seconds": pool.grace_ms // 1_000,
        "min_runtime_seconds": pool.min_runtime_ms // 1_000,
        "preemptions_max": pool.preemptions_max,
        "backfill": pool.backfill,
        "backfill_depth": pool.backfill_depth,
        "hold_after_seconds": pool.hold_after_ms // 1_000,
        "priority_scope": pool.priority_scope,
        "usage_order": pool.usage_order,
        "half_life_seconds": pool.half_life_ms // 1_000,
        "borrowing": pool.borrowing,
        "window_max_seconds": pool.window_max_ms // 1_000,
    }
    return PoolAnswer(
        gpu_type=pool.gpu_type,
        region=pool.region,
        capacity=None if pool.milli_gpus is None else gpus_to_wire(pool.milli_gpus),
        resources=PoolResources(cpu=pool.cpus, memory=pool.memory),
        policy=PoolPolicy(**settings),
        updated_at=format_instant(pool.updated_at),
    )


def pool_param(call: AnyCall) -> tuple[str, str]:
    """(GPU type, region) of the pool in the request's path."""
    return named(call, "gpu_type", GpuType), named(call, "region", Region)


def named(call: AnyCall, param: str, kind: type[Name]) -> str:
    """A name from the request's path, decoded and in its normal spelling."""
    try:
        return str(from_wire(kind, call.params[param]))
    except ValueError as error:
        raise invalid(param, str(error)) from error


async def _read(call: AnyCall) -> tuple[GpuPool, list[Weight]]:
    try:
        return await call.services.gpu_pools.read(*pool_param(call))
    except PoolMissing as missing:
        raise unknown_pool() from missing


def unknown_pool() -> ProblemError:
    """The answer for a pool that does not exist."""
    return ProblemError("pool_unknown", "There is no such pool.")


def _weights(call: AnyCall, pool: GpuPool, weights: list[Weight]) -> WeightsAnswer:
    within = call.principal.project
    return WeightsAnswer(
        gpu_type=pool.gpu_type,
        region=pool.region,
        weights=[
            WeightAnswer(account=each.path, weight=each.weight, may_borrow=each.may_borrow)
            for each in sorted(weights)
            if not within or is_below(each.path, within)
        ],
    )
