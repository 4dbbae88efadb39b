"""Rows that belong to orgs: each table is declared once, and adding, finding and listing follow.

Owns: the queries that such tables share, and the rows of org_numbers. The fields of a row's class
are the columns of its table. An org's numbers are its own, so that its rows can be anywhere.
Must not: know what the rows mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeVar

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

Row = TypeVar("Row")
Numbered = Literal["keys", "requests", "statements", "anomalies", "unmatched", "alarms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrgFilter:
    """Which rows to list, newest first, before the cursor; no org and no scope is everything."""

    before: tuple[int, int]
    scope: str = ""
    org_id: int | None = None
    limit: int = 100


class OrgRows(Generic[Row]):
    """The rows of a table. Each has an org, a number within the org, and an account's path.

    ``order`` is the column of the number, after the table's alias if the ``query`` gives it one.
    ``query`` reads rows where the names of the columns do not. ``read`` makes a row from its
    columns where some of them are no plain values.
    """

    def __init__(
        self,
        table: str,
        kind: type[Row],
        order: str,
        *,
        query: str = "",
        read: Callable[[Any], Row] | None = None,
    ) -> None:
        self.table = table
        self.kind = kind
        self.columns = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a dataclass
        self.alias = order[: order.find(".") + 1]
        self.number = order.removeprefix(self.alias)
        names = ", ".join(f"{self.alias}{name}" for name in self.columns)
        self.query = query or f"SELECT {names} FROM {table} WHERE [where] [order]"  # noqa: S608  # names of columns
        self.read = read or self._plain

    async def page(self, db: Connection, which: OrgFilter, **equal: object) -> list[Row]:
        """Rows, the newest first. ``equal`` has columns with their values; None means any."""
        return await self.such(db, self.where(which, **equal), limit=which.limit)

    async def find(self, db: Connection, org_id: int, number: int) -> Row | None:
        """One row of an org."""
        where = Where()
        where.add(f"{self.alias}org_id = {{}}", org_id)
        where.add(f"{self.alias}{self.number} = {{}}", number)
        found = await self.such(db, where, limit=1)
        return found[0] if found else None

    async def such(self, db: Connection, where: Where, *, limit: int) -> list[Row]:
        """The rows for which conditions hold, the newest first."""
        return [self.read(row) for row in await self.fetch(db, where, limit=limit)]

    async def fetch(self, db: Connection, where: Where, *, limit: int) -> list[Any]:
        """As ``such``, with every column of the query."""
        keys = f"{self.alias}org_id DESC, {self.alias}{self.number} DESC"
        order = f"ORDER BY {keys} LIMIT {where.value(limit)}"
        rows: list[Any] = await db.fetch(where.into(self.query, order=order), *where.values)
        return rows

    def where(self, which: OrgFilter, **equal: object) -> Where:
        """The conditions of a filter."""
        where, alias = Where(), self.alias
        where.before((f"{alias}org_id", f"{alias}{self.number}"), which.before)
        if which.org_id is not None:
            where.add(f"{alias}org_id = {{}}", which.org_id)
        if which.scope:
            where.under(f"{alias}account", which.scope)
        for column, value in equal.items():
            if value is not None:
                where.add(f"{alias}{column} = {{}}", value)
        return where

    async def add(
        self, db: Connection, values: dict[str, Any], counter: Numbered, *, clock: str, once: str
    ) -> int | None:
        """Add a row under the next number of its org; None if one with the columns ``once`` exists.

        The database's time goes into the column ``clock``, if one is named.
        """
        values = values | {self.number: await next_number(db, values["org_id"], counter)}
        values.pop(clock, None)
        names = [*values, clock] if clock else [*values]
        places = [f"${place}" for place in range(1, len(values) + 1)]
        places += ["ledger_now()"] if clock else []
        number: int | None = await db.fetchval(
            f"INSERT INTO {self.table} ({', '.join(names)}) VALUES ({', '.join(places)})"  # noqa: S608  # names of columns
            f" ON CONFLICT ({once}) DO NOTHING RETURNING {self.number}",
            *values.values(),
        )
        return number

    def _plain(self, row: Any) -> Row:
        return self.kind(**{name: row[name] for name in self.columns})


async def next_number(db: Connection, org_id: int, counter: Numbered) -> int:
    """The next number of an org; others wait for it until the transaction ends."""
    number: int = await db.fetchval(
        f"INSERT INTO org_numbers AS n (org_id, {counter}) VALUES ($1, 1)"  # noqa: S608  # a column
        f" ON CONFLICT (org_id) DO UPDATE SET {counter} = n.{counter} + 1 RETURNING {counter}",
        org_id,
    )
    return number


@dataclass(frozen=True, slots=True)
class TermsByAccount(Generic[Row]):
    """Terms that some accounts have of their own: a table with a row for each such account."""

    table: str
    kind: type[Row]
    read: Callable[..., Row]

    @property
    def columns(self) -> list[str]:
        """The columns of the terms: the fields of their class."""
        return [each.name for each in fields(self.kind)]  # type: ignore[arg-type]  # a dataclass

    def terms_in(self, row: Any) -> Row:
        """The terms that a row holds, beside whatever else it has."""
        return self.read(**{name: row[name] for name in self.columns})

    async def of(self, db: Connection, org_id: int, account_id: int) -> Row | None:
        """The terms that an account has of its own."""
        row = await db.fetchrow(
            f"SELECT {', '.join(self.columns)} FROM {self.table}"  # noqa: S608  # names of columns
            " WHERE org_id = $1 AND account_id = $2",
            org_id,
            account_id,
        )
        return None if row is None else self.terms_in(row)

    async def at(self, db: Connection, org_id: int, paths: list[str]) -> dict[str, Row]:
        """The terms that accounts have of their own, by path."""
        rows = await db.fetch(
            f"SELECT a.path, {', '.join(f't.{name}' for name in self.columns)}"  # noqa: S608  # names of columns
            f" FROM accounts a JOIN {self.table} t USING (org_id, account_id)"
            " WHERE org_id = $1 AND a.path = ANY($2::text[])",
            org_id,
            paths,
        )
        return {row["path"]: self.terms_in(row) for row in rows}

    async def set(
        self, db: Connection, org_id: int, account_id: int, terms: Row, **beside: object
    ) -> None:
        """Replace the terms of an account; ``beside`` has columns that are no terms."""
        values = {name: getattr(terms, name) for name in self.columns} | beside
        places = {name: f"${place}" for place, name in enumerate(values, start=3)}
        await db.execute(
            f"INSERT INTO {self.table} (org_id, account_id, {', '.join(places)})"  # noqa: S608  # names of columns
            f" VALUES ($1, $2, {', '.join(places.values())}) ON CONFLICT (org_id, account_id)"
            f" DO UPDATE SET {', '.join(f'{name} = {place}' for name, place in places.items())}",
            org_id,
            account_id,
            *values.values(),
        )

    async def end(self, db: Connection, org_id: int, account_id: int) -> None:
        """Take away the terms that an account has of its own."""
        await db.execute(
            f"DELETE FROM {self.table} WHERE org_id = $1 AND account_id = $2",  # noqa: S608  # the table
            org_id,
            account_id,
        )
