"""The guessed time of the database: never ahead of it, and forgotten when it was wrong."""

from __future__ import annotations

import pytest

from gpucredits.store.book import database_clock
from gpucredits.store.book.database_clock import DatabaseClock

S = 1_000_000


class Own:
    """A clock of our own that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        """Seconds since whenever."""
        return self.seconds


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Own:
    """Our own clock, in the watch's hands."""
    clock = Own()
    monkeypatch.setattr(database_clock, "time", clock)
    return clock


def test_nothing_is_known_at_first() -> None:
    """Without a word from the database there is no time."""
    assert DatabaseClock().now() is None


def test_it_runs_on_from_what_was_told(own: Own) -> None:
    """Time passes between two answers as it does here."""
    guess = DatabaseClock()
    guess.told(5_000 * S, 0)
    own.seconds += 2
    assert guess.now() == 5_002 * S


def test_a_late_answer_does_not_set_it_back(own: Own) -> None:
    """Of two answers the one that took less time on its way is nearer to the truth."""
    guess = DatabaseClock()
    guess.told(5_000 * S, 0)
    own.seconds += 1
    guess.told(5_000 * S + S // 2, 0)  # half a second old when it came
    now = guess.now()
    assert now is not None
    assert 5_001 * S - 200 <= now <= 5_001 * S


def test_it_gives_way_to_a_clock_that_runs_slower(own: Own) -> None:
    """Answers that stay behind for long are believed in the end."""
    guess = DatabaseClock()
    guess.told(5_000 * S, 0)
    for second in range(1, 2_001):
        own.seconds += 1
        guess.told(5_000 * S + second * (S - 50), 0)
    now = guess.now()
    assert now is not None
    assert abs(now - (5_000 * S + 2_000 * (S - 50))) <= 200


def test_a_test_clock_that_moved_on_is_followed_at_once(own: Own) -> None:
    """Another offset is another time."""
    guess = DatabaseClock()
    guess.told(5_000 * S, 0)
    guess.told(9_000 * S, 4_000 * S)
    assert guess.now() == 9_000 * S
    assert own.seconds == 100.0


def test_a_guess_that_was_wrong_is_forgotten(own: Own) -> None:
    """The database's clock was set back: the next answer counts, however late it came."""
    guess = DatabaseClock()
    guess.told(5_000 * S, 0)
    guess.doubted()
    assert guess.now() is None
    guess.told(4_000 * S, 0)
    assert guess.now() == 4_000 * S
    assert own.seconds == 100.0
