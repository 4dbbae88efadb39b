"""Snapshots refuse what no pool can be."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.core.fairshare.decisions import dump, load
from gpucredits.core.fairshare.snapshot import (
    PoolSnapshot,
    RunningJob,
    Tenant,
    WaitingRequest,
    check_snapshot,
)

CAPACITY = (("gpu", 8),)
WRONG: dict[str, dict[str, Any]] = {
    "a tenant listed twice": {"tenants": (Tenant("a"), Tenant("a", 2))},
    "a job listed twice": {"running": (RunningJob("j", "a", (1,)), RunningJob("j", "b", (1,)))},
    "a request listed twice": {"waiting": (WaitingRequest("w", "a", (1,)),) * 2},
    "a path with an empty step": {"tenants": (Tenant("a//x"),)},
    "a path of four steps": {"waiting": (WaitingRequest("w", "a/b/c/d", (1,)),)},
    "a weight below zero": {"tenants": (Tenant("a", -1),)},
    "use below zero": {"tenants": (Tenant("a", usage=-1),)},
    "an amount below zero": {"running": (RunningJob("j", "a", (-1,)),)},
    "amounts of other resources": {"waiting": (WaitingRequest("w", "a", (1, 1)),)},
    "a gang of nobody": {"waiting": (WaitingRequest("w", "a", (1,), gang="g", gang_size=0),)},
    "capacity below zero": {"capacity": (("gpu", -1),)},
    "a resource listed twice": {"capacity": (("gpu", 1), ("gpu", 2))},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_snapshot_is_refused(wrong: str) -> None:
    """The check names what is wrong instead of letting a decision stumble over it."""
    fields: dict[str, Any] = {"capacity": CAPACITY}
    snapshot = PoolSnapshot(pool="p", now=0, **(fields | WRONG[wrong]))
    with pytest.raises(ValueError, match=r"."):
        check_snapshot(snapshot)


def test_only_a_dump_loads() -> None:
    """Plain data of another format is refused."""
    data = dump(PoolSnapshot(pool="p", now=0, capacity=CAPACITY))
    assert load(data).capacity == CAPACITY
    with pytest.raises(ValueError, match="format"):
        load(data | {"format": 2})
