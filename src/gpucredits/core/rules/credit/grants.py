"""Rules for issuing grants."""

from __future__ import annotations

from gpucredits.core import bounds, ids
from gpucredits.core.account import Account
from gpucredits.core.book import Book
from gpucredits.core.command import Issue
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Granted
from gpucredits.core.period import format_end, format_instant
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, touches_account
from gpucredits.core.rules.credit.funding import allot, find
from gpucredits.core.rules.upkeep.lots import start
from gpucredits.core.rules.upkeep.roll import roll


def issue(book: Book, command: Issue, now: int) -> Granted | Refused:
    """Make a grant; one whose window is open now is available at once."""
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    starts_at = now if command.starts_at is None else command.starts_at
    if command.expires_at <= max(starts_at, now):
        return Refused(
            Reason.WINDOW_ENDED,
            "The grant would end before it can be used: expires_at must be later than now and "
            "than starts_at.",
            {"account": account.path},
        )
    roll(book, account, now)
    if full := grants_full(book, account):
        return full
    grant = Grant(
        grant_id=book.next_id(),
        account_id=account.account_id,
        amount=command.amount,
        remaining=command.amount,
        starts_at=starts_at,
        expires_at=command.expires_at,
        priority=command.priority,
        source=command.source,
        created_at=now,
        metadata=command.metadata,
    )
    open_grant(book, account, grant, now)
    return Granted(grant, account.path)


def open_grant(book: Book, account: Account, grant: Grant, now: int) -> None:
    """Add a grant to its account, at work now or waiting for its start."""
    grant.state = GrantState.PENDING
    book.touch(account)
    book.add(grant)
    allot(book, account)
    if grant.starts_at <= now:
        start(book, account, grant, now)
        account.due_at = min(account.due_at, grant.expires_at)
    else:
        account.due_at = min(account.due_at, grant.starts_at)
    account.version += 1


def grants_full(book: Book, account: Account) -> Refused | None:
    """Refuse one more grant where an account has as many as it may."""
    if len(book.grants[account.account_id]) < bounds.GRANTS_LIVE_MAX:
        return None
    return Refused(
        Reason.GRANTS_FULL,
        f"{account.path} already has {bounds.GRANTS_LIVE_MAX} grants with credits left; "
        "use fewer, larger grants.",
        {"account": account.path, "limit": bounds.GRANTS_LIVE_MAX},
    )


def grant_after(org_id: int, outcome: Granted) -> tuple[str, State]:
    """The account and the grant that it was given."""
    grant = outcome.grant
    return outcome.path, {
        "grant_id": ids.format_id(ids.GRANT, org_id, grant.grant_id),
        "amount": format_credits(grant.amount),
        "source": grant.source.name.lower(),
        "starts_at": format_instant(grant.starts_at),
        "expires_at": format_end(grant.expires_at),
        "priority": grant.priority,
    }


RULES: tuple[Rule, ...] = (Rule(Issue, issue, touches_account, "credits.issue", after=grant_after),)
