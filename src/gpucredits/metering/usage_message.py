"""Measured use as messages, each of one org, and back to rows.

A message with attested events has a proof: a code that only servers of this database can make.
Other writers on the bus can report use, but their reports never move money.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from gpucredits.core import ids
from gpucredits.core.bounds import USED_MS_MAX
from gpucredits.metering.bus import BODY_BYTES_MAX, Message
from gpucredits.store.billing.usage_events import UsageRow
from gpucredits.wire.metering.usage_message import (
    EVENTS_PER_MESSAGE,
    MeasuredUse,
    UsageMessage,
)

PURPOSE: Final = b"gpucredits messages of measured use"

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(UsageMessage)


class UnreadableMessageError(ValueError):
    """The bytes are no message of measured use; the text says why."""


def prover_of(signing_secret: bytes) -> bytes:
    """The secret for proofs, derived from the secret that servers of a database share."""
    return hmac.digest(signing_secret, PURPOSE, "sha256")


def proof_of(message: UsageMessage, prover: bytes) -> str:
    """The proof that a message ought to have."""
    bare = _ENCODER.encode(msgspec.structs.replace(message, proof=""))
    return hmac.new(prover, bare, hashlib.sha256).hexdigest()


def messages_of(rows: Sequence[UsageRow], message_id: str, prover: bytes) -> list[Message]:
    """Rows as messages, each of one org, in order; ``message_id`` makes their ids."""
    by_org: dict[int, list[UsageRow]] = {}
    for row in rows:
        by_org.setdefault(row.org_id, []).append(row)
    found = [
        (org_id, body)
        for org_id, of_org in by_org.items()
        for start in range(0, len(of_org), EVENTS_PER_MESSAGE)
        for body in bodies(org_id, of_org[start : start + EVENTS_PER_MESSAGE], prover)
    ]
    return [
        Message(org_id, f"{message_id}.{place}", body) for place, (org_id, body) in enumerate(found)
    ]


def bodies(org_id: int, rows: Sequence[UsageRow], prover: bytes) -> list[bytes]:
    """Rows of one org as the bodies of one message or of several, each within the size bound."""
    message = UsageMessage(org_id=org_id, events=[_event(row) for row in rows])
    if any(row.is_attested for row in rows):
        message.proof = proof_of(message, prover)
    body = _ENCODER.encode(message)
    if len(body) <= BODY_BYTES_MAX or len(rows) == 1:
        return [body]
    half = len(rows) // 2
    return [*bodies(org_id, rows[:half], prover), *bodies(org_id, rows[half:], prover)]


def rows_of(body: bytes, prover: bytes) -> list[UsageRow]:
    """The rows of a message; UnreadableMessageError if it cannot be read.

    Without a server's proof for exactly this message, none of its rows is attested.
    """
    try:
        message = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadableMessageError(str(error)) from error
    rows = [_row(message.org_id, place, event) for place, event in enumerate(message.events)]
    if not any(row.is_attested for row in rows) or is_proven(message, prover):
        return rows
    return [replace(row, is_attested=False) for row in rows]


def is_proven(message: UsageMessage, prover: bytes) -> bool:
    """Whether the message has the proof of a server of this database."""
    try:
        told = message.proof.encode("ascii")
    except UnicodeEncodeError:
        return False
    return hmac.compare_digest(told, proof_of(message, prover).encode("ascii"))


def _event(row: UsageRow) -> MeasuredUse:
    lease = row.reservation_id
    return MeasuredUse(
        job_id=row.job_id,
        node=row.node,
        reservation_id=ids.format_id(ids.RESERVATION, row.org_id, lease) if lease else "",
        account_id=row.account_id,
        seq=row.seq,
        used_ms=row.used_ms,
        payload=row.payload,
        is_attested=row.is_attested,
    )


def _row(org_id: int, place: int, event: MeasuredUse) -> UsageRow:
    number = 0
    if event.reservation_id:
        found = ids.lease_number(event.reservation_id)
        if found is None or found[0] != org_id:
            raise UnreadableMessageError(
                f"events[{place}].reservation_id: {event.reservation_id!r} is no lease of org"
                f" {org_id}"
            )
        number = found[1]
    if bool(number) == bool(event.account_id):
        raise UnreadableMessageError(
            f"events[{place}]: give reservation_id, or else account_id with job_id"
        )
    _check_times(place, event.payload)
    return UsageRow(
        org_id,
        event.job_id,
        event.node,
        number,
        event.account_id,
        event.seq,
        event.used_ms,
        event.payload,
        event.is_attested,
    )


def _check_times(place: int, payload: dict[str, Any]) -> None:
    """Refuse an interval that the reconciler could not read; the interval may be absent."""
    told = [payload[name] for name in ("start_ms", "end_ms") if name in payload]
    is_whole = len(told) in (0, 2) and all(type(each) is int for each in told)
    if not is_whole or (told and not 0 <= told[0] <= told[1] <= USED_MS_MAX):
        raise UnreadableMessageError(
            f"events[{place}].payload: give start_ms and end_ms in this order, as whole numbers"
            f" from 0 to {USED_MS_MAX}, or neither"
        )
