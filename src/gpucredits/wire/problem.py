"""Problems: what an answer that is not a success looks like (RFC 9457).

Owns: the shape of application/problem+json with its stable ``reason`` and its numbers.
Must not: choose status codes; the edge does.
"""

from __future__ import annotations

import re

from msgspec import Struct

from gpucredits.wire.gate import GateAnswer
from gpucredits.wire.request_limit import RequestLimitShown
from gpucredits.wire.scalars import InstantText

MEDIA_TYPE = "application/problem+json"


class Problem(Struct, kw_only=True, omit_defaults=True):
    """Why not, for machines (``reason``), for people (``detail``), and the numbers behind it.

    A refusal for lack of credits, room, tokens or a turn says what every gate says (``gates``), and
    ``clears_at`` when all gates that are closed would let the request through, where that is known.
    """

    title: str
    status: int
    reason: str
    detail: str = ""
    request_id: str = ""
    field: str | None = None
    account: str | None = None
    scope: str | None = None
    available: str | None = None
    needed: str | None = None
    numbers: dict[str, str | int] | None = None
    clears_at: InstantText | None = None
    gates: list[GateAnswer] | None = None
    index: int | None = None
    limit: RequestLimitShown | None = None


_PLACE = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")
_NAMED = re.compile(r"Object (?P<fault>contains unknown|missing required) field `(?P<name>[^`]+)`")
_FAULTS = {"contains unknown": "is not a field of this", "missing required": "must be given"}


def misfit(message: str) -> tuple[str | None, str]:
    """(field, what is wrong with it) of a decoder's message, as people and programs want it."""
    found = _PLACE.search(message)
    place = found["place"] if found else ""
    text = message[: found.start()] if found else message
    named = _NAMED.fullmatch(text)
    if named is not None:
        place = f"{place}.{named['name']}" if place else named["name"]
        text = _FAULTS[named["fault"]]
    return place or None, text
