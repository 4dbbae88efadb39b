"""What was spent in windows of the past: counted from leases that ran in them, and no others."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from gpucredits.core.command import Reserve, Settle
from gpucredits.core.heartbeat import Beat
from gpucredits.core.outcome import Reserved
from gpucredits.store.database.connection import Connection
from gpucredits.store.limits.quotas import spent_in
from support.scenes.scene import CREDIT, HOUR_US, Scene, play

ENDED = 300
STEPS = 40
READ = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'reservations'"""
EVERY_LEASE = """
SELECT settled, admitted_at, greatest(admitted_at + 1,
    lease_beat_at(beat_at, expires_at, window_ms, escrow_windows, extended_ms + reprieve_ms))
    AS until, account, gpu_type
FROM reservations"""


async def end_leases(stage: Scene) -> None:
    """Leases that were settled at once, a second of use each."""
    asked = [
        Reserve(account="acme", job_id=f"job-{number}", gpu_type="h100", milli_gpus=1_000)
        for number in range(ENDED)
    ]
    told = await stage.ledger.submit_all(
        "acme", [stage.request(each) for each in asked], atomic=True
    )
    await stage.advance(1)
    settled = [
        Settle(reservation_id=each.reservation.reservation_id, used_ms=1_000)
        for each in told
        if isinstance(each, Reserved)
    ]
    assert len(settled) == ENDED
    await stage.ledger.submit_all("acme", [stage.request(each) for each in settled], atomic=True)


def test_leases_that_ended_before_a_window_are_not_read(database: str) -> None:
    """What a new quota asks for does not grow with what ever ran."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000_000)
        await end_leases(stage)
        await stage.advance(3 * 24 * 3_600)
        lease = await stage.reserve()
        await stage.advance(2)
        await stage.beat(lease, 1, 2_000)
        async with stage.pool.acquire() as connection, connection.transaction():
            now = await connection.fetchval("SELECT ledger_now()")
            windows = [(now - 2 * HOUR_US, now - HOUR_US), (now - HOUR_US, now + HOUR_US)]
            before = await connection.fetchval(READ)
            spent = await spent_in(connection, 1, "acme", "", windows)
            read = await connection.fetchval(READ) - before
        assert spent == [0, 2 * CREDIT]
        assert 1 <= read < ENDED, read

    play(database, act)


async def expected(
    connection: Connection, path: str, gpu_type: str, windows: list[tuple[int, int]]
) -> list[int]:
    """What every lease there ever was settled in each window, spread evenly over its run."""
    rows = await connection.fetch(EVERY_LEASE)
    spent = [0] * len(windows)
    for settled, admitted_at, until, account, kind in rows:
        if not f"{account}/".startswith(f"{path}/") or gpu_type not in ("", kind):
            continue

        def by(instant: int, cost: int = settled, a: int = admitted_at, b: int = until) -> int:
            return cost * (min(max(instant, a), b) - a) // (b - a)

        for place, (starts_at, ends_at) in enumerate(windows):
            spent[place] += by(ends_at) - by(starts_at)
    return spent


@pytest.mark.parametrize("seed", range(3))
def test_what_was_spent_is_what_all_leases_say(database: str, seed: int) -> None:
    """However leases end, each window of the past has what a look at every lease gives it."""
    dice = random.Random(seed)

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=9_000)
        await stage.fund("acme/p", "acme/p-q", "acme/p/u", credits_each=0)
        edges = {await stage.pool.fetchval("SELECT ledger_now()")}
        live: list[int] = []
        for step in range(STEPS):
            await stage.advance(dice.choice([0, 0.5, 3, 20]))
            account = dice.choice(["acme/p", "acme/p-q", "acme/p/u"])
            lease = await stage.reserve(account, window_ms=dice.choice([1_000, 9_000]))
            live.append(lease.reservation.reservation_id)
            beats = [(1, Beat(each, step + 1, dice.randrange(30_000))) for each in live[-6:]]
            await stage.ledger.beat(beats)
            await stage.do(Settle(reservation_id=dice.choice(live), used_ms=dice.randrange(30_000)))
            edges.add(await stage.pool.fetchval("SELECT ledger_now()"))
        async with stage.pool.acquire() as connection:
            ends = await connection.fetch("SELECT ended_at FROM reservations WHERE state <> 0")
            edges |= {row[0] + near for row in ends for near in (0, 1)}
            bounds = sorted(edges)
            compared = 0
            for first in range(0, len(bounds) - 1, 7):
                windows = list(pairwise(bounds[first:]))
                for path, gpu_type in (("acme", ""), ("acme/p", "h100"), ("acme/p", "a100")):
                    spent = await spent_in(connection, 1, path, gpu_type, windows)
                    assert spent == await expected(connection, path, gpu_type, windows)
                    compared += sum(1 for each in spent if each)
        assert compared > STEPS

    play(database, act)
