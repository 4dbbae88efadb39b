"""Fields that a request body gives twice: refused, because readers disagree on which one counts.

Owns: finding the repeated field and its place, in nested objects too.
Must not: check anything else of a body; decoding has done that before.
"""

from __future__ import annotations

import json
from typing import Any


class _Repeated(Exception):  # noqa: N818  # it states what happened
    """Some object has a field twice."""


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object as they were written, repeated ones included."""


def repeated_field(body: bytes) -> str | None:
    """The place of the first field that stands twice in one object, such as items[3].amount.

    The body is known to be JSON. Numbers are not converted: nobody looks at them here.
    """
    text = body.decode()
    try:
        _QUICK.decode(text)
    except _Repeated:
        return _place(_WHOLE.decode(text), "")
    return None


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len(dict(pairs)) != len(pairs):
        raise _Repeated


def _place(value: Any, where: str) -> str | None:
    """Where the first repeated field is, at or below a place."""
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, below in value:
            place = f"{where}.{name}" if where else name
            if name in seen:
                return place
            seen.add(name)
            if found := _place(below, place):
                return found
    elif isinstance(value, list):
        for number, item in enumerate(value):
            if found := _place(item, f"{where}[{number}]"):
                return found
    return None


_QUICK = json.JSONDecoder(object_pairs_hook=_once, parse_int=str, parse_float=str)
_WHOLE = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
