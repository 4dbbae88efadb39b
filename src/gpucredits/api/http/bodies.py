"""Reading a query, and what is refused of a body: too many bytes or items, and repeated fields.

Owns: a cheap count of a body's items before anything is decoded, made from the shape that the body
is to have; and finding a repeated field and its place, because readers disagree on which counts.
Must not: read bodies or check anything else of them (asgi does).
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct, inspect

from gpucredits.api.http.call import Route
from gpucredits.api.http.errors import ProblemError, misfit
from gpucredits.wire.documented import type_of
from gpucredits.wire.scalars import from_wire

QUERY_FIELDS_MAX: Final = 50
BODY_BYTES_MAX: Final = 256 * 1024
BATCH_BYTES_MAX: Final = 2 * 1024 * 1024
# A body with as many colons as its outermost object has different fields has each of them once.
FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode_query(route: Route, query_string: bytes) -> tuple[Any, bool]:
    """The query's struct, and whether it is a dry run."""
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=QUERY_FIELDS_MAX,
        )
    except ValueError as error:
        raise ProblemError("malformed_request", f"The query cannot be read: {error}.") from error
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise misfit(f"may be given once - at `$.{name}`")
        fields[name] = value
    dry_run = _flag(fields.pop("dry_run", "false")) if route.is_write else False
    try:
        return msgspec.convert(fields, route.query, strict=False, dec_hook=from_wire), dry_run
    except msgspec.ValidationError as error:
        raise misfit(str(error), route.query) from error


def _flag(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise misfit("must be true or false - at `$.dry_run`")
    return text in ("true", "1")


class ItemBounds:
    """The bounds of one shape of body: its bytes, and the items of each of its lists of objects."""

    __slots__ = ("body_bytes", "decoder", "fewest")

    def __init__(self, shape: type[Struct] | None) -> None:
        lists = {} if shape is None else lists_of(shape)
        self.body_bytes = BATCH_BYTES_MAX if lists else BODY_BYTES_MAX
        self.fewest = min(lists.values(), default=0)
        self.decoder: msgspec.json.Decoder[Any] | None = None
        if lists:
            fields: list[tuple[str, Any, Any]] = [
                (name, counted(most), []) for name, most in lists.items()
            ]
            self.decoder = msgspec.json.Decoder(msgspec.defstruct("Counted", fields))

    def check(self, body: bytes) -> None:
        """Raise msgspec's errors where a list is too long; what its items are is not looked at.

        A body with fewer braces than items that are allowed cannot have too many of them, so
        whoever asks counts those first.
        """
        if self.decoder is not None:
            self.decoder.decode(body)


def lists_of(shape: type[Struct]) -> dict[str, int]:
    """The lists of objects in a shape, by their names on the wire, with how long they may be."""
    known = inspect.type_info(shape)
    assert isinstance(known, inspect.StructType)  # for the type checker
    return {
        each.encode_name: kind.max_length
        for each in known.fields
        if isinstance(kind := type_of(each), inspect.ListType)
        and kind.max_length is not None
        and isinstance(kind.item_type, inspect.StructType)
    }


def counted(most: int) -> Any:
    """A list that is counted and not decoded; anything that is no list is left for later."""
    return Annotated[list[msgspec.Raw], Meta(max_length=most)]


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
