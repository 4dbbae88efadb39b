"""One call that writes the rows of a reserve: the least that PostgreSQL needs for them.

Owns: a PL/pgSQL function in a copy of the product's database, made of a reserve that the product
has written: the same tables, columns, indexes, checks and triggers. It decides nothing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import asyncpg
import uvloop
from asyncpg import Connection, Record

from gpucredits_bench.contestants.admission_textbook import RefusedAdmissionError
from gpucredits_bench.traffic.probe import PACE_S, Latency, latency_of

DATABASE = "same_rows"
DATABASE_BEHIND_HTTP = "same_rows_http"
COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    AND attidentity <> 'a'
ORDER BY attnum"""
READ_ORGS = """
SELECT o.org_id, o.next_id, o.next_entry_id, a.account_id
FROM orgs o JOIN accounts a ON a.org_id = o.org_id AND a.path = o.path
WHERE EXISTS (SELECT FROM reservations r WHERE r.org_id = o.org_id) ORDER BY o.org_id"""
CALL = "SELECT write_reserve($1, $2, $3, $4, $5)"


@dataclass(slots=True)
class NextRows:
    """The numbers that the next reserve of an org takes."""

    org_id: int
    lease_id: int
    entry_id: int
    account_id: int


async def create(connection: Connection[Record]) -> None:
    """Make the function of the newest lease and what was written with it."""
    lease = await connection.fetchrow(
        "SELECT org_id, reservation_id FROM reservations"
        " ORDER BY org_id DESC, reservation_id DESC LIMIT 1"
    )
    if lease is None:
        raise RuntimeError("there is no lease to write again")
    org, number = lease["org_id"], lease["reservation_id"]
    own = {"org_id": "org"}
    inserts = [
        await insert_of(connection, table, where, changed | own)
        for table, where, changed in (
            ("reservations", f"reservation_id = {number}", {"reservation_id": "lease"}),
            (
                "entries",
                f"reservation_id = {number}",
                {"entry_id": "entry", "reservation_id": "lease", "account_id": "payer"},
            ),
            ("outbox", f"subject_id = {number}", {"subject_id": "lease"}),
            ("idempotency", "true ORDER BY created_at DESC LIMIT 1", {"key": "new_key"}),
        )
        for where in (f"org_id = {org} AND {where}",)
    ]
    await connection.execute(
        f"""CREATE FUNCTION write_reserve(org bigint, lease bigint, entry bigint, payer bigint,
            new_key text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM FROM orgs o WHERE o.org_id = org FOR NO KEY UPDATE;
            {"".join(inserts)}
            UPDATE accounts a SET reserved = a.reserved + 1, remaining = a.remaining,
                version = a.version + 1 WHERE a.org_id = org AND a.account_id = payer;
            UPDATE orgs o SET next_id = lease + 1, next_entry_id = entry + 1,
                version = (random() * 4611686018427387904)::bigint WHERE o.org_id = org;
        END $$"""  # noqa: S608  # rows of our own
    )


async def insert_of(
    connection: Connection[Record], table: str, where: str, changed: dict[str, str]
) -> str:
    """The text that inserts a stored row again, with some of its columns from parameters."""
    columns = [row["attname"] for row in await connection.fetch(COLUMNS, table)]
    texts = ", ".join(f"quote_nullable({name}::text)" for name in columns)
    row = await connection.fetchrow(f"SELECT {texts} FROM {table} WHERE {where}")  # noqa: S608
    if row is None:
        raise RuntimeError(f"{table} has no row of the lease")
    values = [changed.get(name, text) for name, text in zip(columns, row, strict=True)]
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(values)});\n"  # noqa: S608


class SameRows:
    """The function's caller: one connection over the same Unix socket, org after org.

    It serves a bare server too, which asks for reserves only.
    """

    def __init__(self, connection: Connection[Record], rows: list[NextRows]) -> None:
        self._connection = connection
        self._rows = rows
        self._calls = 0

    @classmethod
    async def connect(cls, url: str) -> SameRows:
        """Connect, and read what the next reserve of each org takes."""
        connection = await asyncpg.connect(url)
        return cls(connection, [NextRows(*row) for row in await connection.fetch(READ_ORGS)])

    async def write(self, key: str) -> None:
        """Write the rows of one reserve."""
        rows = self._rows[self._calls * 7 % len(self._rows)]
        self._calls += 1
        await self._connection.fetchval(
            CALL, rows.org_id, rows.lease_id, rows.entry_id, rows.account_id, key
        )
        rows.lease_id += 1
        rows.entry_id += 1

    async def close(self) -> None:
        """End the connection."""
        await self._connection.close()

    async def reserve(
        self, account: str, job_id: str, gpu_type: str, gpus: int, window_ms: int, key: str
    ) -> tuple[str, int]:
        """Write the rows of a reserve, whatever it asks for."""
        del account, job_id, gpu_type, gpus, window_ms
        await self.write(key)
        return "rsv_same", 0

    async def settle(self, reservation_id: str, used_ms: int, key: str) -> int:
        """Refuse: nothing was decided, so nothing can be settled."""
        del reservation_id, used_ms, key
        raise RefusedAdmissionError


def time_calls(url: str, *, seconds: float, name: str) -> Latency:
    """Write reserves at the pace at which a probe reserves, on the servers' event loop."""
    return uvloop.run(_time_calls(url, seconds, name))


async def _time_calls(url: str, seconds: float, name: str) -> Latency:
    taken: list[float] = []
    rows = await SameRows.connect(url)
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            started = time.perf_counter()
            await rows.write(f"{name}-{len(taken)}")
            taken.append(time.perf_counter() - started)
            await asyncio.sleep(PACE_S)
    finally:
        await rows.close()
    return latency_of(taken)
