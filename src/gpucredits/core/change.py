"""Changes of stored things: fields that a caller names change, and all others stay.

Owns: the one way in which a change meets the stored row. Whoever changes something reads the row
and merges under the org's lock, in the transaction that saves it, so that no change is lost.
Must not: know what is changed.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

Named = frozenset[str] | None  # the terms that a caller names; None: all of them, a replacement
Terms = TypeVar("Terms")


def merged(wanted: Terms, stored: object, named: Named) -> Terms:
    """The wanted terms, with the terms that are not named taken from the stored row.

    Terms are fields that both have under the same name. Without a stored row all terms are as
    wanted.
    """
    if named is None or stored is None:
        return wanted
    row: Any = wanted
    names = (each.name for each in fields(row) if each.name not in named)
    kept = {name: getattr(stored, name) for name in names if hasattr(stored, name)}
    changed: Terms = replace(row, **kept)
    return changed


def is_named(name: str, named: Named) -> bool:
    """Whether a caller names a term."""
    return named is None or name in named
