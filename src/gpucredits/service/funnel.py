"""Group commit: callers wait in queues, lanes carry them out in batches.

Owns: which lane a job goes to. Commands have lanes of their own, so that an admission waits behind
no batch of heartbeats unless that holds the lock of its own org.
Must not: know what a command means (batch and core do).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpucredits.service.batch import CommandJob, Job
from gpucredits.service.lane import Lane, Terms
from gpucredits.store.connection import Pool
from gpucredits.store.shelf import LEASES_MAX, Shelf

BEATS = Terms(batch_max=500, turn_max=100, org_waiting_max=20_000, linger_s=0.05, linger_below=300)
COMMANDS = Terms(batch_max=64, turn_max=1, org_batch_max=8, org_waiting_max=2_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelOptions:
    """Bounds of the funnel."""

    beat_lanes: int = 4  # enough that database and process need not wait for one another
    command_lanes: int = 2
    beats: Terms = BEATS
    commands: Terms = COMMANDS
    kept_leases_max: int = LEASES_MAX

    @property
    def lanes(self) -> int:
        """How many connections it holds."""
        return self.beat_lanes + self.command_lanes


DEFAULTS = FunnelOptions()


class Funnel:
    """All lanes. Start it, put jobs in, stop it: what waits is carried out first."""

    def __init__(self, pool: Pool, options: FunnelOptions = DEFAULTS) -> None:
        self.options = options
        self.shelf = Shelf(options.kept_leases_max)
        self.beat_lanes = [Lane(pool, options.beats, self.shelf) for _ in range(options.beat_lanes)]
        self.command_lanes = [
            Lane(pool, options.commands, self.shelf) for _ in range(options.command_lanes)
        ]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def lanes(self) -> list[Lane]:
        """Every lane."""
        return self.command_lanes + self.beat_lanes

    async def start(self) -> None:
        """Begin to carry out what is put in."""
        self._tasks = [
            asyncio.create_task(lane.run(), name=f"lane-{number}")
            for number, lane in enumerate(self.lanes)
        ]

    async def stop(self) -> None:
        """Take no more, finish what waits, let the connections go."""
        for lane in self.lanes:
            lane.close()
        await asyncio.gather(*self._tasks)
        self._tasks = []

    def put(self, job: Job, *, ahead: bool = True) -> None:
        """Let a job wait in its org's lane, ahead of heartbeats or among them; raises Busy."""
        job.queued_at = asyncio.get_running_loop().time()
        lanes = self.command_lanes if ahead else self.beat_lanes
        lanes[job.org_id % len(lanes)].put(job)

    def put_all(self, jobs: Sequence[CommandJob]) -> None:
        """Let jobs wait ahead of heartbeats: all of them, or with Busy none."""
        sizes: Counter[int] = Counter()
        for job in jobs:
            sizes[job.org_id] += job.size
        self.ensure_room(sizes)
        for job in jobs:
            self.put(job)

    def ensure_room(self, sizes: Mapping[int, int]) -> None:
        """Busy when so many commands, by org, cannot all wait now."""
        lanes = self.command_lanes
        for org_id, size in sizes.items():
            lanes[org_id % len(lanes)].ensure_room(org_id, size)
