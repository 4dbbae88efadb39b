"""Lengths of time as people write them, such as 90s, 1h30m or 2d.

Owns: reading and writing the form that commands take and sentences show.
Must not: know what lasts so long.
"""

from __future__ import annotations

import re
from typing import Final

SECOND_MS: Final = 1_000
_UNITS_MS: Final = {
    "ms": 1,
    "s": SECOND_MS,
    "m": 60 * SECOND_MS,
    "h": 3_600 * SECOND_MS,
    "d": 86_400 * SECOND_MS,
    "w": 7 * 86_400 * SECOND_MS,
}
_PART: Final = re.compile(r"(\d{1,12})(?:\.(\d{1,3}))?(ms|s|m|h|d|w)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_BARE: Final = re.compile(r"\d{1,12}(?:\.\d{1,3})?", re.ASCII)


def parse_ms(text: str) -> int | None:
    """Milliseconds of a duration; a bare number is seconds. None when the text is no duration."""
    if _BARE.fullmatch(text):
        text = f"{text}s"
    if _WHOLE.fullmatch(text) is None:
        return None
    thousandths = sum(
        (int(whole) * 1_000 + int(f"{part:0<3}")) * _UNITS_MS[unit]
        for whole, part, unit in _PART.findall(text)
    )
    ms, rest = divmod(thousandths, 1_000)
    return None if rest else ms


def format_ms(ms: int) -> str:
    """A duration for people, such as 12.5s or 1h30m: to the second from a minute on."""
    if ms < _UNITS_MS["m"]:
        seconds, rest = divmod(ms, SECOND_MS)
        return f"{seconds}.{rest:03d}".rstrip("0").rstrip(".") + "s"
    parts = []
    for unit in ("d", "h", "m", "s"):
        number, ms = divmod(ms, _UNITS_MS[unit])
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts)


def format_seconds(seconds: int) -> str:
    """A duration of whole seconds for people."""
    return format_ms(seconds * SECOND_MS)
