"""Quotas on the wire: setting them, and how they stand."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from gpucredits.core import bounds, ids
from gpucredits.core.authority import Authority
from gpucredits.core.command import ReplaceQuotas, SetQuota
from gpucredits.core.gate import GateUnit
from gpucredits.core.limit_standing import QuotaStanding
from gpucredits.core.limit_states import quota_state
from gpucredits.core.money import MICROS_PER_CREDIT
from gpucredits.core.outcome import QuotaSaved, QuotasReplaced
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension, Quota, unit_of
from gpucredits.wire.boost import AuthorityName, BoostAnswer, boost_to_wire
from gpucredits.wire.gate import QuantityText, UnitName, format_quantity
from gpucredits.wire.scalars import Credits, GpuType, InstantText, Zone, format_instant

DimensionName = Literal[
    "credits_per_job", "concurrent_gpus", "concurrent_jobs", "credits_per_window"
]
CalendarName = Literal["day", "week", "month"]
RollingHours = Annotated[
    int, Meta(ge=1, le=bounds.ROLLING_HOURS_MAX, description="The last so many hours.")
]
ZONE_DEFAULT = "UTC"

DIMENSIONS: dict[DimensionName, Dimension] = {
    "credits_per_job": Dimension.CREDITS_PER_JOB,
    "concurrent_gpus": Dimension.CONCURRENT_GPUS,
    "concurrent_jobs": Dimension.CONCURRENT_JOBS,
    "credits_per_window": Dimension.CREDITS_PER_WINDOW,
}
CALENDARS: dict[CalendarName, Calendar] = {
    "day": Calendar.DAY,
    "week": Calendar.WEEK,
    "month": Calendar.MONTH,
}


class QuotaRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A limit for all GPU types or for one; one that is set already gets the new limit.

    ``credits_per_window`` has a calendar and its zone, or rolling hours; the others have neither.
    """

    dimension: DimensionName
    limit: Credits
    gpu_type: GpuType | None = None
    calendar: CalendarName | None = None
    zone: Zone | None = None
    rolling_hours: RollingHours | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        check_window(self.calendar, self.zone)
        dimension = DIMENSIONS[self.dimension]
        if unit_of(dimension) is not GateUnit.CREDITS and self.limit % MICROS_PER_CREDIT:
            raise ValueError(f"limit must be a whole number for {self.dimension}")


class QuotasRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """All quotas that an account is to have; those that are not here end.

    Quotas that were set at a wider scope than the key's stay as they are.
    """

    quotas: Annotated[list[QuotaRequest], Meta(max_length=bounds.QUOTAS_MAX)]


class QuotaTerms(Struct, kw_only=True):
    """A quota as it was set."""

    quota_id: str
    account: str
    dimension: DimensionName
    unit: UnitName
    limit: QuantityText
    gpu_type: str | None
    calendar: CalendarName | None
    zone: str | None
    rolling_hours: int | None
    created_at: InstantText
    set_by_scope: AuthorityName
    ended_at: InstantText | None = None


class QuotasTerms(Struct, kw_only=True):
    """The quotas that an account now has, and the ids of those that ended."""

    account: str
    quotas: list[QuotaTerms]
    ended: list[str]


class QuotaAnswer(QuotaTerms, kw_only=True):
    """A quota and how it stands: ``cap`` is its limit with the boosts that are in force.

    ``used`` is what runs or was spent, ``held`` what live leases hold of a window, ``left`` the
    rest. A quota on credits per job counts nothing by itself.
    """

    cap: QuantityText
    used: QuantityText | None
    held: QuantityText | None
    left: QuantityText | None
    resets_at: InstantText | None
    boosts: list[BoostAnswer]


class QuotasAnswer(Struct, kw_only=True):
    """The quotas of an account."""

    account: str
    quotas: list[QuotaAnswer]
    as_of: InstantText


def check_window(calendar: str | None, zone: str | None) -> None:
    """Refuse a zone that nothing would use; ValueError says so."""
    if zone is not None and calendar is None:
        raise ValueError("zone is for a calendar: give calendar too, or leave zone out")


def quantity_from_wire(value: int, unit: GateUnit) -> int:
    """A number as the core has it: credits are in micro-credits, all else is counted."""
    return int(value) if unit is GateUnit.CREDITS else int(value) // MICROS_PER_CREDIT


def quota_from_wire(account: str, request: QuotaRequest, by: Authority) -> SetQuota:
    """The core's command."""
    dimension = DIMENSIONS[request.dimension]
    return SetQuota(
        account=account,
        dimension=dimension,
        limit=quantity_from_wire(request.limit, unit_of(dimension)),
        gpu_type=str(request.gpu_type or ""),
        calendar=None if request.calendar is None else CALENDARS[request.calendar],
        zone=str(request.zone or ZONE_DEFAULT),
        rolling_hours=request.rolling_hours or 0,
        by=by,
    )


def quotas_from_wire(account: str, request: QuotasRequest, by: Authority) -> ReplaceQuotas:
    """The core's command."""
    quotas = tuple(quota_from_wire(account, each, by) for each in request.quotas)
    return ReplaceQuotas(account=account, quotas=quotas, by=by)


def quota_saved_to_wire(org_id: int, outcome: QuotaSaved) -> QuotaTerms:
    """The answer to setting or ending a quota."""
    return quota_to_wire(org_id, outcome.path, outcome.quota)


def quotas_replaced_to_wire(org_id: int, outcome: QuotasReplaced) -> QuotasTerms:
    """The answer to replacing all quotas."""
    return QuotasTerms(
        account=outcome.path,
        quotas=[quota_to_wire(org_id, outcome.path, quota) for quota in outcome.quotas],
        ended=[ids.format_id(ids.QUOTA, org_id, quota.quota_id) for quota in outcome.ended],
    )


def quota_to_wire(org_id: int, path: str, quota: Quota) -> QuotaTerms:
    """A quota as it was set."""
    return QuotaTerms(**quota_state(org_id, path, quota))


def quota_standing_to_wire(org_id: int, path: str, standing: QuotaStanding) -> QuotaAnswer:
    """A quota and how it stands."""
    quota, unit = standing.quota, unit_of(standing.quota.dimension)

    def shown(value: int | None) -> str | None:
        return None if value is None else format_quantity(value, unit)

    return QuotaAnswer(
        **structs.asdict(quota_to_wire(org_id, path, quota)),
        cap=format_quantity(standing.cap, unit),
        used=shown(standing.used),
        held=shown(standing.held),
        left=shown(standing.left),
        resets_at=None if standing.resets_at is None else format_instant(standing.resets_at),
        boosts=[
            boost_to_wire(org_id, path, boost, unit=unit, is_rate_limit=False)
            for boost in standing.boosts
        ],
    )
