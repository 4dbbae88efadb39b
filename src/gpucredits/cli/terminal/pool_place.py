"""The POOL that a command is about: an argument, and a region apart from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from gpucredits.cli.terminal import values


def at_pool(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command POOL and ``--region``; it takes them as ``place``: a GPU type and a region."""

    @click.argument("text", metavar="POOL")
    @click.option("--region", help="The region, where POOL is the GPU type alone.")
    @wraps(command)
    def with_place(*args: Any, text: str, region: str | None, **given: Any) -> None:
        command(*args, place=values.pool(text, region), **given)

    return with_place
