"""Commands that end without what was asked for: one shape for people, one for scripts.

Owns: the exit code of each outcome, and the JSON that ``--json`` prints for it (docs/cli.md).
Must not: call the server.
"""

from __future__ import annotations

from typing import IO, Any, Final

import click
import msgspec

from gpucredits.cli.terminal import output
from gpucredits.client import Ambiguous, Refused, Undecided, Untrusted

BATCH_INCOMPLETE: Final = "batch_incomplete"


class Declined(click.ClickException):  # it states what happened
    """The server decided against it; ``text`` is the sentence with the names of the options."""

    exit_code = output.EXIT_REFUSED

    def __init__(self, refused: Refused, *, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.refused = refused
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the reason, the sentence, the numbers and what to try."""
        del file
        output.print_refusal(self.refused, text=self.message)
        if self.hint:
            output.say(f"  {self.hint}", err=True)


class Undone(click.ClickException):  # it states what happened
    """No decision was reached: the server is away, too busy, not trusted, or its answer lost."""

    exit_code = output.EXIT_UNAVAILABLE

    def __init__(self, error: Undecided, *, hint: str = "") -> None:
        super().__init__(str(error))
        self.error = error
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Print what happened and what to do."""
        del file
        output.print_undecided(self.error)
        if self.hint:
            output.say(f"  {self.hint}", err=True)


def print_failure(error: click.ClickException) -> None:
    """Print a failure for scripts: the server's problem as it came, or one of the same shape."""
    if isinstance(error, Declined):
        output.print_json(error.refused.body)
    else:
        output.print_json(msgspec.json.encode(problem_of(error)))


def problem_of(error: click.ClickException) -> dict[str, Any]:
    """A failure before the server decided, in the shape of the server's own problems."""
    if isinstance(error, Undone):
        return _undone(error)
    if isinstance(error, click.UsageError):
        shown: dict[str, Any] = {
            "title": "Wrong usage",
            "reason": "wrong_usage",
            "detail": error.format_message(),
        }
        if field := _field(error):
            shown["field"] = field
        return shown
    return {"title": "Failed", "reason": "failed", "detail": error.format_message()}


def _undone(undone: Undone) -> dict[str, Any]:
    error, problem = undone.error, undone.error.problem
    shown: dict[str, Any] = {} if problem is None else msgspec.to_builtins(problem)
    reason = "unavailable" if problem is None else problem.reason
    title = "Unavailable"
    if isinstance(error, Untrusted):
        reason, title = "untrusted_certificate", "Certificate not trusted"
    elif isinstance(error, Ambiguous):
        title = "Outcome unknown"
        reason = reason if reason == BATCH_INCOMPLETE else "outcome_unknown"
    shown |= {
        "title": title,
        "reason": reason,
        "detail": f"{error}. {undone.hint}".strip() if undone.hint else f"{error}.",
    }
    if isinstance(error, Ambiguous) and error.key:
        shown["idempotency_key"] = error.key
    if error.retry_after_s is not None:
        shown["retry_after_seconds"] = error.retry_after_s
    return shown


def _field(error: click.UsageError) -> str | None:
    """The option or argument that is wrong, as it is written."""
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return error.option_name
    hint, param = getattr(error, "param_hint", None), getattr(error, "param", None)
    if isinstance(hint, str):
        return hint
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name if isinstance(param, click.Argument) else None
