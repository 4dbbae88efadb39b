"""How a call may end without a value: refused, unavailable or ambiguous; or never sent.

Owns: what a caller can learn from each. A call that returns was accepted.
Must not: decide which of them it is; ``attempts`` does.
"""

from __future__ import annotations

from http import HTTPStatus

from gpucredits.wire.problem import Problem


class CallError(Exception):
    """Any call that did not return a value."""


class Invalid(CallError, ValueError):  # noqa: N818  # it states what happened
    """The request could never be right, and was not sent: ``field`` says where it is wrong."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class Refused(CallError):  # noqa: N818  # it states what happened
    """The server decided against it, for a reason that will not change by asking again.

    ``reason`` is a stable word for programs, the text a sentence for people, and ``numbers`` what
    the decision was based on. ``body`` is the problem as it was received.
    """

    def __init__(self, problem: Problem, *, body: bytes = b"") -> None:
        super().__init__(problem.detail or problem.title)
        self.problem = problem
        self.body = body

    @property
    def reason(self) -> str:
        """The stable word."""
        return self.problem.reason

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def is_about_caller(self) -> bool:
        """Whether the key or the certificate was refused: another one may do the same."""
        return self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

    @property
    def numbers(self) -> dict[str, str | int]:
        """The numbers behind the refusal, empty when there are none."""
        return self.problem.numbers or {}


class Undecided(CallError):  # noqa: N818  # it states what happened
    """No decision reached us. ``key`` is the idempotency key with which to ask again.

    ``problem`` is what the server said of it last, where it said anything: of a request that came
    too fast it has what every gate says.
    """

    def __init__(
        self,
        message: str,
        *,
        key: str | None = None,
        retry_after_s: float | None = None,
        problem: Problem | None = None,
    ) -> None:
        super().__init__(message)
        self.key = key
        self.retry_after_s = retry_after_s
        self.problem = problem


class Unavailable(Undecided):
    """The server could not be asked, or was too busy to decide: nothing was done."""


class Untrusted(Unavailable):
    """The server's certificate is not trusted: nothing was sent, and asking again will not help."""


class Ambiguous(Undecided):
    """The request was sent and its answer was lost: only the same key can tell what became of it.

    So it is with a batch that was done in part (``problem.reason`` is ``batch_incomplete``). Send
    the same request with ``key`` again. Heartbeats have no key: send the same ``seq`` again.
    """
