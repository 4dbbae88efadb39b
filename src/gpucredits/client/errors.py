"""What a call of the client may end with besides its answer."""

from __future__ import annotations

from gpucredits.wire.problem import Problem


class ApiError(Exception):
    """The server answered with a problem; ``problem.reason`` is the word for machines."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.reason}: {problem.detail}")
        self.problem = problem

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def reason(self) -> str:
        """The stable word for what happened."""
        return self.problem.reason


class UnreachableError(Exception):
    """No decision after every attempt; a write may have happened: send it with its key again."""

    def __init__(self, detail: str, *, key: str | None) -> None:
        super().__init__(detail)
        self.key = key
