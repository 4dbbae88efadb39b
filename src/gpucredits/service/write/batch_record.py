"""What is recorded of a batch besides the money: answers by key, refusals, drains, acts.

Owns: which decisions get a row. An administrative act gets a row in the audit log, with the state
before and after as the command's rule declares it. The end of a lease is such an act: the log says
who settled or canceled it.
Must not: write (store/book/save.py does, with everything else of the batch).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import reduce
from operator import attrgetter, or_
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from gpucredits.core.account import Account, Funding
from gpucredits.core.book import Book
from gpucredits.core.command import Command, Explain, UpdateAccount
from gpucredits.core.decide import RULES
from gpucredits.core.grant import Grant
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Outcome
from gpucredits.core.quota import Quota
from gpucredits.core.reasons import Kind, Refused, kind_of
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.rule import State
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.save import ActRow, BatchRecord

# Compiled classes keep only rough types of their fields; JSON needs these in full.
for row in (Account, Grant, Reservation):
    row.__annotations__["metadata"] = "dict[str, str]"
for items in ("paid", "payers"):
    Reservation.__annotations__[items] = "tuple[tuple[int, int], ...]"
Reservation.__annotations__["kept"] = "tuple[tuple[int, int, int], ...]"
Quota.__annotations__["calendar"] = "Calendar | None"
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Outcome)}


class Stored(msgspec.Struct):
    """An outcome on its way to or from the database."""

    kind: str
    value: msgspec.Raw


def encode(outcome: Outcome) -> bytes:
    """The stored form: fields of rows that have their default are left out."""
    kind = type(outcome)
    value: object = outcome
    if names := ROW_FIELDS[kind]:
        values = {name: getattr(outcome, name) for name in FIELDS[kind]}
        for name in names:
            if (row := values[name]) is not None:
                values[name] = BRIEF[type(row)](*VALUES_OF[type(row)](row))
        value = values
    return msgspec.json.encode({"kind": kind.__name__, "value": value})


def decode(stored: bytes) -> Outcome:
    """The outcome that ``encode`` was given, equal in every field."""
    document = msgspec.json.decode(stored, type=Stored)
    kind = KINDS[document.kind]
    outcome: Outcome
    if names := ROW_FIELDS[kind]:
        value = msgspec.json.decode(document.value, type=BRIEF[kind])
        outcome = kind(*brief_values(value, kind, names))
    else:
        outcome = msgspec.json.decode(document.value, type=kind)
    return outcome


def brief_values(value: Any, kind: type[Any], names: dict[str, type[Any]]) -> Iterator[Any]:
    """The values of an outcome that was read in its brief form, with whole rows."""
    for name in FIELDS[kind]:
        part = getattr(value, name)
        row = names.get(name)
        yield part if row is None or part is None else row(*VALUES_OF[row](part))


def detached(outcome: Outcome) -> Outcome:
    """The outcome with rows of its own, as they are now: later commands change the book's."""
    kind = type(outcome)
    names = ROW_FIELDS[kind]
    if not names:
        return outcome
    values = [getattr(outcome, name) for name in FIELDS[kind]]
    for place, name in enumerate(FIELDS[kind]):
        if name in names and (row := values[place]) is not None:
            values[place] = type(row)(*VALUES_OF[type(row)](row))
    return kind(*values)


def row_fields(kind: type[Any]) -> dict[str, type[Any]]:
    """The fields of an outcome that hold a row, with its class."""
    hints = get_type_hints(kind)
    return {
        each.name: part
        for each in fields(kind)
        for part in parts_of(hints[each.name])
        if isinstance(part, type) and is_dataclass(part)
    }


def parts_of(hint: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


ROW_FIELDS = {kind: row_fields(kind) for kind in KINDS.values()}
FIELDS = {kind: tuple(each.name for each in fields(kind)) for kind in KINDS.values()}
# What gives the values of a row's fields, in the order in which its class takes them.
VALUES_OF = {
    row: attrgetter(*(each.name for each in fields(row)))
    for rows in ROW_FIELDS.values()
    for row in rows.values()
}


def brief_form(kind: type[Any]) -> type[msgspec.Struct]:
    """A struct with the fields of a class, encoded without those that have their default.

    Kept answers are decoded as such structs too: the decoder does not find the defaults of a
    compiled class, and reads a missing field as 0. A default may change when no answer is kept.
    """
    hints = get_type_hints(kind)
    given: list[tuple[str, Any, Any]] = []
    for each in fields(kind):
        default = each.default
        if each.default_factory is not MISSING:
            default = msgspec.field(default_factory=each.default_factory)
        elif default is MISSING:
            default = msgspec.NODEFAULT
        parts = tuple(BRIEF.get(part, part) for part in parts_of(hints[each.name]))
        given.append((each.name, reduce(or_, parts), default))
    return msgspec.defstruct(kind.__name__, given, omit_defaults=True)


BRIEF: dict[type[Any], type[msgspec.Struct]] = {}
for each in (*VALUES_OF, *(kind for kind, names in ROW_FIELDS.items() if names)):
    BRIEF[each] = brief_form(each)

ATTEMPT = b"queue"  # the fingerprint of an attempt of the queue, under a key of its own
ENDED = frozenset(state.name.lower() for state in ReservationState)


@dataclass(frozen=True, slots=True)
class Request:
    """A command with the caller's key, a hash of what was asked, and who asked."""

    command: Command
    key: str | None = None
    fingerprint: bytes = b""
    actor: str = ""
    request_id: str = ""


def note(
    cached: CachedBook,
    request: Request,
    outcome: Outcome,
    record: BatchRecord,
    before: State | None,
) -> None:
    """Record the answer to a key, a refusal with its reason, and an administrative act.

    A question leaves no record. An attempt of the queue keeps even an answer that asks to wait:
    a repeat of the same attempt must get the same answer.
    """
    if isinstance(request.command, Explain):
        return
    org_id = cached.book.org.org_id
    record.acts.extend(acts_of(cached, request, outcome, before))
    cached.book.became_own.clear()
    if request.key is not None and (request.fingerprint == ATTEMPT or is_remembered(outcome)):
        stored = encode(outcome)
        cached.answers[request.key] = (request.fingerprint, stored)
        record.answers.append((org_id, request.key, request.fingerprint, stored, cached.now))
    if isinstance(outcome, Refused):
        record.decisions.append(
            (
                org_id,
                cached.now,
                type(request.command).__name__,
                "refuse",
                outcome.reason.value,
                getattr(request.command, "reservation_id", 0),
                request.actor,
                msgspec.json.encode(outcome.detail).decode(),
            )
        )
    elif isinstance(outcome, BeatResult) and isinstance(request.command, Beat):
        note_beat(org_id, cached.now, request.command, outcome, record)


def state_before(book: Book, command: Command) -> State | None:
    """The state that a command is about to change, where the audit log keeps it."""
    before = RULES[type(command)].before
    return None if before is None else before(book, command)


def acts_of(
    cached: CachedBook, request: Request, outcome: Outcome, before: State | None
) -> list[ActRow]:
    """The rows of the audit log: the act, and projects that spend only their own credits now."""
    org_id = cached.book.org.org_id
    rule = RULES[type(request.command)]
    rows: list[ActRow] = []

    def add(action: str, resource: str, old: State | None, new: State) -> None:
        states = (None if old is None else _json(old), _json(new))
        rows.append(
            (org_id, cached.now, request.actor, action, resource, *states, request.request_id)
        )

    if rule.after is not None and not isinstance(outcome, Refused):
        told = rule.after(org_id, outcome)
        if told is not None:
            add(rule.audit, told[0], before, told[1])
    # The act of an update says it already.
    if cached.book.became_own and not isinstance(request.command, UpdateAccount):
        shared, own = Funding.SHARED.name.lower(), Funding.OWN.name.lower()
        for path in cached.book.became_own:
            new = {"funding": own, "because": rule.audit}
            add("account.funding", path, {"funding": shared}, new)
    return rows


def _json(state: State) -> str:
    return msgspec.json.encode(state).decode()


def is_remembered(outcome: Outcome | None) -> bool:
    """Whether a key keeps this answer; a request that was told to wait may try again."""
    return not isinstance(outcome, Refused) or kind_of(outcome.reason) is not Kind.THROTTLED


def note_beat(org_id: int, now: int, beat: Beat, outcome: BeatResult, record: BatchRecord) -> None:
    """Record that a running job was told to drain or stop, unless the job had ended already."""
    if outcome.duplicate or outcome.decision is Decision.CONTINUE or outcome.reason in ENDED:
        return
    lease_id = beat.reservation_id
    record.decisions.append(
        (org_id, now, "Beat", outcome.decision.value, outcome.reason, lease_id, "", "{}")
    )
