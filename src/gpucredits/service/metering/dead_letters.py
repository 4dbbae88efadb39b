"""Dead letters: people see them, mend them, and replay or drop them.

Owns: one transaction for a replay's effect, the letter's new state and the audit row. So a replay
takes effect once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpucredits.core import ids
from gpucredits.metering.ingest import PoisonError, ingest_one
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.store.metering import dead_letters
from gpucredits.store.metering.dead_letters import DeadLetter, LetterState
from gpucredits.wire.metering.usage_message import UsageMessage

__all__ = [
    "DeadLetter",
    "LetterGone",
    "LetterState",
    "PoisonError",
    "drop_letter",
    "list_letters",
    "read_letter",
    "replay_letter",
]


class LetterGone(Exception):  # noqa: N818  # it states what happened
    """The letter was replayed or dropped before (``letter``), or does not exist (None)."""

    def __init__(self, letter: DeadLetter | None) -> None:
        super().__init__("there is no such dead letter that waits")
        self.letter = letter


@dataclass(frozen=True, slots=True)
class Decided:
    """A dead letter after a decision, and whether an earlier call made the decision."""

    letter: DeadLetter
    is_replay: bool


async def list_letters(
    pool: Pool, *, state: LetterState | None, before: int, limit: int
) -> list[DeadLetter]:
    """Dead letters in one state or in any, the latest first."""
    async with session(pool) as db:
        return await dead_letters.page(db, state=state, before=before, limit=limit)


async def read_letter(pool: Pool, letter_id: int) -> DeadLetter | None:
    """One dead letter."""
    async with session(pool) as db:
        return await dead_letters.find(db, letter_id)


async def replay_letter(
    pool: Pool,
    act: Act,
    letter_id: int,
    *,
    prover: bytes,
    mended: UsageMessage | None = None,
) -> Decided:
    """Store the events of a message, as it is or mended. A mended message is never attested.

    Raises LetterGone if the letter does not wait, PoisonError if it still cannot be used.
    """

    async def work(db: Connection, letter: DeadLetter) -> dict[str, Any]:
        body = (letter.body or b"") if mended is None else msgspec.json.encode(mended)
        events = await ingest_one(db, body, prover)
        return {
            "state": "replayed",
            "events": events,
            "mended": None if mended is None else msgspec.to_builtins(mended),
        }

    return await _decide(pool, act, letter_id, LetterState.REPLAYED, "dead_letter.replay", work)


async def drop_letter(pool: Pool, act: Act, letter_id: int) -> Decided:
    """Drop a message; LetterGone if the letter does not wait."""

    async def work(db: Connection, letter: DeadLetter) -> dict[str, Any]:
        del db, letter
        return {"state": "dropped"}

    return await _decide(pool, act, letter_id, LetterState.DROPPED, "dead_letter.drop", work)


async def _decide(
    pool: Pool, act: Act, letter_id: int, state: LetterState, action: str, work: Any
) -> Decided:
    async def once(db: Connection) -> tuple[bytes, AuditNote | None]:
        letter = await dead_letters.find(db, letter_id, locks=True)
        if letter is None or letter.state is not LetterState.WAITING:
            raise LetterGone(letter)
        new = await work(db, letter)
        await dead_letters.decide(db, letter_id, state, actor=act.actor)
        old = {"state": "waiting", "reason": letter.reason}
        resource = ids.format_id(ids.DEAD_LETTER, 0, letter_id)
        return b"{}", act.note(action, resource, old=old, new=new)

    done = await perform(pool, act, once)
    letter = await read_letter(pool, letter_id)
    if letter is None:
        raise LetterGone(None)
    return Decided(letter, done.is_replay)
