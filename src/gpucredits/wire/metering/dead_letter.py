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
    topic: Annotated[str, doc("The topic of the message: usage.")]
    partition: Annotated[int, doc("The bus partition of the message.")]
    position: Annotated[int, doc("The position of the message in its partition.")]
    received_at: Annotated[InstantText, doc("When the message became a dead letter.")]
    reason: Annotated[
        LetterReason,
        doc("unreadable, unknown (no such lease or account), or refused by the database."),
    ]
    detail: Annotated[str, doc("The reason in words.")]
    state: Annotated[LetterStateName, STATE]
    decided_at: Annotated[
        InstantText | None, doc("When the dead letter was replayed or dropped; null before.")
    ] = None
    decided_by: Annotated[str | None, doc("The key that replayed or dropped it; null before.")] = (
        None
    )
    body: Annotated[
        Any, doc("The message: as JSON, or as text if it is not JSON; null in lists.")
    ] = None
    is_json: Annotated[bool, doc("Whether the message is JSON.")] = True


class DeadLetterPage(Struct, kw_only=True):
    """Dead letters, the latest first."""

    dead_letters: Annotated[list[DeadLetterAnswer], doc("The dead letters.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class ReplayRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Use a dead letter: as it is, or mended."""

    body: Annotated[
        UsageMessage | None, doc("The mended message; without it, the stored message is used.")
    ] = None
