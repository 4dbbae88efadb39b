"""What each attempt must cost, computed from its node's own notes and the list prices.

Owns: arithmetic of its own, which shares nothing with the server's.
Must not: import the rules, or believe an answer of the server about money.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from gpucredits.simulation.node import Attempt

MS_PER_HOUR = 3_600_000


def least_bill(attempt: Attempt, price: int) -> int:
    """The lowest right bill of an attempt; below ``bill`` only if the lease was used to its end.

    A hold pays for whole micro-credits, and credits end within a millisecond. So a lease that was
    used to its last millisecond may be billed one millisecond and one micro-credit less.
    """
    whole = bill(attempt, price)
    if attempt.end is not None and attempt.end.is_at_the_end_of_the_lease:
        millisecond = -(-attempt.job.milli_gpus * price // (1_000 * MS_PER_HOUR))
        return max(0, whole - millisecond - 1)
    return whole


def bill(attempt: Attempt, price: int) -> int:
    """The cost in micro-credits of the use that reached the server, rounded down once."""
    gpus = Fraction(attempt.job.milli_gpus, 1_000)
    hours = Fraction(attempt.reported_ms, MS_PER_HOUR)
    return floor(gpus * hours * price)
