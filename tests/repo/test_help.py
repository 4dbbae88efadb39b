"""Help shows how a command is used: examples that are understood as they stand."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits.cli.terminal.examples import EXAMPLES
from gpucredits.cli.terminal.grammar import Command, Group

# Commands that call no server would begin their work: their words are only read.
LOCAL = {
    "agent",
    "ca",
    "demo",
    "simulate",
    "serve",
    "verify",
    "backup",
    "restore",
    "bench",
    "completion",
    "share replay",
    "token verify",
}
NOBODY = {
    "GPUCREDITS_URL": "http://127.0.0.1:1",
    "GPUCREDITS_API_KEY": "gck_x",
    "GPUCREDITS_DATA_DIR": None,
    "GPUCREDITS_CA_FILE": None,
    "GPUCREDITS_CERT": None,
}


def commands(group: click.Group, words: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Every command by its words, groups and the program itself included."""
    found: dict[str, click.Command] = {" ".join(words): group}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= commands(command, (*words, name))
        else:
            found[" ".join((*words, name))] = command
    return found


COMMANDS = commands(main)
CALLS = [
    (words, example)
    for words, examples in EXAMPLES.items()
    for example in examples
    if words and not any(f"{words} ".startswith(f"{local} ") for local in LOCAL)
]


def parse(words: list[str]) -> click.Command:
    """The command that words name, once they have been read; click's errors come through."""
    context = main.make_context("gpucredits", list(words))
    command: click.Command = main
    rest = words
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name, list(rest), parent=context)
    context.close()
    return command


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_an_example(words: str) -> None:
    """Its help ends with at least one command line; that of a group shows some of its commands."""
    text = CliRunner().invoke(main, [*words.split(), "--help"]).stdout
    examples = text.partition("\nExample")[2].splitlines()[1:]
    assert examples
    for line in examples:
        assert line.startswith(f"  gpucredits {words}".rstrip())
        assert len(line) <= 100
    assert isinstance(COMMANDS[words], Command | Group)


def test_no_example_is_of_a_command_that_there_is_not() -> None:
    """The table of examples names commands that exist."""
    assert set(EXAMPLES) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "example"),
    [(words, example) for words, examples in EXAMPLES.items() for example in examples],
)
def test_examples_parse(
    words: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every example is a command line that is understood; files that it names exist here."""
    monkeypatch.chdir(tmp_path)
    for name in ("decision.json", "jwks.json", "server.pem", "server.key", "ca.pem"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "gpucredits-data").mkdir()
    command = parse(shlex.split(f"{words} {example}"))
    if words:
        assert command is COMMANDS[words]


@pytest.mark.parametrize(("words", "example"), CALLS)
def test_examples_reach_the_server(words: str, example: str) -> None:
    """Nothing is wrong with an example but that nobody listens: exit code 3."""
    line = [*words.split(), "--timeout", "0.1s", *shlex.split(example)]
    result = CliRunner().invoke(main, line, env=NOBODY)
    assert result.exit_code == 3, result.output
