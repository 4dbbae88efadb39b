"""Changes on the wire: PATCH changes what is named, null takes back to the default, PUT replaces.

Owns: telling what a change names from what it leaves out. The shape of a change has the fields of
the shape that replaces, none of them required.
Must not: merge anything; ``core.change`` does, with the row that is stored.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

Shape = TypeVar("Shape", bound=Struct)
Value = TypeVar("Value")


def named_in(change: Struct) -> frozenset[str]:
    """The fields that a change names, null or not."""
    return frozenset(
        name for name in change.__struct_fields__ if getattr(change, name) is not UNSET
    )


def given(value: Value | UnsetType | None, default: Value) -> Value:
    """A field of a change, or the default where it is null or left out."""
    return default if value is None or isinstance(value, UnsetType) else value


def filled(change: Struct | UnsetType | None, shape: type[Shape]) -> Shape:
    """The whole that a change names a part of; what is null or left out has its default."""
    if change is None or isinstance(change, UnsetType):
        return shape()
    values: dict[str, Any] = {name: getattr(change, name) for name in named_in(change)}
    return shape(**{name: value for name, value in values.items() if value is not None})
