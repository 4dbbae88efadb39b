"""The page on the command line is true: its commands run and print what it shows."""

from __future__ import annotations

from pathlib import Path

import click

from gpucredits.cli.main import main
from gpucredits.cli.server.temporary_server import temporary_server
from gpucredits.client import Client
from support.guide import run, steps

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


def test_the_commands_of_the_page_print_what_it_shows() -> None:
    """Every command, in order, on a fresh server that is found by its data directory."""
    with temporary_server() as server, Client(server.url, server.key) as client:
        for step in steps(PAGE):
            if "--used" in step.command:
                client.advance_clock(2)  # a job is charged for time that has passed
            assert run(step.command, server.data_dir) == step.shown, step.command


def test_the_page_names_every_command() -> None:
    """No command is left out of the page."""
    text = PAGE.read_text()
    context = click.Context(main)
    for name in main.list_commands(context):
        assert f"gpucredits {name}" in text
        command = main.get_command(context, name)
        for sub in command.list_commands(context) if isinstance(command, click.Group) else []:
            assert f"gpucredits {name} {sub}" in text
