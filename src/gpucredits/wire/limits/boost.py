"""Boosts on the wire: limits raised for a while."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from gpucredits.core.gate import GateUnit
from gpucredits.core.limit_states import boost_state
from gpucredits.core.limits import Boost
from gpucredits.core.outcome import Boosted
from gpucredits.wire.documented import (
    ACCOUNT,
    AS_OF,
    BOOSTS,
    CREATED_AT,
    NOTE,
    SET_BY_SCOPE,
    UNIT,
    doc,
)
from gpucredits.wire.gate import QuantityText, UnitName
from gpucredits.wire.scalars import (
    Credits,
    CreditsText,
    GpuType,
    Instant,
    InstantText,
    Name,
    Note,
    Zone,
)
from gpucredits.wire.words import AuthorityName

TargetName = Literal[
    "credits_per_job", "concurrent_gpus", "concurrent_jobs", "credits_per_window", "rate_limit"
]


class BoostRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Raise a limit of an account by ``amount`` until ``ends_at``, from now or ``starts_at``.

    The limit is named by its id (``target_id``), or by what it is: ``rate_limit``, or a quota's
    dimension with whatever else it was set with.
    """

    ends_at: Annotated[Instant, doc("When the boost lapses.")]
    amount: Annotated[Credits, doc("The increase of the limit.")] = field(
        default_factory=lambda: Credits(0)
    )
    refill_per_hour: Annotated[Credits, doc("The increase of a rate limit's refill.")] = field(
        default_factory=lambda: Credits(0)
    )
    starts_at: Annotated[Instant | None, doc("The start; now unless given.")] = None
    target_id: Annotated[Name | None, doc("The id of the quota or rate limit that is raised.")] = (
        None
    )
    dimension: Annotated[
        TargetName | None, doc("The limit to raise, if target_id is not given.")
    ] = None
    gpu_type: Annotated[GpuType | None, doc("The GPU type of the quota to raise.")] = None
    calendar: Annotated[
        Literal["day", "week", "month"] | None, doc("The calendar of the quota to raise.")
    ] = None
    zone: Annotated[Zone | None, doc("The time zone of the quota to raise.")] = None
    rolling_hours: Annotated[int | None, doc("The rolling hours of the quota to raise.")] = None
    note: Annotated[Note, NOTE] = field(default_factory=lambda: Note(""))

    def __post_init__(self) -> None:
        """Refuse what names no limit or two, or would raise nothing."""
        if (self.target_id is None) is (self.dimension is None):
            raise ValueError("give either target_id or dimension, to say which limit is raised")
        described = (self.gpu_type, self.calendar, self.zone, self.rolling_hours)
        if self.target_id is not None and any(each is not None for each in described):
            raise ValueError(
                "target_id says it all: leave gpu_type, calendar, zone and rolling_hours out"
            )
        if not self.amount and not self.refill_per_hour:
            raise ValueError("give an amount to raise the limit by, more than 0")


class BoostAnswer(Struct, kw_only=True):
    """A boost; ``target_id`` is the quota or the rate limit that it raises."""

    boost_id: Annotated[str, doc("The id of the boost.")]
    account: Annotated[str, ACCOUNT]
    target_id: Annotated[str, doc("The id of the quota or rate limit that is raised.")]
    unit: Annotated[UnitName, UNIT]
    amount: Annotated[QuantityText, doc("The increase of the limit.")]
    refill_per_hour: Annotated[
        CreditsText | None, doc("The increase of the refill; null for a quota.")
    ]
    starts_at: Annotated[InstantText, doc("When the boost starts.")]
    ends_at: Annotated[InstantText, doc("When the boost lapses.")]
    note: Annotated[str, NOTE]
    created_at: Annotated[InstantText, CREATED_AT]
    set_by_scope: Annotated[AuthorityName, SET_BY_SCOPE]


class BoostsAnswer(Struct, kw_only=True):
    """The boosts of an account's limits that have not ended."""

    account: Annotated[str, ACCOUNT]
    boosts: Annotated[list[BoostAnswer], BOOSTS]
    as_of: Annotated[InstantText, AS_OF]


def boosted_to_wire(org_id: int, outcome: Boosted) -> BoostAnswer:
    """The answer to a boost."""
    return boost_to_wire(
        org_id,
        outcome.path,
        outcome.boost,
        unit=outcome.unit,
        is_rate_limit=outcome.is_rate_limit,
    )


def boost_to_wire(
    org_id: int, path: str, boost: Boost, *, unit: GateUnit, is_rate_limit: bool
) -> BoostAnswer:
    """A boost as it is shown."""
    state = boost_state(org_id, path, boost, unit=unit, is_rate_limit=is_rate_limit)
    return BoostAnswer(**state)
