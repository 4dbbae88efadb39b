"""Declarations of commands: how each is decided, what it touches and how it is audited.

Owns: the shape of a declaration. The module of a noun ends with RULES, the declarations of its
commands; ``core.decide`` gathers them, and the store and the service read them there.
Must not: know any command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpucredits.core.book import Book
from gpucredits.core.outcome import Outcome

State = dict[str, Any]


@dataclass(slots=True, kw_only=True)  # not frozen, for speed: every reserve makes one
class Touches:
    """The rows that a command may read or change: all of them are in its book.

    ``paths`` and ``account_ids`` name accounts, which come with their grants and budgets;
    ``corrected`` are leases whose charges are read too; ``limits`` are quotas or rate limits by id.
    Leases below the accounts of ``counted`` are read when the rule finds them missing. A command
    that ``sets_limits`` is decided under the org's lock. ``from_cache``: nothing has to be read
    where the cache of books and prices has the rows; it names only leases, or paths with prices and
    jobs.
    """

    leases: Sequence[int] = ()
    paths: Sequence[str] = ()
    account_ids: Sequence[int] = ()
    topups: Sequence[int] = ()
    references: Sequence[str] = ()
    corrected: Sequence[int] = ()
    prices: Sequence[tuple[str, str, str]] = ()  # GPU type, region, and account or ""
    jobs: Sequence[tuple[str, str, str]] = ()  # account, job and GPU type
    limits: Sequence[int] = ()
    counted: Sequence[str] = ()
    sets_limits: bool = False
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One command: its class, the function that decides it, and what others need to know of it.

    ``audit`` is the action in the audit log; without one the command is no administrative act.
    ``before`` gives the state that the command is about to change, ``after`` the resource that the
    outcome is about and its new state, from the org's number and the outcome. None means that
    there is nothing to say: no state before, or no act after all.
    """

    command: type[Any]
    decide: Callable[[Book, Any, int], Outcome]
    touches: Callable[[Any], Touches]
    audit: str = ""
    before: Callable[[Book, Any], State | None] | None = None
    after: Callable[[int, Any], tuple[str, State] | None] | None = None


def touches_lease(command: Any) -> Touches:
    """The lease that a command names."""
    return Touches(leases=(command.reservation_id,), from_cache=True)


def touches_account(command: Any) -> Touches:
    """The account that a command names."""
    return Touches(paths=(command.account,))


def without_nulls(state: State) -> State:
    """A state without the fields that are None."""
    return {name: value for name, value in state.items() if value is not None}
