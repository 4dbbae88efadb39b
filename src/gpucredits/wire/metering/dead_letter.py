"""Dead letters on the wire: messages of the bus that could not be used."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from gpucredits.wire.documented import NEXT_CURSOR, STATE, doc
from gpucredits.wire.metering.usage_message import UsageMessage
from gpucredits.wire.scalars import InstantText

LetterStateName = Literal["waiting", "replayed", "dropped"]
LetterReason = Literal["unreadable", "unknown", "refused"]


class DeadLetterAnswer(Struct, kw_only=True):
    """A message that could not be used, and what became of it."""

    letter_id: Annotated[str, doc("The id of the dead letter.")]
    topic: Annotated[str, doc("What the message is about: usage.")]
    partition: Annotated[int, doc("The partition of the bus that it came from.")]
    position: Annotated[int, doc("Its position there.")]
    received_at: Annotated[InstantText, doc("When it was put aside.")]
    reason: Annotated[
        LetterReason,
        doc("unreadable, unknown (no such lease or account), or refused by the database."),
    ]
    detail: Annotated[str, doc("The reason in words.")]
    state: Annotated[LetterStateName, STATE]
    decided_at: Annotated[InstantText | None, doc("When it was replayed or dropped.")] = None
    decided_by: Annotated[str | None, doc("The key that did it.")] = None
    body: Annotated[Any, doc("The message: as JSON, or as text if it is none; null in lists.")] = (
        None
    )
    is_json: Annotated[bool, doc("Whether the message is JSON.")] = True


class DeadLetterPage(Struct, kw_only=True):
    """Dead letters, the latest first."""

    dead_letters: Annotated[list[DeadLetterAnswer], doc("The dead letters.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class ReplayRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Use a dead letter: as it is, or mended."""

    body: Annotated[
        UsageMessage | None, doc("The mended message; the message as it is unless given.")
    ] = None
