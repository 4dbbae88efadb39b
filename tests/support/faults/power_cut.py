"""Power cuts of an arena: everything stops at one moment, and the disk has what it can promise.

Owns: the copy of the data directory that a photograph starts from, and putting the photograph in
the place of the data directory. Only the cluster is photographed; the few files beside it are
synced by ``private``, and written anew at every start.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import sql
from support.faults.altered_server import PROGRAM, Altered, option
from support.faults.crash_arena import Arena, arena
from support.faults.disk import SETTINGS, Disk
from support.faults.photograph import Fate, Losses, inodes, photograph, read_journal

REST_S = 0.5  # between two checkpoints
# Little memory and short logs: pages are written early, and checkpoints are under way often.
SMALL = {
    **SETTINGS,
    "shared_buffers": "4MB",
    "max_wal_size": "32MB",
    "min_wal_size": "32MB",
    "checkpoint_timeout": "30s",
    "bgwriter_delay": "10ms",
}


@dataclass(slots=True)
class PowerCuts:
    """What is needed to photograph, and what the cuts took."""

    disk: Disk
    live: Path
    folder: Path
    fates: Sequence[Fate]
    chance: random.Random
    losses: Losses = field(default_factory=Losses)
    cuts: int = 0
    cuts_that_bit: int = 0
    known: dict[int, str] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """A copy of the cluster as it was before the first record of the journal."""
        return self.folder / "base"

    def begin(self) -> None:
        """Take what is there as it is: nothing runs, and it counts as synced."""
        if not self.base.exists():
            shutil.copytree(self.live, self.base)
        self.known = inodes(self.live)
        assert self.disk.journal is not None
        self.disk.journal.write_bytes(b"")

    def begin_anew(self) -> None:
        """The same after an orderly stop."""
        shutil.rmtree(self.base)
        self.begin()

    def outage(self) -> None:
        """Put what the power cut left in the place of the cluster."""
        assert self.disk.journal is not None
        records = list(read_journal(self.disk.journal))
        left = self.folder / "left"
        fate = self.fates[self.cuts % len(self.fates)]
        taken = photograph(self.base, self.known, records, left, fate=fate, chance=self.chance)
        self.cuts += 1
        self.cuts_that_bit += bool(taken.lost + taken.torn)
        self.losses.add(taken)
        shutil.rmtree(self.live)
        shutil.rmtree(self.base)
        left.rename(self.base)
        shutil.copytree(self.base, self.live)
        self.begin()


@contextmanager
def checkpoints(stage: Arena) -> Iterator[list[int]]:
    """Let one checkpoint follow another, so that cuts come in the middle of some; who ended."""
    done = threading.Event()
    ended: list[int] = []

    def work() -> None:
        while not done.wait(REST_S):
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                sql(stage.dsn, "CHECKPOINT")
                ended.append(stage.postmaster())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ended
    finally:
        done.set()
        thread.join()


@contextmanager
def powered(
    data_dir: Path,
    notes: Path,
    disk: Disk,
    *,
    fates: Sequence[Fate],
    seed: int,
    altered: Altered | None = None,
) -> Iterator[tuple[Arena, PowerCuts]]:
    """An arena on the disk, and the cuts that ``stage.kill(POWER)`` does to it."""
    with EmbeddedPostgres(data_dir):
        pass  # make the cluster; its making is not what is tried
    cuts = PowerCuts(disk, data_dir / "postgres", notes, fates, random.Random(f"cuts-{seed}"))
    cuts.begin()
    altered = altered or Altered()
    altered.settings = SMALL | altered.settings
    altered.environment = disk.environment(data_dir / "postgres")
    told = (option(altered, notes),)
    with arena(data_dir, notes, program=PROGRAM, options=told) as stage:
        stage.outage = cuts.outage
        yield stage, cuts
