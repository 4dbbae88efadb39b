"""Rules of funding: which accounts may pay for an account's jobs, and which of them does.

Owns: finding an account and what suspends it, the funding chain, the first allocation of a project,
the payer at admission, and the payer that takes over a lease when the present one runs short.
Must not: settle anything; heartbeats settles what is due before another account takes over.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.core.account import Account, Funding, is_below, lineage, parent_of, scope_of
from gpucredits.core.book import Book, NotInBook, PayerMove
from gpucredits.core.entry import EntryType
from gpucredits.core.money import count_credits, format_credits, is_one
from gpucredits.core.reasons import Reason, Refused, account_unknown
from gpucredits.core.reservation import Reservation
from gpucredits.core.rules.upkeep.roll import roll

SHARED = Funding.SHARED  # looked up once: draining leases ask


def find(book: Book, path: str) -> Account | Refused:
    """The account at a path, or the refusal that says it is not there."""
    account = book.paths.get(path)
    if account is None:
        return account_unknown(path)
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


def funding_of(path: str, asked: Funding | None, *, is_allocated: bool) -> Funding:
    """The funding of a new account: as asked, or else what its scope and its credits make it."""
    if asked is not None:
        return asked
    owns = not parent_of(path) or (is_allocated and scope_of(path) == "project")
    return Funding.OWN if owns else Funding.SHARED


def funding_invalid(path: str, asked: Funding | None) -> Refused | None:
    """Refuse an org that would share: no account is above it."""
    if asked is not Funding.SHARED or parent_of(path):
        return None
    return Refused(
        Reason.FUNDING_INVALID,
        f"{path} is an org: no account above it has credits to share, so its funding is own.",
        {"account": path, "funding": "shared"},
    )


def allot(book: Book, account: Account) -> None:
    """Note credits that an account is given; the first make a shared project spend its own only.

    The caller has touched the account. What an operator sets afterwards stays.
    """
    if account.allocated:
        return
    account.allocated = True
    if account.funding is Funding.SHARED and scope_of(account.path) == "project":
        account.funding = Funding.OWN
        book.became_own.append(account.path)


def chain_of(book: Book, account: Account) -> list[Account]:
    """The accounts whose credits an account may spend: itself, and above while it is shared."""
    chain = [account]
    while account.funding is SHARED and (above := parent_of(account.path)):
        if above not in book.paths:
            raise NotInBook
        account = book.paths[above]
        chain.append(account)
    return chain


def funders_of(
    book: Book, account: Account, named: str, scope: str, now: int
) -> list[Account] | Refused:
    """The accounts that may pay for a new lease, nearest first and brought forward to ``now``.

    A named payer is one of the funding chain, or lies in the scope of the key that asks.
    """
    chain = chain_of(book, account)
    if named:
        payer = book.paths.get(named) if named in lineage(account.path) else None
        if payer is None or not (payer in chain or is_below(named, scope) or not scope):
            return Refused(
                Reason.PAYER_INVALID,
                f"{named} cannot pay for {account.path}: a payer is an account of its funding "
                "chain, or one at or above it in the scope of your key.",
                {"account": account.path, "payer": named},
            )
        chain = [payer]
    for each in chain:
        bring(book, each, now)
    return chain


def bring(book: Book, account: Account, now: int) -> None:
    """Bring an account of a chain forward to ``now``, if the book has every row for that."""
    if account.account_id in book.bare:
        raise NotInBook
    if account.due_at <= now:
        if account.account_id not in book.complete:
            raise NotInBook
        roll(book, account, now)


def allowing(funders: list[Account], overdraft: int) -> list[Account] | Refused:
    """The accounts that let a job overdraw by so much; refuse where none does."""
    able = [each for each in funders if overdraft <= each.overdraft_limit]
    if able:
        return able
    return overdraft_too_large(max(funders, key=lambda each: each.overdraft_limit), overdraft)


def overdraft_too_large(payer: Account, asked: int) -> Refused:
    """The refusal of an overdraft that the payer was not allowed."""
    text = format_credits(asked)
    return Refused(
        Reason.OVERDRAFT_TOO_LARGE,
        f"{payer.path} may let a job overdraw by at most {count_credits(payer.overdraft_limit)}; "
        f"{text} {'was' if is_one(text) else 'were'} asked for.",
        {
            "account": payer.path,
            "limit": format_credits(payer.overdraft_limit),
            "requested": text,
        },
    )


def choose(funders: Sequence[Account], needed: int) -> Account:
    """The nearest account that can hold ``needed``, or else the one that comes closest to it."""
    for each in funders:
        if each.spendable >= needed:
            return each
    return max(funders, key=lambda each: each.spendable)


def successor(
    book: Book, payer: Account, lease: Reservation, needed: int, now: int
) -> Account | None:
    """The nearest account above the payer, in the job's funding chain, that can hold ``needed``.

    NotInBook where the accounts above were left out. Nobody follows a payer that spends its own.
    """
    if payer.funding is not SHARED:
        return None
    account = book.paths.get(lease.account)
    if account is None:
        raise NotInBook
    for each in chain_of(book, account):
        if len(each.path) >= len(payer.path):
            continue
        bring(book, each, now)
        if each.spendable >= needed:
            return each
    return None


def take_over(
    book: Book, payer: Account, lease: Reservation, target: Account, held: int, now: int
) -> None:
    """Let another account hold the window of a lease whose payer has settled what was due.

    The items of ``paid`` so far are the old payer's.
    """
    book.touch(target)
    target.reserved += held
    target.version += 1
    book.post(
        EntryType.RESERVE,
        target,
        held,
        at=now,
        reservation_id=lease.reservation_id,
        seq=lease.seq,
    )
    lease.payers += ((payer.account_id, len(lease.paid)),)
    lease.payer_id = target.account_id
    lease.held = held
    book.by_payer = None
    book.moves.append(PayerMove(lease.reservation_id, payer.path, target.path, held))


def own_since(lease: Reservation) -> int:
    """From which item of ``paid`` on the present payer has paid."""
    return lease.payers[-1][1] if lease.payers else 0


def stretches(lease: Reservation) -> list[tuple[int, int, int]]:
    """(account, first item of ``paid``, end) of everybody who has paid, in the order of moves."""
    found: list[tuple[int, int, int]] = []
    since = 0
    for account_id, until in (*lease.payers, (lease.payer_id, len(lease.paid))):
        found.append((account_id, since, until))
        since = until
    return found


def shares_paid(lease: Reservation) -> list[tuple[int, int]]:
    """(account, amount) of everybody who has paid for a lease, in the order of the moves."""
    return [
        (account_id, sum(amount for _, amount in lease.paid[since:until]))
        for account_id, since, until in stretches(lease)
    ]
