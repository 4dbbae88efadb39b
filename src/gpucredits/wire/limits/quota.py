"""Quotas on the wire: setting them, and how they stand."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from gpucredits.core import bounds, ids
from gpucredits.core.authority import Authority
from gpucredits.core.command import ReplaceQuotas, SetQuota
from gpucredits.core.gate import quantity_of
from gpucredits.core.limit_standing import QuotaStanding
from gpucredits.core.limit_states import quota_state
from gpucredits.core.outcome import QuotaSaved, QuotasReplaced
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension, Quota, unit_of
from gpucredits.wire.documented import (
    ACCOUNT,
    AS_OF,
    BOOSTS,
    CALENDAR,
    CREATED_AT,
    ENDED_AT,
    QUOTAS,
    SET_BY_SCOPE,
    UNIT,
    ZONE,
    doc,
)
from gpucredits.wire.gate import QuantityText, UnitName, format_quantity
from gpucredits.wire.limits.boost import BoostAnswer, boost_to_wire
from gpucredits.wire.scalars import Credits, GpuType, InstantText, Zone, format_instant
from gpucredits.wire.words import AuthorityName

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
    """A quota for all GPU types or for one; a quota that exists already gets the new limit.

    ``credits_per_window`` has a calendar and its zone, or rolling hours; the others have neither.
    """

    dimension: Annotated[DimensionName, doc("The quantity that is limited.")]
    limit: Annotated[Credits, doc("The limit: credits, GPUs, or a whole number of jobs.")]
    gpu_type: Annotated[GpuType | None, doc("The GPU type that counts; absent means all.")] = None
    calendar: Annotated[CalendarName | None, CALENDAR] = None
    zone: Annotated[Zone | None, ZONE] = None
    rolling_hours: Annotated[
        RollingHours | None,
        doc("The length of a rolling window in hours; null if the quota has none."),
    ] = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        check_window(self.calendar, self.zone)
        dimension = DIMENSIONS[self.dimension]
        try:
            quantity_of(self.limit, unit_of(dimension))
        except ValueError as error:
            raise ValueError(f"limit {error}") from error


class QuotasRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """All quotas of an account from now on; quotas that are not in the list end.

    Quotas that were set at a wider scope than the key's stay as they are.
    """

    quotas: Annotated[list[QuotaRequest], Meta(max_length=bounds.QUOTAS_MAX), QUOTAS]


class QuotaTerms(Struct, kw_only=True):
    """A quota as it was set."""

    quota_id: Annotated[str, doc("The id of the quota.")]
    account: Annotated[str, ACCOUNT]
    dimension: Annotated[DimensionName, doc("The quantity that is limited.")]
    unit: Annotated[UnitName, UNIT]
    limit: Annotated[QuantityText, doc("The limit as it was set.")]
    gpu_type: Annotated[str | None, doc("The GPU type that counts; null means all.")]
    calendar: Annotated[CalendarName | None, CALENDAR]
    zone: Annotated[str | None, ZONE]
    rolling_hours: Annotated[
        int | None, doc("The length of a rolling window in hours; null if the quota has none.")
    ]
    created_at: Annotated[InstantText, CREATED_AT]
    set_by_scope: Annotated[AuthorityName, SET_BY_SCOPE]
    ended_at: Annotated[InstantText | None, ENDED_AT] = None


class QuotasTerms(Struct, kw_only=True):
    """The quotas that an account now has, and the ids of those that ended."""

    account: Annotated[str, ACCOUNT]
    quotas: Annotated[list[QuotaTerms], QUOTAS]
    ended: Annotated[
        list[str], doc("The ids of quotas that ended because the list did not have them.")
    ]


class QuotaAnswer(QuotaTerms, kw_only=True):
    """A quota and how it stands: ``cap`` is its limit with the boosts that are in force.

    ``used`` is what runs or was spent, ``held`` what live leases hold of a window, ``left`` the
    rest. A quota on credits per job has no count of its own.
    """

    cap: Annotated[QuantityText, doc("The limit including boosts in force.")]
    used: Annotated[
        QuantityText | None,
        doc("What runs now, or was spent in the window; null for credits per job."),
    ]
    held: Annotated[
        QuantityText | None,
        doc("Credits that live leases hold of the window; null if there is no window."),
    ]
    left: Annotated[QuantityText | None, doc("The rest; null if it cannot be told.")]
    resets_at: Annotated[
        InstantText | None, doc("When the count starts again, or a bucket is full; null if never.")
    ]
    boosts: Annotated[list[BoostAnswer], BOOSTS]


class QuotasAnswer(Struct, kw_only=True):
    """The quotas of an account."""

    account: Annotated[str, ACCOUNT]
    quotas: Annotated[list[QuotaAnswer], QUOTAS]
    as_of: Annotated[InstantText, AS_OF]


def check_window(calendar: str | None, zone: str | None) -> None:
    """Refuse a zone that nothing would use; ValueError says so."""
    if zone is not None and calendar is None:
        raise ValueError("zone is for a calendar: give calendar too, or leave zone out")


def quota_from_wire(account: str, request: QuotaRequest, by: Authority) -> SetQuota:
    """The core's command."""
    dimension = DIMENSIONS[request.dimension]
    return SetQuota(
        account=account,
        dimension=dimension,
        limit=quantity_of(request.limit, unit_of(dimension)),
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
