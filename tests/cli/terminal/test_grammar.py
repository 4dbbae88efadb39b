"""How command lines are read: single options once, near names for unknown words, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits.cli.terminal.near import near, offer
from gpucredits.cli.terminal.values import past

NOBODY = {
    "GPUCREDITS_URL": "http://127.0.0.1:1",
    "GPUCREDITS_API_KEY": "gck_x",
    "GPUCREDITS_DATA_DIR": None,
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reserve a --job j --type h100 --gpus 2 --gpus 4", "--gpus is given twice"),
        ("reserve a --job j --job k --type h100", "--job is given twice"),
        ("balance a --at now --tree --at=2h --at 3h", "--at is given 3 times"),
        ("balance a --tree --tree", "--tree is given twice"),
        ("pool set h100 --preemption --no-preemption", "--preemption/--no-preemption is given"),
        ("balance a --key k --key l", "--key is given twice"),
    ],
)
def test_a_single_option_is_given_once(words: str, said: str) -> None:
    """Only the last value would count, so the command line is refused, and the option named."""
    result = CliRunner().invoke(main, words.split(), env=NOBODY)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "once" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("account create a --label team=x --label team=y", "'--label': 'team' is given twice"),
        ("pool weights h100 acme=3 globex=1 acme=5", "'acme' is given twice"),
    ],
)
def test_a_name_has_one_value(words: str, said: str) -> None:
    """Of two labels or weights with the same name only one would count."""
    result = CliRunner().invoke(main, words.split(), env=NOBODY)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_options_that_look_back_say_so() -> None:
    """Wherever an instant of the past is asked for, help says that a length of time is ago."""
    looking = {
        "balance": ["--at", "--known-at"],
        **{name: ["--since", "--until"] for name in ("usage", "ledger", "audit", "transfers")},
    }
    context = click.Context(main)
    found = {}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        options = [
            param
            for param in command.params
            if isinstance(param, click.Option) and getattr(param.type, "func", None) is past
        ]
        assert all("(ago)" in (option.help or "") for option in options)
        if options:
            found[name] = [option.opts[0] for option in options]
    assert found == looking


def test_options_for_many_are_given_often() -> None:
    """Labels and warnings may be given many times: the command goes on to the server."""
    lines = [
        "account create a --label a=1 --label b=2",
        "budget set a 5 --per day --warn 50 --warn 80",
    ]
    for line in lines:
        result = CliRunner().invoke(main, [*line.split(), "--timeout", "0.1s"], env=NOBODY)
        assert result.exit_code == 3, result.output


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("balanc acme", "balance"),
        ("acount list", "account"),
        ("quotas list acme", "quota"),
        ("issue acme 5", "gpucredits grant issue"),
        ("whoami", "gpucredits key whoami"),
        ("grant isue acme 5", "issue"),
        ("grant reserve acme", "gpucredits reserve"),
        ("reserve acme --job j --type h100 --gpu 2", "--gpus"),
        ("reserve acme --job j --type h100 -gpus 2", "--gpus"),
        ("reserve acme --job j --gpu-type=h100", "--type"),
        ("grant issue acme 5 --expiry 30d", "--expires"),
        ("quota set acme concurent-gpus 4", "concurrent-gpus"),
        ("quota set acme gpus 4", "concurrent-gpus"),
        ("quota set acme credits-window 4", "credits-per-window"),
        ("boost add acme 2 --until 2d --quota concurrent-gpu", "concurrent-gpus"),
        ("usage acme --by jobs", "job"),
        ("reservation list --state activ", "active"),
        ("request ask acme credit 5 --reason r", "credits"),
        ("budget set acme 5 --per monthly", "month"),
        ("key create operater", "operator"),
        ("completion bsh", "bash"),
    ],
)
def test_near_names_are_offered(words: str, offered: str) -> None:
    """An unknown command, option or word is answered with those that it may have meant."""
    result = CliRunner().invoke(main, words.split(), env=NOBODY)
    assert result.exit_code == 2
    told = result.stderr.partition("Did you mean ")[2]
    assert offered in told.strip().rstrip("?").replace(" or ", ", ").split(", ")


@pytest.mark.parametrize("words", ["zzz", "balance acme --zzz", "usage acme --by zzz"])
def test_nothing_is_offered_for_what_is_like_nothing(words: str) -> None:
    """A wild guess would mislead."""
    result = CliRunner().invoke(main, words.split(), env=NOBODY)
    assert result.exit_code == 2
    assert "Did you mean" not in result.stderr


def test_words_are_offered_as_a_sentence() -> None:
    """One, two or three words are listed as people list them; capitals do not count."""
    assert offer(["a"]) == " Did you mean a?"
    assert offer(["a", "b", "c"]) == " Did you mean a, b or c?"
    assert offer([]) == ""
    assert near("CONCURRENT_GPUS", ["concurrent-gpus", "other"]) == ["concurrent-gpus"]


def test_words_are_taken_as_the_api_writes_them() -> None:
    """A dimension with underscores, as the API has it, is the one with hyphens."""
    words = ["quota", "set", "acme", "Concurrent_GPUs", "4", "--timeout", "0.1"]
    assert CliRunner().invoke(main, words, env=NOBODY).exit_code == 3


def test_arguments_that_are_words_are_listed() -> None:
    """The usage line has the argument's name, and help lists its words."""
    text = CliRunner().invoke(main, ["quota", "set", "--help"]).stdout
    assert "quota set [OPTIONS] ACCOUNT DIMENSION LIMIT" in text
    assert "concurrent-gpus, concurrent-jobs" in text


def complete(*words: str) -> set[str]:
    """What the program offers a shell for a line that ends with the last word."""
    env = {**os.environ, "_GPUCREDITS_COMPLETE": "bash_complete"}
    env |= {"COMP_WORDS": " ".join(["gpucredits", *words]), "COMP_CWORD": str(len(words))}
    program = Path(sys.executable).with_name("gpucredits")
    done = subprocess.run(
        [program], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    return {line.partition(",")[2] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("grant", "i"), {"issue"}),
        (("quota", "set", "acme", "concurrent"), {"concurrent-gpus", "concurrent-jobs"}),
        (("usage", "acme", "--by", "gpu"), {"gpu-type"}),
        (("reserve", "acme", "--gp"), {"--gpus"}),
        (("balance", "acme", "--ca"), {"--ca-file"}),
        (("reserve", "acme", "--gpus", "2", "--gp"), set()),
        (("nonsense", "x"), set()),
    ],
)
def test_completion_still_completes(words: tuple[str, ...], offered: set[str]) -> None:
    """Commands, options and words are completed; an option that was given is not offered again."""
    assert complete(*words) == offered


def test_a_group_alone_shows_its_commands() -> None:
    """A group without a command is wrong usage that shows the help, with examples."""
    result = CliRunner().invoke(main, ["grant"])
    assert result.exit_code == 2
    assert "gpucredits grant issue acme 10000 --expires 30d" in result.stderr


def test_every_choice_offers_near_words() -> None:
    """No command has a choice of click's own, which offers nothing."""

    def choices(command: click.Command) -> list[click.Parameter]:
        found = [param for param in command.params if type(param.type) is click.Choice]
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                found += choices(below) if below else []
        return found

    assert choices(main) == []
