"""Prices that are kept: only of one version, and only until the next one is in force."""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.price import Price
from gpucredits.store.book.book_cache import PriceBoard

KEY = (1, "h100", "default", "")
OTHER = (1, "h100", "default", "acme")
LISTED = Price(1, "h100", "default", 36, 0)


def test_nothing_is_known_at_first() -> None:
    """What was never asked has no answer; who asks nothing lacks nothing."""
    assert not PriceBoard().answers({KEY}, 0)
    assert PriceBoard().answers(set(), bounds.NEVER_US)


def test_that_there_is_no_price_is_an_answer() -> None:
    """A discount that does not exist is not asked for again."""
    board = PriceBoard()
    board.learn(7, bounds.NEVER_US, {KEY, OTHER}, {KEY: LISTED})
    assert board.answers({KEY, OTHER}, 10)
    assert board.price(KEY) == LISTED
    assert board.price(OTHER) is None


def test_a_price_to_come_ends_what_is_known() -> None:
    """From the instant on at which another price may be in force, all are asked for."""
    board = PriceBoard()
    board.learn(7, 100, {KEY}, {KEY: LISTED})
    assert board.answers({KEY}, 99)
    assert not board.answers({KEY}, 100)


def test_what_an_older_version_said_is_forgotten() -> None:
    """A price was added: everything may be different."""
    board = PriceBoard()
    board.learn(7, bounds.NEVER_US, {KEY}, {KEY: LISTED})
    board.learn(8, bounds.NEVER_US, {OTHER}, {})
    assert not board.answers({KEY}, 0)
    assert board.answers({OTHER}, 0)
    assert board.version == 8


def test_what_was_known_before_a_price_came_into_force_is_forgotten() -> None:
    """Nothing was added, but time has passed: another question does not revive old answers."""
    board = PriceBoard()
    board.learn(7, 100, {KEY}, {KEY: LISTED})
    board.learn(7, bounds.NEVER_US, {OTHER}, {})  # asked at 100 or later
    assert not board.answers({KEY}, 100)
    assert board.answers({OTHER}, 100)


def test_questions_between_two_prices_are_all_kept() -> None:
    """As long as the same price is the next to come, every answer holds."""
    board = PriceBoard()
    board.learn(7, 100, {KEY}, {KEY: LISTED})
    board.learn(7, 100, {OTHER}, {})
    assert board.answers({KEY, OTHER}, 99)
