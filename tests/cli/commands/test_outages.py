"""Planned stops and exposure on the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.cli.outages.maintenance import all_clear
from gpucredits.client import Client
from gpucredits.wire.outages.maintenance import MaintenanceAnswer
from support.terminal import Terminal


@pytest.fixture
def _no_stop(client: Client) -> Iterator[None]:
    """Nothing is announced when the test is done: the server is shared."""
    yield
    client.end_maintenance()


@pytest.mark.usefixtures("_no_stop")
def test_an_operator_announces_a_stop_and_sees_who_is_covered(
    terminal: Terminal, client: Client, org: str
) -> None:
    """Announced, heard of with a report, named where credits are short, and taken back."""
    client.issue(org, "200")
    lease = client.reserve(org, job_id="train", gpu_type="h100")
    announced = terminal.text("maintenance", "--for", "30m", "--reason", "a new kernel")
    assert "a new kernel" in announced
    client.extend(lease.reservation_id, seq=1, used_ms=0)
    [short] = [
        row for row in terminal.json("maintenance", "status")["leases"] if row["payer"] == org
    ]
    assert short["reservation_id"] == lease.reservation_id
    assert short["missing"] in terminal.text("maintenance", "status")
    assert "200" in terminal.text("exposure", org)
    assert terminal.json("exposure", org)["total"]["total"] == "200"
    until = terminal.json("maintenance", "status")["until"]
    assert terminal.json("maintenance", "end", "--dry-run")["ended_until"] == until
    assert "Ended the maintenance until " in terminal.text("maintenance", "end")
    assert "No maintenance was announced." in terminal.text("maintenance", "end")
    assert "No maintenance is announced." in terminal.text("maintenance", "status")


@pytest.mark.parametrize(
    ("live", "covered", "waiting", "said"),
    [
        (0, 0, 0, "No lease is live."),
        (2, 0, 2, "No lease has reported yet"),
        (2, 1, 1, "Every lease that has reported lasts to the end."),
        (2, 2, 0, "Every live lease lasts to the end."),
    ],
)
def test_the_all_clear_is_one(live: int, covered: int, waiting: int, said: str) -> None:
    """Nothing is promised of leases that nobody has heard of."""
    answer = MaintenanceAnswer(
        state="announced",
        until=None,
        reason="",
        live=live,
        covered=covered,
        waiting=waiting,
        short=0,
        leases=[],
    )
    assert all_clear(answer).startswith(said)


def test_a_stop_needs_a_length_or_a_word(terminal: Terminal) -> None:
    """Neither, or both, is wrong usage."""
    for words in ((), ("status", "--for", "30m")):
        assert terminal.run("maintenance", *words).exit_code == 2
