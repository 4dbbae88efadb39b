"""How far a long command has come, on the error channel.

Owns: how progress looks: one line that is rewritten on a terminal, a line now and then elsewhere.
Must not: write to the output, which is for results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, Self

import click

REWRITE_S: Final = 0.2
LINE_S: Final = 10.0
MIB: Final = 1024 * 1024


class ProgressLine:
    """``progress("copying", done, total)`` says how far a step has come, not too often."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._step = ""
        self._began_s = self._told_s = time.monotonic()
        self._has_line = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end_line()

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None:
        """Hear of progress in bytes; a new step is told at once."""
        self._hear(step, lambda elapsed_s: progress_text(step, done, total, elapsed_s))

    def count(self, step: str, done: int, total: int) -> None:
        """Hear of progress in things counted."""
        self._hear(step, lambda elapsed_s: f"{step} ... {done} of {total}, {elapsed_s:.0f} s")

    def _hear(self, step: str, text: Callable[[float], str]) -> None:
        now_s = time.monotonic()
        if step != self._step:
            self._end_line()
            self._step, self._began_s = step, now_s
        elif now_s - self._told_s < (REWRITE_S if self._is_terminal else LINE_S):
            return
        self._told_s = now_s
        self._tell(text(now_s - self._began_s))

    def _tell(self, text: str) -> None:
        if self._is_terminal:
            click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
            self._has_line = True
        else:
            click.echo(text, err=True)

    def _end_line(self) -> None:
        if self._has_line:
            click.echo(err=True)
            self._has_line = False


def progress_text(step: str, done: int, total: int, elapsed_s: float) -> str:
    """One line: the step, how much of it is done, and for how long it has run."""
    amount = f" {done // MIB} of {total // MIB} MiB ({100 * done // total}%)," if total else ""
    elapsed = f" {elapsed_s:.0f} s" if total or elapsed_s >= 1 else ""
    return f"{step} ...{amount}{elapsed}"
