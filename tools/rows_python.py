"""The text of store/book/rows.py, from the declarations of store/book/tables.py."""

from __future__ import annotations

import builtins
import dataclasses
import re
import textwrap
from collections.abc import Iterable, Sequence
from enum import Enum

from rows_sql import LINE_MAX, SLOTS, WIDTH, filled, is_list, layout

from gpucredits.core.entry import EntryType
from gpucredits.store.book import codecs
from gpucredits.store.book.table import (
    LISTS,
    NEVER,
    PACKED,
    RARELY,
    SLOT,
    TERM,
    Column,
    Table,
    TableWrite,
)
from gpucredits.store.book.tables import ACCOUNT, BUCKET

UNPACKED_MIN = 24  # from so many columns on, a row is taken apart in one go
HEADER = '''"""Rows as the core has them, from and to rows as the database has them.

Made by tools/make_rows.py from the declarations in tables: change those, and run ``make rows``.
It is written out because it runs for every heartbeat, and is compiled.
"""
'''


def python(tables: Sequence[Table]) -> str:
    """The text of rows.py."""
    bodies = [body for table in tables for body in functions(table)]
    text = "\n\n\n".join(bodies) + "\n"
    constants = "\n".join(constants_of(tables))
    names = imports(f"{text}{constants}", tables)
    head = f"{HEADER}\nfrom __future__ import annotations\n\n{names}\n"
    note = "# Looked up once: these are compared for every heartbeat."
    return f"{head}\n{note}\n{constants}\n\n# fmt: off\n\n\n{text}"


def constants_of(tables: Sequence[Table]) -> list[str]:
    """The enums that plain rows have, each under a name of its own."""
    plain = [column.plain for table in tables for column in table.columns]
    enums = [value for value in plain if isinstance(value, Enum)]
    return [f"{constant(value)}: Final = {source_of(value)}" for value in enums]


def constant(value: Enum) -> str:
    """The name of the constant for an enum."""
    return f"{type(value).__name__.upper()}_{value.name}"


def functions(table: Table) -> Iterable[str]:
    """The functions of one table."""
    if table.kind >= 0:
        yield loaded(table) if table.row else values_loaded(table, table.columns, table.singular)
        if table.beside:
            yield values_loaded(table, table.beside, f"{table.singular}_beside")
    if table.row and table.name and table.is_listed:
        yield listed(table)
    if table.row:
        for write in table.writes:
            yield saved(table, write)
    if table.singular in {ACCOUNT.singular, BUCKET.singular}:
        yield settings(table)
    if any(column.plain is not None for column in table.columns):
        terms = [column for column in table.columns if column.read is TERM]
        rare = [column for column in table.columns if column.written is RARELY]
        yield predicate(
            table,
            "is_plain",
            terms,
            "Whether all its terms are those of a plain row, so that open_book may leave them out.",
        )
        yield predicate(
            table,
            "is_steady",
            rare,
            "Whether it is as renewals in full leave it: they write nothing else.",
        )


def loaded(table: Table) -> str:
    """The function that makes a core row of what open_book returns."""
    assert table.row is not None
    places, terms = layout(table)
    columns = {column.field: column for column in table.columns if column.field}
    unpacks = len(places) >= UNPACKED_MIN
    lines = []
    if unpacks:
        names = {place: name for name, place in places.items()}
        parts = [names.get(place, "_") for place in range(WIDTH)]
        lines.append(f"({', '.join(parts)},) = record")
    packed = [column.name for column in table.columns if column.read is PACKED]
    if packed:
        source = "packed" if unpacks else f"record[{places['packed']}]"
        lines.append(f"{', '.join(packed)} = PLACES.get({source}) or place_of({source})")
    is_conditional = any(column.plain is not None for column in terms)
    values = []
    for name in field_names(table.row):
        if name not in columns:
            raise ValueError(f"{table.name} has no column for {table.row.__name__}.{name}")
        column = columns[name]
        if column.read is TERM and is_conditional:
            values.append(column.plain_value or source_of(column.plain))
        elif column.read is TERM:
            value = f"record[{SLOTS['terms'][0]}][{terms.index(column)}]"
            values.append(column.kind.decode.format(value))
        else:
            place = column.name if unpacks else f"record[{places.get(column.name)}]"
            values.append(value_read(column, place))
    while is_conditional and is_default(table.row, columns, len(values)):
        values.pop()
    made = f"{table.row.__name__}({', '.join(values)})"
    if is_conditional:
        lines += [f"row = {made}", "if terms is not None:", *indented(terms_loaded(terms))]
        made = "row"
    lines.append(f"return {made}")
    return function(
        f"{table.singular}_of(record: StoredRow) -> {table.row.__name__}",
        f"The {table.row.__name__} of a row of open_book.",
        lines,
    )


def value_read(column: Column, place: str) -> str:
    """Python for a column that has a place of its own, or is not read."""
    if column.read is NEVER and not column.unread:
        raise ValueError(f"{column.name} is never read: say what its field holds instead (unread)")
    if column.read is NEVER:
        return column.unread
    if column.read is PACKED:
        return column.name
    return (column.decode or column.kind.decode).format(place)


def is_default(row: type, columns: dict[str, Column], count: int) -> bool:
    """Whether the last of so many fields is a term whose plain value is the field's own default."""
    last = dataclasses.fields(row)[count - 1]
    column = columns[last.name]
    return column.read is TERM and column.plain is not None and column.plain == last.default


def terms_loaded(terms: Sequence[Column]) -> list[str]:
    """Statements that set the terms of a row that is not plain."""
    numbers = [column for column in terms if not is_list(column)]
    lists = [column for column in terms if is_list(column)]
    sizes = [f"{column.name}_size" for column in lists[:-1]]
    count = len(numbers) + len(sizes)
    names = [column.name for column in numbers] + sizes
    lines = [f"({', '.join(names)},) = terms[:{count}]"]
    for column in numbers:
        value = (column.decode or column.kind.decode).format(column.name)
        lines.append(f"row.{column.field} = {value}")
    start = str(count)
    for place, column in enumerate(lists):
        end = f"{start} + {sizes[place]}" if place < len(sizes) else ""
        value = column.kind.decode.format(f"terms[{start}:{end}]")
        lines.append(f"row.{column.field} = {value}")
        start = end
    return lines


def values_loaded(table: Table, columns: Sequence[Column], name: str) -> str:
    """The function that gives the values of some columns of what open_book returns."""
    places, _ = layout(table)
    values = [
        (column.decode or column.kind.decode).format(f"record[{places[column.name]}]")
        for column in columns
        if column.read is SLOT
    ]
    return function(
        f"{name}_values(record: StoredRow) -> tuple[Any, ...]",
        f"The values of {table.singular} in a row of open_book.",
        [f"return ({', '.join(values)},)"],
    )


def listed(table: Table) -> str:
    """The function that makes a core row of a whole stored row, by the names of its columns."""
    assert table.row is not None
    columns = {column.field: column for column in table.columns if column.field}
    values = [
        columns[name].kind.decode.format(f'record["{columns[name].name}"]')
        for name in field_names(table.row)
    ]
    return function(
        f"stored_{table.singular}(record: Mapping[str, Any]) -> {table.row.__name__}",
        f"The {table.row.__name__} of a whole row of {table.name}.",
        [f"return {table.row.__name__}({', '.join(values)})"],
    )


def saved(table: Table, write: TableWrite) -> str:
    """The function that gives the values that a write sends for a core row."""
    assert table.row is not None
    sent = table.sent(write)
    types = {"boolean": "bool", LISTS: "str"}
    given = ", ".join(
        f"{column.name}: {types.get(column.kind.sent, 'int')}" for column in sent if column.given
    )
    is_tuple = issubclass(table.row, tuple)
    used = {column.field for column in sent if not column.given}
    lines = []
    if is_tuple:
        names = [local(name) if name in used else "_" for name in field_names(table.row)]
        lines.append(f"({', '.join(names)},) = row")
    values = []
    for column in sent:
        if column.given:
            values.append(column.name)
        elif column.computed:
            values.append(column.computed)
        else:
            source = local(column.field) if is_tuple else f"row.{column.field}"
            values.append(column.kind.encode.format(source))
    lines.append(f"return ({', '.join(values)})")
    return function(
        f"{write.name}_row(row: {table.row.__name__}, {given}) -> tuple[object, ...]",
        f"What {write.name} sends for a row.",
        lines,
    )


def settings(table: Table) -> str:
    """The function that gives what is rarely written, to see whether it changed."""
    assert table.row is not None
    rare = [column for column in table.columns if column.written is RARELY and column.field]
    return function(
        f"{table.singular}_settings(row: {table.row.__name__}) -> tuple[object, ...]",
        "What changes rarely, so that it is written only when it did.",
        [f"return ({', '.join(f'row.{column.field}' for column in rare)})"],
    )


def predicate(table: Table, name: str, columns: Sequence[Column], what: str) -> str:
    """The function that says whether columns have the values that plain rows have."""
    assert table.row is not None
    tests = [is_at_plain(column) for column in columns if column.plain is not None]
    tests += [column.plain_python for column in columns if column.plain_python]
    return function(
        f"{name}(row: {table.row.__name__}) -> bool", what, [f"return ({' and '.join(tests)})"]
    )


def is_at_plain(column: Column) -> str:
    """Python for whether a field has the value of plain rows."""
    if isinstance(column.plain, Enum):
        return f"row.{column.field} is {constant(column.plain)}"
    if column.plain in (0, ()):  # False as well
        return f"not row.{column.field}"
    return f"row.{column.field} == {column.plain!r}"


def source_of(value: object) -> str:
    """Python for a value."""
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


def imports(text: str, tables: Sequence[Table]) -> str:
    """The names that a text uses, as they are imported."""
    words = set(re.findall(r"\b[A-Za-z_]+\b", text))
    where: dict[str, set[str]] = {
        "typing": words & {"Any", "Final"},
        "collections.abc": words & {"Mapping"},
        "sys": words & {"intern"},
    }
    enums = {
        type(column.plain)
        for table in tables
        for column in table.columns
        if isinstance(column.plain, Enum)
    }
    named = {EntryType, type(codecs.TOKENS[0]), type(codecs.GRANT_STATES[0])}
    for kind in {*enums, *named, *(table.row for table in tables if table.row)}:
        if kind.__name__ in words:
            where.setdefault(kind.__module__, set()).add(kind.__name__)
    mine = {
        name
        for name, value in vars(codecs).items()
        if name in words
        and not isinstance(value, type)
        and name not in {"intern", "annotations"}
        and (name.isupper() or name == "StoredRow" or value.__module__ == codecs.__name__)
    }
    where["gpucredits.store.book.codecs"] = mine
    lines = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in where.items()
        if names
    ]
    return "\n".join(sorted(lines))


def function(signature: str, what: str, lines: Sequence[str]) -> str:
    """A function with its docstring."""
    body = "\n".join(wrapped(line) for line in indented(lines))
    return f'{wrapped(f"def {signature}:")}\n    """{textwrap.shorten(what, 90)}"""\n{body}'


def wrapped(line: str) -> str:
    """A line of code that is too long, on several: what is in brackets goes further in."""
    if len(line) <= LINE_MAX:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    start, _, rest = line.partition("(")
    inside, end = rest[: rest.rindex(")")], rest[rest.rindex(")") :]
    if " and " in inside and ", " not in inside:
        text = filled(inside.split(" and "), f"{indent}    ", " and")
    else:
        text = filled(items(inside), f"{indent}    ", ",") + ","
    return f"{start}(\n{text}\n{indent}{end}"


def items(text: str) -> list[str]:
    """The items of a list, which may have lists of their own in brackets."""
    found, depth = [""], 0
    for letter in text.rstrip(", "):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found]


def indented(lines: Iterable[str]) -> list[str]:
    """Lines one level further in."""
    return [f"    {line}" for line in lines]


def local(name: str) -> str:
    """A name for a local variable."""
    return f"{name}_" if hasattr(builtins, name) else name


def field_names(row: type) -> tuple[str, ...]:
    """The fields of a core row, in the order of its constructor."""
    if dataclasses.is_dataclass(row):
        return tuple(each.name for each in dataclasses.fields(row))
    return tuple(vars(row)["_fields"])
