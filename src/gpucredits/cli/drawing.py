"""Pictures as SVG: a title, and charts of labelled bars below each other.

Owns: how they look, and refusing a place where no picture can be written.
Must not: know what the bars stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

import click

WIDTH: Final = 960
MARGIN: Final = 24
ROW: Final = 22
LETTER: Final = 7.2  # how wide a letter of a label is, at most and about
LABEL_MIN: Final = 190
LABEL_MAX: Final = 420
NOTE: Final = 170  # room for the words behind the longest bar
LABEL_LETTERS: Final = int((LABEL_MAX - 8) / LETTER)
INK, FAINT, BEHIND = "#1f2933", "#6b7785", "#d5dde6"


@dataclass(frozen=True, slots=True)
class Bar:
    """A label, a bar of a length in front of one of another, and words behind them."""

    label: str
    length: float
    note: str
    behind: float = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars of one colour under a title; all lengths are to one scale."""

    title: str
    bars: Sequence[Bar]
    colour: str


def picture_option(help_text: str) -> Callable[..., Any]:
    """The option --picture FILE; a file that cannot be written is refused at once."""
    return click.option(
        "--picture",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        callback=_drawable,
        help=help_text,
    )


def svg(title: str, subtitle: str, charts: Sequence[Chart]) -> str:
    """The whole picture."""
    parts = [
        _text(MARGIN, MARGIN + 16, title, size=17),
        _text(MARGIN, MARGIN + 38, subtitle, fill=FAINT),
    ]
    y = MARGIN + 52
    for chart in charts:
        y = _drawn(parts, y, chart)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'height="{y}" font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
    )
    body = f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>'
    return "\n".join([head, body, *parts, "</svg>", ""])


def _drawable(ctx: click.Context, param: click.Parameter, picture: Path | None) -> Path | None:
    if picture is None or ctx.resilient_parsing:  # a line that is being completed makes no file
        return picture
    is_new = not picture.exists()
    try:
        picture.open("ab").close()
    except OSError as error:
        text = f"{picture} cannot be written: {error.strerror}"
        raise click.BadParameter(text, param_hint=param.opts[0]) from error
    if is_new:
        picture.unlink()
    return picture


def _drawn(parts: list[str], y: int, chart: Chart) -> int:
    """Append a chart below ``y``; where the next one begins."""
    parts.append(_text(MARGIN, y + 18, chart.title, size=14))
    y += 28
    letters = max((len(bar.label) for bar in chart.bars), default=0)
    label = min(max(LABEL_MIN, round(letters * LETTER) + 8), LABEL_MAX)
    x, room = MARGIN + label, WIDTH - 2 * MARGIN - label - NOTE
    most = max((max(bar.length, bar.behind) for bar in chart.bars), default=0) or 1
    for bar in chart.bars:
        parts.append(_text(x - 8, y + 14, _shortened(bar.label), anchor="end"))
        for length, colour in ((bar.behind, BEHIND), (bar.length, chart.colour)):
            width = room * max(length, 0) / most
            parts.append(
                f'<rect x="{x}" y="{y + 2}" width="{width:.1f}" height="{ROW - 6}" '
                f'fill="{colour}"/>'
            )
        longest = max(bar.length, bar.behind, 0)
        parts.append(_text(x + room * longest / most + 8, y + 14, bar.note, fill=FAINT))
        y += ROW
    if not chart.bars:
        parts.append(_text(x, y + 14, "none", fill=FAINT))
        y += ROW
    return y + 14


def _shortened(label: str) -> str:
    """A label that has room; the end of a long one says more than its start."""
    return label if len(label) <= LABEL_LETTERS else f"…{label[1 - LABEL_LETTERS :]}"


def _text(
    x: float, y: float, text: str, *, size: int = 13, fill: str = INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
