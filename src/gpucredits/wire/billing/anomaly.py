"""Unusual spending on the wire: what was found and why, and the terms by which it is judged."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpucredits.core.risk import FLOOR_DEFAULT, RATIO_PERCENT_DEFAULT
from gpucredits.wire.documented import (
    ACCOUNT,
    AUTO_SUSPEND,
    FLOOR,
    NEXT_CURSOR,
    RATIO_PERCENT,
    SET_BY_SCOPE,
    doc,
)
from gpucredits.wire.scalars import AccountPath, Credits, CreditsText, InstantText
from gpucredits.wire.words import AuthorityName

ActionName = Literal["none", "suspending", "suspended", "refused"]
Ratio = Annotated[int, Meta(gt=100, le=1_000_000)]


class AnomalyAnswer(Struct, kw_only=True):
    """An hour in which an account spent more than usual, the numbers behind it, and a sentence."""

    anomaly_id: Annotated[str, doc("The id of the unusual hour.")]
    account: Annotated[str, ACCOUNT]
    starts_at: Annotated[InstantText, doc("The start of the hour.")]
    ends_at: Annotated[InstantText, doc("The end of the hour.")]
    observed: Annotated[CreditsText, doc("Credits spent in the hour.")]
    baseline: Annotated[CreditsText, doc("The median hour before this one.")]
    threshold: Annotated[CreditsText, doc("An hour above this amount is unusual.")]
    baseline_hours: Annotated[int, doc("The number of hours in the median.")]
    ratio_percent: Annotated[int, doc("The percentage in force at that time.")]
    floor: Annotated[CreditsText, doc("The floor in force at that time.")]
    sentence: Annotated[str, doc("The same in words.")]
    found_at: Annotated[InstantText, doc("When the anomaly was found.")]
    action: Annotated[ActionName, doc("What followed: nothing, or a suspension and its state.")]


class AnomalyPage(Struct, kw_only=True):
    """Unusual hours, the latest first."""

    anomalies: Annotated[list[AnomalyAnswer], doc("The unusual hours of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class AnomalyTermsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """When an hour is unusual: above so many percent of the median hour, and above a floor."""

    account: Annotated[AccountPath, ACCOUNT]
    ratio_percent: Annotated[Ratio, RATIO_PERCENT] = RATIO_PERCENT_DEFAULT
    floor: Annotated[Credits, FLOOR] = field(default_factory=lambda: Credits(FLOOR_DEFAULT))
    auto_suspend: Annotated[bool, AUTO_SUSPEND] = False


class AnomalyTermsChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of an account to change; others stay, and null restores the default."""

    account: Annotated[AccountPath, ACCOUNT]
    ratio_percent: Annotated[Ratio | UnsetType | None, RATIO_PERCENT] = UNSET
    floor: Annotated[Credits | UnsetType | None, FLOOR] = UNSET
    auto_suspend: Annotated[bool | UnsetType | None, AUTO_SUSPEND] = UNSET


class AnomalyTermsAnswer(Struct, kw_only=True):
    """The terms of an account."""

    account: Annotated[str, ACCOUNT]
    ratio_percent: Annotated[int, RATIO_PERCENT]
    floor: Annotated[CreditsText, FLOOR]
    auto_suspend: Annotated[bool, AUTO_SUSPEND]
    set_by_scope: Annotated[AuthorityName | None, SET_BY_SCOPE] = None
