"""Paths of accounts, and the floor of a balance."""

from __future__ import annotations

import pytest

from gpucredits.core.account import Account, Model, check_path, lineage, org_of, scope_of

BAD = {
    "empty": "",
    "empty segment": "acme//alice",
    "trailing slash": "acme/",
    "four deep": "a/b/c/d",
    "capitals": "Acme",
    "system": "system:overrun",
    "starts with a dot": ".acme",
    "up": "acme/..",
    "line break": "acme\n",
    "64 long": "a" * 64,
    "a word of the API": "acme/balance",
}


@pytest.mark.parametrize("path", BAD.values(), ids=BAD.keys())
def test_a_path_that_is_not_one_is_an_error(path: str) -> None:
    """Each of these is refused with words."""
    with pytest.raises(ValueError, match="must"):
        check_path(path)


@pytest.mark.parametrize("path", ["a", "acme/vision/alice", "a" * 63, "acme/v1.2_x-y"])
def test_a_good_path_is_left_alone(path: str) -> None:
    """A path comes back as it was given."""
    assert check_path(path) == path


def test_a_path_names_its_scope_and_those_above() -> None:
    """User, project and org by depth; nearest first."""
    path = "acme/vision/alice"
    assert lineage(path) == ["acme/vision/alice", "acme/vision", "acme"]
    assert [scope_of(p) for p in lineage(path)] == ["user", "project", "org"]
    assert org_of(path) == "acme"


def test_a_credit_limit_counts_only_for_postpaid() -> None:
    """Available never shows the limit; what can be spent and the floor do, if postpaid."""
    prepaid = Account(1, "acme", Model.PREPAID, credit_limit=9, remaining=5, reserved=2)
    assert (prepaid.available, prepaid.spendable, prepaid.floor) == (3, 3, 0)
    postpaid = Account(1, "acme", Model.POSTPAID, credit_limit=9, debt=4, reserved=2)
    assert (postpaid.available, postpaid.spendable, postpaid.floor) == (-6, 3, -9)
