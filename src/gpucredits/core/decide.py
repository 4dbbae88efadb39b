"""The one door into the rules: a book, a command and the time give an outcome.

Owns: the table of all commands. A refusal leaves the book as it was: even entries that were due
by the clock are taken back.
"""

from __future__ import annotations

from gpucredits.core.book import Book
from gpucredits.core.command import Command
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.core.rule import Rule
from gpucredits.core.rules import reconciliation
from gpucredits.core.rules.credit import (
    accounts,
    corrections,
    grants,
    lost_work,
    standing,
    topups,
    transfers,
)
from gpucredits.core.rules.leases import heartbeats, reservations, stops
from gpucredits.core.rules.limits import boosts, budgets, quotas, rate_limits, replacements
from gpucredits.core.rules.upkeep.roll import roll

__all__ = ["RULES", "decide", "decide_beats", "roll"]

# Every command with all that others need to know of it. Its noun's module declares it.
RULES: dict[type[Command], Rule] = {
    rule.command: rule
    for rules in (
        *(accounts.RULES, corrections.RULES, grants.RULES, lost_work.RULES),
        *(reconciliation.RULES, standing.RULES, topups.RULES, transfers.RULES),
        *(heartbeats.RULES, reservations.RULES, stops.RULES),
        *(boosts.RULES, budgets.RULES, quotas.RULES, rate_limits.RULES, replacements.RULES),
    )
    for rule in rules
}


def decide(book: Book, command: Command, now: int) -> Outcome:
    """Carry out a command, or refuse it and leave the book as it was."""
    return follow(RULES[type(command)], book, command, now)


def decide_beats(book: Book, beats: list[Beat], now: int) -> list[Outcome]:
    """Decide heartbeats in order."""
    rule = RULES[Beat]
    return [follow(rule, book, beat, now) for beat in beats]


def follow(rule: Rule, book: Book, command: Command, now: int) -> Outcome:
    """Decide a command by its rule."""
    outer = book.savepoint
    outcome = rule.decide(book, command, now)
    if book.savepoint is not outer:  # something was due by the clock
        if isinstance(outcome, Refused):
            book.take_back()
        else:
            book.keep()
    return outcome
