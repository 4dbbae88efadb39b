"""The words that a table is declared with, and the SQL that follows from a declaration.

Owns: columns, and how a declaration becomes INSERT, UPDATE and SELECT texts. tools/make_rows.py
makes the Python that turns rows into objects and back from the same declarations.
Must not: name a table or a column (tables does).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto

ROWS = "ROWS"  # in a part's text: the rows that its columns make
CODE = "code"  # a type of column: an enum's number
LISTS = "lists"  # a type of column: lists of numbers as texts, such as 1,2


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A change of one table: its name in the statement, its columns' types, its text."""

    name: str
    types: tuple[str, ...]
    sql: str


def part(name: str, types: str, sql: str) -> Part:
    """A part whose column types are named in one string."""
    return Part(name, tuple(types.split()), sql)


class Written(IntEnum):
    """When a column is written."""

    KEY = auto()  # with every change: it says which row
    OFTEN = auto()  # by every change: balances, and what the renewal of a lease moves
    RARELY = auto()  # only by changes that heartbeats seldom make
    ONCE = auto()  # when the row is new


KEY, OFTEN, RARELY, ONCE = Written


class ReadAs(Enum):
    """Where open_book puts a column that is loaded into a book."""

    SLOT = auto()  # in the next column of book_row that has its type
    PACKED = auto()  # in one text with the other packed columns
    TERM = auto()  # in the array of terms, which a plain row leaves out
    NEVER = auto()  # no rule reads it


SLOT, PACKED, TERM, NEVER = ReadAs


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """How the values of a column are stored, sent and read.

    ``encode`` and ``decode`` are Python expressions; {} stands for the value.
    """

    sql: str  # the type in the table
    sent: str  # the type as a parameter: see save
    encode: str = "{}"
    decode: str = "{}"
    slot: str = "bigint"  # the type in book_row
    as_slot: str = "{}"  # SQL; {} stands for the column
    as_stored: str = "{}"  # SQL; {} stands for the parameter


NUMBER = ColumnKind("bigint", "bigint")
INTEGER = ColumnKind("integer", "integer", as_slot="{}::bigint")
FLAG = ColumnKind("boolean", "boolean", decode="{} == 1", as_slot="{}::integer::bigint")
TEXT = ColumnKind("text", "text", slot="text")
NAME = ColumnKind("text", "text", slot="text", decode="intern({})")  # few rows have another one
JSON = ColumnKind(
    "jsonb",
    "text",
    "to_json({})",
    "from_json({})",
    "text",
    as_slot="{}::text",
    as_stored="{}::jsonb",
)
JSON_TEXT = ColumnKind("jsonb", "text", slot="text", as_stored="{}::jsonb")
BYTES = ColumnKind("bytea", "bytea", slot="bytea")
PAIRS = ColumnKind(
    "bigint[]",
    LISTS,
    "flat_text({})",
    "pairs({})",
    "bigint[]",
    as_stored="string_to_array({}, ',')::bigint[]",
)
TRIPLES = ColumnKind(
    "bigint[]",
    LISTS,
    "flat_text({})",
    "triples({})",
    "bigint[]",
    as_stored="string_to_array({}, ',')::bigint[]",
)
NUMBERS = ColumnKind(
    "bigint[]",
    LISTS,
    "list_text({})",
    "tuple({})",
    "bigint[]",
    as_stored="string_to_array({}, ',')::bigint[]",
)
PERCENTS = ColumnKind(
    "smallint[]",
    LISTS,
    "list_text({})",
    "tuple({})",
    "bigint[]",
    as_slot="{}::bigint[]",
    as_stored="string_to_array({}, ',')::smallint[]",
)
CALENDAR = ColumnKind(
    "smallint", CODE, "calendar_number({})", "calendar_of({})", as_slot="{}::bigint"
)
SMALL = ColumnKind("smallint", CODE, as_slot="{}::bigint")


def code(decode: str, encode: str = "{}") -> ColumnKind:
    """An enum that is stored as a number."""
    return ColumnKind("smallint", CODE, encode, decode, as_slot="{}::bigint")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name and type, when it is written, where it is read, and as what.

    ``attribute`` names the field of the core row; "" where the core row has none. Then ``given``
    says that the caller passes the value in, or ``computed`` how it follows from ``row``.
    ``set_sql`` and ``insert_sql`` stand in the place of the value that was sent.
    """

    name: str
    kind: ColumnKind = NUMBER
    written: Written = ONCE
    attribute: str | None = None
    read: ReadAs = SLOT
    given: bool = False
    computed: str = ""
    unread: str = ""  # Python for the core row's field where the column is never read
    decode: str = ""  # where it is read otherwise than its kind is
    plain: object = None  # the value that a plain row has
    plain_python: str = ""  # or the expressions with which that is told
    plain_value: str = ""
    plain_sql: str = ""
    set_sql: str = ""
    insert_sql: str = ""
    stored_sql: str = ""  # how the whole value is read; {} stands for the table's alias

    @property
    def field(self) -> str:
        """The field of the core row."""
        return self.name if self.attribute is None else self.attribute

    @property
    def is_sent(self) -> bool:
        """Whether a value is sent for it: the database derives the others."""
        return bool(self.field or self.given or self.computed)


def columns(names: str, kind: ColumnKind = NUMBER, written: Written = ONCE) -> tuple[Column, ...]:
    """Columns of one kind that are written at the same time."""
    return tuple(Column(name, kind, written) for name in names.split())


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A part of the statement that saves a batch: a change of one table.

    It sends the columns that are ``written`` then, and ``extra`` ones that the table does not have.
    ``values`` has SQL for columns that follow from the columns sent.
    """

    name: str
    verb: str  # insert, update or upsert
    written: tuple[Written, ...] = (KEY, OFTEN, RARELY, ONCE)
    extra: tuple[Column, ...] = ()
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose rows are loaded or saved with a book.

    ``row`` is the class of the core row, None where there is none. ``kind`` is the number under
    which open_book returns its rows, -1 where it does not, and ``beside`` has what open_book
    returns with each row that is not a column.
    """

    name: str
    singular: str
    row: type | None
    columns: tuple[Column, ...]
    writes: tuple[TableWrite, ...] = ()
    kind: int = -1
    beside: tuple[Column, ...] = ()
    is_listed: bool = True  # with all its columns, by the rest of the store

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns that say which row."""
        return tuple(column for column in self.columns if column.written is KEY)

    def column(self, name: str) -> Column:
        """A column by its name."""
        [found] = (column for column in self.columns if column.name == name)
        return found

    def write(self, name: str) -> TableWrite:
        """A write by its name."""
        [found] = (write for write in self.writes if write.name == name)
        return found

    def sent(self, write: TableWrite) -> tuple[Column, ...]:
        """The columns whose values are sent, in order."""
        mine = (each for each in self.columns if each.written in write.written and each.is_sent)
        kept = tuple(each for each in mine if each.name not in write.values)
        return kept + write.extra

    def part(self, name: str) -> Part:
        """The part of a statement that does a write."""
        write = self.write(name)
        sent = self.sent(write)
        sql = self._update(write) if write.verb == "update" else self._insert(write)
        return Part(name, tuple(column.kind.sent for column in sent), sql)

    def _update(self, write: TableWrite) -> str:
        sets = [
            f"{each.name} = {write.values.get(each.name) or each.set_sql or _stored(each)}"
            for each in self.columns
            if each.written in write.written and each.written is not KEY
        ]
        where = " AND ".join(f"t.{each.name} = x.{each.name}" for each in self.key)
        rows = self._rows(write)
        return f"UPDATE {self.name} t SET {', '.join(sets)} FROM {rows} WHERE {where}"  # noqa: S608  # constant texts only

    def _insert(self, write: TableWrite) -> str:
        columns = [each for each in self.columns if each.written in write.written]
        names = ", ".join(each.name for each in columns)
        values = ", ".join(
            write.values.get(each.name) or each.insert_sql or _stored(each) for each in columns
        )
        rows = self._rows(write)
        sql = f"INSERT INTO {self.name} ({names}) SELECT {values} FROM {rows}"  # noqa: S608  # constant texts only
        if write.verb == "insert":
            return sql
        key = ", ".join(each.name for each in self.key)
        sets = ", ".join(
            f"{each.name} = excluded.{each.name}"
            for each in columns
            if each.written in {OFTEN, RARELY}
        )
        return f"{sql} ON CONFLICT ({key}) DO UPDATE SET {sets}"

    def _rows(self, write: TableWrite) -> str:
        return f"ROWS AS x({', '.join(each.name for each in self.sent(write))})"

    def listed(self, alias: str) -> str:
        """The columns of whole rows, as ``stored_...`` in rows reads them by name."""
        return ", ".join(
            f"{_listed(each, alias)}"
            for each in self.columns
            if each.field and each.name != "org_id"
        )

    def plain_sql(self, alias: str) -> str:
        """SQL for whether a row is plain: every term has the value that plain rows have."""
        return " AND ".join(_is_plain(each, alias) for each in self.columns if each.read is TERM)


def _stored(column: Column) -> str:
    return column.kind.as_stored.format(f"x.{column.name}")


def _listed(column: Column, alias: str) -> str:
    name = f"{alias}.{column.name}"
    if column.stored_sql:
        return f"{column.stored_sql.format(alias)} AS {column.name}"
    return f"{name}::text AS {column.name}" if column.kind.sql == "jsonb" else name


def _is_plain(column: Column, alias: str) -> str:
    if column.plain_sql:
        return column.plain_sql.format(alias)
    name, value = f"{alias}.{column.name}", column.plain
    if isinstance(value, bool):
        return name if value else f"NOT {name}"
    if value == ():
        return f"{name} = '{{}}'"
    if isinstance(value, Enum):
        value = list(type(value)).index(value)
    return f"{name} = {value}"
