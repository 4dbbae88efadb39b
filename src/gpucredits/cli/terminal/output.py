"""What commands print: tables for people, the wire's JSON for scripts, refusals explained.

Owns: how tables, instants and problems look, and the exit codes.
Must not: call the server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpucredits.cli.terminal.layout import GAP, column_widths, wrapped
from gpucredits.client import Ambiguous, Refused, Undecided
from gpucredits.core.account import scope_of
from gpucredits.wire.gate import GateAnswer

EXIT_REFUSED: Final = 1
EXIT_UNAVAILABLE: Final = 3
EXIT_NOT_ADMITTED: Final = 4  # of explain: a job would be refused
EXITS_OF_BEATS: Final = {"drain": 5, "stop": 6}  # of heartbeat --exit-code

_SHOWN_ELSEWHERE = frozenset({"account", "scope", "available", "needed"})


def console(*, err: bool = False) -> Console:
    """Where tables go; made when needed, because tests and pipes change where that is."""
    return Console(file=sys.stderr if err else sys.stdout, highlight=False)


def print_json(body: bytes) -> None:
    """An answer as it came."""
    click.echo(body.decode())


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str, err: bool = False
) -> None:
    """Rows under their columns; a column that starts with ``>`` is set to the right.

    On a terminal it has lines and colour, and cells wrap between words; where there is no room for
    that, each row is a block. Elsewhere it is aligned text. Nothing is ever cut off.
    """
    if not rows:
        say(empty, err=err)
        return
    out = console(err=err)
    if out.is_terminal:
        _print_on_terminal(out, columns, rows)
        return
    names = [column.lstrip(">").upper() for column in columns]
    widths = [max(len(cell) for cell in cells) for cells in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        cells = [
            cell.rjust(width) if column.startswith(">") else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip(), err=err)


def look_below(account: str | None, *, tree: bool) -> str:
    """The end of what is said of an empty list that may have left out accounts below."""
    if tree or account is None or scope_of(account) == "user":
        return ""
    return f"; --tree also looks at accounts below {account}"


def print_facts(facts: Sequence[tuple[str, str | None]]) -> None:
    """One thing: a line for each of its facts; what is empty is left out."""
    shown = [(name, value) for name, value in facts if value]
    out = console()
    if out.is_terminal:
        _print_block(out, shown)
        return
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}")


def say(text: str, *, err: bool = False) -> None:
    """A sentence; on a terminal its lines break between words."""
    out = console(err=err)
    lead = text[: len(text) - len(text.lstrip())]
    room = out.width - len(lead)
    lines = wrapped(text.strip(), room) if out.is_terminal else [text.strip()]
    for line in lines:
        click.echo(f"{lead}{line}", err=err)


def print_gates(gates: Sequence[GateAnswer], *, err: bool = False) -> None:
    """What every gate at every scope says of a request."""
    columns = [
        "gate",
        "scope",
        "account",
        "name",
        ">limit",
        ">current",
        ">requested",
        "passes",
        "clears",
    ]
    print_table(
        columns,
        [
            [
                row.gate.replace("_", " "),
                row.scope,
                row.account,
                row.name,
                row.limit or "",
                row.current or "",
                row.requested,
                "yes" if row.passes else "no",
                clearing(row),
            ]
            for row in gates
        ],
        empty="",
        err=err,
    )


def clearing(row: GateAnswer) -> str:
    """When a gate that is closed would open: at an instant, by some change, or never.

    Of a pool it says what the whole pool has; the limits of other gates stand beside it.
    """
    if row.passes:
        return ""
    if row.clears_at:
        return instant(row.clears_at)
    if row.gate == "fair_share":
        return f"never: {row.never_because}" if row.never_because else "when there is room"
    return "never" if row.never_because else "not by itself"


def print_refusal(refused: Refused, *, text: str = "") -> None:
    """Why not: the word for programs, the sentence for people, and the numbers."""
    problem = refused.problem
    say(f"Refused ({problem.reason}): {text or refused}", err=True)
    if problem.gates:
        print_gates(problem.gates, err=True)
    else:
        _print_numbers(refused, is_named=text in ("", str(refused)))
    if problem.request_id:
        click.echo(f"  request: {problem.request_id}", err=True)


def _print_numbers(refused: Refused, *, is_named: bool) -> None:
    problem = refused.problem
    facts: list[tuple[str, str]] = [
        (name, value)
        for name, value in (
            ("account", problem.account),
            ("scope", problem.scope),
            ("available", problem.available),
            ("needed", problem.needed),
            ("field", problem.field if is_named else None),
        )
        if value
    ]
    facts += [
        (name, str(value))
        for name, value in refused.numbers.items()
        if name not in _SHOWN_ELSEWHERE and value not in ("", None)
    ]
    for name, value in facts:
        click.echo(f"  {name}: {value}", err=True)


def print_undecided(error: Undecided) -> None:
    """Nobody decided, and what to do about it."""
    word = "Unknown" if isinstance(error, Ambiguous) else "Unavailable"
    say(f"{word}: {error}.", err=True)
    if isinstance(error, Ambiguous) and error.key:
        click.echo(f"  Run it again with --idempotency-key {error.key}", err=True)
    if error.problem is not None and error.problem.gates:
        print_gates(error.problem.gates, err=True)


def instant(text: str | None) -> str:
    """An instant for people: to the second, in UTC."""
    if not text:
        return ""
    return text.replace("T", " ").partition(".")[0].removesuffix("Z") + "Z"


def labels(metadata: dict[str, str]) -> str:
    """Labels on one line."""
    return " ".join(f"{name}={value}" for name, value in sorted(metadata.items()))


def _print_on_terminal(out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table if there is room for one, perhaps without its empty columns; else blocks."""
    names = [column.lstrip(">") for column in columns]
    filled = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    for places in (list(range(len(columns))), filled):
        table = [[row[place] for place in places] for row in (names, *rows)]
        widths = column_widths(table, out.width) if places else None
        if widths is not None:
            out.print(_rich_table([columns[place] for place in places], table[1:], widths))
            return
    for number, row in enumerate(rows):
        if number:
            out.print()
        _print_block(out, [pair for pair in zip(names, row, strict=True) if pair[1]])


def _print_block(out: Console, facts: Sequence[tuple[str, str]]) -> None:
    """Facts below each other, each with its value beside it; values wrap between words."""
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        for place, line in enumerate(_lines(value, out.width - width - GAP)):
            lead = "" if place else name
            out.print(f"[dim]{lead:<{width}}[/dim]  {escape(line)}", soft_wrap=True)


def _lines(value: str, room: int) -> Iterator[str]:
    """A value in lines; one that fits stays as it is, with the blanks it has."""
    yield from [value] if cell_len(value) <= room else wrapped(value, room)


def _rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        border_style="dim",
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),  # the box has a blank between columns too
    )
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.lstrip(">"),
            justify="right" if column.startswith(">") else "left",
            width=width,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table
