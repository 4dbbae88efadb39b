"""The schema can spread over several databases by org: rules that its catalog must keep.

Each rule is a question to the catalog that names what breaks it, with a change that breaks it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import gpucredits
from support.engines.postgres import sql
from support.waiting import HANGS_S

# Tables whose rows belong to no org: the directory, what every shard can hold a copy of, pools.
OF_NO_ORG = (
    "bus_ends",
    "bus_messages",
    "bus_progress",
    "clock",
    "dead_letters",
    "entry_types",
    "event_stream",
    "list_prices",
    "maintenances",
    "outages",
    "pool_directory",
    "pool_dispatch",
    "pool_snapshots",
    "pool_usage",
    "pool_weights",
    "pools",
    "reconcile_progress",
    "schema_functions",
    "schema_migrations",
    "server_life",
    "signing_keys",
    "system_keys",
    "system_state",
)
# Numbers that only one database gives out; what is numbered by its org is not among them.
COUNTED_HERE = (
    "audit_log.audit_id",
    "dead_letters.letter_id",
    "decisions.decision_id",
    "maintenances.maintenance_id",
    "org_directory.org_id",
    "outages.outage_id",
    "outbox.event_id",
    "pool_directory.pool_id",
    "pool_snapshots.snapshot_id",
    "queue.queue_id",
    "system_keys.key_id",
)
TABLES = "(SELECT * FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)"
# The columns of each primary key and unique index, in order.
KEYS = f"""(
    SELECT t.relname, i.indisprimary, i.indexrelid::regclass::text AS name, array_agg(
        a.attname::text ORDER BY array_position(i.indkey::int2[], a.attnum)) AS columns
    FROM pg_index i JOIN {TABLES} AS t ON t.oid = i.indrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (i.indkey)
    WHERE i.indisunique GROUP BY 1, 2, 3
)"""
RULES = {
    "every table either has rows of orgs, or is known to have none": (
        f"""SELECT t.relname FROM {TABLES} AS t WHERE NOT t.relname = ANY ($1) AND NOT EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'org_id')""",
        "CREATE TABLE stray (n bigint CONSTRAINT stray_pkey PRIMARY KEY)",
    ),
    "the primary key of a table with rows of orgs begins with the org": (
        f"""SELECT t.relname FROM {TABLES} AS t WHERE NOT t.relname = ANY ($1) AND NOT EXISTS (
            SELECT FROM {KEYS} AS k
            WHERE k.relname = t.relname AND k.indisprimary AND k.columns[1] = 'org_id')""",
        """CREATE TABLE stray (org_id bigint, n bigint,
            CONSTRAINT stray_pkey PRIMARY KEY (n, org_id))""",
    ),
    "what is unique among rows of orgs is unique within an org; only the directory knows more": (
        f"""SELECT name FROM {KEYS} AS k WHERE NOT relname = ANY ($1)
            AND columns[1] <> 'org_id' AND name <> 'org_directory_path'""",
        "CREATE UNIQUE INDEX stray ON orgs (path)",
    ),
    "numbers of orgs and pools are bigint": (
        f"""SELECT t.relname, a.attname FROM {TABLES} AS t
            JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped
            WHERE a.attname ~ '(^|_)(org|pool)_id$' AND a.atttypid <> 'bigint'::regtype
                AND $1::text[] IS NOT NULL""",
        "ALTER TABLE queue ADD COLUMN other_pool_id integer",
    ),
    "foreign keys stay within an org or among rows of none": (
        f"""SELECT c.conname FROM pg_constraint c JOIN {TABLES} AS t ON t.oid = c.conrelid
            WHERE c.contype = 'f' AND NOT t.relname = ANY ($1)""",
        "ALTER TABLE queue ADD CONSTRAINT stray FOREIGN KEY (pool_id) REFERENCES pools",
    ),
    "every constraint has a name that somebody chose": (
        f"""SELECT c.conname FROM pg_constraint c JOIN {TABLES} AS t ON t.oid = c.conrelid
            WHERE c.contype <> 'n' AND c.conname ~ '_(check|key|fkey|not_null|excl)[0-9]*$'
                AND $1::text[] IS NOT NULL""",
        "ALTER TABLE queue ADD CHECK (milli_gpus > 0)",
    ),
    "functions take their search_path with them, unless they read no tables": (
        f"""SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
            AND NOT coalesce('search_path=public, pg_temp' = ANY (p.proconfig), false)
            AND (p.provolatile <> 'i' AND p.prolang <> 14 -- 14: plain SQL, where tables are named
                OR EXISTS (SELECT FROM {TABLES} AS t
                WHERE p.prosrc ~ ('(FROM|JOIN|INTO|UPDATE) ' || t.relname || '\\M')))
            AND $1::text[] IS NOT NULL""",
        """CREATE FUNCTION stray() RETURNS bigint LANGUAGE sql IMMUTABLE AS
            'SELECT count(*) FROM orgs'""",
    ),
    "no function takes or gives the row of a table": (
        f"""SELECT p.proname FROM pg_proc p
            JOIN pg_type y ON y.oid = p.prorettype OR y.oid = ANY (p.proargtypes::oid[])
            JOIN {TABLES} AS t ON t.oid = y.typrelid
            WHERE p.pronamespace = 'public'::regnamespace AND $1::text[] IS NOT NULL""",
        "CREATE FUNCTION stray(o orgs) RETURNS bigint LANGUAGE sql AS 'SELECT o.org_id'",
    ),
    "an org numbers its own rows": (
        f"""SELECT t.relname || '.' || a.attname FROM {TABLES} AS t
            JOIN pg_attribute a ON a.attrelid = t.oid AND a.attidentity <> ''
            WHERE NOT t.relname || '.' || a.attname = ANY ($2) AND $1::text[] IS NOT NULL""",
        "ALTER TABLE grants ALTER COLUMN grant_id ADD GENERATED ALWAYS AS IDENTITY",
    ),
}


def offending(dsn: str, rule: str, change: str = "") -> list[Any]:
    """What breaks a rule, after a change that does not last."""

    async def run() -> list[Any]:
        connection = await asyncpg.connect(dsn, timeout=HANGS_S)
        try:
            async with connection.transaction():
                if change:
                    await connection.execute(change)
                question = RULES[rule][0]
                values = (OF_NO_ORG, COUNTED_HERE) if "$2" in question else (OF_NO_ORG,)
                return list(await connection.fetch(question, *values))
        finally:
            await connection.close()

    return asyncio.run(run())


@pytest.mark.parametrize("rule", RULES)
def test_the_schema_keeps_the_rule(database: str, rule: str) -> None:
    """Proves that nothing in the catalog breaks the rule, and that something could."""
    assert offending(database, rule) == []
    assert offending(database, rule, RULES[rule][1]) != []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO orgs (org_id, path) VALUES (0, 'system:')",
        "INSERT INTO org_directory (org_id, path) VALUES (0, 'system:')",
        "INSERT INTO api_keys VALUES (0, 1, '', 'evil', 'admin', 'acme', 0)",
        "INSERT INTO api_keys VALUES (1, 1, '', 'evil', 'admin', '', 0)",
        "INSERT INTO discounts VALUES (1, 1, 'h100', 'default', 1, 0, '', 0)",
        "INSERT INTO org_numbers (org_id) VALUES (0)",
        "INSERT INTO entries VALUES (1, 18, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0)",
        "INSERT INTO transit VALUES (1, 1, true, 1, 1, 1, 5, 1, 0, 0)",
    ],
)
def test_the_database_refuses_what_the_layout_rules_out(database: str, statement: str) -> None:
    """Proves that the system is no org, that no org has its powers, and what is reserved."""
    with pytest.raises(asyncpg.CheckViolationError):
        sql(database, statement)


def test_what_is_reserved_for_transfers_between_orgs_is_there(database: str) -> None:
    """Control of the refusals above: the same rows within the bounds are taken."""
    sql(database, "INSERT INTO entries VALUES (1, 17, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0)")
    sql(database, "INSERT INTO transit VALUES (1, 1, true, 2, 1, 1, 5, 1, 0, 0)")


def test_no_statement_names_rows_by_their_place_on_disk() -> None:
    """Proves that rows are named by their keys, which are the same in every database."""
    store = Path(gpucredits.__file__).parent / "store"
    files = [path for kind in ("*.py", "*.sql") for path in store.rglob(kind)]
    assert len(files) > 100
    assert [path.name for path in files if "ctid" in path.read_text(encoding="utf-8")] == []
