"""The command group that every command hangs from.

Owns: the list of commands. Each is imported when it is first needed, so that asking for a balance
neither waits for the server's modules nor needs them to be installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from gpucredits.cli.grammar import Command, Group
from gpucredits.version import __version__

EXIT_INTERRUPTED: Final = 130  # as a shell reports a program that SIGINT ended
EXIT_PIPE_CLOSED: Final = 141  # as a shell reports a program that SIGPIPE ended
JSON_WANTED: Final = "gpucredits.json"

# Where each command lives, in the order that help lists them.
COMMANDS: Final = {
    "demo": "gpucredits.cli.demo",
    "serve": "gpucredits.cli.serve",
    "account": "gpucredits.cli.account",
    "grant": "gpucredits.cli.grant",
    "topup": "gpucredits.cli.topup",
    "transfer": "gpucredits.cli.transfer",
    "transfers": "gpucredits.cli.transfer",
    "balance": "gpucredits.cli.balance",
    "ledger": "gpucredits.cli.ledger",
    "usage": "gpucredits.cli.usage",
    "price": "gpucredits.cli.price",
    "explain": "gpucredits.cli.explain",
    "reserve": "gpucredits.cli.reservation",
    "heartbeat": "gpucredits.cli.reservation",
    "settle": "gpucredits.cli.reservation",
    "cancel": "gpucredits.cli.reservation",
    "refund": "gpucredits.cli.correction",
    "adjust": "gpucredits.cli.correction",
    "reservation": "gpucredits.cli.reservation",
    "request": "gpucredits.cli.request",
    "statement": "gpucredits.cli.statement",
    "anomaly": "gpucredits.cli.anomaly",
    "quota": "gpucredits.cli.quota",
    "limit": "gpucredits.cli.limit",
    "budget": "gpucredits.cli.budget",
    "boost": "gpucredits.cli.boost",
    "pool": "gpucredits.cli.pool",
    "queue": "gpucredits.cli.queue",
    "share": "gpucredits.cli.share",
    "key": "gpucredits.cli.key",
    "audit": "gpucredits.cli.audit",
    "verify": "gpucredits.cli.verify",
    "clock": "gpucredits.cli.clock",
    "backup": "gpucredits.cli.backup",
    "restore": "gpucredits.cli.restore",
    "bench": "gpucredits.cli.bench",
    "completion": "gpucredits.cli.completion",
}


@contextmanager
def quiet_ends() -> Iterator[None]:
    """End without a trace when the reader of our output has seen enough, or somebody pressed ^C."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # what is still to be flushed at the exit
            os.dup2(nowhere, stream.fileno())
        raise SystemExit(EXIT_PIPE_CLOSED) from None
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        raise SystemExit(EXIT_INTERRUPTED) from None


@contextmanager
def told(*, as_json: bool) -> Iterator[None]:
    """Print what went wrong as JSON where that was asked for; else click says it to people."""
    try:
        yield
    except click.ClickException as error:
        if not as_json:
            raise
        from gpucredits.cli.failure import print_failure  # noqa: PLC0415  # it needs the client

        print_failure(error)
        raise click.exceptions.Exit(error.exit_code) from error


def asks_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, even if it is wrong in some other way."""
    given = list(words)
    return "--json" in (given[: given.index("--")] if "--" in given else given)


class LazyGroup(Group):
    """A group whose commands are imported by name."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the words; the help may be printed by this."""
        as_json = asks_json(args)
        with quiet_ends(), told(as_json=as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[JSON_WANTED] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with quiet_ends(), told(as_json=ctx.meta[JSON_WANTED]):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; one whose parts are not installed says so when it is run."""
        del ctx
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        try:
            command = getattr(importlib.import_module(place), cmd_name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == __package__.partition(".")[0]:
                raise
            return _missing(cmd_name, error)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place}.{cmd_name} is not a command")
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpucredits")
def main() -> None:
    """Metering, budgeting and admission for GPU fleets."""


def _missing(name: str, error: ModuleNotFoundError) -> click.Command:
    @click.command(
        name,
        cls=Command,
        short_help="Needs the server: pip install 'gpucredits[server]'.",
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("rest", nargs=-1, type=click.UNPROCESSED)
    def missing(rest: tuple[str, ...]) -> None:
        """Needs the server, which is not installed."""
        del rest
        raise click.ClickException(
            f"{name} needs the server ({error.name} is missing): pip install 'gpucredits[server]'"
        ) from error

    return missing
