"""Stored answers of idempotency keys, compared with the rows that they tell of.

Owns: reading the answers in bounded pieces, and the columns of each table that never change.
Must not: know what an answer looks like (the service does).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from gpucredits.store.database.connection import Connection

ANSWERS_MAX = 20_000  # a sample of about this size is checked: every lease leaves answers
PIECE = 5_000
# The key of a batch has no answer of its own.
KEPT = "SELECT org_id, key, outcome FROM idempotency TABLESAMPLE SYSTEM ($1) WHERE outcome <> ''"
# Then rows are looked up one by one: a few thousand out of very many.
LOOK_UP = (
    "SET LOCAL enable_nestloop = on; SET LOCAL enable_hashjoin = off;"
    " SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = off"
)
SEPARATOR = "\x1f"
AS_TOLD = {"payer_id": "coalesce(r.payers[1], r.payer_id)"}  # the first payer, whoever came after


class StoredAnswer(NamedTuple):
    """An answer as it is stored."""

    org_id: int
    key: str
    outcome: bytes


class Thing(NamedTuple):
    """A table that answers tell of: its number, and columns that never change."""

    table: str
    number: str
    columns: tuple[str, ...] = ()


class Told(NamedTuple):
    """A row that an answer tells of, with its lasting columns as text."""

    org_id: int
    number: int
    text: str


ACCOUNT = Thing("accounts", "account_id", ("path", "created_at"))
GRANT = Thing(
    "grants",
    "grant_id",
    (
        *("account_id", "amount", "starts_at", "expires_at", "priority", "source", "origin_id"),
        *("created_at", "budget_id"),
    ),
)
TOPUP = Thing(
    "topups",
    "topup_id",
    ("account_id", "amount", "payment_reference", "expires_at", "priority", "created_at"),
)
LEASE = Thing(
    "reservations",
    "reservation_id",
    (
        *(
            "account",
            "account_id",
            "payer_id",
            "job_id",
            "gpu_type",
            "milli_gpus",
            "region",
            "node",
        ),
        *("price", "price_id", "admitted_at", "escrow_windows", "max_amount"),
        *("exhaustion", "grace_ms", "overdraft"),
    ),
)
ENDED_LEASE = Thing("reservations", "reservation_id", ("state", "settled", "used_ms"))
LAPSED_LEASE = Thing("reservations", "reservation_id", ("state",))  # use may be reported later
LEASE_THERE = Thing("reservations", "reservation_id")
GRANT_THERE = Thing("grants", "grant_id")
QUOTA = Thing("quotas", "quota_id", ("account_id", "dimension"))
BUCKET = Thing("token_buckets", "bucket_id", ("account_id",))
BOOST = Thing("boosts", "boost_id", ("account_id", "target_id"))
BUDGET = Thing("budgets", "budget_id", ("account_id", "name"))


async def kept_answers(connection: Connection) -> AsyncIterator[list[StoredAnswer]]:
    """Every answer, in bounded pieces; above ANSWERS_MAX a random sample."""
    count: int = await connection.fetchval("SELECT count(*) FROM idempotency", timeout=None)
    await connection.execute(LOOK_UP)
    share = min(100.0, 100.0 * ANSWERS_MAX / max(count, 1))
    cursor = await connection.cursor(KEPT, share)
    while rows := await cursor.fetch(PIECE):
        yield [StoredAnswer(*row) for row in rows]


def restamped_by(thing: Thing) -> str:
    """SQL for whether a repair of its org's clock has moved a row's stamps since it was told."""
    times = [f"r.{name}" for name in ("admitted_at", "starts_at", "created_at")]
    stamps = ", ".join(time for time in times if time[2:] in thing.columns)
    if not stamps:
        return "false"
    return (
        "EXISTS (SELECT FROM clock_repairs c WHERE c.org_id = r.org_id"
        f" AND c.repaired_at IN ({stamps}))"
    )


async def otherwise(connection: Connection, thing: Thing, told: Sequence[Told]) -> list[int]:
    """The places of answers whose row is gone or differs."""
    columns = "".join(f", {AS_TOLD.get(column, f'r.{column}')}" for column in thing.columns)
    rows = await connection.fetch(
        "SELECT w.place FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY"  # noqa: S608  # constant texts only
        " AS w(org_id, number, text, place)"
        f" LEFT JOIN {thing.table} r ON r.org_id = w.org_id AND r.{thing.number} = w.number"
        f" WHERE r.org_id IS NULL OR (concat_ws($4, ''{columns}) <> w.text"
        f" AND NOT ({restamped_by(thing)})) ORDER BY w.place",
        *([getattr(each, name) for each in told] for name in Told._fields),
        SEPARATOR,
        timeout=None,
    )
    return [row["place"] - 1 for row in rows]
