"""The threat model says of every role what the code allows it."""

from __future__ import annotations

import re
from pathlib import Path

from gpucredits.service.access.permissions import (
    ALLOWED,
    ON_A_NODE,
    SYSTEM_ONLY,
    Permission,
    Role,
)
from support.damage.tampering import TAMPERINGS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
TRIED = re.compile(r"^\|[^|]+\| (\d+) \| (\d+) \| `([a-z_]+)` \|$", re.MULTILINE)
ROW = re.compile(r"^\| `([a-z_]+)`[^|]*\|(.*)\|$", re.MULTILINE)


def test_the_table_of_permissions_is_that_of_the_code() -> None:
    """Each permission has its row: which roles have it, whether only the system may, on a node."""
    told = {
        name: [cell.strip() == "yes" for cell in cells.split("|")]
        for name, cells in ROW.findall(PAGE)
        if name in set(Permission)
    }
    meant = {
        each.value: [
            *(role in ALLOWED[each] for role in Role),
            each in SYSTEM_ONLY,
            each in ON_A_NODE,
        ]
        for each in Permission
    }
    assert told == meant


def test_the_table_of_tamperings_is_what_is_tried() -> None:
    """The page on reliability counts for each rule the tamperings that the tests try."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    told = {rule: (int(tried), int(seen)) for tried, seen, rule in TRIED.findall(page)}
    assert told == {rule: (len(every), len(every)) for rule, every in TAMPERINGS.items()}
    total = sum(map(len, TAMPERINGS.values()))
    assert f"| all | {total} | {total} | |" in page


def test_every_role_has_a_line_on_theft() -> None:
    """What a stolen key can do is said for each role."""
    for role in Role:
        assert re.search(rf"^\| `{role.value}`", PAGE, re.MULTILINE), role
