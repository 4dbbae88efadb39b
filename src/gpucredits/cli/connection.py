"""What every command that talks to a server shares: where it is, who asks, how to answer.

Owns: the options --url, --key-file and --json, exit codes, tables and JSON.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpucredits.client import ApiError, Client, UnreachableError
from gpucredits.client.operation import Operation

EXIT_REFUSED: Final = 3
EXIT_NOT_FOUND: Final = 4
EXIT_DENIED: Final = 5
EXIT_UNREACHABLE: Final = 6
DEFAULT_URL: Final = "http://127.0.0.1:8437"
DEFAULT_DATA_DIR: Final = "gpucredits-data"

Answer = TypeVar("Answer")
Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class Session:
    """A connection to a server, and how its answers are to be shown."""

    client: Client
    as_json: bool

    def send(self, operation: Operation[Answer]) -> Answer:
        """Carry out a call; a refusal ends the command with what the server said."""
        try:
            return self.client.send(operation)
        except ApiError as error:
            self.fail(error)
        except UnreachableError as error:
            click.echo(f"unreachable: {error}", err=True)
            sys.exit(EXIT_UNREACHABLE)

    def fail(self, error: ApiError) -> NoReturn:
        """Say why not, and end with the exit code of its kind."""
        problem = error.problem
        if self.as_json:
            click.echo(msgspec.json.encode(problem).decode(), err=True)
        else:
            click.echo(f"{problem.reason}: {problem.detail}", err=True)
        codes = {401: EXIT_DENIED, 403: EXIT_DENIED, 404: EXIT_NOT_FOUND, 503: EXIT_UNREACHABLE}
        sys.exit(codes.get(problem.status, EXIT_REFUSED))

    def show(self, answer: Any, facts: Sequence[tuple[str, object]]) -> None:
        """One thing: the answer itself for scripts, its facts for people."""
        if self.as_json:
            self.print_json(answer)
            return
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in facts:
            table.add_row(Text(name, style="dim"), _cell(value))
        Console().print(table)

    def show_list(
        self, answer: Any, columns: Sequence[str], rows: Sequence[Row], *, more: str | None = None
    ) -> None:
        """Many things: the answer itself for scripts, a table for people."""
        if self.as_json:
            self.print_json(answer)
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in columns:
            is_number = column.lstrip("-").split(" ")[0] in NUMBERS
            table.add_column(column, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_cell(value) for value in row))
        Console().print(table)
        if more is not None:
            click.echo(f"more: --cursor {more}", err=True)

    @staticmethod
    def print_json(answer: Any) -> None:
        """One line of JSON, as the server gave it."""
        click.echo(msgspec.json.encode(answer).decode())


NUMBERS = frozenset({"amount", "available", "reserved", "spent", "remaining", "held", "settled"})


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a session and the options that make one."""

    @click.option("--url", envvar="GPUCREDITS_URL", default=DEFAULT_URL, help="The server.")
    @click.option(
        "--key-file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="GPUCREDITS_KEY_FILE",
        help="A file with an API key; else GPUCREDITS_KEY, else the admin key of the data "
        "directory.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @wraps(command)
    def wrapper(*, url: str, key_file: Path | None, as_json: bool, **options: Any) -> None:
        with Client(url, find_secret(key_file)) as client:
            command(Session(client, as_json), **options)

    return wrapper


def find_secret(key_file: Path | None) -> str:
    """The caller's API key."""
    if key_file is None and (secret := os.environ.get("GPUCREDITS_KEY")):
        return secret.strip()
    data_dir = Path(os.environ.get("GPUCREDITS_DATA_DIR", DEFAULT_DATA_DIR))
    path = key_file or data_dir / "admin.key"
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise click.ClickException(
            f"no API key: {path}: {error.strerror}. Set GPUCREDITS_KEY or give --key-file."
        ) from error


def labels_option(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take --label key=value any number of times, as ``metadata``."""

    @click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Metadata.")
    @wraps(command)
    def wrapper(*arguments: Any, labels: tuple[str, ...], **options: Any) -> None:
        metadata = dict(_label(text) for text in labels)
        command(*arguments, metadata=metadata or None, **options)

    return wrapper


def paged(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take --limit and --cursor, as ``page``."""

    @click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True)
    @click.option("--cursor", help="Go on where an earlier page ended.")
    @wraps(command)
    def wrapper(*arguments: Any, limit: int, cursor: str | None, **options: Any) -> None:
        command(*arguments, page={"limit": limit, "cursor": cursor}, **options)

    return wrapper


def _label(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise click.BadParameter(f"{text!r} is not key=value", param_hint="--label")
    return name, value


def _cell(value: object) -> Text:
    """Plain text: what users named their things is not markup."""
    return Text("" if value is None else str(value))
