"""The outbox as exports read it."""

from __future__ import annotations

from gpucredits.store.metering.events import release_events
from support.scenes.scene import Scene, play

EVENTS = 5_000
FILL = """
INSERT INTO outbox (org_id, recorded_at, type, subject_id, payload)
SELECT n % 7, n * 1000000, 'reservation.opened', n, '{"job_id": "train", "account": "acme/vision"}'
FROM generate_series(1, $1::bigint) AS n ORDER BY n
"""
EXPORT = """
SELECT event_id, org_id, recorded_at, type, subject_id, payload FROM outbox
WHERE event_id > $1 AND event_id <= (SELECT position FROM event_stream) ORDER BY event_id
"""
READ = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'outbox'
"""


def test_an_export_reads_what_is_new(database: str) -> None:
    """Where the last reading ended is found by its number: the older rows stay unread."""

    async def act(stage: Scene) -> None:
        await stage.pool.execute(FILL, EVENTS)
        await release_events(stage.pool)
        await stage.pool.execute("ANALYZE outbox")  # as the database does by itself
        async with stage.pool.acquire() as connection, connection.transaction():
            found = await connection.fetch(EXPORT, EVENTS - 100)
            read = await connection.fetchval(READ)
        assert len(found) == 100
        assert read < EVENTS / 10, read

    play(database, act, stays_sound=False)
