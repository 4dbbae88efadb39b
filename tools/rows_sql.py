"""The lists of columns in the SQL functions, from the declarations of store/book/tables.py.

A list stands between two comments: ``-- [lease l]`` and ``-- [end]``. The first names what is
listed, the alias of the table, and values that are no columns of that alias:
``-- [account h | is_bare = 0]``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from gpucredits.core.entry import BUCKETS, PAIRS
from gpucredits.store.book.codecs import PLACE_SEPARATOR
from gpucredits.store.book.entry_moves import entry_move
from gpucredits.store.book.table import FLAG, PACKED, SLOT, TERM, Column, Table

# The columns of book_row, after the kind and the org, by type.
SLOTS = {
    "bigint": list(range(2, 21)),
    "text": [21, 22, 23],
    "bigint[]": [24],
    "bytea": [25, 26],
    "terms": [27],
}
WIDTH = 28
LINE_MAX = 100
NO_BREAK = "\N{NO-BREAK SPACE}"
LIST = re.compile(r"( *)([^\n]*?)-- \[([^\]]+)\]\n.*?-- \[end\]", re.DOTALL)


def layout(table: Table) -> tuple[dict[str, int], list[Column]]:
    """Where each column is in book_row, and which columns are in its array of terms."""
    free = {kind: list(places) for kind, places in SLOTS.items()}
    places: dict[str, int] = {}
    terms = []

    def take(name: str, kind: str) -> None:
        if not free[kind]:
            raise ValueError(
                f"book_row has no {kind} left for {table.name}.{name}: declare it with read=TERM"
            )
        places[name] = free[kind].pop(0)

    for column in (*table.columns, *table.beside):
        if column.read is SLOT:
            take(column.name, column.kind.slot)
        elif column.read is PACKED and "packed" not in places:
            take("packed", "text")
        elif column.read is TERM:
            terms.append(column)
    if terms:
        take("terms", "terms")
        terms.sort(key=is_list)
    return places, terms


def is_list(column: Column) -> bool:
    """Whether a column holds a list of varying length."""
    return column.kind.slot == "bigint[]"


def sql(text: str, tables: Sequence[Table]) -> str:
    """An SQL file with its lists of columns as declared."""

    def written(found: re.Match[str]) -> str:
        indent, before, head = found.groups()
        wanted, *overrides = (part.strip() for part in re.sub(r"\n *--", "", head).split("|"))
        content = list_of(wanted.split(), dict(map(split, overrides)), tables)
        inner = f"{indent}    "
        return f"{indent}{before}-- [{head}]\n{filled(content, inner, ',')}\n{inner}-- [end]"

    return LIST.sub(written, text)


def split(override: str) -> tuple[str, str]:
    """The name and the value of an override."""
    name, _, value = override.partition(" = ")
    return name, value


def list_of(wanted: list[str], overrides: dict[str, str], tables: Sequence[Table]) -> list[str]:
    """The items of a list by what is asked for."""
    match wanted:
        case ["entry", "types"]:
            return entry_types()
        case ["entry", "moves"]:
            return [f"{entry_move(bucket)} AS {bucket}" for bucket in BUCKETS]
        case ["columns", "of", name, alias]:
            return cte_columns(find(tables, name), alias, overrides)
        case [name, alias]:
            return book_row(find(tables, name), alias, overrides)
        case _:
            raise ValueError(f"an SQL file asks for an unknown list: {' '.join(wanted)}")


def find(tables: Sequence[Table], singular: str) -> Table:
    """A table by the name of one row."""
    [found] = (table for table in tables if table.singular == singular and table.kind >= 0)
    return found


def cte_columns(table: Table, alias: str, overrides: dict[str, str]) -> list[str]:
    """The columns that open_book reads of a table, with its packed text and its terms."""
    places, _ = layout(table)
    texts = []
    for name in sorted(places, key=places.__getitem__):
        if name in overrides:
            texts.append(f"{overrides[name]} AS {name}")
        elif name == "packed":
            texts.append(f"{packed_text(table, alias)} AS packed")
        elif name == "terms":
            texts.append(f"{terms_text(table, alias)} AS terms")
        else:
            texts.append(f"{alias}.{name}")
    return [f"{alias}.org_id", *texts]


def book_row(table: Table, alias: str, overrides: dict[str, str]) -> list[str]:
    """The columns of a table as a book_row."""
    places, _ = layout(table)
    columns = {column.name: column for column in (*table.columns, *table.beside)}
    empty = {place: kind for kind, all_of in SLOTS.items() for place in all_of}
    empty[SLOTS["terms"][0]] = "bigint[]"
    texts = {place: f"NULL::{kind}" for place, kind in empty.items()}
    for name, place in places.items():
        if name in overrides:
            value = overrides.pop(name)
            is_flag = name in columns and columns[name].kind is FLAG
            value = value if re.fullmatch(r"[\w.']+", value) else f"({value})"
            texts[place] = f"{value}::integer::bigint" if is_flag else f"{value}::{empty[place]}"
        elif name == "packed":
            texts[place] = packed_text(table, alias)
        elif name == "terms":
            texts[place] = terms_text(table, alias)
        else:
            texts[place] = columns[name].kind.as_slot.format(f"{alias}.{name}")
    if overrides:
        raise ValueError(f"{table.singular} has no {', '.join(overrides)}")
    return [str(table.kind), f"{alias}.org_id", *(texts[place] for place in range(2, WIDTH))]


def packed_text(table: Table, alias: str) -> str:
    """SQL for the packed columns as one text."""
    names = [f"{alias}.{column.name}" for column in table.columns if column.read is PACKED]
    return f" || chr({ord(PLACE_SEPARATOR)}) || ".join(names)


def terms_text(table: Table, alias: str) -> str:
    """SQL for the array of terms: numbers, the sizes of all lists but the last, and the lists."""
    _, terms = layout(table)
    numbers = [
        column.kind.as_slot.format(f"{alias}.{column.name}")
        for column in terms
        if not is_list(column)
    ]
    lists = [f"{alias}.{column.name}" for column in terms if is_list(column)]
    numbers += [f"cardinality({name})" for name in lists[:-1]]
    array = " || ".join((f"ARRAY[{', '.join(numbers)}]", *lists))
    if any(column.plain is not None for column in terms):
        return f"CASE WHEN NOT {alias}.is_plain THEN {array} END"
    return array


def entry_types() -> list[str]:
    """The rows of entry_types."""
    return [
        f"({kind.value}, '{kind.name.lower()}', '{debit}', '{credit}')"
        for kind, (debit, credit) in PAIRS.items()
    ]


def filled(texts: Sequence[str], indent: str, joined_by: str) -> str:
    """Texts on as few lines as they fit on; only one that is longer than a line is taken apart."""
    whole = [text.replace(" ", NO_BREAK) if len(text) < LINE_MAX - 12 else text for text in texts]
    return textwrap.fill(
        f"{joined_by} ".join(whole),
        LINE_MAX,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(NO_BREAK, " ")
