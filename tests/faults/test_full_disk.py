"""The disk is full for a while, again and again: nothing is lost, and callers are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.faults.altered_server import PROGRAM, Altered, option
from support.faults.crash_arena import Arena, arena
from support.faults.disk import Disk
from support.faults.extent import Extent, Teller
from support.faults.faulty_disk import SMALL, break_again_and_again, outcome, use_up_log
from support.faults.full_disk import FullDisk, Refusing, mounted
from support.servers.http import Caller
from support.waiting import HANGS_S, until

pytestmark = pytest.mark.faults

SCENARIO = "full disk"
CONTROL = "full disk, control: health that does not hear of failed writes"
TABLES, LOG = "tables", "log"  # what finds no space first
SEEN = 10  # writes that fail in a row
NO_SPACE = "No space left on device"


@contextmanager
def full_disk(
    data_dir: Path, notes: Path, altered: Altered, make: Callable[[], Disk]
) -> Iterator[tuple[Arena, FullDisk]]:
    """An arena on a disk that can be filled; a real one where root mounts it."""
    with mounted(data_dir) as real:
        space: FullDisk | None = real
        if space is None:
            disk = make()
            altered.environment = disk.environment(data_dir / "postgres")
            space = Refusing(disk)
        told = (option(altered, notes),)
        with arena(data_dir, notes, program=PROGRAM, options=told) as stage:
            yield stage, space


def panics(data_dir: Path) -> int:
    """How often PostgreSQL has stopped itself for lack of space."""
    lines = (data_dir / "postgres.log").read_text().splitlines()
    return sum("PANIC" in line and NO_SPACE in line for line in lines)


def test_a_full_disk_loses_nothing_and_is_told_of(
    data_dir: Path, notes: Path, extent: Extent, tell: Teller, make_disk: Callable[..., Disk]
) -> None:
    """503 and bad health while the disk is full; with space again, work goes on by itself."""
    kinds = [(TABLES, LOG)[number % 2] for number in range(extent.cycles)]
    altered = Altered(settings=SMALL)
    with full_disk(data_dir, notes, altered, lambda: make_disk(SCENARIO)) as (stage, space):

        def strike(kind: str) -> None:
            space.fill()
            if kind == LOG:
                use_up_log(stage)

        told = break_again_and_again(stage, kinds, strike=strike, heal=space.free, seed=extent.seed)
        ended = outcome(stage)
        stopped = panics(data_dir)
    tell(
        SCENARIO,
        f"{space.name}: {stage.kills_text()}, {ended.text(told, NO_SPACE)}",
        holds=ended.is_whole,
        faults_felt=ended.felt,
        unhealthy=told.unhealthy,
        stopped_by_it=stopped,
    )
    assert ended.is_whole, (ended.found.wrong[:20], ended.statuses, ended.verdict)


def test_health_that_does_not_hear_of_failed_writes_is_seen_through(
    data_dir: Path, notes: Path, tell: Teller, make_disk: Callable[..., Disk]
) -> None:
    """Control: such a server says that all is well while it turns every write away."""
    altered = Altered(settings=SMALL, hears_of_failures=False)
    with (
        full_disk(data_dir, notes, altered, lambda: make_disk(CONTROL)) as (stage, space),
        httpx.Client(base_url=stage.server.url, timeout=HANGS_S) as http,
    ):
        admin = Caller(http, stage.server.admin_secret)
        space.fill()
        seen: list[tuple[int, int]] = []

        def have_failed() -> bool:
            answer = admin.post("/v1/credits/issue", {"account": "blue", "amount": "1"})
            seen.append((answer.status_code, http.get("/healthz").status_code))
            return [status for status, _ in seen[-SEEN:]] == [503] * SEEN

        until(have_failed)
        space.free()
    blind = seen[-SEEN:].count((503, 200))
    tell(CONTROL, f"{SEEN} writes turned away in a row", well_all_the_same=blind)
    assert blind == SEEN
