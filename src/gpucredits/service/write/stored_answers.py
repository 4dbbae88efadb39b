"""Outcomes as stored answers, and as values that no later command can change.

Owns: the stored form of an outcome: its kind and its fields as JSON.
Must not: know HTTP; the edge has its own shapes.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

import msgspec

from gpucredits.core.account import Account
from gpucredits.core.grant import Grant
from gpucredits.core.outcome import Outcome
from gpucredits.core.quota import Quota
from gpucredits.core.reservation import Reservation

# Compiled classes keep only rough types of their fields; JSON needs these in full.
for row in (Account, Grant, Reservation):
    row.__annotations__["metadata"] = "dict[str, str]"
for items in ("paid", "payers"):
    Reservation.__annotations__[items] = "tuple[tuple[int, int], ...]"
Reservation.__annotations__["kept"] = "tuple[tuple[int, int, int], ...]"
Quota.__annotations__["calendar"] = "Calendar | None"
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Outcome)}


class Stored(msgspec.Struct):
    """An outcome on its way to or from the database."""

    kind: str
    value: msgspec.Raw


def encode(outcome: Outcome) -> bytes:
    """The stored form."""
    stored = {"kind": type(outcome).__name__, "value": outcome}
    return msgspec.json.encode(stored)


def decode(stored: bytes) -> Outcome:
    """The outcome that ``encode`` was given, equal in every field."""
    document = msgspec.json.decode(stored, type=Stored)
    outcome: Outcome = msgspec.json.decode(document.value, type=KINDS[document.kind])
    return outcome


def detached(outcome: Outcome) -> Outcome:
    """The outcome with rows of its own, as they are now: later commands change the book's."""
    rows: dict[str, Any] = {
        each.name: replace(value)
        for each in fields(outcome)
        if is_dataclass(value := getattr(outcome, each.name)) and not isinstance(value, type)
    }
    return replace(outcome, **rows) if rows else outcome
