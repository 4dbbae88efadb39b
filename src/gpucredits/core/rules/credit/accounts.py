"""Rules for accounts: opening, changing and suspending them, and bringing them up to date.

Owns: finding an account, and the refusals that say that it is not there, suspended or short of
credits.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.account import Account, Funding, Model, Status, lineage, scope_of
from gpucredits.core.authority import Authority, refuse_from_below, scope_word
from gpucredits.core.book import Book
from gpucredits.core.command import CreateAccount, ReviewStanding, Sweep, UpdateAccount
from gpucredits.core.gate import Gate, GateReport, GateUnit
from gpucredits.core.money import be, count_credits, format_credits
from gpucredits.core.outcome import AccountSaved, Swept
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, Touches
from gpucredits.core.rules.credit.funding import (
    allot,
    find,
    funding_invalid,
    funding_of,
    suspension,
)
from gpucredits.core.rules.credit.suspensions import shorten_below
from gpucredits.core.rules.upkeep.budget_periods import note_warnings
from gpucredits.core.rules.upkeep.roll import roll


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
    if wrong := funding_invalid(path, command.funding):
        return wrong
    is_allocated = command.model is Model.POSTPAID and command.credit_limit > 0
    account = Account(
        account_id=book.next_id(),
        path=path,
        model=command.model,
        credit_limit=command.credit_limit,
        created_at=now,
        version=1,
        metadata=command.metadata,
        funding=funding_of(path, command.funding, is_allocated=is_allocated),
        allocated=is_allocated,
    )
    book.add(account)
    book.complete.add(account.account_id)
    return AccountSaved(account)


def update(book: Book, command: UpdateAccount, now: int) -> AccountSaved | Refused:
    """Change an account. Only an account that pays later has a credit limit.

    A credit limit may be lowered below what the account owes: then nothing new is admitted, and
    leases drain, until the account owes less than its limit. An account that owes anything cannot
    become prepaid.
    """
    account = find(book, command.path)
    if isinstance(account, Refused):
        return account
    if wrong := funding_invalid(account.path, command.funding):
        return wrong
    roll(book, account, now)
    labels = changed_labels(account, command)
    model = account.model if command.model is None else command.model
    limit = account.credit_limit if command.credit_limit is None else command.credit_limit
    if wrong := (
        too_many_labels(account, labels)
        or terms_refused(account, command, model)
        or resume_refused(account, command)
    ):
        return wrong
    book.touch(account)
    account.model = model
    account.credit_limit = limit
    set_funding(book, account, command.funding)
    if command.overdraft_limit is not None:
        account.overdraft_limit = command.overdraft_limit
    account.metadata = labels
    set_status(account, command)
    if command.delinquent is not None:
        account.delinquent = command.delinquent
    if command.window_max_ms is not None:
        account.window_max_ms = command.window_max_ms
        note_window(book, account)
    was_suspended = account.path in book.suspended
    note_suspension(book, account)
    account.version += 1
    if account.path in book.suspended and not was_suspended:
        shorten_below(book, account, now)
    stands = suspension(book, account.path, now) if command.status is Status.ACTIVE else None
    return AccountSaved(account, stands)


def too_many_labels(account: Account, labels: dict[str, str]) -> Refused | None:
    """Refuse more labels than a thing may have."""
    if len(labels) <= bounds.METADATA_KEYS_MAX:
        return None
    return Refused(
        Reason.LIMIT_INVALID,
        f"{account.path} would have {len(labels)} labels, and {bounds.METADATA_KEYS_MAX} is the"
        " most: remove some in the same request.",
        {"account": account.path, "limit": bounds.METADATA_KEYS_MAX},
    )


def terms_refused(account: Account, command: UpdateAccount, model: Model) -> Refused | None:
    """Refuse a credit limit for a prepaid account, and to make an account that owes prepaid."""
    if model is not Model.PREPAID:
        return None
    if command.credit_limit:
        return Refused(
            Reason.LIMIT_INVALID,
            f"{account.path} is prepaid, and a credit limit is for postpaid accounts: set the "
            "model to postpaid in the same request.",
            {"account": account.path, "requested": format_credits(command.credit_limit)},
        )
    if account.available >= 0:
        return None
    return Refused(
        Reason.LIMIT_IN_USE,
        f"{account.path} has used {count_credits(-account.available)} of its credit limit, and "
        "a prepaid account owes nothing. Lower the credit limit to 0 to admit nothing new, and "
        "set the model once the account has paid and its holds are released.",
        {
            "account": account.path,
            "available": format_credits(account.available),
            "limit": format_credits(account.credit_limit),
        },
    )


def resume_refused(account: Account, command: UpdateAccount) -> Refused | None:
    """Refuse to lift a suspension that a key of a wider scope has set."""
    if command.status is not Status.ACTIVE or account.status is Status.ACTIVE:
        return None
    instead = "Ask the holder of such a key to resume the account."
    return refuse_from_below(
        command.by, account.suspended_by, account.path, "The suspension", instead
    )


def set_status(account: Account, command: UpdateAccount) -> None:
    """Suspend or resume an account; of two suspensions the one from the wider scope stands."""
    if command.status is Status.ACTIVE:
        account.suspended_by = Authority.SYSTEM
    elif command.status is Status.SUSPENDED:
        was_suspended = account.status is Status.SUSPENDED
        account.suspended_by = (
            min(account.suspended_by, command.by) if was_suspended else command.by
        )
    if command.status is not None:
        account.status = command.status


def changed_labels(account: Account, command: UpdateAccount) -> dict[str, str]:
    """The labels that an account is to have: those given change or go, the others stay."""
    labels = dict(account.metadata if command.metadata is None else command.metadata)
    for name, text in (command.labels or {}).items():
        if text is None:
            labels.pop(name, None)
        else:
            labels[name] = text
    return labels


def set_funding(book: Book, account: Account, asked: Funding | None) -> None:
    """Set whose credits an account may spend; a credit limit is an allocation like a grant."""
    if asked is None and account.model is Model.POSTPAID and account.credit_limit:
        allot(book, account)
    if asked is not None:
        account.funding = asked
        account.allocated = account.allocated or account.floor < 0


def note_window(book: Book, account: Account) -> None:
    """Let the rest of the batch see how long leases below an account may last."""
    if book.savepoint is not None and book.account_windows is book.savepoint.account_windows:
        book.account_windows = book.account_windows.copy()  # the savepoint keeps the other
    if account.window_max_ms:
        book.account_windows[account.path] = account.window_max_ms
    else:
        book.account_windows.pop(account.path, None)
    book.bound_windows(book.windows)


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
                GateUnit.CREDITS,
                available + account.reserved,
                account.reserved,
                needed,
                passes=False,
            ),
        ),
    )


def touches_lineage(command: CreateAccount | UpdateAccount | ReviewStanding) -> Touches:
    """The account with those above it; where it is suspended, the leases below it too."""
    return Touches(paths=lineage(command.path), counted=(command.path,))


def account_before(book: Book, command: UpdateAccount) -> State | None:
    """The terms that an update is about to change."""
    account = book.paths.get(command.path)
    return None if account is None else account_state(account)


def account_after(org_id: int, outcome: AccountSaved) -> tuple[str, State]:
    """The account and its terms."""
    del org_id
    return outcome.account.path, account_state(outcome.account)


def account_state(account: Account) -> State:
    """The terms of an account as the audit log keeps them."""
    is_suspended = account.status is Status.SUSPENDED
    return {
        "model": account.model.name.lower(),
        "credit_limit": format_credits(account.credit_limit),
        "overdraft_limit": format_credits(account.overdraft_limit),
        "window_max_seconds": account.window_max_ms // 1_000,
        "status": account.status.name.lower(),
        "suspended_by_scope": scope_word(account.suspended_by) if is_suspended else None,
        "funding": account.funding.name.lower(),
        "delinquent": account.delinquent,
        "metadata": dict(account.metadata),
    }


def touches_swept(command: Sweep) -> Touches:
    """The account that is brought up to date."""
    return Touches(account_ids=(command.account_id,))


RULES: tuple[Rule, ...] = (
    Rule(CreateAccount, create, touches_lineage, "account.create", after=account_after),
    Rule(UpdateAccount, update, touches_lineage, "account.update", account_before, account_after),
    Rule(Sweep, sweep, touches_swept),
)
