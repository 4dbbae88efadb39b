"""The command group that every command hangs from.

A command's module is imported when the command is used: a client's machine needs none of the
server's packages, and starts quickly.
"""

from __future__ import annotations

from importlib import import_module

import click

from gpucredits.version import __version__

# In the order of the help: command, and the module that has it under the same name.
COMMANDS: dict[str, str] = {
    "serve": "gpucredits.cli.serve",
    "account": "gpucredits.cli.account",
    "balance": "gpucredits.cli.account",
    "grant": "gpucredits.cli.credit",
    "topup": "gpucredits.cli.credit",
    "transfer": "gpucredits.cli.credit",
    "ledger": "gpucredits.cli.ledger",
    "price": "gpucredits.cli.ledger",
    "reserve": "gpucredits.cli.job",
    "heartbeat": "gpucredits.cli.job",
    "settle": "gpucredits.cli.job",
    "cancel": "gpucredits.cli.job",
    "key": "gpucredits.cli.key",
    "verify": "gpucredits.cli.verify",
}


class Commands(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None when there is none."""
        del ctx
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        try:
            command: click.Command = getattr(import_module(module), cmd_name)
        except ModuleNotFoundError as error:
            raise click.ClickException(
                f"{cmd_name} needs {error.name}: install gpucredits[server]"
            ) from error
        return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpucredits")
def main() -> None:
    """Metering, budgeting and admission for GPU fleets."""
