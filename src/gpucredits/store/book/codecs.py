"""How single values of the core are stored and read back.

Owns: enums as numbers, lists of tuples as flat arrays, metadata as JSON. A list of enums, such as
``MODELS``, gives the enum of a stored number.
Must not: know which table has which columns (tables does).
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any

import msgspec

from gpucredits.core.account import Funding, Model, Status
from gpucredits.core.authority import Authority
from gpucredits.core.bounds import NEVER_US
from gpucredits.core.budget import Rollover
from gpucredits.core.grant import GrantState, Source
from gpucredits.core.limits import Tokens
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reservation import Decision, Exhaustion, ReservationState, Why
from gpucredits.core.topup import TopUpStatus

StoredRow = Sequence[Any]  # a row as the driver gives it, its columns in the order of book_row

NO_CALENDAR = -1
PLACE_SEPARATOR = chr(31)
PLACES: dict[str, tuple[str, str]] = {}
PLACES_MAX = 10_000
NO_METADATA: dict[str, str] = {}  # of every lease that is loaded: nobody adds to it

AUTHORITIES = tuple(Authority)
CALENDARS = tuple(Calendar)
DECISIONS = tuple(Decision)
DIMENSIONS = tuple(Dimension)
EXHAUSTIONS = tuple(Exhaustion)
FUNDINGS = tuple(Funding)
GRANT_STATES = tuple(GrantState)
LEASE_STATES = tuple(ReservationState)
MODELS = tuple(Model)
ROLLOVERS = tuple(Rollover)
SOURCES = tuple(Source)
STATUSES = tuple(Status)
TOKENS = tuple(Tokens)
TOPUP_STATUSES = tuple(TopUpStatus)
WHYS = tuple(Why)

NUMBER_OF_DECISION = {decision: number for number, decision in enumerate(DECISIONS)}
NUMBER_OF_WHY = {why: number for number, why in enumerate(WHYS)}


def calendar_of(number: int) -> Calendar | None:
    """A calendar from its number; there may be none."""
    return None if number == NO_CALENDAR else CALENDARS[number]


def calendar_number(calendar: Calendar | None) -> int:
    """The number under which a calendar is stored."""
    return NO_CALENDAR if calendar is None else int(calendar)


def end_of(instant: int | None) -> int:
    """An instant that is NULL where it never comes."""
    return NEVER_US if instant is None else instant


def pairs(flat: StoredRow) -> tuple[tuple[int, int], ...]:
    """Two by two, from the flat array that is stored."""
    if len(flat) == 2:  # as nearly all are: who pays is one grant
        return ((flat[0], flat[1]),)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def triples(flat: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """Three by three, from the flat array that is stored."""
    return tuple(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def flat_text(rows: Sequence[tuple[int, ...]]) -> str:
    """Tuples of numbers as the text of one flat list: grant, amount, grant, amount, ..."""
    return ",".join([str(number) for row in rows for number in row])


def list_text(numbers: Sequence[int]) -> str:
    """Numbers as the text of a list."""
    return ",".join(map(str, numbers))


def from_json(text: str) -> dict[str, str]:
    """Metadata from its stored text."""
    return {} if text == "{}" else msgspec.json.decode(text, type=dict[str, str])


def to_json(metadata: dict[str, str]) -> str:
    """Metadata as the text that is stored."""
    return msgspec.json.encode(metadata).decode() if metadata else "{}"


def place_of(text: str) -> tuple[str, str]:
    """The GPU type and the region of a lease, from the one text that is read for both.

    Many leases share a place, so each place is taken apart once.
    """
    gpu_type, _, region = text.partition(PLACE_SEPARATOR)
    if len(PLACES) >= PLACES_MAX:
        PLACES.clear()
    place = PLACES[text] = (intern(gpu_type), intern(region))
    return place
