"""Tiny runs with all gates on, and with a tenant that bursts: their shape and their honesty."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits_bench.runs.burst import share_difference
from gpucredits_bench.runs.burst_figures import BurstFigures, Crowd, burst_bars, burst_table
from gpucredits_bench.runs.figures import GatedFigures
from gpucredits_bench.runs.gated_report import gated_table
from gpucredits_bench.traffic.crowd import labels_of
from gpucredits_bench.traffic.gating import LIMITS_OF_ORG


def run(*arguments: str) -> str:
    """What a run prints; it must end well."""
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_gates_are_measured_beside_none(data_dir: Path) -> None:
    """Both contestants give figures over two windows each, and the books of both verify."""
    small = ["--reservations", "200", "--orgs", "10", "--nodes", "2", "--beats-per-post", "20"]
    text = run(
        "heartbeats", "--gates", *small, "--seconds", "0.5", "--data-dir", str(data_dir), "--json"
    )
    figures = msgspec.json.decode(text, type=GatedFigures)
    assert figures.verified
    assert figures.ratio_gated == figures.gated_per_second / figures.ours_per_second
    assert figures.limits == 10 * LIMITS_OF_ORG
    for side in (figures.ours, figures.gated):
        assert len(side.per_second_by_window) == 2
        assert side.beats_checked > 0
        assert side.per_second > 0
        assert side.postgres_cpu_us_per_heartbeat > 0
    assert set(figures.bars) == {"ratio_gated", "gated_per_second", "verified"}
    assert "of the rate without gates" in gated_table(figures)
    assert list(data_dir.iterdir()) == []


def test_a_burst_is_absorbed_and_accounted_for(data_dir: Path) -> None:
    """Every hostile job is admitted or refused by something with a name; polite ones get theirs."""
    small = ["--orgs", "3", "--jobs-per-second", "30", "--seconds", "1"]
    text = run("burst", *small, "--data-dir", str(data_dir), "--json")
    figures = msgspec.json.decode(text, type=BurstFigures)
    assert figures.verified
    assert sum(figures.hostile_absorbed.values()) == figures.hostile_offered > 0
    assert figures.hostile_absorbed.keys() - {"admitted"}
    for crowd in (figures.without, figures.beside):
        assert crowd.answers == {"admitted": crowd.offered}
        assert sum(crowd.admitted_by_org.values()) == crowd.admitted == crowd.offered
        assert crowd.p99_ms >= crowd.p95_ms >= crowd.p50_ms > 0
    assert figures.p95_ratio == figures.beside.p95_ms / figures.without.p95_ms
    assert list(data_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "body", "jobs", "label"),
    [
        (201, {"reservation_id": "rsv_1_2", "state": "active"}, 1, "admitted"),
        (403, {"reason": "quota_exceeded"}, 1, "quota_exceeded"),
        (429, {"reason": "rate_limited", "gates": []}, 1, "rate_limited"),
        (429, {"reason": "rate_limited", "limit": {"holder": "org"}}, 100, "request_limit"),
        (503, {"reason": "busy"}, 100, "queue_full"),
        (402, {"reason": "insufficient_credits"}, 1, "insufficient_credits"),
    ],
)
def test_an_answer_names_the_gate(
    status: int, body: dict[str, object], jobs: int, label: str
) -> None:
    """Each refusal counts for the gate that gave it, a whole request's for all of its jobs."""
    assert labels_of(status, msgspec.json.encode(body), jobs)[0] == Counter({label: jobs})


def test_a_batch_is_counted_item_by_item() -> None:
    """Some of a batch may be admitted."""
    results = [
        {"status": 201, "reservation": {"reservation_id": "rsv_1_2"}},
        {"status": 403, "problem": {"reason": "quota_exceeded"}},
    ]
    labels, leases = labels_of(200, msgspec.json.encode({"results": results}), 2)
    assert labels == Counter(admitted=1, quota_exceeded=1)
    assert leases == ["rsv_1_2"]


def test_a_promise_that_is_not_kept_is_said_to_be_missed() -> None:
    """Slower than twice, or another share, is a miss."""
    crowd = Crowd(
        offered=10,
        admitted=10,
        answers={"admitted": 10},
        admitted_by_org={"a": 5, "b": 5},
        p50_ms=1.0,
        p95_ms=2.0,
        p99_ms=3.0,
        p95_ms_by_window=[2.0],
    )
    figures = BurstFigures(
        fdatasync_us=100.0,
        orgs=2,
        jobs_per_second=10.0,
        factor=10.0,
        without=crowd,
        beside=crowd,
        p95_ratio=2.1,
        share_difference_max=share_difference({"a": 5, "b": 5}, {"a": 5, "b": 2}),
        hostile_offered=5,
        hostile_absorbed={"quota_exceeded": 5},
        hostile_beats={},
        verified=True,
    )
    figures.bars = burst_bars(figures)
    assert figures.bars == {"p95_ratio": False, "shares": False, "verified": True}
    assert "MISSED  polite p95 is 2.10 x" in burst_table(figures)
