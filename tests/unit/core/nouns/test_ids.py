"""Ids say what they are, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from gpucredits.core.ids import GRANT, RESERVATION, format_id, parse_id


@pytest.mark.parametrize("number", [0, 1, 35, 36, 12_345_678, 2**40])
def test_an_id_names_its_org_and_number(number: int) -> None:
    """What was written into an id is read out of it."""
    assert parse_id(RESERVATION, format_id(RESERVATION, 51, number)) == (51, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rsv_1",
        "rsv_1_",
        "RSV_1_2",
        "rsv_1_2\n",
        "rsv_-1_2",
        "rsv_1_2_3",
        "rsv_01_2",
        "rsv_1_02",
    ],
)
def test_what_is_not_an_id_is_an_error(text: str) -> None:
    """Malformed ids are told apart from unknown ones."""
    with pytest.raises(ValueError, match="must be an id"):
        parse_id(RESERVATION, text)


def test_a_grant_is_not_a_reservation() -> None:
    """An id of another sort is refused by its prefix."""
    with pytest.raises(ValueError, match="must be an id"):
        parse_id(RESERVATION, format_id(GRANT, 1, 2))


def test_a_negative_number_has_no_id() -> None:
    """It is an error, and comes to an end."""
    with pytest.raises(ValueError, match="not negative"):
        format_id(GRANT, 1, -1)
