"""Snapshots as plain data that JSON can hold, and back; decisions as plain data too.

Owns: dump and load, so that a decision can be replayed elsewhere to the same result.
Must not: read or write files.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gpucredits.core.fairshare.decisions import Decisions, sentence
from gpucredits.core.fairshare.snapshot import (
    Policy,
    PoolSnapshot,
    RunningJob,
    Scope,
    Tenant,
    UsageOrder,
    WaitingRequest,
    check_snapshot,
)

FORMAT = 1


def dump(snapshot: PoolSnapshot) -> dict[str, Any]:
    """The snapshot as dicts, lists, strings, numbers, booleans and None; rows in id order."""
    names = [name for name, _ in snapshot.capacity]
    policy = asdict(snapshot.policy)
    policy["priority_scope"] = snapshot.policy.priority_scope.name.lower()
    policy["usage_order"] = snapshot.policy.usage_order.value
    return {
        "format": FORMAT,
        "pool": snapshot.pool,
        "now": snapshot.now,
        "capacity": dict(snapshot.capacity),
        "tenants": [tenant._asdict() for tenant in sorted(snapshot.tenants)],
        "running": [_row(job, names) for job in sorted(snapshot.running)],
        "waiting": [_row(request, names) for request in sorted(snapshot.waiting)],
        "policy": policy,
    }


def load(data: dict[str, Any]) -> PoolSnapshot:
    """The snapshot that was dumped; ValueError when it is not one."""
    if data.get("format") != FORMAT:
        raise ValueError(f"not a pool snapshot of format {FORMAT}")
    policy = dict(data["policy"])
    policy["priority_scope"] = Scope[str(policy["priority_scope"]).upper()]
    policy["usage_order"] = UsageOrder(policy["usage_order"])
    names = list(data["capacity"])
    snapshot = PoolSnapshot(
        pool=data["pool"],
        now=data["now"],
        capacity=tuple(data["capacity"].items()),
        tenants=tuple(Tenant(**row) for row in data["tenants"]),
        running=tuple(RunningJob(**_fields(row, names)) for row in data["running"]),
        waiting=tuple(WaitingRequest(**_fields(row, names)) for row in data["waiting"]),
        policy=Policy(**policy),
    )
    check_snapshot(snapshot)
    return snapshot


def dump_decisions(decisions: Decisions) -> dict[str, Any]:
    """What was decided as dicts, lists, strings, numbers and None, in the order of decision."""
    return {
        "pool": decisions.pool,
        "now": decisions.now,
        "admissions": [row._asdict() | {"basis": row.basis.value} for row in decisions.admissions],
        "preemptions": [
            row._asdict() | {"held": list(row.held), "fair": list(row.fair)}
            for row in decisions.preemptions
        ],
        "waiting": [
            row._asdict() | {"reason": row.reason.value, "sentence": sentence(row)}
            for row in decisions.waiting
        ],
        "shares": [
            row._asdict()
            | {"fair": list(row.fair), "before": list(row.before), "after": list(row.after)}
            for row in decisions.shares
        ],
    }


def _row(row: RunningJob | WaitingRequest, names: list[str]) -> dict[str, Any]:
    return row._asdict() | {"amounts": dict(zip(names, row.amounts, strict=True))}


def _fields(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return row | {"amounts": tuple(row["amounts"][name] for name in names)}
