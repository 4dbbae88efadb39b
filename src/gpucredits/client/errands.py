"""What a lease needs besides reports: its last checkpoint told, and a token that is still good.

Owns: which of the two is due, and what the server was told.
Must not: send anything or read a clock; whoever reports sends what is due and hands answers in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpucredits.client import calls
from gpucredits.client.call import Call
from gpucredits.wire.access.tokens import TokenAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer
from gpucredits.wire.reconciliation.lost_work import CheckpointAnswer

Errand = Call[Any]  # answered by a CheckpointAnswer or a TokenAnswer


@dataclass(slots=True, kw_only=True)
class Errands:
    """The errands of one lease. ``token`` is the last one, where the lease wants any."""

    reservation_id: str
    wants_token: bool = False
    token: str = ""
    _renew_at_ms: int = 0
    _saved_ms: int = 0
    _asked_ms: int = 0
    _told_ms: int = 0

    def admitted(self, lease: ReservationAnswer, sent_at_ms: int) -> None:
        """Keep the token that came with the lease, if one did."""
        if lease.token:
            self._keep(lease.token, lease.expires_in_ms, sent_at_ms)

    def saved(self, used_ms: int) -> None:
        """The job has saved its work when it had used so much; the latest counts."""
        self._saved_ms = max(self._saved_ms, used_ms)

    def due(self, now_ms: int) -> list[Errand]:
        """What the server has to be asked or told now."""
        found: list[Errand] = []
        if self._saved_ms > self._told_ms:
            self._asked_ms = self._saved_ms
            found.append(calls.report_checkpoint(self.reservation_id, self._saved_ms))
        if self.wants_token and now_ms >= self._renew_at_ms:
            found.append(calls.lease_token(self.reservation_id))
        return found

    def heard(self, answer: CheckpointAnswer | TokenAnswer, sent_at_ms: int) -> None:
        """Take in the answer to an errand that was sent at ``sent_at_ms``."""
        if isinstance(answer, TokenAnswer):
            self._keep(answer.token, answer.expires_in_ms, sent_at_ms)
        else:
            self._told_ms = self._asked_ms

    def _keep(self, token: str, expires_in_ms: int, sent_at_ms: int) -> None:
        """Use a token for half of its life: reports have renewed the lease by then."""
        self.token = token
        self._renew_at_ms = sent_at_ms + expires_in_ms // 2
