"""What a cycle decided, row by row, with the numbers behind each and a sentence for people.

Owns: the output of a decision; what the pool says of one request, as every gate says it; snapshots
and decisions as plain data that JSON can hold, so that a decision can be replayed elsewhere to the
same result.
Must not: decide, or read or write files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from gpucredits.core.account import lineage
from gpucredits.core.fairshare.filling import Fraction
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
from gpucredits.core.gate import FairShareVerdict, ScopeShare
from gpucredits.core.money import MILLI_PER_GPU, be, format_gpus, is_one


class Basis(StrEnum):
    """On what grounds a request was admitted."""

    SHARE = "share"  # its org stays within, or was still below, its fair share
    BORROWED = "borrowed"  # nobody below their share could use the capacity
    BACKFILLED = "backfilled"  # it overtook the head of the queue without delaying it
    UNGATED = "ungated"  # the pool has no capacity set


class WaitReason(StrEnum):
    """Which constraint keeps a request waiting."""

    OTHER_GATE = "other_gate"
    GANG_INCOMPLETE = "gang_incomplete"
    EXCEEDS_POOL = "exceeds_pool"
    DRAINED = "drained"
    BORROWING_OFF = "borrowing_off"
    MAKING_ROOM = "making_room"
    CAPACITY = "capacity"
    WOULD_DELAY_HEAD = "would_delay_head"
    HELD_FOR_HEAD = "held_for_head"
    BACKFILL_OFF = "backfill_off"
    BACKFILL_DEPTH = "backfill_depth"
    NOT_RANKED = "not_ranked"


class Admission(NamedTuple):
    """A request that starts now; requests of one gang follow each other.

    ``overtakes``: somebody who came before it waits on.
    """

    request_id: str
    tenant: str
    basis: Basis
    overtakes: bool = False


class Preemption(NamedTuple):
    """A job that has to stop by ``stop_at``, for whom, and the tenant that was above its share.

    ``overdue``: it stops because it outstayed the time for which it overtook others.
    """

    job_id: str
    tenant: str
    stop_at: int
    for_request: str
    above: str
    held: Fraction
    fair: Fraction
    overdue: bool = False


class WaitDecision(NamedTuple):
    """A request that waits: its place in the queue (0: none), why, and when it may start.

    ``resource``, ``needed`` and ``available`` are the numbers of the constraint: of the scarce
    resource, or of the gang's members. ``behind`` names the head or the gate it waits for.
    """

    request_id: str
    tenant: str
    position: int
    reason: WaitReason
    resource: str = ""
    needed: int = 0
    available: int = 0
    behind: str = ""
    starts_at: int | None = None


class Share(NamedTuple):
    """A tenant's dominant share: the fair one, and what it holds before and after this cycle.

    Every share is a fraction of the pool, as (numerator, denominator).
    """

    path: str
    weight: int
    fair: Fraction
    before: Fraction
    after: Fraction


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Decisions:
    """Everything a cycle decided, in the order it was decided; shares in path order."""

    pool: str
    now: int
    admissions: tuple[Admission, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    waiting: tuple[WaitDecision, ...] = ()
    shares: tuple[Share, ...] = ()


GPU: Final = "gpu"
_THINGS: Final = {GPU: "GPU", "cpu": "CPU"}
_WORDS: Final = {
    WaitReason.OTHER_GATE: "it waits for {behind}, not for capacity.",
    WaitReason.GANG_INCOMPLETE: "{available} of the {needed} members of its gang {are} here.",
    WaitReason.EXCEEDS_POOL: "it needs {needed} {things}, and the whole pool has {available}.",
    WaitReason.DRAINED: "the pool is drained: nobody new gets in until it has {things} again.",
    WaitReason.BORROWING_OFF: "it needs {needed} {things}, its org may not borrow, and "
    "{available} {are} left of what it is entitled to.",
    WaitReason.MAKING_ROOM: "it needs {needed} {things}; work with less of a claim is being "
    "stopped to make room.",
    WaitReason.CAPACITY: "it needs {needed} {things}, and {available} {are} free.",
    WaitReason.WOULD_DELAY_HEAD: "it needs {needed} {things} of the {available} that {are} free, "
    "but starting it now would delay {behind}, which is before it.",
    WaitReason.HELD_FOR_HEAD: "the {available} {things} that {are} free {are} kept for {behind}, "
    "which has waited long.",
    WaitReason.BACKFILL_OFF: "{behind} is before it, and nobody overtakes in this pool.",
    WaitReason.BACKFILL_DEPTH: "it is too far back to be looked at for overtaking {behind}.",
    WaitReason.NOT_RANKED: "the pool is full, and it is far back.",
}

OVER_POOL: Final = "It never clears by waiting: ask for less, or have the pool's capacity raised."


def sentence(row: WaitDecision) -> str:
    """Why a request waits, in words."""
    place = f"Number {row.position} in the queue: " if row.position else ""
    of_available = row.reason in {WaitReason.HELD_FOR_HEAD, WaitReason.DRAINED}
    number = row.available if of_available else row.needed
    things = things_of(row.resource, number)
    words = row._asdict() | {
        "needed": amount_text(row.resource, row.needed),
        "available": amount_text(row.resource, row.available),
    }
    are = be(words["available"])
    return place + _WORDS[row.reason].format(**words, things=things, are=are)


def amount_text(resource: str, amount: int) -> str:
    """An amount of a resource, for people; GPUs are counted in thousandths."""
    return format_gpus(amount) if resource == GPU else str(amount)


def things_of(resource: str, number: int) -> str:
    """What so many of a resource are called."""
    thing = _THINGS.get(resource)
    if thing is None:
        return resource
    return thing if is_one(amount_text(resource, number)) else f"{thing}s"


Shares = Mapping[str, Share]
"""What is fair and what is held, by the path of the tenant."""


def as_told(row: WaitDecision) -> WaitDecision:
    """Why a request that does not wait is turned away: no work is stopped for it."""
    if row.reason is not WaitReason.MAKING_ROOM:
        return row
    return row._replace(reason=WaitReason.CAPACITY, starts_at=None)


def shares_of(decisions: Decisions) -> Shares:
    """The shares of a decision, to be looked up."""
    return {share.path: share for share in decisions.shares}


def verdict_of(
    snapshot: PoolSnapshot,
    row: WaitDecision | None,
    account: str,
    shares: Shares,
    requested: int = 0,
) -> FairShareVerdict:
    """The pool's verdict on a request in numbers: of the scarce resource, or of its GPUs."""
    milli_gpus = snapshot.capacity[0][1] if snapshot.capacity else 0
    known = [shares[path] for path in reversed(lineage(account)) if path in shares]
    scopes = tuple(
        ScopeShare(
            each.path,
            milli_gpus * each.fair[0] // each.fair[1],
            milli_gpus * each.before[0] // each.before[1],
        )
        for each in known
        if milli_gpus  # of a drained pool nobody has a share: its totals are told
    )
    name, limit = snapshot.capacity[0] if snapshot.capacity else ("gpu", 0)
    axis = 0
    if row is not None:
        for axis, (name, limit) in enumerate(snapshot.capacity):  # noqa: B007  # the one it names
            if name == row.resource:
                break
        else:
            axis = 0
            name, limit = snapshot.capacity[0]
    current = sum(job.amounts[axis] for job in snapshot.running)
    if row is None:
        free = limit - current
        left, wanted = amount_text(name, free), amount_text(name, requested)
        text = (
            f"{left} {things_of(name, free)} {be(left)} free in {snapshot.pool}; "
            f"{account} may use {wanted}."
        )
        return FairShareVerdict(True, limit, current, requested, text, shares=scopes)
    said = row._replace(position=0, behind="another request" if row.behind else "")
    text = sentence(said)
    words = f"{text[0].upper()}{text[1:]}"
    needed = row.needed  # shares are told in GPUs, so what is wanted of another resource is too
    if axis and limit and scopes:
        needed = -(-needed * milli_gpus // limit)
    elif axis:  # the report counts thousandths
        needed, limit, current = (MILLI_PER_GPU * each for each in (needed, limit, current))
    ceiling = ceiling_of(row)
    if ceiling:
        words = f"{words} {OVER_POOL}"
    return FairShareVerdict(False, limit, current, needed, words, row.starts_at, scopes, ceiling)


def ceiling_of(row: WaitDecision) -> str:
    """What the whole pool has, if a request is larger than that; else nothing."""
    if row.reason is not WaitReason.EXCEEDS_POOL:
        return ""
    amount = amount_text(row.resource, row.available)
    return f"the pool has {amount} {things_of(row.resource, row.available)}"


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
