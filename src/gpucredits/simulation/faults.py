"""The faults of each attempt of a job, drawn from a seed before the simulation begins.

Owns: the kinds of faults and their odds. Must not: carry them out; nodes do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BEATS_LOST_MAX: Final = 4
SLOW_PPM_MAX: Final = 200  # a slow node clock, in millionths


class Fault(StrEnum):
    """A kind of fault."""

    NONE = "none"
    CRASH = "crash"  # the node dies: nothing more is heard of the job
    PARTITION = "partition"  # reports are lost for a while; the job goes on as long as it may
    REPEAT = "repeat"  # each report arrives twice, and an old one after it
    SLOW_CLOCK = "slow clock"  # the node's clock counts too little


ODDS: Final = {
    Fault.CRASH: 0.02,
    Fault.PARTITION: 0.04,
    Fault.REPEAT: 0.05,
    Fault.SLOW_CLOCK: 0.05,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """A fault of one attempt: its first beat, its number of beats, and the clock's error."""

    fault: Fault = Fault.NONE
    beat: int = 0
    beats: int = 0
    slow_ppm: int = 0


def mishap(seed: int, job: str, attempt: int, *, with_faults: bool) -> Mishap:
    """The fault of an attempt; the same seed gives the same fault."""
    if not with_faults:
        return Mishap()
    dice = random.Random(f"{seed}:{job}:{attempt}")  # noqa: S311  # a simulation, not a secret
    place = dice.random()
    for fault, odds in ODDS.items():
        if place < odds:
            return Mishap(
                fault=fault,
                beat=dice.randint(1, 3),
                beats=dice.randint(1, BEATS_LOST_MAX),
                slow_ppm=dice.randint(1, SLOW_PPM_MAX),
            )
        place -= odds
    return Mishap()
