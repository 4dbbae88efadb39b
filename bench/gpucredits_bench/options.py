"""The knobs of a run, with the defaults that its promises are about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpucredits_bench.workload import Workload

Progress = Callable[[str], None]
LEAD_IN_S = 1.0
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
    windows: int = 3
    folder: Path | None = None

    @property
    def window_s(self) -> float:
        """How long one of several alternating windows is."""
        return self.seconds / self.windows

    @property
    def lead_in_s(self) -> float:
        """How long each window runs before it counts, for every contestant."""
        return min(LEAD_IN_S, self.window_s)

    @property
    def workload(self) -> Workload:
        """The work that all contestants do."""
        return Workload(self.reservations, min(self.orgs, self.reservations))
