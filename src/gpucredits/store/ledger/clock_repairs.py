"""Orgs whose clock stands ahead of the database's: finding them, and what has to move back.

Owns: the rows of clock_repairs, and reading and writing of an org whatever is stamped ahead, with
the columns that nothing else ever changes.
Must not: decide (core/rules/clock_repairs does). Whoever reads here has locked the org.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpucredits.core.account import Account, Model, Status
from gpucredits.core.book import Book, Org
from gpucredits.core.clock_repair import ClockRepair, Left, LeftAsItIs, Traces
from gpucredits.core.grant import Grant, GrantState, Source
from gpucredits.core.limits import TokenBucket
from gpucredits.core.quota import Counter, Dimension, Quota, Tally
from gpucredits.core.reservation import Reservation
from gpucredits.store.book.codecs import calendar_of, flat_text, triples
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.errors import driver_errors

LEFT_MAX = 1_000  # of each kind; more of them are not told one by one
AHEAD = """
WITH present AS MATERIALIZED (SELECT ledger_now() AS at)
SELECT o.path, o.clock, present.at FROM orgs o JOIN present ON o.clock > present.at + $1
WHERE o.path > $2 ORDER BY o.path LIMIT $3
"""
COUNT_AHEAD = "SELECT count(*) FROM orgs WHERE clock > (SELECT ledger_now()) + $1"
ORG = "SELECT path, next_id, next_entry_id, clock, version FROM orgs WHERE org_id = $1"
LEASE_US = "(window_ms * (1 + escrow_windows) + extended_ms + reprieve_ms) * 1000"
LEASES = f"""
SELECT reservation_id, account, account_id, payer_id, job_id, gpu_type, milli_gpus, region, node,
    price, price_id, window_ms, admitted_at, expires_at, escrow_windows, stopping_at, clears_at,
    kept, greatest(beat_at, expires_at - {LEASE_US}) AS beat_at
FROM reservations WHERE org_id = $1 AND state = 0
    AND (admitted_at > $2 OR beat_at > $2 OR expires_at - {LEASE_US} > $2 OR kept <> '{{}}')
"""  # noqa: S608  # constant texts only
GRANTS = """
SELECT grant_id, account_id, amount, remaining, starts_at, expires_at, priority, source, state,
    origin_id, created_at, budget_id, claims
FROM grants WHERE org_id = $1 AND (state = 0 OR created_at > $2 OR (state <> 2 AND starts_at > $2)
    OR (state = 3 AND expires_at > $2))
"""
ACCOUNTS = """
SELECT account_id, path, model, credit_limit, status, remaining, reserved, spent, debt, overrun,
    version, due_at FROM accounts WHERE org_id = $1 AND account_id = ANY($2::bigint[])
"""
EXPIRED = """
SELECT grant_id, sum(CASE type WHEN 8 THEN amount ELSE -amount END)::bigint FROM entries
WHERE org_id = $1 AND grant_id = ANY($2::bigint[]) AND type IN (8, 14) GROUP BY 1
"""
ROLLED = """
SELECT grant_id FROM budget_periods
WHERE org_id = $1 AND grant_id = ANY($2::bigint[]) AND rolled > 0
"""
REVERSED = """
WITH RECURSIVE moved AS (
    SELECT grant_id FROM topups WHERE org_id = $1 AND status = 3
    UNION
    SELECT g.grant_id FROM moved m
    JOIN grants g ON g.org_id = $1 AND g.origin_id = m.grant_id AND g.origin_id <> 0
)
SELECT grant_id FROM moved WHERE grant_id = ANY($2::bigint[])
"""
METERED = """
SELECT DISTINCT account_id FROM (
    SELECT account_id FROM windows WHERE org_id = $1 AND starts_at > $2
    UNION ALL SELECT account_id FROM meters WHERE org_id = $1 AND level_at > $2
) AS found
"""
WINDOWS = """
SELECT w.account_id, w.quota_id, w.used, w.held, w.base, w.starts_at, w.ends_at, q.calendar,
    q.zone, q.rolling_hours
FROM windows w JOIN quotas q ON q.org_id = w.org_id AND q.quota_id = w.quota_id
WHERE w.org_id = $1 AND w.account_id = ANY($2::bigint[])
"""
TALLIES = """
SELECT quota_id, starts_at, ends_at, used FROM tallies
WHERE org_id = $1 AND quota_id = ANY($2::bigint[])
"""
BUCKETS = """
SELECT b.bucket_id, b.account_id, b.capacity, b.refill_per_hour, m.level, m.level_at, m.fraction
FROM token_buckets b JOIN meters m ON m.org_id = b.org_id AND m.account_id = b.account_id
WHERE b.org_id = $1 AND b.account_id = ANY($2::bigint[]) AND b.ended_at = 0
"""
# Releases of leases that lapsed are written down with the time of the lapse and no report.
LEFT: dict[Left, str] = {
    Left.LEASE_LAPSED: """
SELECT r.reservation_id, r.account, r.ended_at FROM entries e
JOIN reservations r ON r.org_id = e.org_id AND r.reservation_id = e.reservation_id
WHERE e.org_id = $1 AND e.entry_id >= (SELECT entry_at($1, $2::bigint + 1)) AND e.type = 5
    AND e.seq = 0 AND r.state = 3 AND e.recorded_at > $2""",
    Left.LEASE_OVERCHARGED: """
SELECT reservation_id, account, used_ms - ($2::bigint - admitted_at) / 1000 FROM reservations
WHERE org_id = $1 AND admitted_at <= $2 AND used_ms > ($2 - admitted_at) / 1000 + 2000""",
    Left.STATEMENT_CLOSED: """
SELECT statement_id, account, ends_at FROM statements WHERE org_id = $1 AND ends_at > $2""",
    Left.PRICE_LATER: """
SELECT price_id, account, effective_from FROM prices
WHERE org_id = $1 AND created_at > $2 AND effective_from > $2""",
    Left.BOOST_LATER: """
SELECT b.boost_id, a.path, b.starts_at FROM boosts b
JOIN accounts a ON a.org_id = b.org_id AND a.account_id = b.account_id
WHERE b.org_id = $1 AND b.created_at > $2 AND b.starts_at > $2 AND b.ends_at > b.starts_at""",
}
SAVE_LEASES = """
UPDATE reservations r SET admitted_at = x.admitted_at, expires_at = x.expires_at,
    beat_at = x.beat_at, stopping_at = x.stopping_at, clears_at = x.clears_at,
    kept = string_to_array(x.kept, ',')::bigint[]
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[]) AS x(id, admitted_at, expires_at, beat_at, stopping_at, clears_at, kept)
WHERE r.org_id = $1 AND r.reservation_id = x.id
"""
SAVE_GRANTS = """
UPDATE grants g SET state = x.state, remaining = x.remaining, claims = x.claims,
    starts_at = x.starts_at, created_at = x.created_at, is_open = x.remaining > 0 AND x.state <> 3
FROM unnest($2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS x(id, state, remaining, claims, starts_at, created_at)
WHERE g.org_id = $1 AND g.grant_id = x.id
"""
SAVE_ACCOUNTS = """
UPDATE accounts a SET remaining = x.remaining, debt = x.debt, overrun = x.overrun,
    version = x.version, due_at = x.due_at
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS x(id, remaining, debt, overrun, version, due_at)
WHERE a.org_id = $1 AND a.account_id = x.id
"""
SAVE_WINDOWS = """
UPDATE meters m SET windows = string_to_array(x.windows, ',')::bigint[]
FROM unnest($2::bigint[], $3::text[]) AS x(account_id, windows)
WHERE m.org_id = $1 AND m.account_id = x.account_id
"""
# What follows from stamps alone; a mark of spending is made anew when its hour ends.
SAVE_STAMPS = (
    "UPDATE meters SET level_at = $2 WHERE org_id = $1 AND level_at > $2",
    "UPDATE token_buckets SET level_at = $2 WHERE org_id = $1 AND level_at > $2",
    """UPDATE snapshots SET recorded_at = least(recorded_at, $2), latest_effective_at =
        least(latest_effective_at, $2), earliest_effective_at = least(earliest_effective_at, $2)
    WHERE org_id = $1 AND (recorded_at > $2 OR latest_effective_at > $2)""",
    "DELETE FROM spend_marks WHERE org_id = $1 AND hour > $2::bigint / 3600000000",
)
# Pools belong to no org: what one repair brings back is right for the others.
SAVE_POOLS = """
UPDATE pool_dispatch
SET used_until = least(used_until, $1::bigint), held_until = least(held_until, $1::bigint)
WHERE used_until > $1 OR held_until > $1::bigint + 60000000
"""
SAVE_ENTRIES = """
INSERT INTO entries (org_id, recorded_at, entry_id, effective_at, type, account_id, amount,
    reserve, grant_id, other_id, other_grant_id, reservation_id, seq)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""
SAVE_ORG = """
WITH noted AS (
    INSERT INTO clock_repairs (org_id, repaired_at, clock, first_entry_id, next_entry_id)
    SELECT $1, $2, $3, coalesce(max(next_entry_id), 1), $4 FROM clock_repairs WHERE org_id = $1
)
UPDATE orgs SET clock = $2, next_entry_id = $5, version = new_version() WHERE org_id = $1
"""
# Entries of the wrong clock count as of the repair: its day is summed up anew.
DAY = "$2::bigint / 86400000000"
CHARGES = f"""
SELECT e.account_id AS payer_id, e.reservation_id, e.effective_at / 3600000000 AS hour,
    sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END) AS amount
FROM timed_entries e
WHERE e.org_id = $1 AND e.type IN (6, 7, 9)
    AND e.entry_id >= (SELECT entry_at($1, {DAY} * 86400000000)) GROUP BY 1, 2, 3
"""  # noqa: S608  # constant texts only
SAVE_DAYS = (
    f"DELETE FROM spend_hours WHERE org_id = $1 AND hour >= {DAY} * 24",  # noqa: S608  # constant texts only
    f"""INSERT INTO spend_hours (org_id, payer_id, account_id, gpu_type, hour, before)
    SELECT $1, c.payer_id, r.account_id, r.gpu_type, c.hour, coalesce(sum(sum(c.amount)) OVER (
        PARTITION BY c.payer_id, r.account_id, r.gpu_type ORDER BY c.hour
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
    FROM ({CHARGES}) AS c
    JOIN reservations r ON r.org_id = $1 AND r.reservation_id = c.reservation_id
    GROUP BY c.payer_id, r.account_id, r.gpu_type, c.hour""",  # noqa: S608  # constant texts only
    f"DELETE FROM spend_days WHERE org_id = $1 AND day >= {DAY}",  # noqa: S608  # constant texts only
    f"DELETE FROM lease_days WHERE org_id = $1 AND day >= {DAY}",  # noqa: S608  # constant texts only
    f"""INSERT INTO spend_days (org_id, day, payer_id, account_id, gpu_type, amount)
    SELECT $1, {DAY}, c.payer_id, r.account_id, r.gpu_type, sum(c.amount) FROM ({CHARGES}) AS c
    JOIN reservations r ON r.org_id = $1 AND r.reservation_id = c.reservation_id
    GROUP BY c.payer_id, r.account_id, r.gpu_type""",  # noqa: S608  # constant texts only
    f"""INSERT INTO lease_days (org_id, reservation_id, day, account_id, charged)
    SELECT $1, r.reservation_id, {DAY}, r.account_id,
        r.settled + r.adjusted - r.refunded - sum(c.amount) FROM ({CHARGES}) AS c
    JOIN reservations r ON r.org_id = $1 AND r.reservation_id = c.reservation_id
    WHERE r.admitted_at / 86400000000 <> {DAY} GROUP BY r.org_id, r.reservation_id""",  # noqa: S608  # constant texts only
)


class OrgAhead(NamedTuple):
    """An org whose clock stands ahead, and the database's time."""

    path: str
    clock: int
    now: int


async def orgs_ahead(
    connection: Connection | Pool, *, tolerance_us: int, after: str, limit: int
) -> list[OrgAhead]:
    """Orgs whose clock is ahead of the database's by more than a tolerance, by path."""
    with driver_errors():
        rows = await connection.fetch(AHEAD, tolerance_us, after, limit)
    return [OrgAhead(*row) for row in rows]


async def count_ahead(connection: Connection | Pool, *, tolerance_us: int) -> int:
    """How many orgs' clocks are ahead of the database's."""
    with driver_errors():
        count: int = await connection.fetchval(COUNT_AHEAD, tolerance_us)
    return count


async def load(db: Connection, org_id: int, now: int) -> tuple[Book, Traces]:
    """Whatever of a locked org is stamped later than ``now``, with the accounts it belongs to."""
    row = await db.fetchrow(ORG, org_id)
    book = Book(Org(org_id, *row))
    leases = [lease_of(each) for each in await db.fetch(LEASES, org_id, now)]
    grants = [grant_of(each) for each in await db.fetch(GRANTS, org_id, now)]
    owners = {each.payer_id for each in leases} | {each.account_id for each in grants}
    book.load(account_of(each) for each in await db.fetch(ACCOUNTS, org_id, sorted(owners)))
    book.load(leases)
    book.load(grants)
    await load_limits(db, book, now)
    ids = [grant.grant_id for grant in grants]
    return book, Traces(
        expired={each[0]: each[1] for each in await db.fetch(EXPIRED, org_id, ids)},
        rolled={each[0] for each in await db.fetch(ROLLED, org_id, ids)},
        reversed={each[0] for each in await db.fetch(REVERSED, org_id, ids)},
    )


async def load_limits(db: Connection, book: Book, now: int) -> None:
    """Quota windows and rate limits of accounts that have one ahead of the present."""
    org_id = book.org.org_id
    owners = [row[0] for row in await db.fetch(METERED, org_id, now)]
    windows = await db.fetch(WINDOWS, org_id, owners)
    for row in windows:
        book.load(
            [
                Quota(
                    row["quota_id"],
                    row["account_id"],
                    Dimension.CREDITS_PER_WINDOW,
                    0,
                    calendar=calendar_of(row["calendar"]),
                    zone=row["zone"],
                    rolling_hours=row["rolling_hours"],
                ),
                Counter(row["quota_id"], 0, 0, *row[2:7]),
            ]
        )
    quotas = [row["quota_id"] for row in windows]
    book.load(Tally(*row) for row in await db.fetch(TALLIES, org_id, quotas))
    book.load(TokenBucket(**dict(row)) for row in await db.fetch(BUCKETS, org_id, owners))


async def find_left(db: Connection, org_id: int, now: int) -> list[LeftAsItIs]:
    """Effects of a clock that was ahead of ``now`` that cannot be undone."""
    return [
        LeftAsItIs(kind, *row)
        for kind, query in LEFT.items()
        for row in await db.fetch(
            f"{query} ORDER BY 1 LIMIT {LEFT_MAX}", org_id, now
        )  # constant texts only
    ]


async def save(db: Connection, book: Book, done: ClockRepair) -> None:
    """Write down what changed in the book, and that it was a repair."""
    org, now = book.org, done.now
    changed = book.changed.values()
    leases = [row for row in changed if isinstance(row, Reservation)]
    grants = [row for row in changed if isinstance(row, Grant)]
    accounts = [row for row in changed if isinstance(row, Account)]
    tallies = [row for row in changed if isinstance(row, Tally)]
    times = ("reservation_id", "admitted_at", "expires_at", "beat_at", "stopping_at", "clears_at")
    kept = [flat_text(row.kept) for row in leases]
    await db.execute(SAVE_LEASES, org.org_id, *columns(leases, times), kept)
    terms = ("grant_id", "state", "remaining", "claims", "starts_at", "created_at")
    await db.execute(SAVE_GRANTS, org.org_id, *columns(grants, terms))
    sums = ("account_id", "remaining", "debt", "overrun", "version", "due_at")
    await db.execute(SAVE_ACCOUNTS, org.org_id, *columns(accounts, sums))
    windows = windows_of(book) if done.windows else {}
    await db.execute(SAVE_WINDOWS, org.org_id, list(windows), list(windows.values()))
    await db.executemany(
        "DELETE FROM tallies WHERE org_id = $1 AND quota_id = $2 AND starts_at = $3",
        [(org.org_id, row.quota_id, row.starts_at) for row in tallies],
    )
    for text in SAVE_STAMPS:
        await db.execute(text, org.org_id, now)
    await db.execute(SAVE_POOLS, now)
    await db.executemany(SAVE_ENTRIES, [(org.org_id, now, *entry) for entry in book.entries])
    first_new = org.next_entry_id - len(book.entries)
    await db.execute(SAVE_ORG, org.org_id, now, done.clock, first_new, org.next_entry_id)
    for text in SAVE_DAYS:
        await db.execute(text, org.org_id, now)


def windows_of(book: Book) -> dict[int, str]:
    """The windows of each account as meters keep them."""
    names = ("quota_id", "used", "held", "base", "starts_at", "ends_at")
    return {
        account_id: flat_text(
            [
                tuple(getattr(book.limits.counters[quota.quota_id], name) for name in names)
                for quota in quotas
            ]
        )
        for account_id, quotas in book.limits.quotas.items()
    }


def columns(rows: Sequence[Any], names: Sequence[str]) -> list[list[int]]:
    """Rows as columns of numbers."""
    return [[getattr(row, name) for row in rows] for name in names]


def lease_of(row: Any) -> Reservation:
    """A live lease, as far as a repair reads it: columns have the names of its fields."""
    return Reservation(**{**dict(row), "kept": triples(row["kept"])})


def grant_of(row: Any) -> Grant:
    """A grant, as far as a repair reads it."""
    kinds = {"source": Source(row["source"]), "state": GrantState(row["state"])}
    return Grant(**{**dict(row), **kinds})


def account_of(row: Any) -> Account:
    """An account, as far as a repair reads it."""
    kinds = {"model": Model(row["model"]), "status": Status(row["status"])}
    return Account(**{**dict(row), **kinds})
