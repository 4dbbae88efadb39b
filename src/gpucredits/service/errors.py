"""The ways in which a write may end without a decision.

A refusal is not among them: it is a value (core.reasons.Refused), because it was decided.
Must not: know HTTP.
"""

from __future__ import annotations


class Busy(Exception):  # noqa: N818  # it states what happened
    """An org's queue is full and nothing was done: try again after ``retry_after_s``."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"too much is waiting for this org: try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class KeyReused(Exception):  # noqa: N818  # it states what happened
    """The idempotency key was used before, for a request with another content."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used for a different request")
        self.key = key


class Closing(Busy):
    """The service is going down and takes no more work: another replica will."""

    def __init__(self) -> None:
        super().__init__(retry_after_s=1.0)
