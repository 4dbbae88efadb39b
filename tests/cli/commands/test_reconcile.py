"""``gpucredits reconcile`` and ``gpucredits loss``: what they print, at any width."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from support.servers.http import fresh_name
from support.terminal import Terminal
from support.waiting import until

STYLE = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = [80, 120]


@pytest.fixture
def drifted(server: TemporaryServer, client: Client, org: str) -> str:
    """An org whose lease was measured for longer than it settled, and use of no lease."""
    gpu_type = fresh_name("gpu-")
    client.set_price(gpu_type, "3600")
    client.issue(org, "1000")
    client.set_lost_work_terms(org, hours_per_job=2)
    held = client.reserve(org, job_id="train", gpu_type=gpu_type, window_seconds=120, node="n1")
    client.advance_clock(100)
    client.settle(held.reservation_id, seq=1, used_ms=10_000)
    lease = {"reservation_id": held.reservation_id}
    ghost = {"reservation_id": held.reservation_id + "zz"}
    agent = client.create_key("agent", scope=org, node="n1").secret or ""
    with Client(server.url, agent) as node:
        node.report_usage(
            [
                {"seq": 1, "start_ms": 0, "end_ms": 30_000, "node": "n1", **lease},
                {"seq": 1, "start_ms": 0, "end_ms": 5_000, "node": "n1", **ghost},
            ]
        )
    client.advance_clock(16 * 60)
    return held.reservation_id


def ghosts(terminal: Terminal, drifted: str) -> list[Any]:
    """The use of no lease that this test made; the server lists that of other tests too."""
    listed = terminal.json("reconcile", "list")["unmatched_use"]
    return [each for each in listed if each["job_id"] == drifted + "zz"]


def test_drift_is_shown_and_worked_through(
    terminal: Terminal, client: Client, org: str, drifted: str
) -> None:
    """Reported at first; then posted, acknowledged, matched and dismissed, all in words."""

    def alarms() -> Any:
        terminal.text("reconcile", "run", "--account", org)
        return terminal.json("reconcile", "alarms", org)["drift_alarms"]

    [alarm] = [each for each in until(alarms) if each["job_id"]]
    assert "differs" in terminal.text("reconcile", "leases", org)
    assert "mode        report" in terminal.text("reconcile", "policy", org)
    assert "mode        post" in terminal.text("reconcile", "set", org, "--mode", "post")
    assert "quiet for   1h" in terminal.text("reconcile", "set", org, "--quiet", "1h")
    assert "set for     nobody" in terminal.text("reconcile", "end", org)
    terminal.text("reconcile", "set", org, "--mode", "post")
    tried = terminal.text("reconcile", "run", "--account", org, "--again", "--dry-run")
    assert "1 corrected (20 charged, 0 given back)" in tried
    client.advance_clock(61)  # what was claimed for the dry run is free again
    terminal.text("reconcile", "run", "--account", org, "--again")
    until(lambda: "posted" in terminal.text("reconcile", "leases", org, "--state", "posted"))
    said = terminal.text("reconcile", "acknowledge", alarm["alarm_id"], "--note", "seen")
    assert "settled 10 credits for 10000 ms; its nodes measured 30000 ms" in said
    assert "acknowledged" in terminal.text("reconcile", "alarms", org, "--acknowledged")
    [row] = until(lambda: ghosts(terminal, drifted))
    number = row["unmatched_id"]
    matched = terminal.text("reconcile", "match", number, drifted)
    assert matched == f"{number} is matched to {drifted}.\n"
    dismissed = terminal.text("reconcile", "dismiss", number, "--note", "a test")
    assert dismissed == f"{number} is dismissed.\n"
    assert "open alarms" in terminal.text("reconcile", "status")


def test_lost_work_is_claimed(terminal: Terminal, client: Client, org: str, drifted: str) -> None:
    """A checkpoint of a running job, and a claim after its preemption or failure."""
    del drifted
    lease = client.reservation_page(account=org).reservations[0]
    held = client.reserve(
        org, job_id="two", gpu_type=lease.gpu_type, window_seconds=60, node="n7"
    ).reservation_id
    client.advance_clock(30)
    client.heartbeats([(held, 1, 30_000)])
    for checkpoint in ("20s", "20000"):  # a bare number is milliseconds
        said = terminal.text("loss", "checkpoint", held, checkpoint)
        assert said == f"The last checkpoint of {held} is at 20s after its admission.\n"
    client.advance_clock(61)
    client.heartbeats([(held, 2, 0)])
    claimed = terminal.text("loss", "claim", held, "--cause", "node_failure")
    assert claimed.startswith(f"Gave back 10 credits for 10s of {held} after its checkpoint")
    assert "refunded" in terminal.text("loss", "list", org)
    assert "up to 2 hours of a job" in terminal.text("loss", "terms", org)
    assert "up to 4 hours" in terminal.text("loss", "set", org, "--hours-per-job", "4")
    most = terminal.text("loss", "set", org, "--hours-per-account", "40")
    assert "up to 40 hours in 30 days" in most
    assert "set for       nobody" in terminal.text("loss", "end", org)


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_fold_no_word(
    terminal: Terminal, client: Client, org: str, drifted: str, width: int
) -> None:
    """Every id of the plain table stands whole on a narrow terminal."""
    del client, drifted
    until(lambda: terminal.json("reconcile", "alarms", org)["drift_alarms"])
    assert "differs" in terminal.text("reconcile", "leases", org), "nothing changes any more"
    for words in (["reconcile", "leases", org], ["reconcile", "alarms", org]):
        plain = terminal.run(*words)
        shown = terminal.run(*words, FORCE_COLOR="1", NO_COLOR="1", COLUMNS=str(width))
        seen = STYLE.sub("", shown.stdout).lower().split()
        assert set(plain.stdout.lower().split()) <= set(seen)
