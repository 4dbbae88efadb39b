"""Whether a clock that jumps is told from one that is merely heard of late."""

from __future__ import annotations

import pytest

from gpucredits.store.book import database_clock
from gpucredits.store.book.database_clock import ClockCheck, ClockJumped

SECOND = 1_000_000
START = 1_700_000_000 * SECOND  # of the database, when our clock stands at 100 s


class Clocks:
    """Our steady clock, and the database's, which leads it."""

    def __init__(self) -> None:
        self.ours = 100 * SECOND
        self.jump = 0
        self.offset = 0

    def steady_us(self) -> int:
        """Our clock."""
        return self.ours

    def read(self, checked: ClockCheck, *, there_s: float = 0.0, back_s: float = 0.0) -> None:
        """Ask the database, which answers after some time, and hear of it after some more."""
        asked_at = self.ours
        self.ours += int(there_s * SECOND)
        now = START + self.ours - 100 * SECOND + self.jump + self.offset
        self.ours += int(back_s * SECOND)
        checked.check(now, self.offset, asked_at)

    def pass_s(self, seconds: float) -> None:
        """Let time pass for both."""
        self.ours += int(seconds * SECOND)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Two clocks that agree."""
    made = Clocks()
    monkeypatch.setattr(database_clock, "steady_us", made.steady_us)
    return made


@pytest.mark.parametrize("jump_s", [86_400, 4, -4, -86_400])
def test_a_jump_is_refused_until_the_time_is_right_again(clocks: Clocks, jump_s: int) -> None:
    """Ahead or back, by a day or by seconds: an error with the number, and then none any more."""
    checked = ClockCheck()
    clocks.read(checked)
    clocks.pass_s(10)
    clocks.jump = jump_s * SECOND
    for _ in range(3):
        clocks.pass_s(100)
        with pytest.raises(ClockJumped, match=f"{abs(jump_s)}.0 s"):
            clocks.read(checked)
        assert checked.is_off()
    clocks.jump = 0
    clocks.read(checked)
    assert (checked.is_off(), checked.jumps) == (False, 1)


def test_an_answer_that_comes_late_is_no_jump(clocks: Clocks) -> None:
    """A question or an answer may be minutes under way, also the very first."""
    checked = ClockCheck()
    for there_s, back_s in ((30, 90), (0, 0), (120, 0), (0, 120), (60, 60), (0, 0)):
        clocks.read(checked, there_s=there_s, back_s=back_s)
        clocks.pass_s(1)
    assert checked.jumps == 0


def test_a_jump_is_seen_although_answers_are_slow(clocks: Clocks) -> None:
    """The bounds of a slow answer are wide, and a day is wider."""
    checked = ClockCheck()
    clocks.read(checked, there_s=5, back_s=5)
    clocks.jump = 86_400 * SECOND
    with pytest.raises(ClockJumped):
        clocks.read(checked, there_s=5, back_s=5)


def test_a_clock_that_is_corrected_slowly_is_followed(clocks: Clocks) -> None:
    """Half a thousandth of drift for a day comes to 43 s, and no step of it is a jump."""
    checked = ClockCheck()
    for _ in range(24 * 60):
        clocks.read(checked)
        clocks.pass_s(60)
        clocks.jump += 30_000
    assert checked.jumps == 0


def test_a_test_clock_that_moves_is_no_jump(clocks: Clocks) -> None:
    """Time that tests move on is known by its offset."""
    checked = ClockCheck()
    clocks.read(checked)
    clocks.offset = 86_400 * SECOND
    clocks.read(checked)
    assert checked.jumps == 0
