"""A message of measured use, as it is on the bus and as people mend it in a dead letter."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gpucredits.core.bounds import NAME_LENGTH_MAX, USED_MS_MAX
from gpucredits.wire.documented import JOB_ID, NODE, doc

EVENTS_PER_MESSAGE: Final = 1_000
NUMBER_MAX: Final = 2**63 - 1

Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Text = Annotated[str, Meta(max_length=NAME_LENGTH_MAX)]


class MeasuredUse(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One event: of a lease, or else of a job of an account."""

    job_id: Annotated[Text, JOB_ID]
    node: Annotated[Text, NODE] = ""
    reservation_id: Annotated[Text, doc("The id of the lease; empty if account_id is given.")] = ""
    account_id: Annotated[Number, doc("The number of the account in its org; 0 for a lease.")] = 0
    seq: Annotated[Number, doc("The number of the event; makes the event safe to repeat.")]
    used_ms: Annotated[
        Annotated[int, Meta(ge=0, le=USED_MS_MAX)], doc("Milliseconds of use that were measured.")
    ]
    payload: Annotated[dict[str, Any], doc("The rest of what the node reported.")] = {}
    is_attested: Annotated[
        bool, doc("Whether a node attests the event; counts only with the proof of the message.")
    ] = False


class UsageMessage(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Events of one org."""

    org_id: Annotated[
        Annotated[int, Meta(ge=1, le=NUMBER_MAX)], doc("The number of the org, as in its ids.")
    ]
    events: Annotated[
        Annotated[list[MeasuredUse], Meta(min_length=1, max_length=EVENTS_PER_MESSAGE)],
        doc("The events, at most 1,000."),
    ]
    proof: Annotated[
        Text, doc("Proof that a server wrote the message; without it, no event is attested.")
    ] = ""
