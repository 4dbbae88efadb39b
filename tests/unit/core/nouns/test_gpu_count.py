"""Numbers of GPUs: thousandths in, thousandths out, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucredits.core.money import format_gpus, parse_gpus, whole_gpus


@given(st.integers(0, 10**9))
def test_texts_and_thousandths_are_the_same(milli_gpus: int) -> None:
    """Every number of thousandths has one shortest text, which reads as the same number."""
    text = format_gpus(milli_gpus)
    assert parse_gpus(text) == milli_gpus
    assert Decimal(text) * 1_000 == milli_gpus


@pytest.mark.parametrize(
    ("text", "milli_gpus"),
    [("2", 2_000), ("0.46", 460), ("1.5", 1_500), ("0.001", 1), ("08", 8_000)],
)
def test_texts_that_people_write(text: str, milli_gpus: int) -> None:
    """Whole numbers and up to three decimals."""
    assert parse_gpus(text) == milli_gpus


@pytest.mark.parametrize(
    "text", ["", "-1", "0.4601", "1e3", "½", ".5", "5.", "NaN", "1,5", "0x1", " 1", "٣", "1" * 11]
)
def test_texts_that_are_no_number_of_gpus(text: str) -> None:
    """Each is refused with a sentence that says how to write one."""
    with pytest.raises(ValueError, match=r"at most 3 digits after the point, such as 2 or 0\.46"):
        parse_gpus(text)


def test_whole_gpus_leave_the_rest() -> None:
    """Part of a GPU is never handed out where whole ones were asked for."""
    assert [whole_gpus(milli) for milli in (0, 999, 1_000, 2_999)] == [0, 0, 1_000, 2_000]
