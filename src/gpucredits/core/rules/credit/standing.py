"""The rule that pauses an account whose bills are overdue, and resumes it when they are paid.

It is decided on the account's rows under its org's lock, so that a payment and a pause that arrive
at once end the same way in either order.
"""

from __future__ import annotations

from gpucredits.core.book import Book
from gpucredits.core.command import ReviewStanding
from gpucredits.core.outcome import Reviewed
from gpucredits.core.reasons import Refused
from gpucredits.core.risk import Standing
from gpucredits.core.rule import Rule, State
from gpucredits.core.rules.credit.accounts import note_suspension, touches_lineage
from gpucredits.core.rules.credit.funding import find
from gpucredits.core.rules.credit.suspensions import shorten_below
from gpucredits.core.rules.upkeep.roll import roll
from gpucredits.core.statement import received_by, standing_of


def review(book: Book, command: ReviewStanding, now: int) -> Reviewed | Refused:
    """Compare what came in with what is overdue; nothing changes where both agree already."""
    account = find(book, command.path)
    if isinstance(account, Refused):
        return account
    roll(book, account, now)
    received = received_by(account, command.refunded)
    judged = standing_of(command.bills, received, now, account.account_id)
    changes = account.delinquent is not judged.is_delinquent
    if changes:
        book.touch(account)
        account.delinquent = judged.is_delinquent
        account.version += 1
        was_suspended = account.path in book.suspended
        note_suspension(book, account)
        if account.path in book.suspended and not was_suspended:
            shorten_below(book, account, now)
    return Reviewed(account, received, judged.overdue, judged.since, now, changes)


def standing_before(book: Book, command: ReviewStanding) -> State | None:
    """Whether the account was paused for unpaid bills."""
    account = book.paths.get(command.path)
    return None if account is None else {"delinquent": account.delinquent}


def standing_after(org_id: int, outcome: Reviewed) -> tuple[str, State] | None:
    """The account's new standing and the reason; None for a review that changed nothing."""
    del org_id
    if not outcome.changed:
        return None
    judged = Standing(outcome.overdue, outcome.since)
    account = outcome.account
    return account.path, {"delinquent": account.delinquent, "why": judged.sentence}


RULES: tuple[Rule, ...] = (
    Rule(
        ReviewStanding,
        decide=review,
        touches=touches_lineage,
        audit="account.standing",
        before=standing_before,
        after=standing_after,
    ),
)
