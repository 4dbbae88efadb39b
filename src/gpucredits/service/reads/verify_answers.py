"""Checking that the answers kept for keys can still be given, and are still true.

Owns: which rows an answer tells of: every row among its fields, and the lease that it names. A
retry gets the kept answer, so an answer is broken when it cannot be read, or when a row that it
tells of is gone or has changed in a column that never changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import msgspec

from gpucredits.core.account import Account
from gpucredits.core.budget import Budget
from gpucredits.core.grant import Grant
from gpucredits.core.limits import Boost, TokenBucket
from gpucredits.core.outcome import Closed, Outcome, Transferred
from gpucredits.core.quota import Quota
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.topup import TopUpRow
from gpucredits.service.write.batch_record import KINDS, Stored, decode
from gpucredits.store.database.connection import Connection
from gpucredits.store.verify import answers as store
from gpucredits.store.verify.answers import SEPARATOR, StoredAnswer, Thing, Told

Row = dict[str, Any]

ROWS: dict[type, Thing] = {
    Account: store.ACCOUNT,
    Boost: store.BOOST,
    Budget: store.BUDGET,
    Grant: store.GRANT,
    Quota: store.QUOTA,
    Reservation: store.LEASE,
    TokenBucket: store.BUCKET,
    TopUpRow: store.TOPUP,
}


async def broken_answers(connection: Connection, *, limit: int) -> list[Row]:
    """Some of the answers that are broken."""
    found: list[Row] = []
    async for piece in store.kept_answers(connection):
        told: dict[Thing, list[tuple[Told, StoredAnswer]]] = defaultdict(list)
        for kept in piece:
            try:
                outcome = read(kept.outcome)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                found.append(broken(kept, f"it cannot be read: {error}"))
                continue
            if outcome is not None:
                for thing, number, text in told_by(outcome):
                    told[thing].append((Told(kept.org_id, number, text), kept))
        for thing, rows in told.items():
            for place in await store.otherwise(connection, thing, [row for row, _ in rows]):
                row, kept = rows[place]
                found.append(
                    broken(kept, f"{thing.table} {row.number} is not there or not as it was told")
                )
        if len(found) >= limit:
            break
    return found[:limit]


def broken(kept: StoredAnswer, wrong: str) -> Row:
    """How a broken answer is shown."""
    return {"org_id": kept.org_id, "key": kept.key, "wrong": wrong}


def read(stored: bytes) -> Outcome | None:
    """The outcome of a command; None for the answer of an act that moves no money."""
    try:
        document = msgspec.json.decode(stored, type=Stored)
        is_outcome = document.kind in KINDS
    except msgspec.ValidationError:
        is_outcome = False
    if not is_outcome:
        msgspec.json.decode(stored)
        return None
    outcome = decode(stored)
    if stranger := unknown_field(msgspec.json.decode(document.value), msgspec.to_builtins(outcome)):
        raise msgspec.ValidationError(f"nobody knows its field {stranger!r}")
    return outcome


def unknown_field(stored: Any, read_as: Any) -> str:
    """A field of a stored answer that no outcome of its kind has, or an empty string.

    A missing field is read as its default. Whoever renamed a field in an answer has left the new
    name in it.
    """
    if not isinstance(stored, dict) or not isinstance(read_as, dict):
        return ""
    for name, value in stored.items():
        if name not in read_as:
            return str(name)
        if found := unknown_field(value, read_as[name]):
            return found
    return ""


def told_by(outcome: Outcome) -> Iterator[tuple[Thing, int, str]]:
    """The rows that an answer tells of: their sort, number and what was told."""
    for each in fields(outcome):
        value = getattr(outcome, each.name)
        for row in value if isinstance(value, tuple) else (value,):
            if type(row) in ROWS:
                yield of(ROWS[type(row)], row)
    if isinstance(outcome, Transferred):
        for left, arrived, _ in outcome.lots:
            yield store.GRANT_THERE, left, ""
            yield store.GRANT_THERE, arrived, ""
    elif isinstance(outcome, Closed):
        lapsed = outcome.state is ReservationState.EXPIRED
        yield of(store.LAPSED_LEASE if lapsed else store.ENDED_LEASE, outcome)
    elif hasattr(outcome, "reservation_id"):
        yield of(store.LEASE_THERE, outcome)


def of(thing: Thing, row: Any) -> tuple[Thing, int, str]:
    """What an answer tells of one row."""
    texts = ["", *[str(getattr(row, column)) for column in thing.columns]]
    return thing, getattr(row, thing.number), SEPARATOR.join(texts)
