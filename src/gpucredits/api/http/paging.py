"""Pages: how many rows, from where on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.core.account import check_path
from gpucredits.wire.documented import ACCOUNT, doc
from gpucredits.wire.scalars import AccountPath

Row = TypeVar("Row")

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 1_000
LAST: Final = 2**63 - 1
LAST_OF_ALL: Final = (LAST, LAST)
END_OF_ORG: Final = "/~"  # after an org's path: above every account of it

Limit = Annotated[int, Meta(ge=1, le=PAGE_MAX)]
Cursor = Annotated[str, Meta(max_length=200, description="next_cursor of the page before.")]


class PageQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The query of every list."""

    limit: Annotated[Limit, doc("The maximum number of rows.")] = PAGE_DEFAULT
    cursor: Annotated[
        Cursor | None, doc("Where the page starts; leave it out for the first page.")
    ] = None


class AccountPageQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """The query of a list of one account; a key for the whole system must name the account."""

    account: Annotated[AccountPath | None, doc("The account; required for system keys.")] = None
    tree: Annotated[bool | None, doc("Include everything below the account.")] = None


class TreePageQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """The query of a list of an account and all below it; without one, of all that the key sees."""

    account: Annotated[
        AccountPath | None, doc("Only rows of this account and of those below it.")
    ] = None


class OneAccountQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The query about one account."""

    account: Annotated[AccountPath, ACCOUNT]


def page(
    rows: Sequence[Row], query: PageQuery, place_of: Callable[[Row], int | str]
) -> tuple[list[Row], str | None]:
    """The rows of a page, cut from rows read with one more, and where the next page begins."""
    shown = list(rows[: query.limit])
    return shown, str(place_of(shown[-1])) if len(rows) > query.limit else None


def number_cursor(query: PageQuery, start: int) -> int:
    """Where to go on, for lists in order of a number."""
    if query.cursor is None:
        return start
    if not query.cursor.isascii() or not query.cursor.isdigit() or int(query.cursor) > LAST:
        raise no_cursor()
    return int(query.cursor)


def numbered_cursor(query: PageQuery, start: tuple[int, int]) -> tuple[int, int]:
    """Where to go on, for lists in order of org and number."""
    if query.cursor is None:
        return start
    parts = query.cursor.split(".")
    if len(parts) != len(start) or not all(
        part.isascii() and part.isdigit() and int(part) <= LAST for part in parts
    ):
        raise no_cursor()
    return int(parts[0]), int(parts[1])


def numbered_place(org_id: int, number: int) -> str:
    """A place in a list in order of org and number."""
    return f"{org_id}.{number}"


def path_cursor(query: PageQuery) -> str:
    """Where to go on, for lists in order of path; the end of an org is a place too."""
    if query.cursor is None:
        return ""
    try:
        check_path(query.cursor.removesuffix(END_OF_ORG))
    except ValueError as error:
        raise no_cursor() from error
    return query.cursor


def in_order(since: int | None, until: int | None) -> None:
    """Refuse a time that ends before it begins: its answer would always be empty."""
    if since is not None and until is not None and since > until:
        raise invalid("until", "must not be before since")


def no_cursor() -> ProblemError:
    """The error for a cursor that no page gave, or that belongs to another question."""
    return invalid("cursor", "must be the next_cursor of an earlier page")
