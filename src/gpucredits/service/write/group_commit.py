"""Group commit: callers wait in queues, lanes carry them out in batches.

Owns: which lane a job goes to. Commands have a lane of their own, so that an admission waits behind
no batch of heartbeats unless that is at work on its own org.
Must not: know what a command means (batch and core do).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpucredits.core import bounds
from gpucredits.core.window_bounds import WindowBounds
from gpucredits.service.write.batch import CommandJob, Job
from gpucredits.service.write.batch_lane import BatchLane
from gpucredits.service.write.batch_queue import BatchTerms, OrgBeat
from gpucredits.service.write.heartbeats import BeatCall
from gpucredits.service.write.progress import WriteProgress
from gpucredits.store.book.cache.book_cache import LEASES_MAX, BookCache
from gpucredits.store.database.connection import Pool

BEATS = BatchTerms(
    batch_max=500,
    calm_max=120,
    crowd=600,
    many=60,
    turn_max=100,
    org_waiting_max=20_000,
    linger_s=0.05,
    linger_below=300,
    beside_s=0.1,
    beside_below=300,
)
COMMANDS = BatchTerms(batch_max=64, turn_max=1, org_batch_max=8, org_waiting_max=2_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelOptions:
    """Bounds of the funnel."""

    beats_at_once: int = 4  # batches: enough that database and process need not wait for each other
    commands_at_once: int = 3  # one that floods the server has one of them at most
    beats: BatchTerms = BEATS
    commands: BatchTerms = COMMANDS
    kept_leases_max: int = LEASES_MAX
    window_max_ms: int = bounds.WINDOW_MS_MAX

    @property
    def connections(self) -> int:
        """How many connections it holds."""
        return self.beats_at_once + self.commands_at_once


DEFAULTS = FunnelOptions()


class Funnel:
    """Both lanes. Start it, put jobs in, stop it: what waits is carried out first."""

    def __init__(self, pool: Pool, options: FunnelOptions = DEFAULTS) -> None:
        self.options = options
        self.shelf = shelf = BookCache(options.kept_leases_max, WindowBounds(options.window_max_ms))
        self.progress = progress = WriteProgress()
        commands, beats = options.commands_at_once, options.beats_at_once
        self.commands = BatchLane(pool, options.commands, shelf, progress, at_once=commands)
        self.beats = BatchLane(pool, options.beats, shelf, progress, at_once=beats)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def lanes(self) -> tuple[BatchLane, BatchLane]:
        """Every lane."""
        return self.commands, self.beats

    async def start(self) -> None:
        """Begin to carry out what is put in."""
        self._tasks = [
            asyncio.create_task(self.commands.run(), name="commands"),
            asyncio.create_task(self.beats.run(), name="beats"),
        ]

    async def stop(self) -> None:
        """Take no more, finish what waits, let the connections go."""
        for lane in self.lanes:
            lane.close()
        await asyncio.gather(*self._tasks)
        self._tasks = []

    def put(self, job: Job, *, ahead: bool = True) -> None:
        """Let a job wait, ahead of heartbeats or among them; raises Busy."""
        job.queued_at = asyncio.get_running_loop().time()
        (self.commands if ahead else self.beats).put(job)

    def put_beats(self, beats: Sequence[OrgBeat], call: BeatCall) -> None:
        """Let heartbeats wait; a call for which there is no room is told so in its places."""
        self.beats.put_beats(beats, call)

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
        for org_id, size in sizes.items():
            self.commands.ensure_room(org_id, size)
