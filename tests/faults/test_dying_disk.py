"""The disk fails with I/O errors, again and again: nothing is lost, and callers are told."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from gpucredits.store.embedded import cluster
from gpucredits.store.embedded.server import EmbeddedPostgres
from support.engines.postgres import sql
from support.faults.altered_server import PROGRAM, Altered, option
from support.faults.crash_arena import arena, load, verify
from support.faults.crash_audit import audit
from support.faults.disk import SETTINGS, Disk, Fault
from support.faults.extent import Extent, Teller
from support.faults.faulty_disk import SMALL, break_again_and_again, checkpoint, outcome
from support.faults.history import read_history
from support.waiting import HANGS_S, until

pytestmark = pytest.mark.faults

SCENARIO = "dying disk"
CONTROL = "dying disk, control: a disk that does not say so"
DEAD = 10**9  # until it is healed
FAILURE = "Input/output error"


def test_a_dying_disk_loses_nothing_and_is_told_of(
    memory_dir: Path,
    memory_notes: Path,
    extent: Extent,
    tell: Teller,
    make_disk: Callable[..., Disk],
) -> None:
    """503 and bad health while a kind of call fails; when it works again, so does the server."""
    disk = make_disk(SCENARIO)
    kinds = [list(Fault)[number % len(Fault)].name for number in range(extent.cycles)]
    random.Random(extent.seed).shuffle(kinds)
    altered = Altered(settings=SMALL, environment=disk.environment(memory_dir / "postgres"))
    told_to = (option(altered, memory_notes),)
    with arena(memory_dir, memory_notes, program=PROGRAM, options=told_to) as stage:

        def strike(kind: str) -> None:
            disk.fail(Fault[kind], DEAD)
            if kind.startswith("DATA"):
                checkpoint(stage)

        told = break_again_and_again(stage, kinds, strike=strike, heal=disk.heal, seed=extent.seed)
        ended = outcome(stage)
        panics = (memory_dir / "postgres.log").read_text().count("PANIC")
    failed = {fault.name: disk.failed(fault) for fault in Fault}
    tell(
        SCENARIO,
        f"{stage.kills_text()}, {ended.text(told, FAILURE)}, calls that failed {failed}",
        holds=ended.is_whole,
        faults_felt=ended.felt,
        unhealthy=told.unhealthy,
        panics=panics,
        **{fault.lower(): disk.failed(Fault[fault]) for fault in set(kinds)},
    )
    assert ended.is_whole, (ended.found.wrong[:20], ended.statuses, ended.verdict)


def test_a_server_on_a_dead_disk_says_so(
    memory_dir: Path, memory_notes: Path, make_disk: Callable[..., Disk], tell: Teller
) -> None:
    """Nothing can be read: ``serve`` ends with the cause and what to do, and loses nothing."""
    scenario = "dead disk at the start"
    disk = make_disk(scenario)
    altered = Altered(settings=SMALL, environment=disk.environment(memory_dir / "postgres"))
    told = option(altered, memory_notes)
    with arena(memory_dir, memory_notes, program=PROGRAM, options=(told,)):
        pass
    disk.fail(Fault.DATA_READ, DEAD)
    command = [
        sys.executable,
        *PROGRAM,
        "serve",
        "--port",
        "0",
        "--data-dir",
        str(memory_dir),
        told,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    disk.heal()
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert FAILURE in done.stderr, done.stderr
    assert "The disk fails. Keep a copy of the data directory" in done.stderr
    assert verify(memory_dir).startswith("0 Checked")
    tell(scenario, "refused, with the cause and what to do", failed=disk.failed(Fault.DATA_READ))


def test_a_recovery_that_fails_is_begun_again(
    memory_dir: Path, tell: Teller, make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails PostgreSQL, and then its recovery; when the disk works, so does the server."""
    scenario = "dying disk during recovery"
    disk = make_disk(scenario)
    with EmbeddedPostgres(memory_dir):
        pass
    environment = disk.environment(memory_dir / "postgres")
    monkeypatch.setattr(cluster, "ENVIRONMENT", cluster.ENVIRONMENT | environment)
    with EmbeddedPostgres(memory_dir, settings=SETTINGS) as server:
        disk.fail(Fault.DATA_SYNC, DEAD)
        with pytest.raises((OSError, asyncpg.PostgresError)):
            sql(server.dsn(), "CHECKPOINT")
        log = memory_dir / "postgres.log"
        # One start after another fails, or the one recovery that PostgreSQL begins by itself.
        failed = until(lambda: max(server.restarts, log.read_text().count("PANIC"), 1) - 1)
        disk.heal()
        until(lambda: answers(server.dsn()))
    tell(scenario, "", recoveries_that_failed=failed)


def answers(dsn: str) -> bool:
    """Whether a database serves."""
    try:
        return bool(sql(dsn, "SELECT 1"))
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False


def test_a_disk_that_hides_that_it_fails_is_seen_through(
    memory_dir: Path,
    memory_notes: Path,
    extent: Extent,
    tell: Teller,
    make_disk: Callable[..., Disk],
) -> None:
    """Control: where writes that fail are answered as done, the books are damaged."""
    disk = make_disk(CONTROL)
    altered = Altered(settings=SETTINGS, environment=disk.environment(memory_dir / "postgres"))
    with arena(
        memory_dir, memory_notes, program=PROGRAM, options=(option(altered, memory_notes),)
    ) as stage:
        with load(stage, extent.seed):
            stage.wait_for_accepted(100)
            checkpoint(stage)
            stage.wait_for_accepted(100)
        disk.lie()
        disk.fail(Fault.DATA_WRITE, DEAD)
        checkpoint(stage)  # what is not in the files from here on is nowhere
        disk.heal()
        stage.kill("postgres")
        verdict = verify(memory_dir)
        is_broken = not verdict.startswith("0 ")
        lost = 0 if is_broken else audit(stage, read_history(stage.all_histories)).lost
    told = f"verify: {verdict.splitlines()[0]}; acknowledged and not there: {lost or 'not counted'}"
    swallowed = disk.failed(Fault.DATA_WRITE)
    tell(CONTROL, told, writes_that_were_not=swallowed, damage=is_broken + lost)
