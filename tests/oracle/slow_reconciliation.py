"""Measured use and its bill, counted millisecond by millisecond; an oracle that shares no code."""

from __future__ import annotations

from typing import NamedTuple


class Lot(NamedTuple):
    """Credits of a grant that ended unspent: when they could pay, in ms, and their rank."""

    name: int
    amount: int
    starts_ms: int
    ends_ms: int
    rank: int


def used_milliseconds(intervals: list[tuple[int, int]], ends_ms: int) -> list[int]:
    """Every millisecond inside the lease in which some node measured."""
    seen: set[int] = set()
    for start, end in intervals:
        seen.update(range(start, min(end, ends_ms)))
    return sorted(seen)


def who_pays(
    used: list[int], billed: int, each: int, lots: list[Lot]
) -> tuple[int, dict[int, int], int]:
    """(difference, what expired lots pay, what present credits pay) at ``each`` a millisecond.

    ``billed`` milliseconds are paid for; the first of the use is what they pay for.
    """
    difference = (len(used) - billed) * each
    paid: dict[int, int] = {}
    present = 0
    left = {lot.name: lot.amount for lot in lots}
    for moment in used[billed:]:
        due = each
        for lot in sorted(lots, key=lambda lot: lot.rank):
            if lot.starts_ms <= moment < lot.ends_ms and due:
                part = min(left[lot.name], due)
                left[lot.name] -= part
                due -= part
                if part:
                    paid[lot.name] = paid.get(lot.name, 0) + part
        present += due
    return difference, paid, present
