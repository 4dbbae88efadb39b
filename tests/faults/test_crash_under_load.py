"""Everything that can be killed is killed under load, again and again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import unsafe_server
from support.crash_arena import KINDS, TESTS, Arena, arena, load, pause
from support.crash_audit import audit
from support.extent import Extent, Teller
from support.history import read_history

pytestmark = pytest.mark.faults

UNSAFE = ("-m", "support.unsafe_server")
CONTROL_KILLS = 2
WRONG_SHOWN = 20


def wreck(stage: Arena, kinds: list[str], seed: int) -> None:
    """Load and kills together, then let every client finish what it began."""
    chance = random.Random(seed)
    with load(stage, seed):
        for kind in kinds:
            stage.wait_for_accepted(chance.randrange(100, 400))
            pause(chance.random() * 0.05)
            stage.kill(kind)
        stage.wait_for_accepted(100)


def verify(data_dir: Path) -> str:
    """What ``gpucredits verify`` says of the books, and its exit code."""
    command = [sys.executable, "-m", "gpucredits", "verify", "--data-dir", str(data_dir)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return f"{result.returncode} {result.stdout.strip()} {result.stderr.strip()}".strip()


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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Control: commits that are not on disk are refused at the start, and without that are lost."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    command = [sys.executable, *UNSAFE, "serve", "--port", "0", "--data-dir", str(data_dir)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "synchronous_commit is 'off'" in refused.stderr
    options = (unsafe_server.UNCHECKED,)
    with arena(data_dir, notes, program=UNSAFE, options=options) as stage:
        stage.close()  # in order, so that the accounts at least are on disk
        stage.start()
        wreck(stage, ["postgres"] * CONTROL_KILLS, extent.seed)
        found = audit(stage, read_history(stage.all_histories))
    tell(
        "crash under load, control: synchronous_commit=off",
        f"refused by the product; unchecked, {CONTROL_KILLS} kills: {found.text()}",
        lost=found.lost,
    )
