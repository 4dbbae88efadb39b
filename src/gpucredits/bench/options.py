"""The knobs of a run, with the defaults that its promises are about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpucredits.bench.workload import Workload

Progress = Callable[[str], None]
WARM_UP_S = 8.0  # long enough that nearly every reservation has reported once


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The knobs of a run."""

    reservations: int = 100_000
    orgs: int = 1_000
    seconds: float = 10.0
    warm_up_s: float = WARM_UP_S
    nodes: int = 64
    beats_per_post: int = 100
    folder: Path | None = None

    @property
    def workload(self) -> Workload:
        """The work that all contestants do."""
        return Workload(self.reservations, min(self.orgs, self.reservations))
