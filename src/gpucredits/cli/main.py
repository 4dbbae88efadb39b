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

from gpucredits.cli.terminal.files import is_about_a_file, trouble
from gpucredits.cli.terminal.grammar import Command, Group
from gpucredits.version import __version__

EXIT_INTERRUPTED: Final = 130  # as a shell reports a program that SIGINT ended
EXIT_PIPE_CLOSED: Final = 141  # as a shell reports a program that SIGPIPE ended
JSON_WANTED: Final = "gpucredits.json"
# What a command may lack, and how to get it. No wheel holds the benchmarks.
BENCHMARKS: Final = "gpucredits_bench"
CRYPTOGRAPHY: Final = "cryptography"
THE_TOKENS: Final = ("tokens and certificates", "pip install 'gpucredits[tokens]'")
THE_SERVER: Final = ("the server", "pip install 'gpucredits[server]'")
THE_BENCHMARKS: Final = (
    "the benchmarks",
    "pip install -e '.[server]' in a checkout of the sources, or make bench there",
)

# Where each command lives, under the titles and in the order in which help lists them.
SECTIONS: Final = {
    "Start here": {
        "demo": "gpucredits.cli.server.demo",
        "serve": "gpucredits.cli.server.serve",
        "simulate": "gpucredits.cli.server.simulate",
        "completion": "gpucredits.cli.completion",
    },
    "Accounts and credits": {
        "account": "gpucredits.cli.ledger.account",
        "balance": "gpucredits.cli.ledger.balance",
        "grant": "gpucredits.cli.ledger.grant",
        "topup": "gpucredits.cli.ledger.topup",
        "transfer": "gpucredits.cli.ledger.transfer",
        "transfers": "gpucredits.cli.ledger.transfer",
        "budget": "gpucredits.cli.limits.budget",
        "price": "gpucredits.cli.billing.price",
    },
    "Jobs": {
        "run": "gpucredits.cli.node.run",
        "explain": "gpucredits.cli.ledger.explain",
        "reserve": "gpucredits.cli.ledger.reservation",
        "heartbeat": "gpucredits.cli.ledger.reservation",
        "settle": "gpucredits.cli.ledger.reservation",
        "cancel": "gpucredits.cli.ledger.reservation",
        "reservation": "gpucredits.cli.ledger.reservation",
    },
    "Use and bills": {
        "usage": "gpucredits.cli.billing.usage",
        "ledger": "gpucredits.cli.ledger.ledger",
        "refund": "gpucredits.cli.ledger.correction",
        "adjust": "gpucredits.cli.ledger.correction",
        "statement": "gpucredits.cli.billing.statement",
        "anomaly": "gpucredits.cli.billing.anomaly",
        "reconcile": "gpucredits.cli.reconciliation.reconcile",
        "loss": "gpucredits.cli.reconciliation.loss",
    },
    "Limits": {
        "limit": "gpucredits.cli.limits.limit",
        "quota": "gpucredits.cli.limits.quota",
        "boost": "gpucredits.cli.limits.boost",
        "request": "gpucredits.cli.billing.request",
    },
    "Pools of scarce GPUs": {
        "pool": "gpucredits.cli.dispatch.pool",
        "share": "gpucredits.cli.dispatch.share",
        "queue": "gpucredits.cli.dispatch.queue",
    },
    "Nodes": {
        "agent": "gpucredits.cli.node.agent",
        "idle-guard": "gpucredits.cli.node.idle_guard",
        "token": "gpucredits.cli.node.token",
        "ca": "gpucredits.cli.node.ca",
    },
    "Access and events": {
        "key": "gpucredits.cli.access.key",
        "audit": "gpucredits.cli.access.audit",
        "event": "gpucredits.cli.metering.event",
        "dead-letter": "gpucredits.cli.metering.dead_letter",
    },
    "Running the server": {
        "verify": "gpucredits.cli.server.verify",
        "maintenance": "gpucredits.cli.outages.maintenance",
        "exposure": "gpucredits.cli.outages.exposure",
        "clock": "gpucredits.cli.ledger.clock",
        "backup": "gpucredits.cli.server.backup",
        "restore": "gpucredits.cli.server.restore",
        "bench": "gpucredits_bench.commands",
    },
}
COMMANDS: Final = {name: place for part in SECTIONS.values() for name, place in part.items()}


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
def named_files() -> Iterator[None]:
    """Say which file or folder cannot be used, and why, in place of a trace."""
    try:
        yield
    except OSError as error:
        if not is_about_a_file(error):
            raise
        raise click.ClickException(f"{trouble(error)}.") from error


@contextmanager
def told(*, as_json: bool) -> Iterator[None]:
    """Print what went wrong as JSON where that was asked for; else click says it to people."""
    try:
        with named_files():
            yield
    except click.ClickException as error:
        if not as_json:
            raise
        from gpucredits.cli.terminal.failure import print_failure  # noqa: PLC0415  # it needs the client

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

    def sections(self, ctx: click.Context) -> list[tuple[str, Sequence[str]]]:
        """The titles of the table with their commands."""
        del ctx
        return [(title, list(names)) for title, names in SECTIONS.items()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; one whose parts are not installed says so when it is run."""
        del ctx
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        try:
            command = getattr(importlib.import_module(place), cmd_name.replace("-", "_"))
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
    missed = (error.name or "").partition(".")[0]
    needs, means = {BENCHMARKS: THE_BENCHMARKS, CRYPTOGRAPHY: THE_TOKENS}.get(missed, THE_SERVER)

    @click.command(
        name,
        cls=Command,
        help=f"Needs {needs}, which this installation lacks.",
        short_help=f"Needs {needs}: {means}.",
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("rest", nargs=-1, type=click.UNPROCESSED)
    def missing(rest: tuple[str, ...]) -> None:
        del rest
        raise click.ClickException(
            f"{name} needs {needs} ({error.name} is missing): {means}"
        ) from error

    return missing
