"""Calls about pools: what there is, how it is shared, and who holds how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gpucredits.client.call import Call, Setting, body_of, read, write
from gpucredits.client.errors import Invalid
from gpucredits.wire.pool import (
    PoolAnswer,
    PoolChange,
    PoolList,
    PoolRequest,
    SharesAnswer,
    SnapshotAnswer,
    WeightsAnswer,
    WeightsChange,
    WeightsRequest,
)


def pools() -> Call[PoolList]:
    """Every pool."""
    return read("/v1/pools", PoolList)


def pool(gpu_type: str, region: str = "default") -> Call[PoolAnswer]:
    """One pool."""
    return read(_path(gpu_type, region), PoolAnswer)


def set_pool(  # noqa: PLR0913  # one argument for each field of the request
    gpu_type: str,
    region: str = "default",
    *,
    capacity: int | None = None,
    resources: Mapping[str, int] | None = None,
    policy: Mapping[str, Any] | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PoolAnswer]:
    """Make a pool, or change what is given of it; without a capacity it does not gate.

    ``replace`` replaces all of it. ``clear`` names fields that go back to their defaults, such as
    ``capacity`` or ``policy.borrowing``.
    """
    return Setting(replace=replace, clear=clear).call(
        _path(gpu_type, region),
        PoolAnswer,
        change=PoolChange,
        whole=PoolRequest,
        fields={"capacity": capacity, "resources": resources, "policy": policy},
        key=key,
        dry_run=dry_run,
    )


def remove_pool(
    gpu_type: str, region: str = "default", *, key: str | None = None, dry_run: bool = False
) -> Call[PoolAnswer]:
    """Take a pool away; who waits in it no longer waits for capacity."""
    path = _path(gpu_type, region)
    return write(path, PoolAnswer, key=key, dry_run=dry_run, method="DELETE")


def weights(gpu_type: str, region: str = "default") -> Call[WeightsAnswer]:
    """The weights of a pool that the key may see."""
    return read(_path(gpu_type, region, "/weights"), WeightsAnswer)


def set_weights(
    gpu_type: str,
    region: str = "default",
    *,
    weights: Sequence[Mapping[str, Any]],
    key: str | None = None,
    dry_run: bool = False,
) -> Call[WeightsAnswer]:
    """Replace all weights of a pool: ``account``, ``weight`` and ``may_borrow`` of each."""
    body = body_of(WeightsRequest, weights=list(weights))
    path = _path(gpu_type, region, "/weights")
    return write(path, WeightsAnswer, body=body, key=key, dry_run=dry_run, method="PUT")


def change_weights(
    gpu_type: str,
    region: str = "default",
    *,
    weights: Sequence[Mapping[str, Any]],
    key: str | None = None,
    dry_run: bool = False,
) -> Call[WeightsAnswer]:
    """Change some weights of a pool; the others, and fields left out, stay as they are."""
    body = body_of(WeightsChange, weights=list(weights))
    path = _path(gpu_type, region, "/weights")
    return write(path, WeightsAnswer, body=body, key=key, dry_run=dry_run, method="PATCH")


def shares(gpu_type: str, region: str = "default") -> Call[SharesAnswer]:
    """Who may hold, holds, borrows and waits for how much."""
    return read(_path(gpu_type, region, "/shares"), SharesAnswer)


def snapshot(gpu_type: str, region: str = "default") -> Call[SnapshotAnswer]:
    """The last decision of a pool and what it was made from."""
    return read(_path(gpu_type, region, "/snapshot"), SnapshotAnswer)


def _path(gpu_type: str, region: str, tail: str = "") -> str:
    if not gpu_type or not region:
        raise Invalid("must name a type of GPU and a region", field="pool")
    return f"/v1/pools/{quote(gpu_type, safe='')}/{quote(region, safe='')}{tail}"
