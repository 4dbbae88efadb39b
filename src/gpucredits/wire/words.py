"""Closed lists of words that answers are made of, as the OpenAPI document lists them.

Owns: which words a reader of the document may count on. A client takes any word, so that one that
is older than its server still reads its answers.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from gpucredits.core.authority import Authority
from gpucredits.core.fairshare.decisions import WaitReason
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import (
    BEYOND_AUTHORISED,
    BEYOND_ELAPSED,
    SEQ_TAKEN,
    WENT_BACK,
    ReservationState,
    Why,
)

BEAT_REASONS: Final = (
    Reason.RESERVATION_UNKNOWN.value,
    *(state.name.lower() for state in ReservationState if state is not ReservationState.ACTIVE),
    *(why.value for why in Why if why),
    *("wrong_node", "busy", "unavailable", "internal"),
)
BEAT_FLAGS: Final = (WENT_BACK, BEYOND_ELAPSED, BEYOND_AUTHORISED, SEQ_TAKEN)

AuthorityName = Literal["system", "org", "project", "user"]
AUTHORITY_NAMES: dict[Authority, AuthorityName] = {
    Authority.SYSTEM: "system",
    Authority.ORG: "org",
    Authority.PROJECT: "project",
    Authority.USER: "user",
}

BeatReason = Annotated[str, Meta(extra_json_schema={"enum": ["", *BEAT_REASONS]})]
BeatFlag = Annotated[str, Meta(extra_json_schema={"enum": ["", *BEAT_FLAGS]})]
RefusalReason = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in Reason]})]
WaitWord = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in WaitReason]})]
