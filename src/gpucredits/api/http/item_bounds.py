"""How large a body may be, and how many items its lists may have, before anything is decoded.

Owns: a cheap count of a body's items, made from the shape that the body is to have.
Must not: read bodies or check anything else of them (asgi does).
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, inspect

from gpucredits.wire.documented import type_of

BODY_BYTES_MAX: Final = 256 * 1024
BATCH_BYTES_MAX: Final = 2 * 1024 * 1024


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

        A body with fewer braces than items that are allowed cannot have too many of them.
        """
        if self.decoder is not None and body.count(b"{") > self.fewest:
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
