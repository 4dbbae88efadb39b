"""Messages that could not be used, kept with the reason until somebody decides.

Owns: the rows of dead_letters.
Must not: know what messages say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from gpucredits.store.database.connection import Connection


class LetterState(IntEnum):
    """The state of a dead letter."""

    WAITING = 0
    REPLAYED = 1
    DROPPED = 2


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message, the reason why it could not be used, and the decision about it."""

    letter_id: int
    topic: str
    partition: int
    position: int
    received_at: int
    reason: str
    detail: str
    body: bytes | None  # None in lists
    state: LetterState
    decided_at: int
    decided_by: str


@dataclass(frozen=True, slots=True)
class NewLetter:
    """A message that could not be used, before it is stored."""

    partition: int
    position: int
    reason: str
    detail: str
    body: bytes


COLUMNS = (
    "letter_id, topic, partition, position, received_at, reason, detail, body, state,"
    " decided_at, decided_by"
)

STATE = 8  # its place among the columns


async def insert(db: Connection, topic: str, letters: Sequence[NewLetter]) -> None:
    """Insert dead letters, in the transaction of the progress past their messages."""
    await db.executemany(
        "INSERT INTO dead_letters (topic, partition, position, received_at, reason, detail, body)"
        " VALUES ($1, $2, $3, ledger_now(), $4, $5, $6)",
        [
            (topic, each.partition, each.position, each.reason, each.detail, each.body)
            for each in letters
        ],
    )


async def page(
    db: Connection, *, state: LetterState | None, before: int, limit: int
) -> list[DeadLetter]:
    """Dead letters in one state or in any, the latest first, without their messages."""
    rows = await db.fetch(
        f"SELECT {COLUMNS.replace('body', 'NULL AS body')} FROM dead_letters"  # noqa: S608  # constant texts only
        " WHERE letter_id < $1 AND ($2::smallint IS NULL OR state = $2)"
        " ORDER BY letter_id DESC LIMIT $3",
        before,
        state,
        limit,
    )
    return [_letter(row) for row in rows]


async def find(db: Connection, letter_id: int, *, locks: bool = False) -> DeadLetter | None:
    """One dead letter, optionally locked until the transaction ends."""
    row = await db.fetchrow(
        f"SELECT {COLUMNS} FROM dead_letters WHERE letter_id = $1"  # noqa: S608  # constant texts only
        f"{' FOR UPDATE' if locks else ''}",
        letter_id,
    )
    return None if row is None else _letter(row)


async def decide(db: Connection, letter_id: int, state: LetterState, *, actor: str) -> DeadLetter:
    """Store the decision about a dead letter."""
    row = await db.fetchrow(
        "UPDATE dead_letters SET state = $2, decided_at = ledger_now(), decided_by = $3"  # noqa: S608  # constant texts only
        f" WHERE letter_id = $1 RETURNING {COLUMNS}",
        letter_id,
        state,
        actor,
    )
    return _letter(row)


async def waiting(db: Connection) -> int:
    """How many dead letters wait for a decision."""
    count: int = await db.fetchval("SELECT count(*) FROM dead_letters WHERE state = 0")
    return count


def _letter(row: Sequence[Any]) -> DeadLetter:
    values = list(row)
    values[STATE] = LetterState(values[STATE])
    return DeadLetter(*values)
