"""Boosts on the wire: limits raised for a while."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from gpucredits.core.authority import Authority
from gpucredits.core.boost import Boost
from gpucredits.core.gate import GateUnit
from gpucredits.core.limit_states import boost_state
from gpucredits.core.outcome import Boosted
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

AuthorityName = Literal["system", "org", "project", "user"]
TargetName = Literal[
    "credits_per_job", "concurrent_gpus", "concurrent_jobs", "credits_per_window", "rate_limit"
]

AUTHORITY_NAMES: dict[Authority, AuthorityName] = {
    Authority.SYSTEM: "system",
    Authority.ORG: "org",
    Authority.PROJECT: "project",
    Authority.USER: "user",
}


class BoostRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Raise a limit of an account by ``amount`` until ``ends_at``, from now or ``starts_at``.

    The limit is named by its id (``target_id``), or by what it is: ``rate_limit``, or a quota's
    dimension with whatever else it was set with.
    """

    ends_at: Instant
    amount: Credits = field(default_factory=lambda: Credits(0))
    refill_per_hour: Credits = field(default_factory=lambda: Credits(0))
    starts_at: Instant | None = None
    target_id: Name | None = None
    dimension: TargetName | None = None
    gpu_type: GpuType | None = None
    calendar: Literal["day", "week", "month"] | None = None
    zone: Zone | None = None
    rolling_hours: int | None = None
    note: Note = field(default_factory=lambda: Note(""))

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

    boost_id: str
    account: str
    target_id: str
    unit: UnitName
    amount: QuantityText
    refill_per_hour: CreditsText | None
    starts_at: InstantText
    ends_at: InstantText
    note: str
    created_at: InstantText
    set_by_scope: AuthorityName


class BoostsAnswer(Struct, kw_only=True):
    """The boosts of an account's limits that have not ended."""

    account: str
    boosts: list[BoostAnswer]
    as_of: InstantText


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
