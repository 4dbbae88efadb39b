"""What was spent before a quota was set, for the windows that it opens with."""

from __future__ import annotations

from collections.abc import Sequence

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

# What a lease settled is spread evenly from its admission to its last beat, as its beats were but
# for their rounding. A window gets what was settled by its end less what was settled by its start,
# so that windows which follow each other add up to what was spent, to the micro-credit. Leases that
# ended before the first window are not read: nobody beats after the end.
SPENT = """
WITH leases AS (
    SELECT r.settled, r.admitted_at, greatest(r.admitted_at + 1,
        lease_beat_at(r.beat_at, r.expires_at, r.window_ms, r.escrow_windows,
            r.extended_ms + r.reprieve_ms)) AS until
    FROM (
        SELECT * FROM reservations r WHERE [where] AND r.state = 0
        UNION ALL
        SELECT * FROM reservations r WHERE [where] AND r.state <> 0 AND r.ended_at >= [first]
    ) AS r WHERE r.settled > 0
)
SELECT coalesce(sum(
    div(l.settled::numeric * (least(w.ends_at, l.until) - l.admitted_at), l.until - l.admitted_at)
    - div(l.settled::numeric * (greatest(w.starts_at, l.admitted_at) - l.admitted_at),
        l.until - l.admitted_at)), 0)::bigint
FROM unnest([starts]::bigint[], [ends]::bigint[]) WITH ORDINALITY AS w(starts_at, ends_at, place)
LEFT JOIN leases l ON l.until > w.starts_at AND l.admitted_at < w.ends_at
GROUP BY w.place ORDER BY w.place
"""


async def spent_in(
    connection: Connection,
    org_id: int,
    path: str,
    gpu_type: str,
    windows: Sequence[tuple[int, int]],
) -> list[int]:
    """What jobs of an account and those below it have settled in each window [start, end)."""
    where = Where()
    where.add("r.org_id = {}", org_id)
    where.under("r.account", path)
    if gpu_type:
        where.add("r.gpu_type = {}", gpu_type)
    starts, ends = zip(*windows, strict=True)
    places = {"first": min(starts), "starts": starts, "ends": ends}
    query = where.into(SPENT, **{name: where.value(each) for name, each in places.items()})
    return [row[0] for row in await connection.fetch(query, *where.values)]
