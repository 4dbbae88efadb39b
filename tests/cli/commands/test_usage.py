"""What was used, for people: whole totals, and lists that can be followed."""

from __future__ import annotations

import re
from pathlib import Path

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


DAY_S = 86_400


def test_days_stand_in_their_order(terminal: Terminal, client: Client, used: str) -> None:
    """The largest day is not the first line: whoever asks for days reads along the time."""
    client.advance_clock(2 * DAY_S)
    lease = client.reserve(used, job_id="later", gpu_type="h100")
    client.advance_clock(100)
    client.settle(lease.reservation_id, seq=1, used_ms=100_000)
    table = terminal.text("usage", used, "--by", "day").split("\n\n")[0]
    [_, first, last, total] = [line.split() for line in table.splitlines()]
    assert first[0] < last[0]
    assert (first[1], last[1], total[-1]) == ("50", "100", "150")


def test_usage_is_drawn(terminal: Terminal, client: Client, used: str, tmp_path: Path) -> None:
    """A bar for each day, those between without spending too; with --json as well."""
    client.advance_clock(2 * DAY_S)
    lease = client.reserve(used, job_id="later", gpu_type="h100")
    client.advance_clock(100)
    client.settle(lease.reservation_id, seq=1, used_ms=100_000)
    picture = tmp_path / "usage.svg"
    result = terminal.run("usage", used, "--by", "day", "--picture", str(picture))
    assert (result.exit_code, result.stderr) == (0, f"Picture: {picture}\n")
    drawn = picture.read_text()
    bars = [float(width) for width in re.findall(r'width="([\d.]+)" height="16" fill="#2f', drawn)]
    assert len(bars) == 3
    assert bars == [pytest.approx(bars[2] / 2, abs=0.1), 0, max(bars)]
    assert f"{used} and all below paid 150 credits" in drawn
    assert terminal.json("usage", used, "--by", "job", "--picture", str(picture))["paid"]
    assert "j0" in picture.read_text()


def test_a_part_of_the_days_has_no_empty_bars(
    terminal: Terminal, client: Client, used: str, tmp_path: Path
) -> None:
    """A page does not show every day, so nothing is said of the days that it leaves out."""
    for _ in range(2):
        client.advance_clock(DAY_S)
        lease = client.reserve(used, job_id="later", gpu_type="h100")
        client.advance_clock(100)
        client.settle(lease.reservation_id, seq=1, used_ms=100_000)
    picture = tmp_path / "usage.svg"
    words = ("usage", used, "--by", "day", "--limit", "2", "--picture", str(picture))
    assert terminal.run(*words).exit_code == 0
    drawn = picture.read_text()
    assert drawn.count('height="16" fill="#2f') == 2
    assert "2 of 3 shown" in drawn


def test_a_picture_that_cannot_be_written_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    """Before anything is asked."""
    picture = str(tmp_path / "nowhere" / "usage.svg")
    result = terminal.run("usage", "nobody", "--picture", picture)
    assert (result.exit_code, f"{picture} cannot be written" in result.stderr) == (2, True)


def test_a_refusal_leaves_no_picture_behind(terminal: Terminal, tmp_path: Path) -> None:
    """Looking whether a file can be written makes none, and changes none that is there."""
    picture = tmp_path / "usage.svg"
    assert terminal.run("usage", "nobody", "--picture", str(picture)).exit_code == 1
    assert not picture.exists()
    picture.write_text("mine")
    assert terminal.run("usage", "nobody", "--picture", str(picture)).exit_code == 1
    assert picture.read_text() == "mine"
