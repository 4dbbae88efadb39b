"""A summary as a picture: credits by tenant, refusals by gate, and waiting times.

Owns: the drawing, as SVG. Must not: compute figures; ``summary`` has them.
"""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape

from gpucredits.simulation.opening import MICROS
from gpucredits.simulation.summary import Summary

WIDTH: Final = 960
MARGIN: Final = 24
ROW: Final = 22
LABEL: Final = 190
BAR: Final = WIDTH - 2 * MARGIN - LABEL - 170
INK, FAINT = "#1f2933", "#6b7785"
SPENT, GRANTED, REFUSED, WAITED = "#2f6fbb", "#d5dde6", "#c2553d", "#3d8f6b"

Bar = tuple[str, float, float, str]  # label, length of the front bar, of the back bar, note


def draw(summary: Summary) -> str:
    """The picture of a summary."""
    parts: list[str] = []
    y = MARGIN + 8
    y = _title(parts, y, summary)
    spent = [
        (
            each.org,
            each.spent / MICROS,
            each.granted / MICROS,
            f"{each.spent // MICROS:,} of {each.granted // MICROS:,}",
        )
        for each in summary.tenants
    ]
    y = _chart(parts, y, "Credits spent of credits granted, by org", spent, SPENT)
    refused: list[Bar] = [
        (name, count, 0, f"{count:,}") for name, count in sorted(summary.refusals.items())
    ]
    y = _chart(parts, y, "Jobs refused, by closed gate", refused, REFUSED)
    waits: list[Bar] = [(name, count, 0, f"{count:,}") for name, count in summary.waits]
    y = _chart(parts, y, "Jobs admitted from the queue, by longest wait", waits, WAITED)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'height="{y}" font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
    )
    body = f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>'
    return "\n".join([head, body, *parts, "</svg>", ""])


def _title(parts: list[str], y: int, summary: Summary) -> int:
    days = summary.simulated_s / 86_400
    figures = (
        f"{summary.jobs:,} jobs over {days:,.1f} days: {summary.attempts:,} leases, "
        f"{summary.beats:,} heartbeats, {len(summary.wrong)} wrong bills"
    )
    parts.append(_text(MARGIN, y + 8, figures, size=17))
    parts.append(_text(MARGIN, y + 30, f"Source: {summary.source}", fill=FAINT))
    return y + 44


def _chart(parts: list[str], y: int, title: str, bars: list[Bar], fill: str) -> int:
    parts.append(_text(MARGIN, y + 18, title, size=14))
    y += 28
    most = max((max(front, back) for _, front, back, _ in bars), default=0) or 1
    for label, front, back, note in bars:
        x = MARGIN + LABEL
        parts.append(_text(x - 8, y + 14, label, anchor="end"))
        for length, colour in ((back, GRANTED), (front, fill)):
            width = BAR * length / most
            parts.append(
                f'<rect x="{x}" y="{y + 2}" width="{width:.1f}" height="{ROW - 6}" '
                f'fill="{colour}"/>'
            )
        parts.append(_text(x + BAR * max(front, back) / most + 8, y + 14, note, fill=FAINT))
        y += ROW
    if not bars:
        parts.append(_text(MARGIN + LABEL, y + 14, "none", fill=FAINT))
        y += ROW
    return y + 14


def _text(
    x: float, y: float, text: str, *, size: int = 13, fill: str = INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
