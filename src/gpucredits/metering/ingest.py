"""Messages of measured use become rows, or dead letters with the reason.

Owns: the decision that a message cannot be used. A message is used whole or put aside whole, so
that people can mend and replay it.
Must not: commit; progress is saved in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from gpucredits.metering.bus import Received
from gpucredits.metering.usage_message import UnreadableMessageError, rows_of
from gpucredits.store.billing import usage_events
from gpucredits.store.billing.usage_events import UsageRow
from gpucredits.store.database.connection import Connection
from gpucredits.store.metering.dead_letters import NewLetter
from gpucredits.store.reconciliation import unmatched_use


class Poison(StrEnum):
    """Why a message cannot be used."""

    UNREADABLE = "unreadable"  # the bytes are no message
    UNKNOWN = "unknown"  # it names a lease or an account that does not exist
    REFUSED = "refused"  # the database refuses a value


class PoisonError(Exception):
    """A message cannot be used; the text says why."""

    def __init__(self, reason: Poison, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


async def ingest(db: Connection, messages: Sequence[Received], prover: bytes) -> list[NewLetter]:
    """Store the events of messages, each once; returns the messages that cannot be used.

    One statement stores all. If the database refuses the statement, each message is tried alone.
    """
    letters: list[NewLetter] = []
    readable: list[tuple[Received, list[UsageRow]]] = []
    for message in messages:
        try:
            readable.append((message, rows_of(message.body, prover)))
        except UnreadableMessageError as error:
            letters.append(letter(message, PoisonError(Poison.UNREADABLE, str(error))))
    if not readable:
        return letters
    if not await _refusal(db, [row for _, rows in readable for row in rows]):
        return letters
    for message, rows in readable:
        if why := await _refusal(db, rows):
            letters.append(letter(message, why))
    return letters


async def ingest_one(db: Connection, body: bytes, prover: bytes) -> int:
    """Store one message's events; how many there are. PoisonError if it cannot be used."""
    try:
        rows = rows_of(body, prover)
    except UnreadableMessageError as error:
        raise PoisonError(Poison.UNREADABLE, str(error)) from error
    if why := await _refusal(db, rows):
        raise why
    return len(rows)


async def _refusal(db: Connection, rows: list[UsageRow]) -> PoisonError | None:
    """Store rows; if they cannot be stored, store none and return the reason."""
    if any("\0" in text for row in rows for text in (row.job_id, row.node)):
        return PoisonError(Poison.REFUSED, "a name has a character with the code 0")
    if missing := await usage_events.unknown(db, rows):
        org_id, job_id, lease, account = min(missing)
        what = f"lease {lease} of job {job_id!r}" if lease else f"account {account}"
        return PoisonError(Poison.UNKNOWN, f"org {org_id} has no {what}")
    refusal = await unmatched_use.try_record(db, rows)
    return PoisonError(Poison.REFUSED, refusal) if refusal else None


def letter(message: Received, why: PoisonError) -> NewLetter:
    """The dead letter of a message."""
    return NewLetter(message.partition, message.position, why.reason, why.detail, message.body)
