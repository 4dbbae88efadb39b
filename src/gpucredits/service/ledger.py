"""The one door to writes: commands in, outcomes out.

Owns: finding the org of a request, and what callers see of the funnel.
Must not: decide anything about money (core does) or speak SQL (store does).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpucredits.core.command import Beat, Command
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import InvariantBroken
from gpucredits.service.errors import Busy
from gpucredits.store.errors import Unavailable

Undecided = Busy | Unavailable | InvariantBroken


@dataclass(frozen=True, slots=True)
class Request:
    """A command with the caller's key, a hash of what was asked, who asked and in which call."""

    command: Command
    key: str | None = None
    fingerprint: bytes = b""
    actor: str = ""
    request_id: str = ""


class Ledger:
    """Writes to the ledger. Refusals are values; see service.errors for what is raised."""

    async def submit(self, org: str | int, request: Request, *, dry_run: bool = False) -> Outcome:
        """Carry out one command. ``org`` is the org's path or number.

        Raises Busy, KeyReused, Unavailable, or InvariantBroken.
        """
        raise NotImplementedError

    async def submit_all(
        self, org: str | int, requests: Sequence[Request], *, atomic: bool, dry_run: bool = False
    ) -> list[Outcome]:
        """Carry out several commands of one org; the answers are in the order of the requests.

        ``atomic``: all or nothing, and after a refusal every position holds that refusal.
        """
        raise NotImplementedError

    async def beat(self, beats: Sequence[tuple[int, Beat]]) -> list[Outcome | Undecided]:
        """Record heartbeats given as (org number, beat); answers are in the same order.

        What could not be decided stands in its own place and harms no neighbour: send it again.
        """
        raise NotImplementedError
