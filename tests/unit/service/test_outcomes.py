"""Stored answers are read into exactly what the sources say, compiled or not."""

from __future__ import annotations

import ast
import sys
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from gpucredits.core.outcome import Transferred
from gpucredits.service.reads.verify_answers import ROWS, told_by
from gpucredits.service.write.batch_record import KINDS


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
