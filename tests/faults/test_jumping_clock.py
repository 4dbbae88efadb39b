"""The database's clock jumps under load, again and again: nothing is decided by a wrong time."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from support.engines.postgres import sql
from support.faults.altered_server import PROGRAM, Altered, option
from support.faults.crash_arena import Arena, arena, load, verify
from support.faults.crash_audit import audit
from support.faults.extent import Extent, Teller
from support.faults.history import read_history
from support.scenes.clocks import clock_off_by
from support.servers.http import Caller, problem
from support.waiting import HANGS_S, until

pytestmark = pytest.mark.faults

SCENARIO = "jumping clock"
CONTROL = "jumping clock, control: a server that believes it"
SECOND_US = 1_000_000
DAY_S = 86_400
LEAST_S = 5  # a server tolerates three seconds
JUMPED = (503, "clock_jumped")
WRONG_SHOWN = 20


def jumps_s(extent: Extent) -> list[int]:
    """By how much each jump is off: seconds to days, ahead and behind in turn."""
    chance = random.Random(extent.seed)
    return [
        (1, -1)[number % 2] * int(LEAST_S * (2 * DAY_S / LEAST_S) ** chance.random())
        for number in range(extent.cycles)
    ]


def jump_under_load(stage: Arena, jumps: list[int], seed: int) -> int:
    """Let the clock be wrong until health and a writer have heard of it; how often they did."""
    heard = 0
    with load(stage, seed), httpx.Client(base_url=stage.server.url, timeout=HANGS_S) as http:
        admin = Caller(http, stage.server.admin_secret)
        for off_s in jumps:
            stage.wait_for_accepted(60)
            fault = stage.struck("ahead" if off_s > 0 else "behind")
            sql(stage.dsn, clock_off_by(off_s * SECOND_US))
            until(lambda: http.get("/healthz").json()["status"] == "clock_jumped")
            issue = {"account": "green", "amount": "1"}
            heard += problem(admin.post("/v1/credits/issue", issue)) == JUMPED
            sql(stage.dsn, clock_off_by(0))
            fault.over_s = fault.back_s = time.monotonic()
            stage.wait_for_accepted(60)
            until(lambda: http.get("/healthz").status_code == 200)
    return heard


def test_nothing_is_decided_by_a_clock_that_jumps(
    data_dir: Path, notes: Path, extent: Extent, tell: Teller
) -> None:
    """No lease lapses and nothing is lost; callers get 503 until the time is right again."""
    with arena(data_dir, notes) as stage:
        heard = jump_under_load(stage, jumps_s(extent), extent.seed)
        asked = read_history(stage.all_histories)
        told = Counter(text for call in asked for text in call.undecided)
        felt, recovery = stage.felt(), stage.recovery_text()
        found = audit(stage, asked)
        verdict = verify(data_dir)
        errors = stage.internal_errors()
    is_exact = (found.lost, found.doubled, found.resolved) == (0, 0, found.ambiguous)
    is_whole = is_exact and not found.wrong and not errors and verdict.startswith("0 Checked")
    tell(
        SCENARIO,
        f"{stage.kills_text()}, {found.text()}, {recovery}, answers 500 {errors}",
        holds=is_whole and set(told) == {"503 clock_jumped"},
        jumps_felt=felt,
        health_and_writers_told=heard,
        refused_by_clock=told["503 clock_jumped"],
    )
    assert found.wrong[:WRONG_SHOWN] == []
    assert heard == extent.cycles
    assert set(told) == {"503 clock_jumped"}
    assert is_whole, (errors, verdict)


def test_a_server_that_believes_the_clock_is_seen_through(
    data_dir: Path, notes: Path, extent: Extent, tell: Teller
) -> None:
    """Control: without the comparison one day ahead ends the leases that run."""
    told = (option(Altered(believes_clock=True), notes),)
    with arena(data_dir, notes, program=PROGRAM, options=told) as stage:
        with load(stage, extent.seed):
            stage.wait_for_accepted(100)
            sql(stage.dsn, clock_off_by(DAY_S * SECOND_US))
            stage.wait_for_accepted(100)
            sql(stage.dsn, clock_off_by(0))
        found = audit(stage, read_history(stage.all_histories))
    tell(CONTROL, found.text(), wrong=len(found.wrong))
