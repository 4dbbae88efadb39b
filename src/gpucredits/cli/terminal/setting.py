"""Options of every command that sets something: change what is given, clear some, replace all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from gpucredits.cli.terminal.session import Write, writes


class Set(Write):
    """How something is set; what is not given stays unless all is replaced."""

    replace: bool
    clear: Sequence[str]


def sets(clearable: Mapping[str, str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command that sets something its options; they arrive as ``write``.

    ``clearable`` has the fields that have a default, by the words for them.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--replace", is_flag=True, help="Reset every option that is not given to its default."
        )
        @functools.wraps(command)
        def with_setting(
            *args: Any,
            write: Write,
            replace: bool,
            cleared: tuple[str, ...] = (),
            **given: Any,
        ) -> None:
            setting = Set(**write, replace=replace, clear=[clearable[word] for word in cleared])
            command(*args, write=setting, **given)

        if clearable:
            with_setting = click.option(
                "--clear",
                "cleared",
                multiple=True,
                type=click.Choice(list(clearable)),
                help="Reset this option to its default. May be given many times.",
            )(with_setting)
        return writes(with_setting)

    return decorate
