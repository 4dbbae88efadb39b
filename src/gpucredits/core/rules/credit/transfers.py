"""Rules for moving credits between accounts of one org, lots and windows kept."""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.core.account import Account, org_of
from gpucredits.core.book import Book, invariant
from gpucredits.core.command import Transfer
from gpucredits.core.entry import EntryType
from gpucredits.core.grant import Grant, GrantState
from gpucredits.core.money import format_credits
from gpucredits.core.outcome import Transferred
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rule import Rule, State, Touches
from gpucredits.core.rules.credit.accounts import insufficient
from gpucredits.core.rules.credit.funding import allot, find
from gpucredits.core.rules.credit.grants import grants_full
from gpucredits.core.rules.upkeep.lots import absorb, draw
from gpucredits.core.rules.upkeep.roll import roll


def transfer(book: Book, command: Transfer, now: int) -> Transferred | Refused:
    """Move unheld credits, lot by lot in consumption order; windows and sources go with them."""
    sides = find_sides(book, command)
    if isinstance(sides, Refused):
        return sides
    source, target = sides
    roll(book, source, now)
    roll(book, target, now)
    if full := grants_full(book, target):
        return full
    if source.available < command.amount:
        return insufficient(source, source.available, command.amount)
    book.touch(source)
    book.touch(target)
    allot(book, target)
    lots = move_lots(book, source, target, command.amount, now)
    source.version += 1
    target.version += 1
    return Transferred(
        book.next_id(), source.path, target.path, command.amount, tuple(lots), command.metadata
    )


def move_lots(
    book: Book, source: Account, target: Account, amount: int, now: int
) -> list[tuple[int, int, int]]:
    """Take lots from one account and let them arrive in the other."""
    moved: list[tuple[int, int, int]] = []
    while amount:
        left = next(
            (lot for lot in book.grants[source.account_id] if lot.state is GrantState.ACTIVE), None
        )
        invariant(left is not None, "unheld credits are in active grants")
        assert left is not None  # for the type checker
        part = min(left.remaining, amount)
        amount -= part
        draw(book, source, left, part)
        arrived = landing_grant(book, target, left, now)
        arrived.amount += part
        arrived.remaining += part
        target.remaining += part
        book.place(arrived)
        book.post(
            EntryType.TRANSFER,
            source,
            part,
            at=now,
            grant_id=left.grant_id,
            other_id=target.account_id,
            other_grant_id=arrived.grant_id,
        )
        absorb(book, target, arrived, now)
        moved.append((left.grant_id, arrived.grant_id, part))
    return moved


def landing_grant(book: Book, target: Account, left: Grant, now: int) -> Grant:
    """The grant that takes in credits of another: the one they went to before, or a new one."""
    for lot in book.grants[target.account_id]:
        if (
            lot.origin_id == left.grant_id
            and lot.state is GrantState.ACTIVE
            and lot.expires_at == left.expires_at
        ):
            book.touch(lot)
            return lot
    arrived = Grant(
        grant_id=book.next_id(),
        account_id=target.account_id,
        amount=0,
        remaining=0,
        starts_at=left.starts_at,
        expires_at=left.expires_at,
        priority=left.priority,
        source=left.source,
        origin_id=left.grant_id,
        created_at=now,
    )
    book.add(arrived)
    target.due_at = min(target.due_at, arrived.expires_at)
    return arrived


def find_sides(book: Book, command: Transfer) -> tuple[Account, Account] | Refused:
    """The two accounts of a transfer, if credits may move between them."""
    source, target = find(book, command.source), find(book, command.target)
    if isinstance(source, Refused):
        return source
    if org_of(command.source) != org_of(command.target):
        return Refused(
            Reason.CROSS_ORG,
            "Credits move within one org only.",
            {"from": command.source, "to": command.target},
        )
    if isinstance(target, Refused):
        return target
    if source is target:
        return Refused(
            Reason.SAME_ACCOUNT,
            "Both sides of the transfer are the same account.",
            {"account": command.source},
        )
    return source, target


def touches_sides(command: Transfer) -> Touches:
    """The two accounts."""
    return Touches(paths=(command.source, command.target))


def transfer_after(org_id: int, outcome: Transferred) -> tuple[str, State]:
    """The account that gave, and what went where."""
    return outcome.source, {
        "transfer_id": ids.format_id(ids.TRANSFER, org_id, outcome.transfer_id),
        "to": outcome.target,
        "amount": format_credits(outcome.amount),
        "metadata": outcome.metadata,
    }


RULES: tuple[Rule, ...] = (
    Rule(Transfer, transfer, touches_sides, "credits.transfer", after=transfer_after),
)
