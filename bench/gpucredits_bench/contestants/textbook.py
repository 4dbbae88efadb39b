"""The textbook baseline: one transaction for each heartbeat, as a careful team would write it.

Owns: its own tables in its own database, its rows, and one correct heartbeat in two ways: statement
by statement, and as one call of a PL/pgSQL function. The balance row is locked, grants pay in
order, a repeated ``(job, seq)`` changes nothing. It has no limits, as ours has none beside it.
It must not be slowed down on purpose: rows are read in as few round trips as one transaction
allows, and statements are prepared.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources

from asyncpg import Connection, Record
from asyncpg.prepared_stmt import PreparedStatement

from gpucredits.core.money import MILLI_PER_GPU, cost
from gpucredits_bench.workload import (
    GPU_TYPE,
    GRANT,
    PRICE_PER_GPU_HOUR,
    WINDOW_S,
    Job,
    Workload,
    dealt,
    org_path,
)

SCHEMA = resources.files(__package__).joinpath("textbook.sql").read_text()
CALLS = resources.files(__package__).joinpath("textbook_call.sql").read_text()
PERIOD = "2025-08"
WINDOW_MS = WINDOW_S * 1_000
ATTEMPTS_MAX = 20

READ = """
SELECT r.account_id, r.job_id, r.rate_per_hour, r.amount_held, r.amount_settled, r.state,
    b.available, b.version
FROM reservations r JOIN balances b ON b.account_id = r.account_id AND b.period = $2
WHERE r.reservation_id = $1 FOR UPDATE"""
READ_GRANTS = """
SELECT grant_id, remaining FROM grants
WHERE account_id = $1 AND remaining > 0 AND starts_at <= now() AND now() < expires_at
ORDER BY priority, expires_at, grant_id"""
WRITE_ENTRIES = """
INSERT INTO ledger_entries (debit_account_id, credit_account_id, amount, type, job_id,
    reservation_id, idempotency_key)
VALUES ($1 || ':reserved', $1 || ':spent', $2, 'settle', $4, $5, $6 || ':settle'),
    ($1 || ':available', $1 || ':reserved', $3, 'reserve', $4, $5, $6 || ':reserve')
ON CONFLICT (idempotency_key) DO NOTHING RETURNING entry_id"""
WRITE_BALANCE = """
UPDATE balances SET available = available - $3, reserved = reserved + $3 - $4, spent = spent + $4,
    version = version + 1
WHERE account_id = $1 AND period = $2 AND available >= $3 AND version = $5 RETURNING version"""
WRITE_GRANT = "UPDATE grants SET remaining = remaining - $2 WHERE grant_id = $1"
WRITE_RESERVATION = """
UPDATE reservations SET amount_held = $2, amount_settled = $3,
    expires_at = now() + $4 * interval '1 millisecond'
WHERE reservation_id = $1"""
CALL = "SELECT heartbeat($1, $2, $3, $4, $5)"
TOTALS = """
SELECT (SELECT sum(spent) FROM balances)::bigint AS spent,
    (SELECT sum(reserved) FROM balances)::bigint AS reserved,
    (SELECT sum(amount_settled) FROM reservations)::bigint AS settled,
    (SELECT sum(amount_held) FROM reservations)::bigint AS held,
    (SELECT sum(amount - remaining) FROM grants)::bigint AS granted,
    coalesce((SELECT sum(amount) FROM ledger_entries WHERE type = 'settle'), 0)::bigint AS entered
"""


class StaleVersionError(Exception):
    """The balance changed under us: the transaction is rolled back and run again."""


@dataclass(slots=True)
class Statements:
    """The prepared statements of one connection."""

    connection: Connection[Record]
    read: PreparedStatement[Record]
    read_grants: PreparedStatement[Record]
    write_entries: PreparedStatement[Record]
    write_balance: PreparedStatement[Record]
    write_grant: PreparedStatement[Record]
    write_reservation: PreparedStatement[Record]
    call: PreparedStatement[Record]


async def prepare(connection: Connection[Record]) -> Statements:
    """Prepare what a heartbeat says."""
    texts = (
        READ,
        READ_GRANTS,
        WRITE_ENTRIES,
        WRITE_BALANCE,
        WRITE_GRANT,
        WRITE_RESERVATION,
        CALL,
    )
    return Statements(connection, *[await connection.prepare(text) for text in texts])


async def create(connection: Connection[Record], workload: Workload) -> None:
    """Make the tables, and every org and running job of the workload."""
    await connection.execute(SCHEMA)
    await connection.execute(CALLS)
    held = [0] * workload.orgs
    jobs = []
    for job in workload.jobs:
        hold = cost(job.rate, WINDOW_MS)
        held[job.org] += hold
        jobs.append((job.number, org_path(job.org), job.gpus, hold))
    paths = [org_path(org) for org in range(workload.orgs)]
    await connection.execute(
        """WITH opened AS (
            INSERT INTO accounts (account_id, scope_type, scope_ref, status)
            SELECT path, 'org', path, 'active' FROM unnest($1::text[]) AS x(path)
            RETURNING account_id
        ), granted AS (
            INSERT INTO grants SELECT 'grant-' || account_id, account_id, $2, $2, 100, now(),
                now() + interval '30 days' FROM opened
        )
        SELECT 1""",
        paths,
        GRANT,
    )
    await connection.copy_records_to_table(
        "balances",
        records=[
            (path, PERIOD, GRANT - hold, hold, 0, 0) for path, hold in zip(paths, held, strict=True)
        ],
    )
    await copy_reservations(connection, jobs)
    await connection.execute("ANALYZE")


async def copy_reservations(
    connection: Connection[Record], jobs: list[tuple[int, str, int, int]]
) -> None:
    """Write the running jobs: (number, account, GPUs, hold)."""
    await connection.execute(
        """INSERT INTO reservations
        SELECT 'rsv-' || number, account, 'job-' || number, $5, gpus, gpus * $6::bigint, hold, 0,
            'active', now() + $7 * interval '1 second', 'reserve-' || number
        FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[])
            AS x(number, account, gpus, hold)""",
        *[list(column) for column in zip(*jobs, strict=True)],
        GPU_TYPE,
        MILLI_PER_GPU * PRICE_PER_GPU_HOUR,
        WINDOW_S,
    )


Heartbeat = Callable[[Statements, int, int, int], Awaitable[bool]]


async def heartbeat(statements: Statements, number: int, seq: int, used_ms: int) -> bool:
    """Settle the slice and top the hold up again; False when this seq was seen before."""
    for _ in range(ATTEMPTS_MAX):
        try:
            async with statements.connection.transaction():
                return await settle_and_extend(statements, f"rsv-{number}", seq, used_ms)
        except StaleVersionError:
            continue
    raise RuntimeError(f"job {number} lost the race for its balance {ATTEMPTS_MAX} times")


async def call_heartbeat(statements: Statements, number: int, seq: int, used_ms: int) -> bool:
    """The same as one call; False when this seq was seen before."""
    values = (f"rsv-{number}", PERIOD, seq, used_ms, WINDOW_MS)
    return bool(await statements.call.fetchval(*values))


async def settle_and_extend(
    statements: Statements, reservation_id: str, seq: int, used_ms: int
) -> bool:
    """The body of one heartbeat's transaction."""
    row = await statements.read.fetchrow(reservation_id, PERIOD)
    if row is None or row["state"] != "active":
        return False
    account, job, rate = row["account_id"], row["job_id"], row["rate_per_hour"]
    settled = max(cost(rate, used_ms), row["amount_settled"])
    due = settled - row["amount_settled"]
    wanted = cost(rate, used_ms + WINDOW_MS) - settled
    reserve = min(max(wanted - row["amount_held"] + due, 0), row["available"])
    paid = await choose_grants(statements, account, due)
    written = await statements.write_entries.fetch(
        account, due, reserve, job, reservation_id, f"{job}:{seq}"
    )
    if not written:
        return False
    version = await statements.write_balance.fetchval(account, PERIOD, reserve, due, row["version"])
    if version is None:
        raise StaleVersionError
    for grant_id, amount in paid:
        await statements.write_grant.fetchval(grant_id, amount)
    held = row["amount_held"] + reserve - due
    await statements.write_reservation.fetchval(reservation_id, held, settled, WINDOW_MS)
    return True


async def choose_grants(statements: Statements, account: str, due: int) -> list[tuple[str, int]]:
    """Which grants pay how much; the balance row's lock covers them."""
    paid = []
    for lot in await statements.read_grants.fetch(account):
        amount = min(lot["remaining"], due)
        paid.append((lot["grant_id"], amount))
        due -= amount
        if not due:
            return paid
    raise RuntimeError(f"the grants of {account} do not cover a slice")


@dataclass(slots=True)
class Report:
    """What a run of some connections did."""

    beats: int = 0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Heartbeats per second."""
        return self.beats / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Clock:
    """When the jobs began and how many rounds they have reported, across runs."""

    began: float
    seq: int = 0

    def used_ms(self) -> int:
        """How long the jobs have run."""
        return int((time.monotonic() - self.began) * 1_000)


async def run(
    pool: list[Statements],
    jobs: list[Job],
    clock: Clock,
    *,
    warm_up_s: float,
    seconds: float,
    beat: Heartbeat = heartbeat,
) -> Report:
    """Report the jobs round and round on every connection at once, and count after the warm-up."""
    report = Report()
    counting_from = time.monotonic() + warm_up_s
    until = counting_from + seconds
    first_seq = clock.seq

    async def drive(statements: Statements, hand: list[Job]) -> None:
        seq = first_seq
        while True:
            seq += 1
            for job in hand:
                await beat(statements, job.number, seq, clock.used_ms())
                now = time.monotonic()
                if now >= until:
                    clock.seq = max(clock.seq, seq)
                    return
                if now >= counting_from:
                    report.beats += 1

    hands = dealt(jobs, len(pool))
    await asyncio.gather(*[drive(*pair) for pair in zip(pool, hands, strict=True)])
    report.seconds = seconds
    return report


async def totals(connection: Connection[Record]) -> dict[str, int]:
    """Sums that a correct textbook keeps equal, pair by pair."""
    row = await connection.fetchrow(TOTALS)
    return dict(row) if row is not None else {}


def is_balanced(sums: dict[str, int]) -> bool:
    """Whether balances, reservations, grants and entries say the same."""
    spent = {sums[name] for name in ("spent", "settled", "granted", "entered")}
    return len(spent) == 1 and sums["reserved"] == sums["held"]
