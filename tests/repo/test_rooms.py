"""The shape of the package and its tests: one class for a name, rooms of about a dozen files."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "gpucredits"
# The library and the client have public names, which users of the package import.
APART = ("library/", "client/")
# A ratchet: a room that has more files than this is two rooms. Lower a number, never raise it.
FILES_MAX = 16
TEST_FILES_MAX = 17
LARGER_ROOMS = {"core": 33}


def modules() -> list[Path]:
    """Every source of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def test_a_public_class_name_occurs_once() -> None:
    """A name that means two things has to be looked up each time it is read."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        name = str(path.relative_to(PACKAGE))
        if name.startswith(APART):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_rooms_stay_small() -> None:
    """A folder is one concept that a reader can hold in the head."""
    sizes: dict[str, int] = defaultdict(int)
    for path in modules():
        if path.name != "__init__.py":
            sizes[str(path.parent.relative_to(PACKAGE))] += 1
    large = {room: size for room, size in sizes.items() if size > LARGER_ROOMS.get(room, FILES_MAX)}
    assert large == {}


def test_rooms_of_tests_stay_small() -> None:
    """Tests lie in rooms as the code that they are of."""
    sizes: dict[str, int] = defaultdict(int)
    for path in (ROOT / "tests").rglob("*.py"):
        sizes[str(path.parent.relative_to(ROOT))] += 1
    assert {room: size for room, size in sizes.items() if size > TEST_FILES_MAX} == {}


def test_the_ratchet_of_rooms_is_tight() -> None:
    """A room that has become smaller keeps its new size."""
    for room, most in LARGER_ROOMS.items():
        files = [path for path in (PACKAGE / room).glob("*.py") if path.name != "__init__.py"]
        assert most - 2 <= len(files) <= most, f"{room} has {len(files)} files"


def test_every_room_says_what_it_is() -> None:
    """The package docstring of a room names its concept."""
    for path in PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
