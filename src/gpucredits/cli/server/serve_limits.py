"""The options of ``gpucredits serve`` that limit requests."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import click

from gpucredits.core.request_limit import BURST_MAX, Defaults, RequestLimit, limit_of

_Burst: Final = click.IntRange(1, BURST_MAX)
_SPEED = re.compile(r"\d{1,9}(\.\d{1,9}|/\d{1,9})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """What was given on the command line."""

    defaults: Defaults
    redis_url: str | None = field(repr=False)
    redis_timeout_ms: int


def limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, which it gets as ``limits``."""

    @click.option(
        "--requests-per-second",
        "key_speed",
        metavar="N",
        help="Requests that each key may make in the long run.  [default: no limit]",
    )
    @click.option(
        "--request-burst",
        "key_burst",
        type=_Burst,
        help="Requests that a key may make at once.  [default: four seconds' worth]",
    )
    @click.option(
        "--org-requests-per-second",
        "org_speed",
        metavar="N",
        help="The same for all keys of an org together.  [default: no limit]",
    )
    @click.option(
        "--org-request-burst",
        "org_burst",
        type=_Burst,
        help="Requests that the keys of an org may make at once.",
    )
    @click.option(
        "--redis-url",
        envvar="GPUCREDITS_REDIS_URL",
        show_envvar=True,
        help="Count requests in a Redis that several servers share (redis://, rediss://, unix://).",
    )
    @click.option(
        "--redis-timeout-ms",
        type=click.IntRange(1, 10_000),
        default=250,
        show_default=True,
        help="How long a request waits for Redis before this server counts it alone.",
    )
    @functools.wraps(command)
    def wrapped(  # one argument for each option
        *,
        key_speed: str | None,
        key_burst: int | None,
        org_speed: str | None,
        org_burst: int | None,
        redis_url: str | None,
        redis_timeout_ms: int,
        **others: Any,
    ) -> None:
        defaults = Defaults(
            key=limit_given("requests", key_speed, key_burst),
            org=limit_given("org-requests", org_speed, org_burst),
        )
        command(limits=LimitOptions(defaults, redis_url, redis_timeout_ms), **others)

    return wrapped


def limit_given(name: str, speed: str | None, burst: int | None) -> RequestLimit | None:
    """The limit that a pair of options describes."""
    if speed is None:
        if burst is not None:
            raise click.UsageError(f"--{name[:-1]}-burst needs --{name}-per-second.")
        return None
    try:
        return limit_of(Fraction(speed if _SPEED.fullmatch(speed) else ""), burst)
    except (ValueError, ZeroDivisionError):
        raise click.UsageError(
            f"--{name}-per-second must be from 1/3600 to {BURST_MAX}, in whole requests an hour; "
            f"{speed!r} is not."
        ) from None
