"""Everything that can be killed is killed under load, again and again."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from support.faults.altered_server import PROGRAM, Altered, option
from support.faults.crash_arena import KINDS, arena, refusal, verify, wreck
from support.faults.crash_audit import audit
from support.faults.extent import Extent, Teller
from support.faults.history import read_history

pytestmark = pytest.mark.faults

UNSAFE = {"synchronous_commit": "off", "wal_writer_delay": "2s"}
CONTROL_KILLS = 2
WRONG_SHOWN = 20


def test_nothing_acknowledged_is_lost_and_nothing_is_done_twice(
    data_dir: Path, notes: Path, extent: Extent, tell: Teller
) -> None:
    """After every kill -9 the books are what the accepted calls make of them, and retries agree."""
    began = time.monotonic()
    kinds = [KINDS[number % len(KINDS)] for number in range(extent.cycles)]
    random.Random(extent.seed).shuffle(kinds)
    with arena(data_dir, notes) as stage:
        wreck(stage, kinds, extent.seed)
        assert verify(data_dir).startswith("0 ")
        asked = read_history(stage.all_histories)
        found = audit(stage, asked)
        verdict = verify(data_dir)
        errors = stage.internal_errors()
        recovery = stage.recovery_text()
        felt = stage.felt()
    is_whole = (found.lost, found.doubled, found.resolved) == (0, 0, found.ambiguous)
    is_clean = verdict.startswith("0 Checked") and not errors and not found.wrong
    took = time.monotonic() - began
    tell(
        "crash under load",
        f"cycles {extent.cycles} ({stage.kills_text()}), {found.text()}, {recovery}, "
        f"answers 500 {errors}, took {took:.0f} s",
        holds=is_whole and is_clean,
        kills_felt=felt,
        in_doubt=found.ambiguous,
    )
    assert found.wrong[:WRONG_SHOWN] == []
    assert is_whole
    assert errors == 0
    assert verdict.startswith("0 Checked"), verdict


def test_a_server_that_loses_commits_is_refused_and_seen_through(
    data_dir: Path,
    notes: Path,
    extent: Extent,
    tell: Teller,
) -> None:
    """Control: commits that are not on disk are refused at the start, and without that are lost."""
    refused = refusal(data_dir, option(Altered(settings=UNSAFE), notes))
    assert "synchronous_commit is 'off'" in refused
    options = (option(Altered(settings=UNSAFE, is_checked=False), notes),)
    with arena(data_dir, notes, program=PROGRAM, options=options) as stage:
        stage.close()  # in order, so that the accounts at least are on disk
        stage.start()
        wreck(stage, ["postgres"] * CONTROL_KILLS, extent.seed)
        found = audit(stage, read_history(stage.all_histories))
    tell(
        "crash under load, control: synchronous_commit=off",
        f"refused by the product; unchecked, {CONTROL_KILLS} kills: {found.text()}",
        lost=found.lost,
    )
