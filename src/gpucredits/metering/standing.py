"""How the pipeline stands: messages behind, time without progress, and dead letters.

Owns: the numbers in health and metrics. They describe the whole pipeline, whichever server does the
work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, Literal

STALLED_S: Final = 30.0

State = Literal["moving", "stalled", "away"]


@dataclass(slots=True)
class TopicStanding:
    """One direction: the number of messages behind, and the time of the last progress."""

    lag: int = 0
    place: int = 0
    moved_s: float = field(default_factory=time.monotonic)

    def saw(self, lag: int, place: int, *, now_s: float | None = None) -> None:
        """Note a look: the direction moves if it has no work or has made progress."""
        if not lag or place != self.place:
            self.moved_s = time.monotonic() if now_s is None else now_s
        self.lag, self.place = lag, place

    def stalled_s(self, now_s: float | None = None) -> float:
        """How long there was work and no progress, in seconds."""
        now_s = time.monotonic() if now_s is None else now_s
        return now_s - self.moved_s if self.lag else 0.0


@dataclass(slots=True)
class ReadersStanding:
    """Readers of events, with a bus or without one."""

    stuck: int = 0  # those that let old events wait, and keep the outbox from being trimmed


@dataclass(slots=True)
class PipelineStanding:
    """The whole pipeline."""

    bus: str
    usage: TopicStanding = field(default_factory=TopicStanding)
    events: TopicStanding = field(default_factory=TopicStanding)
    trouble: str = ""  # why the bus cannot be used, while it cannot
    dead_letters: int = 0
    lost: int = 0  # messages that the bus dropped before they were read
    restarts: int = 0  # streams that were made anew, and are read from their beginning

    @property
    def state(self) -> State:
        """The state of the pipeline: moving, stalled, or away if the bus is."""
        if self.trouble:
            return "away"
        stalled_s = max(self.usage.stalled_s(), self.events.stalled_s())
        return "stalled" if stalled_s > STALLED_S else "moving"
