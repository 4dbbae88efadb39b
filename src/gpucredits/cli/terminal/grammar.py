"""What all commands have in common as commands: how their words are read, what help shows.

Owns: options that may be given once, near names for words that are unknown, examples in the help.
Must not: know single commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from gpucredits.cli.terminal.examples import EXAMPLES
from gpucredits.cli.terminal.near import Choice, near, offer

PROGRAM: Final = "gpucredits"
GROUP_EXAMPLES_MAX: Final = 4
WHOLE: Final = 10_000  # letters of a line about a command: more than any has


class ServerOption(click.Option):
    """An option that says which server is asked, and how; help lists these below the others."""


class Command(click.Command):
    """A command whose options are given once, and which offers near names for unknown ones."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        offer_near_words(self.params)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        with near_options(self, ctx, args):
            require_once(self, ctx, args)
            rest = super().parse_args(ctx, args)
        require_distinct(self, ctx)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the words of arguments, the command's own options, then those of every command."""
        rows = [
            ((param.name or "").upper(), ", ".join(param.type.choices))
            for param in self.params
            if isinstance(param, click.Argument) and isinstance(param.type, Choice)
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if row is not None:
                (common if isinstance(param, ServerOption) else own).append(row)
        for title, listed in (("Options", own), ("Server and output", common)):
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on its own line."""
        super().format_epilog(ctx, formatter)
        write_examples(examples_of(words_of(ctx)), formatter)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words before the command's name."""
        with near_options(self, ctx, args):
            require_once(self, ctx, args)
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named, or an error that offers near names."""
        name = args[0]
        is_unknown = self.get_command(ctx, name) is None and not name.startswith("-")
        if is_unknown and not ctx.resilient_parsing:
            found = near(name, self.list_commands(ctx)) or elsewhere(ctx, name)
            raise click.UsageError(f"No such command {name!r}.{offer(found)}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def sections(self, ctx: click.Context) -> list[tuple[str, Sequence[str]]]:
        """The titles under which help lists the commands, with their names."""
        return [("Commands", self.list_commands(ctx))]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line about each command; a long one goes on in the next line, uncut."""
        sections = self.sections(ctx)
        widest = max((len(name) for _, names in sections for name in names), default=0)
        for title, names in sections:
            rows = [
                (f"{name:<{widest}}", command.get_short_help_str(WHOLE))
                for name in names
                if (command := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write an example for each of the first commands of the group."""
        super().format_epilog(ctx, formatter)
        words = words_of(ctx)
        lines = examples_of(words) or [
            lines[0] for name in self.list_commands(ctx) if (lines := examples_of([*words, name]))
        ]
        write_examples(lines[:GROUP_EXAMPLES_MAX], formatter)


def offer_near_words(params: Sequence[click.Parameter]) -> None:
    """Let every choice among words offer the words that are near to an unknown one."""
    for param in params:
        if type(param.type) is click.Choice:
            param.type = Choice(param.type.choices)


def require_once(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Refuse an option that is given more often than it counts: only its last value would."""
    if ctx.resilient_parsing:  # a line that is being completed
        return
    _, _, order = command.make_parser(ctx).parse_args(list(args))
    for param, times in Counter(order).items():
        is_single = isinstance(param, click.Option) and not (param.multiple or param.count)
        if times > 1 and is_single and not param.is_eager:  # help may be asked for twice
            name = "/".join([*param.opts[-1:], *param.secondary_opts[-1:]])
            often = "twice" if times == 2 else f"{times} times"
            raise click.BadOptionUsage(name, f"{name} is given {often}: give it once.", ctx)


def require_distinct(command: click.Command, ctx: click.Context) -> None:
    """Refuse a name that is given two values, such as by --label team=a --label team=b."""
    for param in command.get_params(ctx):
        values = ctx.params.get(param.name or "")
        if not isinstance(values, tuple) or not all(isinstance(pair, tuple) for pair in values):
            continue
        for name, times in Counter(pair[0] for pair in values).items():
            if times > 1:
                text = (
                    f"{name!r} is given {'twice' if times == 2 else f'{times} times'}: once only."
                )
                raise click.BadParameter(text, ctx, param)


@contextmanager
def near_options(command: click.Command, ctx: click.Context, args: Sequence[str]) -> Iterator[None]:
    """Suggest similar names for an unknown option."""
    given = list(args)
    try:
        yield
    except click.NoSuchOption as error:
        name = error.option_name
        if name[1:2].isdigit():
            text = f"No such option {name!r}; amounts are never below 0."
            raise click.NoSuchOption(name, text, ctx=ctx) from error
        if not name.startswith("--"):  # -gpus is read as -g
            name = next((word for word in given if word.startswith(name)), name)
        options = [
            each
            for param in command.get_params(ctx)
            if isinstance(param, click.Option) and not param.hidden
            for each in (*param.opts, *param.secondary_opts)
            if each.startswith("--")
        ]
        found = near(f"--{name.lstrip('-').partition('=')[0]}", options)
        text = f"No such option {name!r}.{offer(found)}"
        raise click.NoSuchOption(name, text, ctx=ctx) from error


def elsewhere(ctx: click.Context, name: str) -> list[str]:
    """Commands of this name in other groups, as they are written."""
    root = ctx.find_root().command
    found = []
    for top in root.list_commands(ctx) if isinstance(root, click.Group) else ():
        command = root.get_command(ctx, top) if isinstance(root, click.Group) else None
        if top == name:
            found.append(f"{PROGRAM} {top}")
        if isinstance(command, click.Group) and name in command.list_commands(ctx):
            found.append(f"{PROGRAM} {top} {name}")
    return found if len(found) <= GROUP_EXAMPLES_MAX else []


def words_of(ctx: click.Context) -> list[str]:
    """The words of the command being run, without the program's name."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return words


def examples_of(words: Sequence[str]) -> list[str]:
    """Whole command lines that show a command in use."""
    name = " ".join(words)
    lead = f"{PROGRAM} {name}".strip()
    return [f"{lead} {rest}".strip() for rest in EXAMPLES.get(name, ())]


def write_examples(lines: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write command lines as they are, without wrapping."""
    if not lines:
        return
    with formatter.section("Examples" if len(lines) > 1 else "Example"):
        for line in lines:
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
