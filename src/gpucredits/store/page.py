"""The page of one org: its book, and what is needed to tell what changed in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucredits.core.book import Book
from gpucredits.core.grant import GrantState
from gpucredits.core.reservation import Decision, ReservationState
from gpucredits.core.topup import TopUpStatus

StoredRow = Sequence[Any]  # a row as the driver gives it, its columns in the order of book_row


@dataclass(slots=True)
class Page:
    """The book of one org, with what is needed to tell what changed in it."""

    book: Book
    now: int
    first_new_id: int
    first_new_entry_id: int
    settings: dict[int, tuple[object, ...]] = field(default_factory=dict)
    grant_states: dict[int, GrantState] = field(default_factory=dict)
    lease_states: dict[int, tuple[ReservationState, Decision]] = field(default_factory=dict)
    topup_statuses: dict[int, TopUpStatus] = field(default_factory=dict)
    answers: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    gated: bool = False
    budgeted: bool = False
    warned: tuple[tuple[int, int, int], ...] = ()  # budget, start and warning of each period
    came: bool = False  # a limit that is new
    ended: tuple[int, ...] = ()  # limits that ended
    has_new_budget: bool = False


Pages = dict[int, Page]
