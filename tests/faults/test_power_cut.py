"""The power is cut under load, again and again; the disk keeps only what it was made to promise."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.faults.altered_server import Altered, option
from support.faults.crash_arena import POWER, refusal, verify, wreck
from support.faults.crash_audit import audit
from support.faults.disk import Disk
from support.faults.extent import Extent, Teller
from support.faults.history import read_history
from support.faults.photograph import FATES, NOTHING_KEPT
from support.faults.power_cut import checkpoints, powered

pytestmark = pytest.mark.faults

WITHOUT_FSYNC = {"fsync": "off"}
SCENARIO = "power cut"
CONTROL = "power cut, control: fsync=off"
WRONG_SHOWN = 20


def test_nothing_acknowledged_is_lost_when_the_power_is_cut(
    memory_dir: Path,
    memory_notes: Path,
    extent: Extent,
    tell: Teller,
    make_disk: Callable[..., Disk],
) -> None:
    """With only synced writes left, and others lost or torn, the books are what was accepted."""
    began = time.monotonic()
    disk = make_disk(SCENARIO, is_journaled=True)
    with powered(memory_dir, memory_notes, disk, fates=FATES, seed=extent.seed) as (stage, cuts):
        with checkpoints(stage) as checkpointed:
            wreck(stage, [POWER] * extent.cycles, extent.seed)
        assert verify(memory_dir).startswith("0 ")
        found = audit(stage, read_history(stage.all_histories))
        verdict = verify(memory_dir)
        errors = stage.internal_errors()
        recovery = stage.recovery_text()
        felt = stage.felt()
    is_whole = (found.lost, found.doubled, found.resolved) == (0, 0, found.ambiguous)
    is_clean = verdict.startswith("0 Checked") and not errors and not found.wrong
    losses = cuts.losses
    tell(
        SCENARIO,
        f"cuts {cuts.cuts}, {found.text()}, writes to disk {losses.synced} synced, {losses.lost} "
        f"lost, {losses.torn} torn, {losses.kept} kept without a sync, {losses.names_lost} changes "
        f"of names lost, {recovery}, answers 500 {errors}, took {time.monotonic() - began:.0f} s",
        holds=is_whole and is_clean,
        cuts_felt=felt,
        cuts_that_lost_writes=cuts.cuts_that_bit,
        checkpoints=len(checkpointed),
    )
    assert found.wrong[:WRONG_SHOWN] == []
    assert is_whole
    assert errors == 0
    assert verdict.startswith("0 Checked"), verdict


def test_a_database_without_fsync_is_seen_through(
    memory_dir: Path,
    memory_notes: Path,
    extent: Extent,
    tell: Teller,
    make_disk: Callable[..., Disk],
) -> None:
    """Control: with ``fsync=off``, which the product refuses, a cut loses what was accepted."""
    disk = make_disk(CONTROL, is_journaled=True)
    refused = refusal(memory_dir, option(Altered(settings=WITHOUT_FSYNC), memory_notes))
    assert "fsync is 'off'" in refused
    unsafe = Altered(settings=WITHOUT_FSYNC, is_checked=False)
    with powered(
        memory_dir, memory_notes, disk, fates=[NOTHING_KEPT], seed=extent.seed, altered=unsafe
    ) as (
        stage,
        cuts,
    ):
        stage.close()  # in order, so that the accounts at least are there
        cuts.begin_anew()
        stage.start()
        wreck(stage, [POWER], extent.seed)
        found = audit(stage, read_history(stage.all_histories))
    tell(CONTROL, f"refused by the product; unchecked, 1 cut: {found.text()}", lost=found.lost)
