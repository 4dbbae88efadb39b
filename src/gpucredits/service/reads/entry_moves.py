"""What an entry does to the buckets of the account it names."""

from __future__ import annotations

from gpucredits.core.entry import PAIRS, Entry

BUCKETS = ("available", "reserved", "spent")


def moves_of(entry: Entry) -> tuple[int, int, int]:
    """The change of available, reserved and spent of the entry's own account."""
    change = dict.fromkeys(BUCKETS, 0)
    if entry.other_id == entry.account_id:  # from one of its grants to another
        return 0, 0, 0
    debit, credit = PAIRS[entry.type]
    if debit in change:
        change[debit] -= entry.amount
    if credit in change:
        change[credit] += entry.amount
    change["available"] -= entry.reserve
    change["reserved"] += entry.reserve
    return change["available"], change["reserved"], change["spent"]
