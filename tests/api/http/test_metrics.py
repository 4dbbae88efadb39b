"""What a server measures of itself, and who may read that."""

from __future__ import annotations

import re

import pytest

from support.servers.http import Caller, problem

LINE = re.compile(
    r"# (?:HELP [a-z_]+ \S.*|TYPE [a-z_]+ (?:counter|gauge))"
    r'|[a-z_]+(?:\{[a-z]+="[^"\\\n]*"\})? -?\d+(?:\.\d+)?(?:e-?\d+)?'
)
WANTED = (
    'gpucredits_health{status="clock_jumped"} 0',
    "gpucredits_clock_off_seconds 0",
    "gpucredits_clock_jumps_total 0",
    "gpucredits_database_up 1",
    "gpucredits_database_timeline 1",
)
# Tests that share the server move these.
NAMED = (
    'gpucredits_health{status="ok"}',
    "gpucredits_orgs_clock_ahead",
    'gpucredits_batches_total{result="failed"}',
    "gpucredits_batches_failing",
    "gpucredits_queue_depth",
)


def samples_of(caller: Caller) -> dict[str, float]:
    """Every sample by its name with its label."""
    lines = [line for line in caller.get("/metrics").text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_metrics_are_text_that_prometheus_reads(admin: Caller) -> None:
    """Each metric has a meaning and a type before its samples, and each line is well formed."""
    answer = admin.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    described: list[str] = []
    for line in answer.text.splitlines():
        assert LINE.fullmatch(line), line
        name = re.split(r"[ {]", line.removeprefix("# HELP ").removeprefix("# TYPE "))[0]
        if line.startswith("# HELP"):
            assert name not in described
            described.append(name)
        assert name == described[-1]
        assert ("counter" in line) is name.endswith("_total") or not line.startswith("# TYPE")
    lines = answer.text.splitlines()
    assert [each for each in WANTED if each not in lines] == []
    assert set(NAMED) <= {line.rpartition(" ")[0] for line in lines}


def test_metrics_count_what_happens(admin: Caller) -> None:
    """Requests are counted by status, and batches that were saved; no tenant is named."""
    before = samples_of(admin)
    made = admin.made("/v1/accounts", {"path": "metered-org"})
    nobody = Caller(admin.http, "gck_nobody")
    assert problem(nobody.get("/metrics")) == (401, "unauthenticated")
    assert problem(admin.get("/v1/accounts/no-such-org")) == (404, "account_unknown")
    after = samples_of(admin)
    grew = {name for name, value in after.items() if value > before[name]}
    assert {
        'gpucredits_requests_total{class="2xx"}',
        'gpucredits_requests_total{class="4xx"}',
        'gpucredits_requests_refused_total{status="401"}',
        'gpucredits_batches_total{result="saved"}',
    } <= grew
    assert made["path"] not in admin.get("/metrics").text


@pytest.mark.parametrize(
    ("role", "is_system", "may"),
    [
        ("read-only", True, True),
        ("operator", True, True),
        ("member", True, False),
        ("agent", True, False),
        ("read-only", False, False),
        ("admin", False, False),
    ],
)
def test_metrics_are_for_keys_of_the_system(
    admin: Caller, org: str, role: str, is_system: bool, may: bool
) -> None:
    """A tenant learns nothing of how busy a server is."""
    caller = admin.with_key(role, None if is_system else org)
    answer = caller.get("/metrics")
    assert answer.status_code == (200 if may else 403)
