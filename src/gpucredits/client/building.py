"""Working out the wire's shapes before threads can meet at them.

msgspec works out what it needs to know of a struct when it first reads one, and a thread that
comes in the middle of that finds it half done, which ends the process. Once worked out, a shape is
only looked at.
Must not: know which shapes there are; every struct of the wire that is imported is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from gpucredits.wire.scalars import decoder_of

_WIRE = "gpucredits.wire"


def build_shapes() -> None:
    """Work out every shape that has been imported; a module calls it while it is imported."""
    for shape in _below(Struct):
        if shape.__module__.startswith(f"{_WIRE}."):
            decoder_of(shape)


def _below(shape: type[Struct]) -> Iterator[type[Struct]]:
    for each in shape.__subclasses__():
        yield each
        yield from _below(each)
