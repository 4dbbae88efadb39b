"""Entries: immutable rows of the ledger, each a balanced debit/credit pair.

Owns: which buckets each type of entry moves between; the SQL that adds entries up follows from it.
Must not: know how entries are stored.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class EntryType(IntEnum):
    """What happened."""

    ISSUE = 1
    TOPUP = 2
    TRANSFER = 3
    RESERVE = 4
    RELEASE = 5
    SETTLE = 6
    REFUND = 7
    EXPIRE = 8
    ADJUST = 9
    OVERRUN = 10
    COLLECT = 11
    REPAY = 12
    REVERSE = 13
    RESTORE = 14  # a wrong clock had ended a grant: its credits are back
    WITHDRAW = 15  # a wrong clock had started a grant: its credits wait for its start
    # 16 and 17 are reserved for transfers between orgs: out of an account into the table transit,
    # and from there into one.


class Entry(NamedTuple):
    """One stored row. ``amount`` moves as its type says.

    ``reserve`` is a second pair in the same row, available to reserved (release when negative), so
    that a heartbeat's settlement and the renewal of its hold are one row. ``other_id`` is the
    receiving account of a transfer; ``grant_id`` the lot that paid or was paid into, 0 for a
    postpaid debt and -1 for the house's overrun. ``other_grant_id`` is the lot that a transfer
    arrives in, or that is refunded because it had repaid such a debt or overrun.
    """

    entry_id: int
    effective_at: int
    type: EntryType
    account_id: int
    amount: int
    reserve: int = 0
    grant_id: int = 0
    other_id: int = 0
    other_grant_id: int = 0
    reservation_id: int = 0
    seq: int = 0


BUCKETS = ("available", "reserved", "spent")  # of an account
PAIRS: dict[EntryType, tuple[str, str]] = {
    EntryType.ISSUE: ("system:issuance", "available"),
    EntryType.TOPUP: ("system:payments", "available"),
    EntryType.TRANSFER: ("available", "other:available"),
    EntryType.RESERVE: ("available", "reserved"),
    EntryType.RELEASE: ("reserved", "available"),
    EntryType.SETTLE: ("reserved", "spent"),
    EntryType.REFUND: ("spent", "available"),
    EntryType.EXPIRE: ("available", "system:expired"),
    EntryType.ADJUST: ("available", "spent"),
    EntryType.OVERRUN: ("system:overrun", "available"),
    EntryType.COLLECT: ("available", "system:overrun"),
    EntryType.REPAY: ("available", "available"),
    EntryType.REVERSE: ("available", "system:payments"),
    EntryType.RESTORE: ("system:expired", "available"),
    EntryType.WITHDRAW: ("available", "system:issuance"),
}


def direction(kind: EntryType, bucket: str) -> int:
    """What an entry's amount does to a bucket of its own account: 1 adds, -1 takes, 0 neither."""
    debit, credit = PAIRS[kind]
    return int(credit == bucket) - int(debit == bucket)


def moves_of(entry: Entry) -> tuple[int, int, int]:
    """The change of available, reserved and spent of the entry's own account."""
    if entry.other_id == entry.account_id:  # from one of its grants to another
        return 0, 0, 0
    available, reserved, spent = (
        entry.amount * direction(entry.type, bucket)
        + entry.reserve * direction(EntryType.RESERVE, bucket)
        for bucket in BUCKETS
    )
    return available, reserved, spent
