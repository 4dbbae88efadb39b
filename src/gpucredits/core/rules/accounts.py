"""Rules for accounts: opening, changing and suspending them, and bringing them up to date.

Owns: finding an account, and the refusals that say that it is not there, suspended or short of
credits.
"""

from __future__ import annotations

from gpucredits.core.account import Account, Model, Status, lineage, scope_of
from gpucredits.core.book import Book
from gpucredits.core.command import CreateAccount, Sweep, UpdateAccount
from gpucredits.core.gate import Gate, GateReport, Unit
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import AccountSaved, Swept
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.budget_periods import note_warnings
from gpucredits.core.rules.roll import roll
from gpucredits.core.wording import be, count_credits


def find(book: Book, path: str) -> Account | Refused:
    """The account at a path, or the refusal that says it is not there."""
    account = book.paths.get(path)
    if account is None:
        return Refused(Reason.ACCOUNT_UNKNOWN, f"There is no account {path}.", {"account": path})
    return account


def suspended_above(book: Book, path: str) -> str:
    """The topmost suspended account at or above a path, or an empty string."""
    above = [each for each in lineage(path) if each in book.suspended]
    return above[-1] if above else ""


def suspension(book: Book, path: str, now: int) -> Refused | None:
    """Why nothing is admitted at a path: an operator's suspension, or an unpaid statement."""
    above = suspended_above(book, path)
    if not above:
        return None
    if book.suspended[above]:
        return Refused(
            Reason.ACCOUNT_DELINQUENT,
            f"A statement of {above} is unpaid past its due date, so {above} admits nothing; "
            "paying what is overdue resumes it.",
            {"account": above, "as_of": now},
        )
    return Refused(
        Reason.ACCOUNT_SUSPENDED, f"{above} is suspended and admits nothing.", {"account": above}
    )


def create(book: Book, command: CreateAccount, now: int) -> AccountSaved | Refused:
    """Open an account under a parent that exists."""
    path = command.path
    if path in book.paths:
        return Refused(
            Reason.ACCOUNT_EXISTS, f"The account {path} exists already.", {"account": path}
        )
    parent = path.rpartition("/")[0]
    if parent and parent not in book.paths:
        return Refused(
            Reason.PARENT_UNKNOWN,
            f"There is no account {parent}; create it before {path}.",
            {"account": path, "parent": parent},
        )
    account = Account(
        account_id=book.next_id(),
        path=path,
        model=command.model,
        credit_limit=command.credit_limit,
        created_at=now,
        version=1,
        metadata=command.metadata,
    )
    book.add(account)
    book.complete.add(account.account_id)
    return AccountSaved(account)


def update(book: Book, command: UpdateAccount, now: int) -> AccountSaved | Refused:
    """Change an account; its floor may not rise above where its balance stands.

    Only who pays later has a credit limit.
    """
    account = find(book, command.path)
    if isinstance(account, Refused):
        return account
    roll(book, account, now)
    model = account.model if command.model is None else command.model
    limit = account.credit_limit if command.credit_limit is None else command.credit_limit
    if command.credit_limit and model is Model.PREPAID:
        return Refused(
            Reason.LIMIT_INVALID,
            f"{account.path} is prepaid, and a credit limit is for postpaid accounts: set the "
            "model to postpaid in the same request.",
            {"account": account.path, "requested": format_credits(limit)},
        )
    floor = -limit if model is Model.POSTPAID else 0
    if account.available < floor:
        return Refused(
            Reason.LIMIT_IN_USE,
            f"{account.path} stands at {format_credits(account.available)}, below the "
            f"{format_credits(floor)} that would become its floor.",
            {
                "account": account.path,
                "available": format_credits(account.available),
                "floor": format_credits(floor),
            },
        )
    book.touch(account)
    account.model = model
    account.credit_limit = limit
    if command.overdraft_limit is not None:
        account.overdraft_limit = command.overdraft_limit
    if command.metadata is not None:
        account.metadata = command.metadata
    if command.status is not None:
        account.status = command.status
    if command.delinquent is not None:
        account.delinquent = command.delinquent
    note_suspension(book, account)
    account.version += 1
    return AccountSaved(account)


def note_suspension(book: Book, account: Account) -> None:
    """Let the rest of the batch see whether an account is suspended, by an operator or by debt."""
    if book.savepoint is not None and book.suspended is book.savepoint.suspended:
        book.suspended = book.suspended.copy()  # the savepoint keeps the other
    if account.status is Status.SUSPENDED or account.delinquent:
        book.suspended[account.path] = account.is_overdue
    else:
        book.suspended.pop(account.path, None)


def sweep(book: Book, command: Sweep, now: int) -> Swept:
    """Write down what the clock has made true."""
    before = len(book.entries)
    account = book.accounts.get(command.account_id)
    if account is None:
        return Swept(0, moved_on=False)
    due_at = account.due_at
    roll(book, account, now)
    note_warnings(book, account, now)
    return Swept(len(book.entries) - before, moved_on=account.due_at > due_at)


def insufficient(account: Account, available: int, needed: int) -> Refused:
    """The refusal that names the account, its scope and the two numbers."""
    return Refused(
        Reason.INSUFFICIENT_CREDITS,
        f"{account.path} has {count_credits(max(available, 0))} available, and "
        f"{format_credits(needed)} {be(format_credits(needed))} needed.",
        {
            "account": account.path,
            "scope": scope_of(account.path),
            "available": format_credits(available),
            "needed": format_credits(needed),
        },
        (
            GateReport(
                Gate.BUDGET,
                scope_of(account.path),
                account.path,
                "credits",
                Unit.CREDITS,
                available + account.reserved,
                account.reserved,
                needed,
                passes=False,
            ),
        ),
    )
