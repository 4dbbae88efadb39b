"""Handlers of pools: what there is of a type of GPU, and how it is to be shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET

from gpucredits.api.http.call import ApiRequest, NoQuery, Route
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import AnyCall, unknown_account
from gpucredits.api.http.submit import act_of
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
from gpucredits.wire.pool import (
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
from gpucredits.wire.scalars import GpuType, Name, Region, format_instant, from_wire

NO_POOL = ("pool_unknown",)
_COLUMNS: Final = {"capacity": "gpus", "cpu": "cpus"}  # of terms that rows call otherwise


async def get_pools(call: ApiRequest[None, NoQuery]) -> PoolList:
    """Every pool: what it has and how it is shared."""
    return PoolList(pools=[pool_to_wire(each) for each in await call.services.gpu_pools.refresh()])


async def get_pool(call: ApiRequest[None, NoQuery]) -> PoolAnswer:
    """One pool."""
    pool, _ = await _read(call)
    return pool_to_wire(pool)


async def put_pool(call: ApiRequest[PoolRequest, NoQuery]) -> PoolAnswer:
    """Set a pool as a whole; with a capacity, reserves into it take turns."""
    return await _set(call, call.body, None)


async def patch_pool(call: ApiRequest[PoolChange, NoQuery]) -> PoolAnswer:
    """Change what is named of a pool, or make it; the rest stays as it is."""
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
    """The terms of a pool, as rows have them, that a change names."""
    named = named_in(change) & {"capacity"}
    for name, shape in (("resources", PoolResources), ("policy", PoolPolicy)):
        part = getattr(change, name)
        if part is None:
            named |= frozenset(shape.__struct_fields__)  # back to their defaults
        elif part is not UNSET:
            named |= named_in(part)
    return frozenset(_COLUMNS.get(each, each.replace("_seconds", "_ms")) for each in named)


async def delete_pool(call: ApiRequest[None, NoQuery]) -> PoolAnswer:
    """Take a pool away; who waits in it no longer waits for capacity."""
    try:
        pool, call.replayed = await call.services.gpu_pools.remove(
            act_of(call, 0), *pool_param(call)
        )
    except PoolMissing as missing:
        raise unknown_pool() from missing
    return pool_to_wire(pool)


async def get_weights(call: ApiRequest[None, NoQuery]) -> WeightsAnswer:
    """The weights of a pool: all of them, or those of the caller's own org or project."""
    pool, weights = await _read(call)
    return _weights(call, pool, weights)


async def put_weights(call: ApiRequest[WeightsRequest, NoQuery]) -> WeightsAnswer:
    """Replace all weights of a pool."""
    weights = [
        Weight(str(each.account), each.weight, each.may_borrow) for each in call.body.weights
    ]
    return await _weigh(call, lambda _pool, _before: weights)


async def patch_weights(call: ApiRequest[WeightsChange, NoQuery]) -> WeightsAnswer:
    """Change some weights of a pool, and leave the others as they are."""
    changes = call.body.weights
    return await _weigh(call, lambda pool, before: merged_weights(pool, before, changes))


def merged_weights(
    pool: GpuPool, before: Sequence[Weight], changes: Sequence[WeightChange]
) -> list[Weight]:
    """The weights of a pool with some changed; who is new may borrow where all in it may."""
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
    """A pool as it was asked for."""
    resources = request.resources or PoolResources()
    policy = request.policy
    return GpuPool(
        gpu_type=gpu_type,
        region=region,
        gpus=request.capacity,
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
        capacity=pool.gpus,
        resources=PoolResources(cpu=pool.cpus, memory=pool.memory),
        policy=PoolPolicy(**settings),
        updated_at=format_instant(pool.updated_at),
    )


def pool_param(call: AnyCall) -> tuple[str, str]:
    """(GPU type, region) of the pool in the request's path."""
    return named(call, "gpu_type", GpuType), named(call, "region", Region)


def named(call: AnyCall, param: str, kind: type[Name]) -> str:
    """A name in the request's path in its one spelling; it may be percent-encoded."""
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


def pool_route(
    method: str, path: str, summary: str, handler: Any, answer: Any, **more: Any
) -> Route:
    """A route below that of pools, with what is true of all of them."""
    permission = Permission.READ_POOLS if method == "GET" else Permission.SET_POOL
    return Route(
        method=method,
        path=f"/v1/pools{path}",
        summary=summary,
        handler=handler,
        answer=answer,
        permission=more.pop("permission", permission),
        needs_key=method != "GET",
        reasons=(*(NO_POOL if path else ()), *more.pop("reasons", ())),
        tag="pools",
        **more,
    )


ONE: Final = "/{gpu_type}/{region}"
ROUTES = [
    pool_route("GET", "", "Every pool", get_pools, PoolList),
    pool_route("GET", ONE, "One pool", get_pool, PoolAnswer),
    pool_route("PUT", ONE, "Replace all terms of a pool", put_pool, PoolAnswer, body=PoolRequest),
    pool_route(
        "PATCH", ONE, "Change what is named of a pool", patch_pool, PoolAnswer, body=PoolChange
    ),
    pool_route("DELETE", ONE, "Take a pool away", delete_pool, PoolAnswer),
    pool_route("GET", f"{ONE}/weights", "The weights of a pool", get_weights, WeightsAnswer),
    pool_route(
        "PUT",
        f"{ONE}/weights",
        "Replace the weights of a pool",
        put_weights,
        WeightsAnswer,
        body=WeightsRequest,
        reasons=NO_ACCOUNT,
    ),
    pool_route(
        "PATCH",
        f"{ONE}/weights",
        "Change some weights of a pool",
        patch_weights,
        WeightsAnswer,
        body=WeightsChange,
        reasons=NO_ACCOUNT,
    ),
]
