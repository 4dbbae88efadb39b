"""Values of rows as they are written down for people, in SQL.

Owns: the texts that rules compare with what the audit log and the outbox say. Rows are written as
text, and text is never read as a value, so no stored text breaks a rule.
"""

from __future__ import annotations

from gpucredits.core.authority import Authority, scope_word
from gpucredits.core.bounds import NEVER_US

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
PLACES = 10  # of a number in an id: more than any org will ever count


def base36(number: str) -> str:
    """SQL for a number as ids write it."""
    digits = " || ".join(
        f"substr('{DIGITS}', ({number} / {36**place} % 36)::integer + 1, 1)"
        for place in reversed(range(PLACES))
    )
    return f"coalesce(nullif(ltrim({digits}, '0'), ''), '0')"


def id_text(prefix: str, row: str, column: str) -> str:
    """SQL for the id of a row."""
    return f"'{prefix}_' || {base36(f'{row}.org_id::bigint')} || '_' || {base36(f'{row}.{column}')}"


def scope_text(column: str) -> str:
    """SQL for the scope of a key as it is written for people."""
    words = " ".join(f"WHEN {each.value} THEN '{scope_word(each)}'" for each in Authority)
    return f"CASE {column} {words} END"


def above(path: str) -> str:
    """SQL for a path and all that it lies below, up to '', which gives a row for each.

    Joined by what is above, rows meet the few limits and prices that apply to them, where comparing
    the beginnings of paths would compare all with all.
    """
    parts = f"string_to_array({path}, '/')"
    return f"array_to_string(({parts})[:generate_series(0, cardinality({parts}))], '/')"


def credits_text(amount: str) -> str:
    """SQL for an amount as it is written for people."""
    return f"trim_scale({amount} * 0.000001)::text"


def gpus_text(amount: str) -> str:
    """SQL for a number of GPUs as it is written for people."""
    return f"trim_scale({amount} * 0.001)::text"


def instant_text(instant: str) -> str:
    """SQL for an instant as it is written on the wire; never is null."""
    micros = f"(({instant} % 1000000 + 1000000) % 1000000)"
    return f"""CASE WHEN {instant} < {NEVER_US} THEN
        to_char(to_timestamp((({instant} - {micros}) / 1000000)::double precision)
            AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
        || CASE WHEN {micros} = 0 THEN '' ELSE '.' || lpad({micros}::text, 6, '0') END || 'Z' END"""
