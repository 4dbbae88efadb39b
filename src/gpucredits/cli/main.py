"""The command group that every command hangs from."""

from __future__ import annotations

import click

from gpucredits.cli.serve import serve
from gpucredits.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpucredits")
def main() -> None:
    """Metering, budgeting and admission for GPU fleets."""


main.add_command(serve)
