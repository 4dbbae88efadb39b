"""Stored answers are read into exactly what the sources say, compiled or not."""

from __future__ import annotations

import ast
import sys
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from gpucredits.core.grant import Grant, Source
from gpucredits.core.outcome import Granted, Outcome, Reserved, Transferred
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Decision, Exhaustion, Reservation, ReservationState, Why
from gpucredits.service.reads.verify_answers import ROWS, told_by
from gpucredits.service.write.batch_record import KINDS, decode, encode


def classes_within(kind: Any, found: dict[str, type[Any]]) -> dict[str, type[Any]]:
    """Every dataclass that a value of this type may hold, by name."""
    for part in get_args(kind):
        classes_within(part, found)
    if isinstance(kind, type) and is_dataclass(kind) and kind.__name__ not in found:
        found[kind.__name__] = kind
        for said in annotations_of(kind).values():
            classes_within(said, found)
    return found


def annotations_of(kind: type[Any]) -> dict[str, Any]:
    """The types of a class's fields as its source says them."""
    module = sys.modules[kind.__module__]
    file = Path(*kind.__module__.split(".")).with_suffix(".py")
    source = Path(sys.modules["gpucredits"].__path__[0]).parent / file
    (found,) = (
        node
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    texts = {
        node.target.id: ast.unparse(node.annotation)
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {name: eval(text, vars(module)) for name, text in texts.items()}


CLASSES = {name: each for kind in KINDS.values() for name, each in classes_within(kind, {}).items()}


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_fields_have_the_types_that_the_source_says(kind: type[Any]) -> None:
    """What reads JSON sees every type in full: no tuple becomes a list, no number a text."""
    assert get_type_hints(kind) == annotations_of(kind)


def test_every_answer_is_checked_against_the_rows_that_it_tells_of() -> None:
    """Verify finds a row in each kind of answer, but for those that tell of none."""
    blind = {
        name
        for name, kind in KINDS.items()
        if not ROWS.keys() & set(classes_within(kind, {}).values())
        and "reservation_id" not in annotations_of(kind)
    }
    assert blind == {"Refused", "BeatResult", "Explained", "Queued", "Swept", "Transferred"}
    moved = Transferred(1, "acme", "acme/p", 5, ((3, 4, 5),))
    assert [number for _, number, _ in told_by(moved)] == [3, 4]


NEW = Reservation(9, "acme/p", 3, 1, "train", "h100", 2_000, "default", "n", 5, 6, 60_000, 7, 8)
ENDED = replace(
    NEW,
    state=ReservationState.SETTLED,
    decision=Decision.DRAIN,
    exhaustion=Exhaustion.STOP,
    why=Why.PREEMPTED,
    paid=((2, 30), (4, 10)),
    kept=((4, 5, 6),),
    payers=((7, 8),),
    metadata={"team": "a"},
    leaving=True,
    stopping_for=19,
    cap_part=7,
)
ANSWERS: list[Outcome] = [
    Reserved(NEW, "acme/p", "acme", 60_000),
    Reserved(ENDED, "acme/p", "acme", 0),
    Granted(Grant(4, 1, 10, 10, 0), "acme"),
    Granted(Grant(4, 1, 10, 9, 1, 2, 3, Source.PROMO, metadata={"a": "b"}, claims=1), "acme"),
    Transferred(1, "acme", "acme/p", 5, ((3, 4, 5),)),
    Refused(Reason.RESERVATION_ENDED, "It is settled already.", {"state": "settled"}),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_is_read_as_it_was_given(answer: Outcome) -> None:
    """In the form that leaves defaults out, and in the whole form of earlier versions."""
    assert decode(encode(answer)) == answer
    whole = msgspec.json.encode({"kind": type(answer).__name__, "value": answer})
    assert decode(whole) == answer


def test_an_answer_has_no_more_of_a_row_than_it_needs() -> None:
    """Every reserve keeps one, so fields with their default would be most of it."""
    kept = encode(ANSWERS[0])
    assert b"stopping_for" not in kept
    assert b"job_id" in kept
    assert len(kept) < 500
    assert b"stopping_for" in encode(ANSWERS[1])
