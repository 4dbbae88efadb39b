"""What the entries of a batch add to the spending of a day, as rows for the saving statement.

Owns: the parts of that statement that write spend_days, spend_hours and lease_days.
Must not: read anything. This module is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpucredits.core.bounds import DAY_US, HOUR_US
from gpucredits.core.entry import EntryType
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.book.table import part

# Looked up once: these are compared for every heartbeat.
SETTLE, REFUND, ADJUST = EntryType.SETTLE, EntryType.REFUND, EntryType.ADJUST

SPENDING = "bigint integer bigint bigint text bigint"
SPENDING_ROWS = "ROWS AS x(org_id, day, payer_id, account_id, gpu_type, amount)"
KEPT_SPENDING = part(  # whether or not the row is there
    "kept_spending",
    SPENDING,
    f"""INSERT INTO spend_days AS s (org_id, day, payer_id, account_id, gpu_type, amount)
    SELECT x.org_id, x.day, x.payer_id, x.account_id, x.gpu_type, x.amount FROM {SPENDING_ROWS}
    ON CONFLICT (org_id, day, payer_id, account_id, gpu_type)
    DO UPDATE SET amount = s.amount + excluded.amount""",  # noqa: S608  # constant texts only
)
CHANGED_SPENDING = part(  # the row is there
    "changed_spending",
    SPENDING,
    f"""UPDATE spend_days s SET amount = s.amount + x.amount FROM {SPENDING_ROWS}
    WHERE s.org_id = x.org_id AND s.day = x.day AND s.payer_id = x.payer_id
        AND s.account_id = x.account_id AND s.gpu_type = x.gpu_type""",  # noqa: S608  # constant texts only
)
NEW_SPEND_HOURS = part(  # what was spent on the day before the first charge of an hour
    "new_spend_hours",
    "bigint integer integer bigint bigint text",
    """INSERT INTO spend_hours (org_id, payer_id, account_id, gpu_type, hour, before)
    SELECT x.org_id, x.payer_id, x.account_id, x.gpu_type, x.hour, coalesce(s.amount, 0)
    FROM ROWS AS x(org_id, day, hour, payer_id, account_id, gpu_type)
    LEFT JOIN spend_days s ON s.org_id = x.org_id AND s.day = x.day AND s.payer_id = x.payer_id
        AND s.account_id = x.account_id AND s.gpu_type = x.gpu_type ON CONFLICT DO NOTHING""",
)
NEW_LEASE_DAYS = part(
    "new_lease_days",
    "bigint bigint integer bigint bigint",
    """INSERT INTO lease_days (org_id, reservation_id, day, account_id, charged)
    SELECT x.org_id, x.reservation_id, x.day, x.account_id, x.charged
    FROM ROWS AS x(org_id, reservation_id, day, account_id, charged) ON CONFLICT DO NOTHING""",
)
SPENDING_PARTS = (KEPT_SPENDING, CHANGED_SPENDING, NEW_SPEND_HOURS, NEW_LEASE_DAYS)

NamedRow = tuple[str, Sequence[Any]]  # of the part with this name


def spending_rows(cached: CachedBook) -> list[NamedRow]:
    """What the entries of a batch add to spend_days, spend_hours and lease_days.

    One row for each payer, account and GPU type, one for each of these in a new hour, and one for
    each lease on a new day. A row that this server has written on the same day is there: an UPDATE
    finds it. Only the first batch of a day, or of a book that was read anew, asks whether the row
    has to be inserted.
    """
    book, day = cached.book, cached.now // DAY_US
    if cached.spend_day != day:
        cached.spend_day, cached.spend_keys, cached.spend_leases = day, set(), set()
    leases, day_start = book.reservations, day * DAY_US
    day_end, written = day_start + DAY_US, cached.spend_leases
    sums: dict[tuple[int, int, str], int] = {}
    turned: dict[int, int] = {}  # leases of other days, with what this batch has charged
    for entry in book.entries:
        kind = entry[2]
        if kind is SETTLE or kind is ADJUST:
            amount = entry[4]
        elif kind is REFUND:
            amount = -entry[4]
        else:
            continue
        if not amount:
            continue
        number = entry[9]
        lease = leases[number]
        key = (entry[3], lease.account_id, lease.gpu_type)
        sums[key] = sums.get(key, 0) + amount
        if not day_start <= lease.admitted_at < day_end and number not in written:
            turned[number] = turned.get(number, 0) + amount
    rows = rows_of_sums(cached, sums)
    for number, amount in turned.items():
        lease = leases[number]
        charged = lease.charged - amount
        row = (book.org.org_id, number, day, lease.account_id, charged)
        rows.append(("new_lease_days", row))
    written.update(turned)
    return rows


def rows_of_sums(cached: CachedBook, sums: dict[tuple[int, int, str], int]) -> list[NamedRow]:
    """What a batch adds to the present day, and what had been spent before the present hour."""
    org_id, day, hour = cached.book.org.org_id, cached.now // DAY_US, cached.now // HOUR_US
    if cached.spend_hour != hour:
        cached.spend_hour, cached.spend_hour_keys = hour, set()
    known, marked = cached.spend_keys, cached.spend_hour_keys
    rows: list[NamedRow] = []
    for key, amount in sums.items():
        name = "changed_spending" if key in known else "kept_spending"
        rows.append((name, (org_id, day, *key, amount)))
        if key not in marked:
            rows.append(("new_spend_hours", (org_id, day, hour, *key)))
    known.update(sums)
    marked.update(sums)
    return rows
