"""Every command declares itself, once and whole, and no other table of commands exists."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import gpucredits
from gpucredits.core.command import Command
from gpucredits.core.decide import RULES
from gpucredits.core.rule import Rule

PACKAGE = Path(gpucredits.__path__[0])
COMMANDS = get_args(Command)
NAMES = {command.__name__ for command in COMMANDS}
# A module at the edge makes the commands of its noun; the noun with most has four.
KNOWN_TO_ONE_MODULE_MAX = 4


def names_in(source: Path) -> Iterator[str]:
    """Every name that a module uses."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_every_command_has_one_rule() -> None:
    """Whoever adds a command to the union declares it, and nobody declares it twice."""
    declared = [
        ast.unparse(call.args[0])
        for source in (PACKAGE / "core" / "rules").rglob("*.py")
        for call in ast.walk(ast.parse(source.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Rule"
    ]
    assert Counter(declared) == Counter(NAMES)
    assert set(RULES) == set(COMMANDS)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.command.__name__)
def test_an_administrative_act_says_what_it_left_behind(rule: Rule) -> None:
    """The audit log has a state for every act, and no states of commands that are no acts."""
    assert bool(rule.audit) == (rule.after is not None)
    assert rule.before is None or rule.audit


def test_actions_of_the_audit_log_are_told_apart() -> None:
    """No two commands are the same act."""
    actions = Counter(rule.audit for rule in RULES.values() if rule.audit)
    assert set(actions.values()) == {1}


def test_no_module_but_one_lists_the_commands() -> None:
    """A new command needs no entry in a second table: no other module knows more than a noun's."""
    home = PACKAGE / "core" / "command.py"
    known = {
        str(source.relative_to(PACKAGE)): NAMES.intersection(names_in(source))
        for source in PACKAGE.rglob("*.py")
    }
    assert known.pop(str(home.relative_to(PACKAGE))) >= NAMES - {"Beat"}
    assert {name: sorted(n) for name, n in known.items() if len(n) > KNOWN_TO_ONE_MODULE_MAX} == {}
