"""Problems: what an answer that is not a success looks like (RFC 9457).

Owns: the shape of application/problem+json with its stable ``reason`` and its numbers.
Must not: choose status codes; the edge does.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Struct, inspect

from gpucredits.wire.documented import AVAILABLE, SCOPE, doc, type_of
from gpucredits.wire.gate import GateAnswer
from gpucredits.wire.request_limit import RequestLimitShown
from gpucredits.wire.scalars import InstantText

MEDIA_TYPE = "application/problem+json"


class Problem(Struct, kw_only=True, omit_defaults=True):
    """Why a request failed: for machines (``reason``), for people (``detail``), and in numbers.

    A refusal for lack of credits, room, tokens or a turn has the verdict of every gate (``gates``).
    ``clears_at`` is when all closed gates would let the request through, where that is known.
    """

    title: Annotated[str, doc("The phrase of the HTTP status.")]
    status: Annotated[int, doc("The HTTP status.")]
    reason: Annotated[str, doc("The reason: a stable word from a closed list.")]
    detail: Annotated[str, doc("The reason in words.")] = ""
    request_id: Annotated[str, doc("The id of the HTTP request, as in the server's log.")] = ""
    field: Annotated[str | None, doc("The wrong part of the request, such as items[3].amount.")] = (
        None
    )
    account: Annotated[str | None, doc("The account that refused.")] = None
    scope: Annotated[str | None, SCOPE] = None
    available: Annotated[str | None, AVAILABLE] = None
    needed: Annotated[str | None, doc("The amount that would have been needed.")] = None
    numbers: Annotated[
        dict[str, str | int] | None, doc("The numbers behind the reason, by name.")
    ] = None
    clears_at: Annotated[
        InstantText | None,
        doc("When the same request would pass if nothing else changed, if known."),
    ] = None
    gates: Annotated[
        list[GateAnswer] | None, doc("The verdict of every gate, if gates decided.")
    ] = None
    index: Annotated[int | None, doc("The position of the item in the batch, from 0.")] = None
    limit: Annotated[
        RequestLimitShown | None, doc("The request limit that refused the request.")
    ] = None


_PLACE = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")
_NAMED = re.compile(r"Object (?P<fault>contains unknown|missing required) field `(?P<name>[^`]+)`")
_FAULTS = {"contains unknown": "is not a field of this", "missing required": "must be given"}


_BOUNDS = (
    (re.compile(r"Expected `(?:int|float)` <= (\S+)"), r"must be at most \1"),
    (re.compile(r"Expected `(?:int|float)` >= (\S+)"), r"must be at least \1"),
    (re.compile(r"Expected `str` of length <= (\d+)"), r"must have at most \1 characters"),
    (re.compile(r"Expected `str` of length >= (\d+)"), r"must have at least \1 characters"),
    (re.compile(r"Expected `array` of length <= (\d+)"), r"must have at most \1 items"),
    (re.compile(r"Expected `array` of length >= (\d+)"), r"must have at least \1 items"),
)
_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


def misfit(message: str, shape: type | None = None) -> tuple[str | None, str]:
    """(field, what is wrong with it) of a decoder's message, as people and programs want it.

    With the ``shape`` that was decoded, an unknown word is answered with the words that exist.
    """
    found = _PLACE.search(message)
    place = found["place"] if found else ""
    text = message[: found.start()] if found else message
    named = _NAMED.fullmatch(text)
    if named is not None:
        place = f"{place}.{named['name']}" if place else named["name"]
        text = _FAULTS[named["fault"]]
        if shape is not None and named["fault"] == "contains unknown":
            text += _fields_at(shape, place.rpartition(".")[0])
    for pattern, wanted in _BOUNDS:
        text = pattern.sub(wanted, text)
    if shape is not None and text.startswith("Invalid enum value"):
        words = _words_at(shape, place)
        text = f"must be one of {', '.join(words)}" if words else text
    return place or None, text


def _words_at(shape: type, place: str) -> list[str]:
    """The words that may stand at a place of a shape, where they are few."""
    kinds = _kinds_at(shape, place)
    literals = [kind for kind in kinds if isinstance(kind, inspect.LiteralType)]
    return [str(word) for kind in literals for word in kind.values]


def _fields_at(shape: type, place: str) -> str:
    """The fields at a place of a shape, as the end of a sentence."""
    structs = [kind for kind in _kinds_at(shape, place) if isinstance(kind, inspect.StructType)]
    *most, last = sorted(each.encode_name for kind in structs for each in kind.fields) or [""]
    return f"; its fields are {', '.join(most)} and {last}" if most else ""


def _kinds_at(shape: type, place: str) -> list[inspect.Type]:
    """The types that may stand at a place of a shape."""
    kinds: list[inspect.Type] = [inspect.type_info(shape)]
    for step in [*_STEP.findall(place), ""]:
        kinds = [
            each
            for kind in kinds
            for each in (kind.types if isinstance(kind, inspect.UnionType) else (kind,))
        ]
        if not step:
            break
        if step.startswith("["):
            kinds = [kind.item_type for kind in kinds if isinstance(kind, inspect.ListType)]
        else:
            structs = [kind for kind in kinds if isinstance(kind, inspect.StructType)]
            kinds = [
                type_of(each)
                for kind in structs
                for each in kind.fields
                if each.encode_name == step
            ]
    return kinds
