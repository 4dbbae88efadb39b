"""Refusals that belong in the audit log: bad tokens, nodes out of place, strange certificates.

Owns: the bound on their rows. The first refusal of a kind is written at once; later ones are
counted and written as one row every ten minutes. If there are too many kinds at once, the rest
count as one kind. So refused callers cannot fill the disk.
Must not: refuse anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpucredits.store.access import audit
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session

QUIET_S: Final = 600.0
KINDS_MAX: Final = 100
OTHERS: Final = "others"
TEXT_LENGTH_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedAct:
    """A kind of refusal: act, reason, caller and resource. Equal kinds are counted together."""

    action: str
    reason: str
    actor: str
    resource: str
    org_id: int = 0


@dataclass(slots=True)
class Untold:
    """The number of refusals of a kind since its last row, with the facts of the latest."""

    due_at: float
    count: int = 0
    request_id: str = ""
    account: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


class Refusals:
    """Refusals that wait for their row. ``now`` is the monotonic clock of the caller."""

    def __init__(self, *, kinds_max: int = KINDS_MAX, quiet_s: float = QUIET_S) -> None:
        self._kinds_max = kinds_max
        self._quiet_s = quiet_s
        self._untold: dict[RefusedAct, Untold] = {}
        self.has_news = False  # a row is due, and was not when the rows were last written

    def add(
        self,
        refusal: RefusedAct,
        *,
        now: float,
        request_id: str = "",
        account: str = "",
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """Count a refusal; its row is written when it is due."""
        if refusal not in self._untold and len(self._untold) >= self._kinds_max:
            refusal = RefusedAct(action=refusal.action, reason=OTHERS, actor="", resource="")
            account, facts = "", None
        told = self._untold.setdefault(refusal, Untold(now))
        told.count += 1
        self.has_news = self.has_news or told.due_at <= now
        told.request_id, told.account = request_id, account
        told.facts = {name: text[:TEXT_LENGTH_MAX] for name, text in (facts or {}).items() if text}

    def due(self, now: float) -> list[tuple[RefusedAct, AuditNote]]:
        """The rows to write now; kinds without recent refusals are forgotten."""
        self.has_news = False
        notes: list[tuple[RefusedAct, AuditNote]] = []
        for refusal, told in list(self._untold.items()):
            if told.due_at > now:
                continue
            if not told.count:
                del self._untold[refusal]
                continue
            notes.append((refusal, note_of_refusal(refusal, told)))
            told.count, told.due_at = 0, now + self._quiet_s
        return notes

    def put_back(self, refusal: RefusedAct, count: int) -> None:
        """Keep a refusal for later, because its row could not be written."""
        told = self._untold.get(refusal)
        if told is not None:
            told.count += count
            told.due_at = 0.0
            self.has_news = True


def note_of_refusal(refusal: RefusedAct, told: Untold) -> AuditNote:
    """The row of a kind of refusals."""
    return AuditNote(
        refusal.actor,
        refusal.action,
        refusal.resource[:TEXT_LENGTH_MAX],
        told.request_id,
        old={"account": told.account} if told.account else None,
        new={"reason": refusal.reason, "count": told.count, **told.facts},
    )


async def record(pool: Pool, refusals: Refusals, *, now: float) -> None:
    """Write the rows that are due; rows that cannot be written are kept for later."""
    due = refusals.due(now)
    for place, (refusal, note) in enumerate(due):
        try:
            async with session(pool) as db:
                await audit.insert(db, refusal.org_id, [note])
        except BaseException:
            for left, untold in due[place:]:
                refusals.put_back(left, untold.new["count"])
            raise
