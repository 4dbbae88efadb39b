"""The picture of a simulated day: who held how much of the pool, and what was their target.

    from fairshare_picture import draw

Bands are stacked: the orgs that have work from midnight below, those that arrive at six above,
each by weight. A white line parts the orgs, a dashed line is where a band should end.
"""

from __future__ import annotations

from collections.abc import Iterator

WIDTH, HEIGHT = 1000, 520
LEFT, RIGHT, TOP, BOTTOM = 64, 212, 56, 40
STEP_MINUTES = 10
DAY_MINUTES = 24 * 60
BANDS = {
    (0, 4): "#1d4e79",
    (0, 2): "#3a7fb5",
    (0, 1): "#8fbfe0",
    (1, 4): "#9c4a1a",
    (1, 2): "#d97b34",
    (1, 1): "#f3bd87",
}
SUBTITLE = (
    "Held by each org, stacked; dashed: where the bands should end by weight "
    "while every org has work waiting"
)
STYLE = (
    "text{font-family:system-ui,Helvetica,Arial,sans-serif;font-size:13px;fill:#333}"
    ".t{font-size:17px;font-weight:600}.a{fill:#666}.g{stroke:#ddd}"
    ".o{fill:none;stroke:#fff;stroke-width:.6;opacity:.55}"
    ".w{fill:none;stroke:#111;stroke-width:1.4;stroke-dasharray:6 4}"
)


def draw(
    samples: list[dict[str, int]],
    backlogged: list[bool],
    orgs: dict[str, int],
    pool: tuple[int, int],
) -> str:
    """The day as an SVG document; ``pool`` is its GPUs and the minutes between samples."""
    gpus, cycle_minutes = pool
    names = list(orgs)
    groups = {
        band: [name for name in names if (names.index(name) % 2, orgs[name]) == band]
        for band in BANDS
    }
    width = STEP_MINUTES // cycle_minutes
    averaged = [
        _average(samples[first : first + width], names) for first in range(0, len(samples), width)
    ]
    judged = [cycle * cycle_minutes for cycle, is_judged in enumerate(backlogged) if is_judged]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text class="t" x="{LEFT}" y="24">A day of {gpus} GPUs shared by {len(orgs)} orgs</text>',
        f'<text class="a" x="{LEFT}" y="44">{SUBTITLE}</text>',
        *_axes(),
        *_bands(averaged, groups, gpus),
        *_targets(judged, groups, orgs),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _average(samples: list[dict[str, int]], names: list[str]) -> dict[str, float]:
    return {name: sum(sample[name] for sample in samples) / len(samples) for name in names}


def _x(minute: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * minute / DAY_MINUTES


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _axes() -> Iterator[str]:
    for percent in (0, 25, 50, 75, 100):
        y = _y(percent / 100)
        yield f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.0f}" y2="{y:.0f}"/>'
        yield f'<text class="a" x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{percent} %</text>'
    for hour in range(0, 25, 3):
        x = _x(hour * 60)
        y = HEIGHT - BOTTOM + 18
        yield f'<text class="a" x="{x:.0f}" y="{y}" text-anchor="middle">{hour:02}:00</text>'


def _bands(
    averaged: list[dict[str, float]], groups: dict[tuple[int, int], list[str]], gpus: int
) -> Iterator[str]:
    xs = [_x(index * STEP_MINUTES) for index in range(len(averaged))]
    floor = [0.0] * len(averaged)
    lines: list[str] = []
    for band, members in groups.items():
        lower = _points(xs, floor)
        for name in members:
            floor = [
                base + sample[name] / gpus for base, sample in zip(floor, averaged, strict=True)
            ]
            lines.append(f'<polyline class="o" points="{" ".join(_points(xs, floor))}"/>')
        upper = _points(xs, floor)
        yield f'<polygon fill="{BANDS[band]}" points="{" ".join([*upper, *reversed(lower)])}"/>'
    yield from lines


def _points(xs: list[float], shares: list[float]) -> list[str]:
    return [f"{x:.0f},{_y(share):.1f}" for x, share in zip(xs, shares, strict=True)]


def _targets(
    judged: list[int], groups: dict[tuple[int, int], list[str]], orgs: dict[str, int]
) -> Iterator[str]:
    if not judged:
        return
    total = sum(orgs.values())
    share = 0.0
    for (late, weight), members in groups.items():
        middle = share + sum(orgs[name] for name in members) / total / 2
        share += sum(orgs[name] for name in members) / total
        if share < 0.999:
            yield (
                f'<line class="w" x1="{_x(judged[0]):.0f}" x2="{_x(judged[-1]):.0f}" '
                f'y1="{_y(share):.1f}" y2="{_y(share):.1f}"/>'
            )
        x, y = WIDTH - RIGHT + 14, _y(middle)
        colour = BANDS[late, weight]
        yield f'<rect x="{x}" y="{y - 9:.0f}" width="12" height="12" fill="{colour}"/>'
        since = "from 06:00" if late else "all day"
        words = f"{len(members)} of weight {weight}, {since}"
        yield f'<text x="{x + 18}" y="{y + 2:.0f}">{words}</text>'
