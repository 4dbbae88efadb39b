"""What was used, for people: whole totals, and lists that can be followed."""

from __future__ import annotations

import pytest

from gpucredits.client import Client
from support.terminal import Terminal

JOBS = 5


@pytest.fixture
def used(client: Client, org: str) -> str:
    """An org whose jobs cost the same each."""
    client.issue(org, "1000")
    for number in range(JOBS):
        lease = client.reserve(org, job_id=f"j{number}", gpu_type="h100")
        client.advance_clock(10)
        client.settle(lease.reservation_id, seq=1, used_ms=10_000)
    return org


def test_a_page_of_usage_has_the_total_of_all(terminal: Terminal, used: str) -> None:
    """With --limit the total is that of all jobs, and says how many of them are shown."""
    [_, *few] = terminal.text("usage", used, "--limit", "2").split("\n\n")[0].splitlines()
    [_, *all_jobs] = (
        terminal.text("usage", used, "--all", "--limit", "2").split("\n\n")[0].splitlines()
    )
    assert (len(few), len(all_jobs)) == (3, JOBS + 1)
    assert few[-1].split() == ["in", "all,", "2", "shown", *all_jobs[-1].split()[2:]]
    assert "more" in terminal.run("usage", used, "--limit", "2").stderr


def test_all_pages_of_usage_are_one(terminal: Terminal, used: str) -> None:
    """As JSON too: both lists are whole, and the total is what the groups come to."""
    whole = terminal.json("usage", used, "--all", "--limit", "2")
    once = terminal.json("usage", used)
    for name in ("paid", "leases", "total", "next_cursor"):
        assert whole[name] == once[name]
    assert len(whole["paid"]) == len(whole["leases"]) == JOBS
