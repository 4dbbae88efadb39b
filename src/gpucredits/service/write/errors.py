"""The ways in which a write may end without a decision.

A refusal is not among them: it is a value (core.reasons.Refused), because it was decided.
Must not: know HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from gpucredits.core.book import InvariantBroken
from gpucredits.core.duration import format_ms
from gpucredits.store.book.database_clock import ClockJumped
from gpucredits.store.database.errors import Conflict, Unavailable

__all__ = [
    "Busy",
    "ClockJumped",
    "Conflict",
    "Incomplete",
    "KeyReused",
    "Unavailable",
    "Undecided",
]

Result = TypeVar("Result")

BUSY_RETRY_S = 1.0


class Busy(Exception):  # noqa: N818  # it states what happened
    """An org's queue is full and nothing was done: try again after ``retry_after_s``."""

    def __init__(self, retry_after_s: float) -> None:
        wait = format_ms(int(retry_after_s * 1_000))
        super().__init__(f"too much is waiting for this org: try again in {wait}")
        self.retry_after_s = retry_after_s


class KeyReused(Exception):  # noqa: N818  # it states what happened
    """The idempotency key was used before, for a request with another content."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used for a different request")
        self.key = key


class Incomplete(Exception):  # noqa: N818  # it states what happened
    """Some items of a batch were decided and others not: the same key goes on from there.

    Its cause is what happened to the others.
    """

    def __init__(self, decided: int, items: int) -> None:
        super().__init__(f"{decided} of {items} items were decided before the rest could not be")
        self.decided = decided
        self.items = items


Undecided = Busy | Unavailable | InvariantBroken  # what may stand in a heartbeat's place


class Closing(Busy):
    """The service is going down and takes no more work: another replica will."""

    def __init__(self) -> None:
        super().__init__(BUSY_RETRY_S)


def complete(results: Sequence[Result | BaseException], *, before: int = 0) -> list[Result]:
    """The outcomes of all items of a batch; raises if one of them is unknown.

    Busy only when nothing at all was done. ``before``: how many other items were decided already.
    """
    errors = [each for each in results if isinstance(each, BaseException)]
    if errors:
        gravest = max(errors, key=_gravity)
        decided = before + len(results) - len(errors)
        if decided:
            raise Incomplete(decided, before + len(results)) from gravest
        raise gravest
    return [each for each in results if not isinstance(each, BaseException)]


def _gravity(error: BaseException) -> int:
    """How grave an error is: a defect most, an unknown effect less, nothing begun least."""
    if isinstance(error, Busy):
        return 0
    return 1 if isinstance(error, Unavailable | Conflict) else 2
