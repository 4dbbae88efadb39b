"""Pools on the wire: what there is of a type of GPU, how it is shared, and who holds how much."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpucredits.core.fairshare.snapshot import WEIGHT_MAX
from gpucredits.wire.documented import (
    ACCOUNT,
    CPU,
    GPU_TYPE,
    MEMORY,
    POLICY,
    REGION,
    RESOURCES,
    SCOPE,
    WEIGHT,
    WINDOW_MAX_SECONDS,
    doc,
)
from gpucredits.wire.scalars import AccountPath, GpuAmount, Gpus, InstantText, WindowMaxSeconds

RESOURCE_MAX = 2**53 - 1  # the largest integer that every JSON reader keeps exact
SECONDS_MAX = 366 * 24 * 3_600
WEIGHTS_MAX = 10_000

ScopeName = Literal["user", "project", "org", "pool"]
UsageOrderName = Literal["ignored", "ties", "first"]
Seconds = Annotated[int, Meta(ge=0, le=SECONDS_MAX)]
Count = Annotated[int, Meta(ge=0, le=100_000)]
Amount = Annotated[int, Meta(ge=1, le=RESOURCE_MAX)]
CAPACITY = doc("GPUs in all. Without a capacity the pool does not gate; with 0 nobody new gets in.")
WeightNumber = Annotated[int, Meta(ge=0, le=WEIGHT_MAX)]
Percent = Annotated[str, Meta(pattern=r"^\d+\.\d{2}$", description="Of the pool.")]
GpusText = Annotated[str, Meta(pattern=r"^\d+\.\d{2}$", description="GPUs, cut after 2 decimals.")]
# What the terms of a pool mean, to whoever sets, changes or reads them.
PREEMPTION = doc("Whether work above its share is stopped for tenants below theirs.")
GRACE = doc("How long preempted work has to stop.")
MIN_RUNTIME = doc("Work that has run shorter than this is not preempted.")
PREEMPTIONS_MAX = doc("The most leases that one cycle may stop.")
BACKFILL = doc(
    "Whether smaller work may overtake the head of the queue if it does not delay the head."
)
BACKFILL_DEPTH = doc("How many requests behind the head are considered for backfill.")
HOLD_AFTER = doc("After how long free GPUs are kept for the head of the queue.")
PRIORITY_SCOPE = doc("Up to which level of the tree priority counts.")
USAGE_ORDER = doc("What past use decides: nothing, ties, or who goes first.")
HALF_LIFE = doc("Time after which past use counts half; 0 if past use is not kept.")
BORROWING = doc(
    "Whether orgs may borrow GPUs that others leave idle, unless a weight says otherwise."
)
POOL_GPUS = doc("The number of GPUs; null if the pool does not gate.")
MAY_BORROW = doc("Whether the account may hold more than its share when others leave GPUs idle.")
WAITING = doc("The number of requests that wait.")
WAITING_GPUS = doc("The number of GPUs that waiting requests ask for.")


class PoolResources(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The resources of a pool besides GPUs; only named resources are divided."""

    cpu: Annotated[Amount | None, CPU] = None
    memory: Annotated[Amount | None, MEMORY] = None


class PoolPolicy(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a pool is shared."""

    preemption: Annotated[bool, PREEMPTION] = True
    grace_seconds: Annotated[Seconds, GRACE] = 30
    min_runtime_seconds: Annotated[Seconds, MIN_RUNTIME] = 300
    preemptions_max: Annotated[Count, PREEMPTIONS_MAX] = 100
    backfill: Annotated[bool, BACKFILL] = True
    backfill_depth: Annotated[Count, BACKFILL_DEPTH] = 1_000
    hold_after_seconds: Annotated[Seconds, HOLD_AFTER] = 3_600
    priority_scope: Annotated[ScopeName, PRIORITY_SCOPE] = "user"
    usage_order: Annotated[UsageOrderName, USAGE_ORDER] = "ignored"
    half_life_seconds: Annotated[Seconds, HALF_LIFE] = 0
    borrowing: Annotated[bool, BORROWING] = True
    window_max_seconds: Annotated[WindowMaxSeconds, WINDOW_MAX_SECONDS] = 0


class PoolRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """All terms of a pool; terms that are left out get their defaults."""

    capacity: Annotated[GpuAmount | None, CAPACITY] = None
    resources: Annotated[PoolResources | None, RESOURCES] = None
    policy: Annotated[PoolPolicy, POLICY] = field(default_factory=PoolPolicy)


class ResourcesChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The other resources of a pool to change; null takes one away."""

    cpu: Annotated[Amount | UnsetType | None, CPU] = UNSET
    memory: Annotated[Amount | UnsetType | None, MEMORY] = UNSET


class PolicyChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of a pool's policy to change; null restores the default."""

    preemption: Annotated[bool | UnsetType | None, PREEMPTION] = UNSET
    grace_seconds: Annotated[Seconds | UnsetType | None, GRACE] = UNSET
    min_runtime_seconds: Annotated[Seconds | UnsetType | None, MIN_RUNTIME] = UNSET
    preemptions_max: Annotated[Count | UnsetType | None, PREEMPTIONS_MAX] = UNSET
    backfill: Annotated[bool | UnsetType | None, BACKFILL] = UNSET
    backfill_depth: Annotated[Count | UnsetType | None, BACKFILL_DEPTH] = UNSET
    hold_after_seconds: Annotated[Seconds | UnsetType | None, HOLD_AFTER] = UNSET
    priority_scope: Annotated[ScopeName | UnsetType | None, PRIORITY_SCOPE] = UNSET
    usage_order: Annotated[UsageOrderName | UnsetType | None, USAGE_ORDER] = UNSET
    half_life_seconds: Annotated[Seconds | UnsetType | None, HALF_LIFE] = UNSET
    borrowing: Annotated[bool | UnsetType | None, BORROWING] = UNSET
    window_max_seconds: Annotated[WindowMaxSeconds | UnsetType | None, WINDOW_MAX_SECONDS] = UNSET


class PoolChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of a pool to change; others stay, and null restores the default.

    Where there is no such pool, one is made.
    """

    capacity: Annotated[GpuAmount | UnsetType | None, CAPACITY] = UNSET
    resources: Annotated[ResourcesChange | UnsetType | None, RESOURCES] = UNSET
    policy: Annotated[PolicyChange | UnsetType | None, POLICY] = UNSET


class PoolAnswer(Struct, kw_only=True):
    """A pool as it is."""

    gpu_type: Annotated[str, GPU_TYPE]
    region: Annotated[str, REGION]
    capacity: Annotated[Gpus | None, POOL_GPUS]
    resources: Annotated[PoolResources, RESOURCES]
    policy: Annotated[PoolPolicy, POLICY]
    updated_at: Annotated[InstantText, doc("When it was last set.")]


class PoolList(Struct, kw_only=True):
    """Every pool, in order of their names."""

    pools: Annotated[list[PoolAnswer], doc("Every pool.")]


class PoolWeight(Struct, kw_only=True, forbid_unknown_fields=True):
    """The weight of an org, a project or a user among its siblings; 1 if it is not named."""

    account: Annotated[AccountPath, ACCOUNT]
    weight: Annotated[WeightNumber, WEIGHT] = 1
    may_borrow: Annotated[bool, MAY_BORROW] = True


class WeightsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """All weights of a pool; they replace those before."""

    weights: Annotated[
        list[PoolWeight],
        Meta(max_length=WEIGHTS_MAX),
        doc("All weights of the pool; other accounts have 1."),
    ]


class WeightChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """A change of one weight; what is left out stays as it is."""

    account: Annotated[AccountPath, ACCOUNT]
    weight: Annotated[WeightNumber | None, doc("The new weight; absent means as before.")] = None
    may_borrow: Annotated[
        bool | None, doc("Whether the account may borrow; absent means as before.")
    ] = None


class WeightsChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """Changes of some weights of a pool; the others stay as they are."""

    weights: Annotated[
        list[WeightChange],
        Meta(min_length=1, max_length=WEIGHTS_MAX),
        doc("The weights to change."),
    ]


class WeightAnswer(Struct, kw_only=True):
    """A weight that was set."""

    account: Annotated[str, ACCOUNT]
    weight: Annotated[int, WEIGHT]
    may_borrow: Annotated[bool, MAY_BORROW]


class WeightsAnswer(Struct, kw_only=True):
    """The weights of a pool that the caller may see."""

    gpu_type: Annotated[str, GPU_TYPE]
    region: Annotated[str, REGION]
    weights: Annotated[list[WeightAnswer], doc("Weights that were set; other accounts have 1.")]


class ShareAnswer(Struct, kw_only=True):
    """What one tenant may hold (its target), holds, borrows and waits for.

    With several resources, the percentages are those of the tenant's dominant resource. Past use
    fades; it is 0 where the pool keeps none.
    """

    account: Annotated[str, ACCOUNT]
    scope: Annotated[str, SCOPE]
    weight: Annotated[int, WEIGHT]
    target: Annotated[GpusText, doc("GPUs that fair share allows.")]
    target_percent: Annotated[
        Percent, doc("The part of the pool that fair share allows, in percent.")
    ]
    held: Annotated[Gpus, doc("GPUs that the tenant holds.")]
    held_percent: Annotated[Percent, doc("The part of the pool that the tenant holds, in percent.")]
    borrowed: Annotated[GpusText, doc("GPUs held above the fair share.")]
    waiting: Annotated[int, WAITING]
    waiting_gpus: Annotated[Gpus, WAITING_GPUS]
    past_gpu_seconds: Annotated[int, doc("Past use that has not faded; 0 if none is kept.")]


class SharesAnswer(Struct, kw_only=True):
    """A pool in all, and the tenants that the caller may see."""

    gpu_type: Annotated[str, GPU_TYPE]
    region: Annotated[str, REGION]
    capacity: Annotated[Gpus | None, POOL_GPUS]
    held: Annotated[Gpus, doc("The number of GPUs that are held.")]
    stopping: Annotated[Gpus, doc("GPUs of work that was told to stop.")]
    free: Annotated[Gpus, doc("GPUs that nobody holds.")]
    over: Annotated[Gpus, doc("GPUs held beyond the capacity; nothing starts until this is 0.")]
    tenants: Annotated[int, doc("The number of orgs that hold something or wait.")]
    waiting: Annotated[int, WAITING]
    waiting_gpus: Annotated[Gpus, WAITING_GPUS]
    is_dispatched: Annotated[bool, doc("Whether a server is dispatching the pool now.")]
    shares: Annotated[list[ShareAnswer], doc("The tenants that the caller may see.")]


class SnapshotAnswer(Struct, kw_only=True):
    """The last decision that was kept, and the snapshot that it was made from."""

    taken_at: Annotated[InstantText, doc("When the decision was made.")]
    snapshot: Annotated[
        dict[str, Any], doc("The snapshot of the pool that the decision was made from.")
    ]
    decision: Annotated[dict[str, Any], doc("The decision.")]
