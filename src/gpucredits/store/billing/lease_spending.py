"""Which leases a time concerns, and what was spent on each of them in it.

Owns: leases that were admitted or charged in a time, the latest first.
Must not: read entries, except those of the leases' payers on days that the time cuts in two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpucredits.core.bounds import DAY_US
from gpucredits.store.billing.day_edges import NO_DAY, TimeByDays
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where
from gpucredits.store.ledger.accounts import ACCOUNTS_PROBED_MAX
from gpucredits.store.ledger.reservations import CLOSED, each_of

DAY_ACCOUNTS_MAX = 10  # times days: above so many accounts, the days of their org are read
LEASES_AT = """
SELECT lease_at($1, at) FROM unnest($2::bigint[]) WITH ORDINALITY AS asked(at, place) ORDER BY place
"""
# Admitted in the time, or earlier on the day that the time begins in.
ADMITTED = """
    SELECT l.reservation_id FROM reservations l
    WHERE l.org_id = [org] AND l.reservation_id >= [first] AND l.reservation_id < [beyond]
        AND [own] ORDER BY l.reservation_id DESC LIMIT [limit]
"""
# The newest of each account, a page of them in all, say down to which number the page reaches.
OF_ACCOUNTS = """
    SELECT s.reservation_id FROM unnest([accounts]::bigint[]) AS w(account_id)
    CROSS JOIN generate_series(0, 3) AS v(state) -- as the index has it
    CROSS JOIN LATERAL (
        SELECT l.reservation_id FROM reservations l
        WHERE l.org_id + 0 = [org] AND l.account_id = w.account_id AND l.state = v.state
            AND l.reservation_id >= [lowest] AND l.reservation_id < [beyond]
        ORDER BY l.reservation_id DESC LIMIT [most]
    ) AS s ORDER BY 1 DESC LIMIT [limit]
"""
NEWEST = OF_ACCOUNTS.replace("[lowest]", "[first]").replace("[most]", "[each]")
LOWEST = "(SELECT CASE count(*) WHEN [limit] THEN min(reservation_id) ELSE [first] END FROM newest)"
ADMITTED_BY_ACCOUNT = f"""
    WITH newest AS MATERIALIZED ({NEWEST})
    {OF_ACCOUNTS.replace("[lowest]", LOWEST).replace("[most]", "[limit]")}
"""
# Admitted on an earlier day than the first, charged in the time: as many as are missing.
MISSING = "(SELECT [limit] - count(*) FROM admitted)"
CARRIED = f"""
    SELECT DISTINCT s.reservation_id
    FROM generate_series([from_day]::integer, [to_day]::integer) AS w(day)
    CROSS JOIN LATERAL (
        SELECT l.reservation_id FROM lease_days l
        WHERE l.org_id = [org] AND l.day = w.day AND l.reservation_id < [carried] AND [own]
        ORDER BY l.reservation_id DESC LIMIT {MISSING}
    ) AS s ORDER BY 1 DESC LIMIT {MISSING}
"""  # noqa: S608  # constant texts only
CARRIED_BY_ACCOUNT = f"""
    SELECT DISTINCT s.reservation_id
    FROM generate_series([from_day]::integer, [to_day]::integer) AS w(day)
    CROSS JOIN unnest([accounts]::bigint[]) AS a(account_id)
    CROSS JOIN LATERAL (
        SELECT l.reservation_id FROM lease_days l
        WHERE l.org_id = [org] AND l.account_id = a.account_id AND l.day = w.day
            AND l.reservation_id < [carried]
        ORDER BY l.reservation_id DESC LIMIT {MISSING}
    ) AS s ORDER BY 1 DESC LIMIT {MISSING}
"""  # noqa: S608  # constant texts only
CANDIDATES = """
    WITH admitted AS MATERIALIZED ([admitted_leases])
    SELECT reservation_id FROM admitted
    UNION ALL SELECT reservation_id FROM ([carried_leases]) AS c ORDER BY 1 DESC
"""
LEASE = f"""
    SELECT l.reservation_id, l.account, l.job_id, l.gpu_type, l.milli_gpus, l.payer_id, l.payers,
        l.first_entry_id, l.admitted_at, l.used_ms, l.settled, l.adjusted, l.refunded,
        l.settled + l.adjusted - l.refunded AS charged,
        CASE WHEN {CLOSED} THEN l.ended_at END AS last_at -- no charge came after it
    FROM reservations l
"""  # noqa: S608  # constant texts only
LEASES = f"""
    SELECT l.* FROM ([candidates]) AS c CROSS JOIN LATERAL (
        {LEASE} WHERE l.org_id = [org] AND l.reservation_id = c.reservation_id OFFSET 0
    ) AS l
"""  # noqa: S608  # constant texts only
# What a lease had been charged before a day is told by its first row from that day on, if it was
# charged since. Where a time cuts a day in two, that day or the next is taken for each lease,
# whichever leaves fewer entries to read: none before the lease began, none after its last charge.
# Entries are read of those who paid, once for all leases that take the same side.
SPENT_ON_LEASES = f"""
WITH lease AS MATERIALIZED ([leases]), cut AS MATERIALIZED (
    SELECT r.reservation_id, r.payer_id, r.payers, w.sign, s.after,
        w.sign * CASE WHEN s.after THEN -1 ELSE 1 END AS weight,
        greatest(CASE WHEN s.after THEN w.middle ELSE w.first END, r.first_entry_id) AS first,
        CASE WHEN c.over OR NOT c.charged THEN 0 WHEN s.after THEN w.beyond ELSE w.middle
            END AS beyond,
        w.sign * CASE WHEN w.day = {NO_DAY} THEN 0 WHEN s.after THEN coalesce(n.charged, r.charged)
            WHEN r.first_entry_id >= w.first THEN 0 ELSE coalesce(d.charged, r.charged)
            END AS amount
    FROM lease r CROSS JOIN unnest([cuts]) AS w(sign, day, at, first, middle, beyond)
    LEFT JOIN LATERAL (
        SELECT d.day, d.charged FROM lease_days d WHERE d.org_id = [org]
            AND d.reservation_id = r.reservation_id AND d.day + 0 >= w.day -- not by the day
        ORDER BY d.day LIMIT 1
    ) AS d ON true
    CROSS JOIN LATERAL ( -- perhaps on that day, and only before the instant
        SELECT w.day = {NO_DAY} OR r.first_entry_id >= w.first OR coalesce(d.day = w.day, false),
            coalesce(r.last_at < w.at, false)
    ) AS c(charged, over)
    CROSS JOIN LATERAL (
        SELECT w.day <> {NO_DAY} AND c.charged AND (
            c.over OR w.beyond - greatest(w.middle, r.first_entry_id)
                < w.middle - greatest(w.first, r.first_entry_id))
    ) AS s(after)
    LEFT JOIN LATERAL (
        SELECT d.charged FROM lease_days d WHERE d.org_id = [org]
            AND d.reservation_id = r.reservation_id AND d.day + 0 > w.day AND s.after
        ORDER BY d.day LIMIT 1
    ) AS n ON true
), run AS MATERIALIZED (
    SELECT p.account_id, c.sign, c.after, c.weight, min(c.first) AS first, max(c.beyond) AS beyond
    FROM cut c CROSS JOIN LATERAL lease_payers(c.payer_id, c.payers) AS p(account_id)
    WHERE c.first < c.beyond GROUP BY 1, 2, 3, 4
), charge AS MATERIALIZED ( -- once, and not for each lease
    SELECT w.sign, w.after, e.reservation_id,
        w.weight * CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END AS amount
    FROM run w
    CROSS JOIN LATERAL (
        SELECT e.reservation_id, e.type, e.amount FROM entries e
        WHERE e.org_id = [org] AND e.account_id = w.account_id AND e.entry_id >= w.first
            AND e.entry_id < w.beyond AND e.type IN (6, 7, 9) OFFSET 0
    ) AS e
), moved AS (
    SELECT c.reservation_id, c.amount FROM cut c
    UNION ALL
    SELECT e.reservation_id, e.amount FROM charge e
    JOIN cut c ON c.reservation_id = e.reservation_id AND c.sign = e.sign AND c.after = e.after
        AND c.first < c.beyond
)
SELECT r.reservation_id, r.account, r.job_id, r.gpu_type, r.milli_gpus, r.payer_id, r.payers,
    r.first_entry_id, r.admitted_at, r.used_ms, r.settled, r.adjusted, r.refunded,
    m.amount::bigint AS amount
FROM lease r
JOIN (SELECT reservation_id, sum(amount) AS amount FROM moved GROUP BY 1) AS m
    ON m.reservation_id = r.reservation_id
"""  # noqa: S608  # constant texts only
LISTED = f"{SPENT_ON_LEASES} ORDER BY r.reservation_id DESC"


class LeaseInTime(NamedTuple):
    """A lease that a time may concern, what it has cost in all, and what was spent in the time."""

    reservation_id: int
    account: str
    job_id: str
    gpu_type: str
    milli_gpus: int
    payer_id: int
    payers: Sequence[int]
    first_entry_id: int
    admitted_at: int
    used_ms: int
    settled: int
    adjusted: int
    refunded: int
    amount: int


@dataclass(frozen=True, slots=True)
class LeaseTime:
    """Leases of some accounts, or of all, and a time; numbers of leases stand for instants.

    Leases from ``first`` on were admitted on the day of the beginning or later, those from
    ``beyond`` on after the end.
    """

    org_id: int
    accounts: list[int] | None
    time: TimeByDays
    first: int
    beyond: int


async def lease_time(
    connection: Connection, org_id: int, accounts: list[int] | None, time: TimeByDays
) -> LeaseTime:
    """Find the leases that were the first after the bounds of a time."""
    day_start = time.since - time.since % DAY_US
    asked = (day_start, time.until)
    past = sorted({at for at in asked if 0 < at <= time.clock})
    rows = await connection.fetch(LEASES_AT, org_id, past) if past else []
    found = {at: time.next_lease if at > time.clock else 1 for at in asked}
    found |= {at: row[0] for at, row in zip(past, rows, strict=True)}
    return LeaseTime(org_id, accounts, time, *(found[at] for at in asked))


async def list_leases(
    connection: Connection, which: LeaseTime, *, before: int, limit: int
) -> list[LeaseInTime]:
    """Leases that were admitted or charged in a time, the latest first, before a number."""
    found: list[LeaseInTime] = []
    if which.time.is_empty:
        return found
    while len(found) < limit:
        looked_at = await _look(connection, which, before=before, limit=limit)
        found += (each for each in looked_at if is_concerned(each, which.time))
        if len(looked_at) < limit:
            break
        before = looked_at[-1].reservation_id
    return found[:limit]


def is_concerned(lease: LeaseInTime, time: TimeByDays) -> bool:
    """Whether a lease was admitted in a time, or something was spent on it then."""
    return lease.amount != 0 or time.since <= lease.admitted_at < time.until


async def _look(
    connection: Connection, which: LeaseTime, *, before: int, limit: int
) -> list[LeaseInTime]:
    """Leases that a time may concern, the latest first, with what was spent on each in it."""
    where = Where()
    candidates, places = candidates_of(where, which, before=before, limit=limit)
    leases = LEASES.replace("[candidates]", candidates)
    return await list_spent(connection, which, where, leases, places)


def candidates_of(
    where: Where, which: LeaseTime, *, before: int, limit: int
) -> tuple[str, dict[str, str]]:
    """The query for leases that a time may concern, and its places."""
    accounts, own = which.accounts, "true"
    admitted, carried = ADMITTED, CARRIED
    places = {"limit": where.value(limit), "first": where.value(which.first)}
    if accounts is not None:
        places["accounts"] = where.value(accounts)
        own = f"l.account_id = ANY ({places['accounts']}::bigint[])"
        if len(accounts) <= ACCOUNTS_PROBED_MAX:
            admitted = ADMITTED_BY_ACCOUNT
            places["each"] = where.value(each_of(limit, len(accounts)))
        if len(accounts) <= DAY_ACCOUNTS_MAX:
            carried = CARRIED_BY_ACCOUNT
    places |= {
        "own": own,
        "beyond": where.value(min(before, which.beyond)),
        "carried": where.value(min(before, which.first)),
        "from_day": where.value(which.time.since // DAY_US),
        "to_day": where.value((which.time.until - 1) // DAY_US),
    }
    text = CANDIDATES.replace("[admitted_leases]", admitted).replace("[carried_leases]", carried)
    return text, places


async def list_spent(
    connection: Connection, which: LeaseTime, where: Where, leases: str, places: dict[str, str]
) -> list[LeaseInTime]:
    """Leases that a query finds, the latest first, with what was spent on each in the time."""
    query = query_of(LISTED, which, where, leases, places)
    return [LeaseInTime(*row) for row in await connection.fetch(query, *where.values)]


def query_of(text: str, which: LeaseTime, where: Where, leases: str, places: dict[str, str]) -> str:
    """A query over what was spent on leases, with all its places filled."""
    kinds = ("integer", "integer", "bigint", "bigint", "bigint", "bigint")
    cuts = ", ".join(
        f"{where.value(column)}::{kind}[]"
        for column, kind in zip(which.time.cut_columns, kinds, strict=True)
    )
    query = where.into(text.replace("[leases]", leases), cuts=cuts, org=where.value(which.org_id))
    for name, place in places.items():
        query = query.replace(f"[{name}]", place)
    return query
