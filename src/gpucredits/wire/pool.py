"""Pools on the wire: what there is of a type of GPU, how it is shared, and who holds how much."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpucredits.core.bounds import GPU_COUNT_MAX
from gpucredits.core.fairshare.snapshot import WEIGHT_MAX
from gpucredits.wire.scalars import AccountPath, InstantText, WindowMaxSeconds

RESOURCE_MAX = 2**53 - 1  # the largest integer that every JSON reader keeps exact
SECONDS_MAX = 366 * 24 * 3_600
WEIGHTS_MAX = 10_000
CAPACITY_MAX = 10 * GPU_COUNT_MAX

ScopeName = Literal["user", "project", "org", "pool"]
UsageOrderName = Literal["ignored", "ties", "first"]
Seconds = Annotated[int, Meta(ge=0, le=SECONDS_MAX)]
Count = Annotated[int, Meta(ge=0, le=100_000)]
Capacity = Annotated[
    int,
    Meta(
        ge=0,
        le=CAPACITY_MAX,
        description="GPUs in all; without it the pool does not gate, with 0 nobody new gets in.",
    ),
]
Amount = Annotated[int, Meta(ge=1, le=RESOURCE_MAX)]
WeightNumber = Annotated[int, Meta(ge=0, le=WEIGHT_MAX)]
Percent = Annotated[str, Meta(pattern=r"^\d+\.\d{2}$", description="Of the pool.")]
GpusText = Annotated[str, Meta(pattern=r"^\d+\.\d{2}$", description="GPUs, cut after 2 decimals.")]


class PoolResources(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a pool has besides GPUs; only what is named is divided."""

    cpu: Amount | None = None
    memory: Amount | None = None


class PoolPolicy(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a pool is shared."""

    preemption: bool = True
    grace_seconds: Seconds = 30
    min_runtime_seconds: Seconds = 300
    preemptions_max: Count = 100
    backfill: bool = True
    backfill_depth: Count = 1_000
    hold_after_seconds: Seconds = 3_600
    priority_scope: ScopeName = "user"
    usage_order: UsageOrderName = "ignored"
    half_life_seconds: Seconds = 0
    borrowing: bool = True
    window_max_seconds: WindowMaxSeconds = 0


class PoolRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A pool as it is to be; what is left out has its default."""

    capacity: Capacity | None = None
    resources: PoolResources | None = None
    policy: PoolPolicy = field(default_factory=PoolPolicy)


class ResourcesChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to change of a pool's other resources; null takes one away."""

    cpu: Amount | UnsetType | None = UNSET
    memory: Amount | UnsetType | None = UNSET


class PolicyChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to change of a pool's policy; null is the default."""

    preemption: bool | UnsetType | None = UNSET
    grace_seconds: Seconds | UnsetType | None = UNSET
    min_runtime_seconds: Seconds | UnsetType | None = UNSET
    preemptions_max: Count | UnsetType | None = UNSET
    backfill: bool | UnsetType | None = UNSET
    backfill_depth: Count | UnsetType | None = UNSET
    hold_after_seconds: Seconds | UnsetType | None = UNSET
    priority_scope: ScopeName | UnsetType | None = UNSET
    usage_order: UsageOrderName | UnsetType | None = UNSET
    half_life_seconds: Seconds | UnsetType | None = UNSET
    borrowing: bool | UnsetType | None = UNSET
    window_max_seconds: WindowMaxSeconds | UnsetType | None = UNSET


class PoolChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to change of a pool; what is left out stays, and null is the default.

    Where there is no such pool, one is made.
    """

    capacity: Capacity | UnsetType | None = UNSET
    resources: ResourcesChange | UnsetType | None = UNSET
    policy: PolicyChange | UnsetType | None = UNSET


class PoolAnswer(Struct, kw_only=True):
    """A pool as it is."""

    gpu_type: str
    region: str
    capacity: int | None
    resources: PoolResources
    policy: PoolPolicy
    updated_at: InstantText


class PoolList(Struct, kw_only=True):
    """Every pool, in order of their names."""

    pools: list[PoolAnswer]


class PoolWeight(Struct, kw_only=True, forbid_unknown_fields=True):
    """How much an org, a project or a user counts for among its siblings; 1 if it is not named."""

    account: AccountPath
    weight: WeightNumber = 1
    may_borrow: bool = True


class WeightsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """All weights of a pool; they replace those before."""

    weights: Annotated[list[PoolWeight], Meta(max_length=WEIGHTS_MAX)]


class WeightChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """A change of one weight; what is left out stays as it is."""

    account: AccountPath
    weight: WeightNumber | None = None
    may_borrow: bool | None = None


class WeightsChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """Changes of some weights of a pool; the others stay as they are."""

    weights: Annotated[list[WeightChange], Meta(min_length=1, max_length=WEIGHTS_MAX)]


class WeightAnswer(Struct, kw_only=True):
    """A weight that was set."""

    account: str
    weight: int
    may_borrow: bool


class WeightsAnswer(Struct, kw_only=True):
    """The weights of a pool that the caller may see."""

    gpu_type: str
    region: str
    weights: list[WeightAnswer]


class ShareAnswer(Struct, kw_only=True):
    """What one tenant may hold (its target), holds, borrows and waits for.

    With several resources the percentages are those of the one that it has most of. Past use
    fades; it is 0 where none is kept.
    """

    account: str
    scope: str
    weight: int
    target: GpusText
    target_percent: Percent
    held: int
    held_percent: Percent
    borrowed: GpusText
    waiting: int
    waiting_gpus: int
    past_gpu_seconds: int


class SharesAnswer(Struct, kw_only=True):
    """A pool in all, and the tenants that the caller may see."""

    gpu_type: str
    region: str
    capacity: int | None
    held: int
    stopping: int
    free: int
    over: int
    tenants: int
    waiting: int
    waiting_gpus: int
    is_dispatched: bool
    shares: list[ShareAnswer]


class SnapshotAnswer(Struct, kw_only=True):
    """The last decision that was kept, and the snapshot that it was made from."""

    taken_at: InstantText
    snapshot: dict[str, Any]
    decision: dict[str, Any]
