"""Values as people write them on a command line: amounts, paths, durations, instants, labels.

Owns: the human forms, and a clear message for what is none of them.
Must not: talk to a server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import click

from gpucredits.cli.terminal.near import Choice
from gpucredits.core.account import check_path
from gpucredits.core.duration import parse_ms
from gpucredits.core.fairshare.snapshot import WEIGHT_MAX
from gpucredits.core.gpu_type import check_gpu_type, check_region, parse_pool
from gpucredits.core.money import (
    AMOUNT_MAX,
    MICROS_PER_CREDIT,
    format_credits,
    parse_credits,
    parse_gpus,
)
from gpucredits.wire.scalars import parse_instant

_DECIMAL = re.compile(r"\d{1,400}(?:\.\d{1,6})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FromNow:
    """An instant so far from now, before it or after it; whose now, the session knows."""

    distance: timedelta

    def at(self, now: datetime) -> datetime:
        """The instant, once it is known what time it is."""
        try:
            return now + self.distance
        except OverflowError as error:
            raise click.UsageError(f"{self.distance} from now is beyond all calendars.") from error


class Words(Choice):
    """A choice of the wire's words, written with hyphens; underscores are as good."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__([word.replace("_", "-") for word in words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word as the wire has it."""
        return super().convert(value, param, ctx).replace("-", "_")


def account(text: str) -> str:
    """A path such as acme/vision/alice."""
    try:
        return check_path(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} {error}.") from error


def pool(text: str, region: str | None = None) -> tuple[str, str]:
    """A GPU type and a region from h100, h100/eu, nvidia.com/h100 or nvidia.com/h100/eu."""
    try:
        return parse_pool(text, region)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a pool: write h100, h100/eu or nvidia.com/h100/eu."
        ) from error


def gpu_type(text: str) -> str:
    """A GPU type such as h100 or nvidia.com/h100, in its one spelling."""
    try:
        return check_gpu_type(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} {error}.") from error


def region(text: str) -> str:
    """A region such as eu-west, in its one spelling."""
    try:
        return check_region(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} {error}.") from error


def weight(text: str) -> tuple[str, int]:
    """An account and its weight from acme/vision=3."""
    path, _, number = text.partition("=")
    if not number.isascii() or not number.isdecimal() or int(number) > WEIGHT_MAX:
        raise click.BadParameter(
            f"{text!r} is not a weight: write acme=3, with a number up to {WEIGHT_MAX}."
        )
    return account(path), int(number)


def gpus(text: str) -> str:
    """A number of GPUs such as 2 or 0.46, kept as the text it is."""
    try:
        parse_gpus(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} {error}.") from error
    return text


def amount(text: str) -> str:
    """An amount of credits such as 12.5, kept as the text it is."""
    if _DECIMAL.fullmatch(text) and Decimal(text) > AMOUNT_MAX // MICROS_PER_CREDIT:
        raise click.BadParameter(
            f"{text} is too large: an amount is at most {format_credits(AMOUNT_MAX)} credits."
        )
    try:
        micros = parse_credits(text)
    except ValueError:
        micros = -1
    if micros < 0:
        raise click.BadParameter(
            f"{text!r} is not an amount: write a number of credits with at most 6 decimals, a "
            "point before them and nothing between the thousands, such as 12.5 or 1500."
        )
    return text


def duration(text: str) -> int:
    """Milliseconds of a length of time such as 90s, 1h30m or 2d; a bare number is seconds."""
    ms = parse_ms(text)
    if ms is None:
        raise click.BadParameter(
            f"{text!r} is not a duration: write 90s, 1.5s, 15m, 1h30m, 2d or 1w."
        )
    return ms


def since_admission(text: str) -> int:
    """Milliseconds from an admission: a duration with its unit; a bare number is milliseconds."""
    return int(text) if text.isascii() and text.isdigit() else duration(text)


def whole_seconds(ms: int | None, option: str) -> int | None:
    """Seconds of a duration in which nothing may be lost."""
    if ms is not None and ms % 1_000:
        raise click.BadParameter("must be whole seconds.", param_hint=option)
    return None if ms is None else ms // 1_000


def instant(text: str) -> datetime | FromNow:
    """An instant: RFC 3339, a date, ``now``, ``30d`` from now, or ``2h ago``.

    Relative times count from the server's clock: the session asks for it.
    """
    moment = _instant(text.strip())
    if moment is None:
        raise click.BadParameter(
            f"{text!r} is not an instant: write 2026-03-01T00:00:00Z, 2026-03-01, now, 30d (from "
            "now) or '2h ago'."
        )
    return moment


def past(text: str) -> datetime | FromNow:
    """An instant of the past, where one looks back: ``7d`` is seven days ago, as ``7d ago`` is."""
    given = text.strip()
    moment = None if given.startswith("+") else _instant(given)
    if moment is None:
        raise click.BadParameter(
            f"{text!r} is not an instant of the past: write 2026-03-01T00:00:00Z, 2026-03-01, now, "
            "or 7d (seven days ago)."
        )
    if isinstance(moment, FromNow) and moment.distance > timedelta(0):
        return FromNow(-moment.distance)
    return moment


def label(text: str) -> tuple[str, str]:
    """A label such as team=vision: its key and its value."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not a label: write key=value.")
    return name, value


def _instant(text: str) -> datetime | FromNow | None:
    if text == "now":
        return FromNow(timedelta(0))
    is_past = text.endswith(" ago")
    length = text.removesuffix(" ago").lstrip("+")
    ms = None if length.replace(".", "").isdigit() else parse_ms(length)
    try:
        if ms is not None:
            return FromNow(timedelta(milliseconds=-ms if is_past else ms))
        full = f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text
        micros = parse_instant(full)
    except (ValueError, OverflowError):
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
