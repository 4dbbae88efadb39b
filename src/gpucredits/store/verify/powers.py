"""Keys, pools, request limits, clocks and measured use as questions to the database; see verify.

Owns: one query for each rule, and the functions of the database beside the files that made them.
Power that no act of the audit log gave is found here.
"""

from __future__ import annotations

import re
from typing import Any, Final

from gpucredits.core import ids
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.migrate import read_schema
from gpucredits.store.verify.check import Check
from gpucredits.store.verify.text import id_text, instant_text

FUNCTION: Final = re.compile(r"CREATE OR REPLACE FUNCTION (\w+)\(.*?AS \$\$(.*?)\$\$", re.DOTALL)
NO_POOL: Final = (
    '{"gpu_type": "", "region": "", "milli_gpus": null, "cpus": null, "memory": null,'
    ' "preemption": false, "grace_ms": 0, "min_runtime_ms": 0, "preemptions_max": 0,'
    ' "backfill": false, "backfill_depth": 0, "hold_after_ms": 0, "priority_scope": "user",'
    ' "usage_order": "ignored", "half_life_ms": 0, "window_max_ms": 0, "borrowing": true,'
    ' "updated_at": 0}'
)

POWER_CHECKS = (
    Check(
        "key_acts",
        "keys have the role, scope, node, secret, end and maker that the audit log says",
        f"""SELECT coalesce(k.org_id, l.org_id) AS org_id, k.key_id, k.name, k.role, k.scope,
            k.node, k.expires_at, k.revoked_at, k.by_system, l.resource, l.new, r.new AS revoked
        FROM all_keys k
        FULL JOIN (
            SELECT org_id, resource, new, actor,
                count(*) OVER (PARTITION BY org_id, resource) AS times
            FROM audit_log WHERE action = 'key.create'
        ) AS l ON l.org_id = k.org_id AND l.resource = {id_text(ids.KEY, "k", "key_id")}
        LEFT JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource, new FROM audit_log
            WHERE action = 'key.revoke' ORDER BY org_id, resource, place
        ) AS r ON r.org_id = l.org_id AND r.resource = l.resource
        WHERE (l.times = 1 AND l.new ->> 'role' = k.role AND l.new ->> 'scope' = k.scope
            AND l.new ->> 'name' = k.name AND coalesce(l.new ->> 'node', '') = k.node
            AND k.by_system = (k.org_id = 0 OR l.actor LIKE '{ids.KEY}\\_0\\_%')
            AND l.new ->> 'expires_at' IS NOT DISTINCT FROM {instant_text("k.expires_at")}
            AND l.new ->> 'fingerprint' = encode(sha256(k.hash), 'hex')
            AND r.new ->> 'revoked_at' IS NOT DISTINCT FROM
                CASE WHEN k.revoked_at > 0 THEN {instant_text("k.revoked_at")} END)
            IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "signing_key_acts",
        "keys that sign lease tokens are those that the audit log says were made",
        f"""SELECT 0 AS org_id, k.key_id, k.signs_from, k.revoked_at, l.resource, l.new,
            r.new AS revoked
        FROM signing_keys k
        FULL JOIN (
            SELECT resource, new, count(*) OVER (PARTITION BY resource) AS times
            FROM audit_log WHERE org_id = 0 AND action = 'signing_key.create'
        ) AS l ON l.resource = k.key_id
        LEFT JOIN (
            SELECT DISTINCT ON (resource) resource, new FROM audit_log
            WHERE org_id = 0 AND action = 'signing_key.revoke' ORDER BY resource, place
        ) AS r ON r.resource = l.resource
        WHERE (l.times = 1 AND l.new ->> 'public_key' = encode(k.public_key, 'hex')
            AND l.new ->> 'sealed' = encode(sha256(k.sealed), 'hex')
            AND l.new ->> 'created_at' = {instant_text("k.created_at")}
            AND l.new ->> 'signs_from' = {instant_text("k.signs_from")}
            AND r.new ->> 'revoked_at' IS NOT DISTINCT FROM
                CASE WHEN k.revoked_at > 0 THEN {instant_text("k.revoked_at")} END)
            IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "pool_acts",
        "pools are those that the audit log last says were set",
        f"""SELECT 0 AS org_id, p.pool_id, p.name, p.state::text AS found, l.new::text AS told
        FROM (
            SELECT pool_id, 'pool:' || gpu_type || '/' || region AS name,
                to_jsonb(p) - 'pool_id' AS state
            FROM pools p
        ) AS p
        FULL JOIN (
            SELECT * FROM (
                SELECT DISTINCT ON (resource) resource, action,
                    -- acts of before schema 8 tell whole GPUs
                    CASE WHEN new ? 'gpus' THEN new - 'gpus' || jsonb_build_object('milli_gpus',
                        (new ->> 'gpus')::bigint * 1000) ELSE new END AS new
                FROM audit_log
                WHERE org_id = 0 AND action IN ('pool.set', 'pool.remove')
                ORDER BY resource, place DESC
            ) AS last WHERE action = 'pool.set'
            UNION ALL SELECT 'pool:/', 'pool.set', '{NO_POOL}'::jsonb -- of whoever has no pool
        ) AS l ON l.resource = p.name
        WHERE (l.new = p.state AND (p.pool_id = 0) = (l.resource = 'pool:/')) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "weight_acts",
        "the weights of pools are those that the audit log last says were set",
        """SELECT 0 AS org_id, w.pool_id, w.path, w.state::text AS found, l.state::text AS told
        FROM (
            SELECT w.pool_id, 'pool:' || p.gpu_type || '/' || p.region AS name, w.path,
                to_jsonb(w) - 'pool_id' AS state
            FROM pool_weights w LEFT JOIN pools p ON p.pool_id = w.pool_id
        ) AS w
        FULL JOIN (
            SELECT resource, jsonb_path_query(new, '$[*]') AS state FROM (
                SELECT DISTINCT ON (resource) resource, action, new FROM audit_log
                WHERE org_id = 0 AND action IN ('pool.weights', 'pool.remove')
                ORDER BY resource, place DESC
            ) AS last WHERE action = 'pool.weights'
        ) AS l ON l.resource = w.name AND l.state ->> 'path' = w.path
        WHERE (l.state = w.state) IS NOT TRUE""",
    ),
    Check(
        "request_limit_acts",
        "limits on requests are those that the audit log last says were set",
        f"""SELECT coalesce(r.org_id, l.org_id) AS org_id, r.holder, r.number, r.capacity,
            r.refill_per_hour, l.resource, l.new
        FROM (
            SELECT r.*, CASE r.holder WHEN 1 THEN {id_text(ids.KEY, "r", "number")}
                ELSE o.path END AS name
            FROM request_limits r LEFT JOIN orgs o ON o.org_id = r.org_id
        ) AS r
        FULL JOIN (
            SELECT * FROM (
                SELECT DISTINCT ON (org_id, resource) org_id, resource, action, new FROM audit_log
                WHERE action IN ('request_limit.set', 'request_limit.end')
                ORDER BY org_id, resource, place DESC
            ) AS last WHERE action = 'request_limit.set'
        ) AS l ON l.org_id = r.org_id AND l.resource = r.name
        WHERE (l.new ->> 'capacity' = r.capacity::text
            AND l.new ->> 'refill_per_hour' = r.refill_per_hour::text
            AND (r.holder = 1 OR r.number = 0)) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "org_clocks",
        "no org's clock is ahead of the database's time",
        """WITH present AS MATERIALIZED (SELECT ledger_now() AS at)
        SELECT o.org_id, o.path, o.clock, present.at AS now FROM orgs o
        JOIN present ON o.clock > present.at""",
    ),
    Check(
        "clock_repairs",
        "clocks of orgs went back where the audit log says so, and nowhere else",
        f"""SELECT coalesce(r.org_id, l.org_id) AS org_id, r.repaired_at, r.clock, r.first_entry_id,
            r.next_entry_id, l.old, l.new
        FROM (
            SELECT c.*, o.path, o.clock AS present, o.next_entry_id AS coming,
                coalesce(lag(c.next_entry_id) OVER w, 1) AS follows
            FROM clock_repairs c LEFT JOIN orgs o ON o.org_id = c.org_id
            WINDOW w AS (PARTITION BY c.org_id ORDER BY c.repaired_at)
        ) AS r
        FULL JOIN (
            SELECT org_id, resource, old ->> 'clock' AS old, new ->> 'clock' AS new,
                new ->> 'first_entry_id' AS entry
            FROM audit_log WHERE action = 'clock.repair'
        ) AS l ON l.org_id = r.org_id AND l.new = {instant_text("r.repaired_at")}
        WHERE (l.resource = r.path AND l.old = {instant_text("r.clock")}
            AND l.entry = {id_text(ids.ENTRY, "r", "next_entry_id")}
            AND r.first_entry_id = r.follows AND r.next_entry_id <= r.coming
            AND r.repaired_at <= r.present) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "clock_offset",
        "the database's time was moved as far as the audit log says, and by nothing else",
        """SELECT 0 AS org_id, c.offset_us, l.new FROM clock c
        FULL JOIN (
            SELECT DISTINCT ON (org_id) org_id = 0 AS only_row, new FROM audit_log
            WHERE org_id = 0 AND action = 'clock.advance' ORDER BY org_id, place DESC
        ) AS l ON l.only_row = c.only_row
        WHERE (c.offset_us::text = coalesce(l.new ->> 'offset_us', '0')) IS NOT TRUE""",
    ),
    Check(
        "outages",
        "outages are those that the audit log says were recorded",
        """SELECT 0 AS org_id, o.outage_id, o.since, o.until, o.grace_ms, l.new::text AS told
        FROM outages o
        FULL JOIN (
            SELECT new, count(*) OVER (PARTITION BY new ->> 'until') AS times FROM audit_log
            WHERE org_id = 0 AND action = 'outage.record'
        ) AS l ON l.new ->> 'until' = o.until::text
        WHERE (l.times = 1 AND l.new ->> 'since' = o.since::text
            AND l.new ->> 'grace_ms' = o.grace_ms::text) IS NOT TRUE""",
    ),
    Check(
        "maintenance_acts",
        "maintenance was announced and ended as the audit log says",
        f"""SELECT 0 AS org_id, m.maintenance_id, m.announced_at, m.until, m.ended_at,
            l.new::text AS told
        FROM maintenances m
        FULL JOIN (
            SELECT new, count(*) OVER (PARTITION BY resource) AS times, resource FROM audit_log
            WHERE org_id = 0 AND action = 'maintenance.announce'
        ) AS l ON l.resource = 'maintenance:' || m.maintenance_id
        LEFT JOIN (
            SELECT DISTINCT ON (resource) resource, new FROM audit_log
            WHERE org_id = 0 AND action = 'maintenance.end' ORDER BY resource, place
        ) AS e ON e.resource = 'maintenance:' || m.maintenance_id
        WHERE (l.times = 1 AND l.new ->> 'until' = {instant_text("m.until")}
            AND l.new ->> 'announced_at' = {instant_text("m.announced_at")}
            AND l.new ->> 'reason' = m.reason
            AND e.new ->> 'ended_at' IS NOT DISTINCT FROM
                CASE WHEN m.ended_at > 0 THEN {instant_text("m.ended_at")} END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "usage",
        "reports of measured use are as they came, and of leases that are there",
        """SELECT coalesce(u.org_id, s.org_id) AS org_id, u.reports, s.reports AS counted,
            NULL::bigint AS reservation_id, NULL::bigint AS seq
        FROM (
            SELECT org_id, count(*) AS reports, sum(usage_digest(org_id, job_id, node, seq,
                reservation_id, account_id, is_late, used_ms, recorded_at, payload,
                is_attested)) AS digest
            FROM usage_events GROUP BY org_id
        ) AS u
        FULL JOIN (
            SELECT org_id, sum(reports) AS reports, sum(digest) AS digest FROM usage_sums
            GROUP BY org_id
        ) AS s ON s.org_id = u.org_id
        WHERE (u.reports = s.reports AND u.digest = s.digest) IS NOT TRUE
        UNION ALL
        SELECT u.org_id, NULL, NULL, u.reservation_id, u.seq FROM usage_events u
        LEFT JOIN reservations r ON r.org_id = u.org_id AND r.reservation_id = u.reservation_id
        WHERE u.reservation_id <> 0 AND (r.job_id = u.job_id) IS NOT TRUE""",
    ),
    Check(
        "measured",
        "the measured use of each lease and node is the sum of its reports",
        """SELECT coalesce(m.org_id, u.org_id) AS org_id,
            coalesce(m.reservation_id, u.reservation_id) AS reservation_id,
            coalesce(m.node, u.node) AS node, m.events, u.events AS reports, m.used_ms,
            u.used_ms AS reported_ms
        FROM measured m
        FULL JOIN (
            SELECT org_id, reservation_id, node, count(*) FILTER (WHERE NOT is_late) AS events,
                coalesce(sum(used_ms) FILTER (WHERE NOT is_late), 0) AS used_ms,
                coalesce(max(used_ms) FILTER (WHERE is_late), 0) AS late_used_ms
            FROM usage_events WHERE reservation_id <> 0 GROUP BY 1, 2, 3
        ) AS u ON u.org_id = m.org_id AND u.reservation_id = m.reservation_id AND u.node = m.node
        WHERE (m.events = u.events AND m.used_ms = u.used_ms
            AND m.late_used_ms = u.late_used_ms) IS NOT TRUE""",
    ),
)


async def wrong_functions(connection: Connection) -> list[dict[str, Any]]:
    """Functions of the database that are not those of the files."""
    meant = dict(found for each in read_schema().functions for found in FUNCTION.findall(each.sql))
    rows = await connection.fetch(
        "SELECT p.proname, p.prosrc FROM pg_proc p"
        " WHERE p.pronamespace = current_schema()::regnamespace"
    )
    found = {row["proname"]: row["prosrc"] for row in rows}
    return [
        {"org_id": 0, "function": name, "is_there": name in found}
        for name, body in sorted(meant.items())
        if found.get(name) != body
    ]
