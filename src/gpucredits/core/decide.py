"""The one door into the rules: a book, a command and the time give an outcome.

A refusal leaves the book as it was, what the clock had made due included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpucredits.core import command as commands
from gpucredits.core.book import Book
from gpucredits.core.command import Command
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Refused
from gpucredits.core.rules.credit import accounts, corrections, grants, standing, topups, transfers
from gpucredits.core.rules.leases import heartbeats, reservations, stops
from gpucredits.core.rules.limits import boosts, budgets, quotas, rate_limits, replacements
from gpucredits.core.rules.upkeep.roll import roll

__all__ = ["decide", "decide_beats", "roll"]

Rule = Callable[[Book, Any, int], Outcome]

RULES: dict[type[Command], Rule] = {
    commands.CreateAccount: accounts.create,
    commands.UpdateAccount: accounts.update,
    commands.Sweep: accounts.sweep,
    commands.ReviewStanding: standing.review,
    commands.Issue: grants.issue,
    commands.TopUp: topups.top_up,
    commands.ConfirmTopUp: topups.confirm_top_up,
    commands.FailTopUp: topups.fail_top_up,
    commands.ReverseTopUp: topups.reverse_top_up,
    commands.Transfer: transfers.transfer,
    commands.Reserve: reservations.reserve,
    Beat: heartbeats.beat,
    commands.Settle: reservations.settle,
    commands.Cancel: reservations.cancel,
    commands.StopLease: stops.stop_lease,
    commands.ResumeLease: stops.resume_lease,
    commands.Refund: corrections.refund,
    commands.Adjust: corrections.adjust,
    commands.Explain: reservations.explain,
    commands.SetQuota: quotas.set_quota,
    commands.EndQuota: quotas.end_quota,
    commands.ReplaceQuotas: replacements.replace_quotas,
    commands.SetRateLimit: rate_limits.set_rate_limit,
    commands.EndRateLimit: rate_limits.end_rate_limit,
    commands.AddBoost: boosts.add_boost,
    commands.EndBoost: boosts.end_boost,
    commands.SetBudget: budgets.set_budget,
    commands.EndBudget: budgets.end_budget,
    commands.ReplaceBudgets: replacements.replace_budgets,
}


def decide(book: Book, command: Command, now: int) -> Outcome:
    """Carry out a command, or refuse it and leave the book as it was."""
    outer = book.savepoint
    outcome = RULES[type(command)](book, command, now)
    if book.savepoint is not outer:  # the clock had made something due
        if isinstance(outcome, Refused):
            book.take_back()
        else:
            book.keep()
    return outcome


def decide_beats(book: Book, beats: list[Beat], now: int) -> list[Outcome]:
    """Decide heartbeats in order."""
    return [decide(book, beat, now) for beat in beats]
