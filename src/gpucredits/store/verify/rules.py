"""The ledger's rules as questions to the database: each names the rows that break it.

Owns: one query for each rule, to be run on one consistent snapshot.
Must not: repair anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from gpucredits.core import bounds
from gpucredits.core.entry import PAIRS
from gpucredits.store.book.entry_moves import entry_move
from gpucredits.store.book.tables import NUMBERED
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import snapshot
from gpucredits.store.verify.acts import ACT_CHECKS
from gpucredits.store.verify.check import Check
from gpucredits.store.verify.funding import FUNDING_CHECKS
from gpucredits.store.verify.leases import LEASE_CHECKS
from gpucredits.store.verify.limits import GATE_CHECKS
from gpucredits.store.verify.powers import POWER_CHECKS
from gpucredits.store.verify.sums import SUM_CHECKS
from gpucredits.store.verify.terms import TERM_CHECKS

NUMBERS_OF_ROWS = " UNION ALL ".join(
    f"SELECT org_id, {table.key[1].name} AS id FROM {table.name}"  # noqa: S608  # constant texts only
    for table in NUMBERED
)
CHECKS = (
    Check(
        "entries_balance",
        "every entry moves something between two accounts or buckets that exist",
        """SELECT e.org_id, e.entry_id, e.type, e.amount, e.reserve FROM entries e
        LEFT JOIN accounts a ON a.org_id = e.org_id AND a.account_id = e.account_id
        LEFT JOIN accounts o ON o.org_id = e.org_id AND o.account_id = e.other_id
        WHERE a.account_id IS NULL OR e.amount < 0 OR (e.amount = 0 AND e.reserve = 0)
            OR e.type NOT BETWEEN 1 AND 15
            OR (e.type = 3 AND (o.account_id IS NULL OR (e.other_id = e.account_id
                AND e.grant_id = e.other_grant_id)))
            OR (e.type <> 3 AND e.other_id <> 0)""",
    ),
    Check(
        "trial_balance",
        "over the ledger, debits equal credits",
        """SELECT org_id, sum(amount) FILTER (WHERE debit_account IS NOT NULL) AS debits,
            sum(amount) FILTER (WHERE credit_account IS NOT NULL) AS credits, sum(amount) AS moved
        FROM ledger_entries GROUP BY org_id
        HAVING count(*) FILTER (WHERE debit_account IS NULL OR credit_account IS NULL) > 0""",
    ),
    Check(
        "entry_ids",
        "an org's entry ids have no gap and end where its counter says",
        """SELECT o.org_id, o.next_entry_id, e.least, e.most, e.entries FROM orgs o
        LEFT JOIN (
            SELECT org_id, min(entry_id) AS least, max(entry_id) AS most, count(*) AS entries
            FROM entries GROUP BY org_id
        ) AS e ON e.org_id = o.org_id
        WHERE coalesce(e.entries, 0) <> o.next_entry_id - 1
            OR coalesce(e.least, 1) <> 1 OR coalesce(e.most, 0) <> o.next_entry_id - 1""",
    ),
    Check(
        "entry_times",
        "entries are recorded in the order of their ids, never before they took effect, and at once"
        " unless the clock alone has made them",
        """SELECT org_id, entry_id, type, recorded_at, effective_at, previous FROM (
            SELECT e.org_id, e.entry_id, e.type, e.recorded_at, e.effective_at, o.clock,
                e.other_id <> e.account_id AS is_sent,
                lag(e.recorded_at) OVER (PARTITION BY e.org_id ORDER BY e.entry_id) AS previous
            FROM timed_entries e LEFT JOIN orgs o ON o.org_id = e.org_id
        ) AS s
        WHERE recorded_at < previous OR effective_at > recorded_at
            OR recorded_at > coalesce(clock, 0)
            OR (effective_at < recorded_at
                AND (type IN (2, 4, 6, 7, 9, 10, 13, 14, 15) OR (type = 3 AND is_sent)))""",
    ),
    Check(
        "balances",
        "balances equal the replay of the entries",
        """SELECT a.org_id, a.account_id, a.path,
            a.remaining - a.reserved - a.debt AS available, m.available AS replayed_available,
            a.reserved, m.reserved AS replayed_reserved, a.spent, m.spent AS replayed_spent
        FROM accounts a LEFT JOIN (
            SELECT org_id, account_id, sum(available) AS available, sum(reserved) AS reserved,
                sum(spent) AS spent
            FROM entry_moves GROUP BY org_id, account_id
        ) AS m ON m.org_id = a.org_id AND m.account_id = a.account_id
        WHERE a.remaining - a.reserved - a.debt <> coalesce(m.available, 0)
            OR a.reserved <> coalesce(m.reserved, 0) OR a.spent <> coalesce(m.spent, 0)""",
    ),
    Check(
        "debts",
        "debt and overrun equal the replay of the entries",
        """SELECT a.org_id, a.account_id, a.path, a.debt, e.debt AS replayed_debt, a.overrun,
            e.overrun AS replayed_overrun
        FROM accounts a LEFT JOIN (
            SELECT org_id, account_id,
                sum(CASE WHEN type IN (6, 9, 13) AND grant_id = 0 THEN amount
                    WHEN type = 12 OR (type = 7 AND grant_id = 0 AND other_grant_id = 0)
                    THEN -amount ELSE 0 END) AS debt,
                sum(CASE type WHEN 10 THEN amount WHEN 11 THEN -amount ELSE 0 END) AS overrun
            FROM entries GROUP BY org_id, account_id
        ) AS e ON e.org_id = a.org_id AND e.account_id = a.account_id
        WHERE a.debt <> coalesce(e.debt, 0) OR a.overrun <> coalesce(e.overrun, 0)""",
    ),
    Check(
        "funds",
        "what an account has left is what its active and held-over grants have left",
        """SELECT a.org_id, a.account_id, a.path, a.remaining, g.remaining AS in_grants
        FROM accounts a LEFT JOIN (
            SELECT org_id, account_id, sum(remaining) AS remaining FROM grants
            WHERE state IN (0, 1) GROUP BY org_id, account_id
        ) AS g ON g.org_id = a.org_id AND g.account_id = a.account_id
        WHERE a.remaining <> coalesce(g.remaining, 0)""",
    ),
    Check(
        "grants",
        "grants' remainders equal the replay of their accounts' entries, within amount and window",
        """SELECT coalesce(g.org_id, e.org_id) AS org_id,
            coalesce(g.grant_id, e.grant_id) AS grant_id, g.account_id, g.state, g.amount,
            g.remaining, g.is_open, e.remaining AS replayed,
            e.account_id AS first_account_id, e.last_account_id, e.began_at, e.expired_at
        FROM grants g FULL JOIN (
            SELECT org_id, grant_id, sum(amount) AS remaining, min(account_id) AS account_id,
                max(account_id) AS last_account_id, min(recorded_at) AS began_at,
                min(CASE type WHEN 8 THEN recorded_at END) AS expired_at
            FROM (
                SELECT org_id, grant_id, account_id, recorded_at, type,
                    CASE WHEN type IN (1, 2, 7, 14) THEN amount
                        WHEN type IN (3, 6, 8, 9, 11, 12, 13, 15) THEN -amount ELSE 0 END AS amount
                FROM entries WHERE grant_id > 0
                UNION ALL
                SELECT org_id, other_grant_id, CASE type WHEN 3 THEN other_id ELSE account_id END,
                    recorded_at, type, amount
                FROM entries WHERE other_grant_id > 0
            ) AS moved GROUP BY org_id, grant_id
        ) AS e ON e.org_id = g.org_id AND e.grant_id = g.grant_id
        LEFT JOIN accounts a ON a.org_id = g.org_id AND a.account_id = g.account_id
        LEFT JOIN ( -- how far ahead the org's clock once stood
            SELECT org_id, max(clock) AS clock FROM clock_repairs GROUP BY org_id
        ) AS c ON c.org_id = g.org_id
        WHERE g.grant_id IS NULL OR e.account_id <> g.account_id
            OR e.last_account_id <> g.account_id
            OR (e.began_at < g.starts_at AND g.starts_at > coalesce(c.clock, 0))
            OR e.expired_at < g.expires_at
            OR g.remaining <> CASE g.state WHEN 2 THEN g.amount ELSE coalesce(e.remaining, 0) END
            OR g.remaining NOT BETWEEN 0 AND g.amount OR a.account_id IS NULL
            OR g.is_open <> (g.remaining > 0 AND g.state <> 3)""",
    ),
    Check(
        "floor",
        "no balance is or ever was below its floor",
        """SELECT h.org_id, h.account_id, min(h.entry_id) AS first_entry_id,
            min(h.available) AS lowest, a.credit_limit_max
        FROM (
            SELECT org_id, account_id, entry_id, sum(available) OVER (
                PARTITION BY org_id, account_id ORDER BY entry_id ROWS UNBOUNDED PRECEDING
            ) AS available
            FROM entry_moves
        ) AS h
        JOIN accounts a ON a.org_id = h.org_id AND a.account_id = h.account_id
        WHERE h.available < -a.credit_limit_max
        GROUP BY h.org_id, h.account_id, a.credit_limit_max
        UNION ALL
        SELECT org_id, account_id, NULL, remaining - reserved - debt, credit_limit_max
        FROM accounts
        WHERE remaining - reserved - debt < floor
            OR floor NOT BETWEEN -credit_limit_max AND -model * credit_limit""",
    ),
    Check(
        "holds",
        "what an account has reserved is the sum of its live reservations' holds",
        """SELECT coalesce(a.org_id, r.org_id) AS org_id,
            coalesce(a.account_id, r.payer_id) AS account_id, a.path, a.reserved, r.held
        FROM accounts a FULL JOIN (
            SELECT org_id, payer_id, sum(held) AS held FROM reservations
            GROUP BY org_id, payer_id
        ) AS r ON r.org_id = a.org_id AND r.payer_id = a.account_id
        WHERE coalesce(a.reserved, -1) <> coalesce(r.held, 0)
        UNION ALL
        SELECT org_id, payer_id, account, reservation_id, held FROM reservations
        WHERE held <> 0 AND state <> 0""",
    ),
    Check(
        "settlements",
        "what a reservation has settled is the cost of the time it used at its pinned price",
        """SELECT org_id, reservation_id, settled, milli_gpus, price, used_ms,
            div(milli_gpus::numeric * price * used_ms, 3600000000) AS cost
        FROM reservations
        WHERE settled <> div(milli_gpus::numeric * price * used_ms, 3600000000)""",
    ),
    Check(
        "reservations",
        "reservations equal the replay of their payers' entries, and who paid adds up",
        f"""SELECT coalesce(r.org_id, e.org_id) AS org_id,
            coalesce(r.reservation_id, e.reservation_id) AS reservation_id, r.payer_id,
            e.account_id, r.state, r.held, e.held AS replayed_held, r.settled,
            e.settled AS replayed_settled, r.adjusted, r.refunded, p.paid
        FROM reservations r
        FULL JOIN (
            SELECT org_id, reservation_id, max(seq) AS seq, min(entry_id) AS first_entry_id,
                min(account_id) AS account_id, max(account_id) AS last_account_id,
                min(effective_at) AS began_at,
                max(CASE WHEN type IN (4, 5, 6) THEN effective_at END) AS last_at,
                max(CASE WHEN type IN (4, 5) THEN effective_at END) AS last_held_at,
                min(CASE WHEN type IN (6, 9) THEN grant_id END) AS grant_id,
                max(CASE WHEN type IN (6, 9) THEN grant_id END) AS last_grant_id,
                sum({entry_move("reserved")}) AS held,
                sum(CASE type WHEN 6 THEN amount ELSE 0 END) AS settled,
                sum(CASE type WHEN 9 THEN amount ELSE 0 END) AS adjusted,
                sum(CASE type WHEN 7 THEN amount ELSE 0 END) AS refunded
            FROM timed_entries WHERE reservation_id <> 0 GROUP BY org_id, reservation_id
        ) AS e ON e.org_id = r.org_id AND e.reservation_id = r.reservation_id
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(amount), 0) AS paid
            FROM unnest(r.paid) WITH ORDINALITY AS part(amount, place) WHERE place % 2 = 0
        ) AS p
        WHERE r.reservation_id IS NULL -- of those that changed payers see payers
            OR (r.payers = '{{}}'
                AND (e.account_id <> r.payer_id OR e.last_account_id <> r.payer_id))
            OR e.first_entry_id < r.first_entry_id
            OR e.began_at < r.admitted_at
            OR (r.state = 0 AND e.last_at >= r.expires_at)
            OR (r.state <> 0 AND e.last_held_at > r.ended_at)
            OR (r.state <> 0 AND e.last_at > r.ended_at
                + CASE r.state WHEN 3 THEN {bounds.LATE_USE_US_MAX} ELSE 0 END)
            OR (cardinality(r.paid) <= 2 AND r.refunded = 0 -- one has paid all: see payments
                AND (e.grant_id IS DISTINCT FROM r.paid[1]
                    OR e.last_grant_id IS DISTINCT FROM r.paid[1]))
            OR r.held <> coalesce(e.held, 0) OR r.settled <> coalesce(e.settled, 0)
            OR r.adjusted <> coalesce(e.adjusted, 0) OR r.refunded <> coalesce(e.refunded, 0)
            OR p.paid <> r.settled + r.adjusted - r.refunded OR coalesce(e.seq, 0) > r.seq""",  # noqa: S608  # constant texts only
    ),
    Check(
        "one_effect",
        "a report of a node has at most one effect",
        """SELECT org_id, reservation_id, seq, count(*) AS entries FROM entries
        WHERE type = 6 OR seq > 0 GROUP BY org_id, reservation_id, seq
        HAVING count(DISTINCT recorded_at) > 1 OR count(*) FILTER (WHERE type = 6)
            > count(DISTINCT grant_id) FILTER (WHERE type = 6)""",
    ),
    Check(
        "ids",
        "no id of an org is at or beyond its counter",
        f"""SELECT o.org_id, o.next_id, i.most FROM orgs o JOIN (
            SELECT org_id, max(id) AS most FROM ({NUMBERS_OF_ROWS}) AS numbers GROUP BY org_id
        ) AS i ON i.org_id = o.org_id
        WHERE i.most >= o.next_id
        UNION ALL
        SELECT i.org_id, given.number, i.most FROM (
            SELECT org_id, 'keys' AS what, max(key_id) AS most FROM api_keys GROUP BY 1
            UNION ALL SELECT org_id, 'requests', max(request_id) FROM requests GROUP BY 1
            UNION ALL SELECT org_id, 'statements', max(statement_id) FROM statements GROUP BY 1
            UNION ALL SELECT org_id, 'anomalies', max(anomaly_id) FROM anomalies GROUP BY 1
        ) AS i
        LEFT JOIN org_numbers n ON n.org_id = i.org_id
        CROSS JOIN LATERAL (SELECT coalesce(CASE i.what WHEN 'keys' THEN n.keys
            WHEN 'requests' THEN n.requests WHEN 'statements' THEN n.statements
            ELSE n.anomalies END, 0) AS number) AS given
        WHERE i.most > given.number""",  # noqa: S608  # constant texts only
    ),
    Check(
        "directory",
        "the directory names every org and every pool as it is, and no path is that of two orgs",
        """SELECT coalesce(d.org_id, o.org_id) AS org_id, d.path AS listed, o.path AS found,
            NULL::bigint AS pool_id
        FROM org_directory d FULL JOIN orgs o ON o.org_id = d.org_id
        WHERE (d.path = o.path AND d.state = 1) IS NOT TRUE AND d.state IS DISTINCT FROM 0
        UNION ALL
        SELECT 0, d.gpu_type || '/' || d.region, p.gpu_type || '/' || p.region,
            coalesce(d.pool_id, p.pool_id)
        FROM pool_directory d FULL JOIN pools p ON p.pool_id = d.pool_id
        WHERE (d.gpu_type = p.gpu_type AND d.region = p.region) IS NOT TRUE""",
    ),
    Check(
        "chain",
        "blocks follow one another, and their hashes are those of their entries",
        """SELECT org_id, block_id, first_entry_id, last_entry_id FROM (
            SELECT b.*, o.next_entry_id, lag(b.hash) OVER w AS hash_before,
                coalesce(lag(b.last_entry_id) OVER w, 0) AS entry_before,
                coalesce(lag(b.block_id) OVER w, 0) AS block_before
            FROM blocks b LEFT JOIN orgs o ON o.org_id = b.org_id
            WINDOW w AS (PARTITION BY b.org_id ORDER BY b.block_id)
        ) AS c
        WHERE previous_hash <> coalesce(hash_before, ''::bytea)
            OR first_entry_id <> entry_before + 1 OR block_id <> block_before + 1
            OR last_entry_id >= coalesce(next_entry_id, 0)
            OR hash <> block_hash(org_id, first_entry_id, last_entry_id, previous_hash)""",
    ),
    Check(
        "audit_chain",
        "acts of the audit log follow one another, and their hashes are those of what they say",
        """SELECT org_id, audit_id, place, action FROM (
            SELECT a.*, lag(a.hash) OVER w AS hash_before, row_number() OVER w AS position
            FROM audit_log a WINDOW w AS (PARTITION BY a.org_id ORDER BY a.place)
        ) AS c
        WHERE place <> position OR hash <> audit_hash(org_id, place, recorded_at, actor, action,
            resource, old, new, request_id, coalesce(hash_before, ''::bytea))
        UNION ALL
        SELECT coalesce(h.org_id, a.org_id), a.audit_id, h.place, 'the newest act'
        FROM audit_heads h FULL JOIN (
            SELECT DISTINCT ON (org_id) org_id, audit_id, place, hash FROM audit_log
            ORDER BY org_id, place DESC
        ) AS a ON a.org_id = h.org_id
        WHERE a.place IS DISTINCT FROM h.place OR a.hash IS DISTINCT FROM h.hash""",
    ),
    Check(
        "insert_only",
        "entries, blocks, prices, statements, measured use and the audit log refuse to be changed",
        """SELECT 0 AS org_id, wanted.name AS missing_trigger FROM (
            VALUES ('entries_insert_only', 'entries'), ('blocks_insert_only', 'blocks'),
                ('list_prices_insert_only', 'list_prices'),
                ('discounts_insert_only', 'discounts'), ('statements_insert_only', 'statements'),
                ('audit_log_insert_only', 'audit_log'), ('audit_log_chained', 'audit_log'),
                ('usage_events_insert_only', 'usage_events'),
                ('usage_events_summed', 'usage_events'), ('clock_forward_only', 'clock'),
                ('clock_repairs_insert_only', 'clock_repairs')
        ) AS wanted(name, relation)
        LEFT JOIN pg_trigger t ON t.tgname = wanted.name AND t.tgrelid = wanted.relation::regclass
            AND t.tgenabled IN ('O', 'A')
        WHERE t.oid IS NULL""",
    ),
    Check(
        "constraints",
        "the database itself keeps balances, grants and holds within their bounds",
        """SELECT 0 AS org_id, wanted.name AS missing_constraint FROM (
            VALUES ('accounts_floor', 'accounts'), ('accounts_remaining', 'accounts'),
                ('accounts_reserved', 'accounts'), ('accounts_spent', 'accounts'),
                ('accounts_debt', 'accounts'), ('accounts_overrun', 'accounts'),
                ('accounts_promised', 'accounts'),
                ('grants_remaining', 'grants'), ('reservations_held', 'reservations'),
                ('entries_amount', 'entries'), ('slots_leaving', 'slots'),
                ('slots_count', 'slots'), ('meters_fraction', 'meters')
        ) AS wanted(name, relation)
        LEFT JOIN pg_constraint c ON c.conname = wanted.name
            AND c.conrelid = wanted.relation::regclass AND c.convalidated
        WHERE c.oid IS NULL""",
    ),
    *SUM_CHECKS,
    *LEASE_CHECKS,
    *TERM_CHECKS,
    *FUNDING_CHECKS,
    *GATE_CHECKS,
    *ACT_CHECKS,
    *POWER_CHECKS,
)
ENTRY_TYPES = "SELECT type, name, debit, credit FROM entry_types ORDER BY type"


@asynccontextmanager
async def one_moment(pool: Pool) -> AsyncIterator[Connection]:
    """A connection that sees one moment of the whole database; others go on writing.

    Rows are joined by hashing all the columns they are joined by. Where the planner expects few
    rows, it would compare all rows of an org with one another; often it cannot know better.
    """
    async with snapshot(pool) as connection:
        await connection.execute(
            "SET LOCAL statement_timeout = 0; SET LOCAL enable_nestloop = off;"
            " SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = on"
        )
        yield connection


async def offending_rows(
    connection: Connection, check: Check, *, limit: int
) -> list[dict[str, Any]]:
    """Rows that break a rule, at most so many.

    If all is well, everything is read: no plan may count on finding a row soon.
    """
    query = f"WITH found AS MATERIALIZED ({check.query}) SELECT * FROM found LIMIT {limit:d}"  # noqa: S608  # constant texts only
    rows = await connection.fetch(query, timeout=None)
    return [dict(row) for row in rows]


async def wrong_entry_types(connection: Connection) -> list[dict[str, Any]]:
    """Types of entries that the database shows differently from the rules."""
    stored = {tuple(row) for row in await connection.fetch(ENTRY_TYPES)}
    meant = {(kind.value, kind.name.lower(), *pair) for kind, pair in PAIRS.items()}
    return [{"org_id": 0, "entry_type": repr(row)} for row in sorted(stored ^ meant)]


async def count_entries(connection: Connection) -> int:
    """How many entries there are."""
    entries: int = await connection.fetchval("SELECT count(*) FROM entries", timeout=None)
    return entries
