"""Unusual spending on the wire: what was found and why, and the terms by which it is judged."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpucredits.core.risk import FLOOR_DEFAULT, RATIO_PERCENT_DEFAULT
from gpucredits.wire.scalars import AccountPath, Credits, CreditsText, InstantText

ActionName = Literal["none", "suspending", "suspended", "refused"]
Ratio = Annotated[int, Meta(gt=100, le=1_000_000)]


class AnomalyAnswer(Struct, kw_only=True):
    """An hour in which an account spent more than usual, the numbers behind it, and a sentence."""

    anomaly_id: str
    account: str
    starts_at: InstantText
    ends_at: InstantText
    observed: CreditsText
    baseline: CreditsText
    threshold: CreditsText
    baseline_hours: int
    ratio_percent: int
    floor: CreditsText
    sentence: str
    found_at: InstantText
    action: ActionName


class AnomalyPage(Struct, kw_only=True):
    """Unusual hours, the latest first."""

    anomalies: list[AnomalyAnswer]
    next_cursor: str | None = None


class AnomalyTermsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """When an hour is unusual: above so many percent of the median hour, and above a floor."""

    account: AccountPath
    ratio_percent: Ratio = RATIO_PERCENT_DEFAULT
    floor: Credits = field(default_factory=lambda: Credits(FLOOR_DEFAULT))
    auto_suspend: bool = False


class AnomalyTermsChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to change of an account's terms; what is left out stays, and null is the default."""

    account: AccountPath
    ratio_percent: Ratio | UnsetType | None = UNSET
    floor: Credits | UnsetType | None = UNSET
    auto_suspend: bool | UnsetType | None = UNSET


class AnomalyTermsAnswer(Struct, kw_only=True):
    """The terms of an account."""

    account: str
    ratio_percent: int
    floor: CreditsText
    auto_suspend: bool
