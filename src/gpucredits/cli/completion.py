"""``gpucredits completion``: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gpucredits.cli.terminal.grammar import Command

PROGRAM = "gpucredits"
VARIABLE = "_GPUCREDITS_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Source it from your shell's start-up file: source <(gpucredits completion bash)
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"No completion for {shell}.")
    click.echo(kind(ctx.find_root().command, {}, PROGRAM, VARIABLE).source())
