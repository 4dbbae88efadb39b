"""Dead letters and events at a command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from support.engines.postgres import TestServer, sql, temporary_directory
from support.servers.http import RunningServer, fresh_name, running_server
from support.terminal import Terminal
from support.waiting import until

LETTER = """
INSERT INTO dead_letters (topic, partition, position, received_at, reason, detail, body)
VALUES ('usage', 1, 7, 0, 'unreadable', 'it is no JSON', 'rubbish') RETURNING letter_id
"""


@pytest.fixture(scope="module")
def dsn(postgres: TestServer) -> Iterator[str]:
    """The server's database."""
    with postgres.database() as address:
        yield address


@pytest.fixture(scope="module")
def served(dsn: str) -> Iterator[RunningServer]:
    """A server without a bus; dead letters of one that it had are there all the same."""
    with (
        temporary_directory() as folder,
        running_server(folder, "--database-url", dsn, "--test-clock") as running,
    ):
        yield running


@pytest.fixture
def terminal(served: RunningServer) -> Terminal:
    """Somebody at a command line."""
    place = TemporaryServer(url=served.url, key=served.admin_secret, data_dir=served.data_dir)
    return Terminal(place)


def opened(served: RunningServer) -> str:
    """A lease of a fresh org."""
    org, gpu_type = fresh_name("org"), fresh_name("gpu-")
    with Client(served.url, served.admin_secret) as client:
        client.create_account(org)
        client.issue(org, "100")
        client.set_price(gpu_type, "36")
        return client.reserve(org, job_id="train", gpu_type=gpu_type, node="n1").reservation_id


def test_a_dead_letter_is_mended_in_a_file(
    terminal: Terminal, served: RunningServer, dsn: str, tmp_path: Path
) -> None:
    """Staff list, see, mend and replay a dead letter, and drop another."""
    lease = opened(served)
    for _ in range(2):
        sql(dsn, LETTER)
    table = terminal.text("dead-letter", "list")
    assert "dlt_0_1" in table
    assert "it is no JSON" in table
    assert "rubbish" in terminal.text("dead-letter", "show", "dlt_0_1")
    refused = terminal.run("dead-letter", "replay", "dlt_0_1")
    assert "still cannot be used" in refused.stderr
    event = {"job_id": "train", "node": "n1", "reservation_id": lease, "seq": 1, "used_ms": 1_500}
    file = tmp_path / "mended.json"
    file.write_text(json.dumps({"org_id": int(lease.split("_")[1], 36), "events": [event]}))
    words = ("dead-letter", "replay", "dlt_0_1", "--body", str(file))
    assert terminal.json(*words)["state"] == "replayed"
    assert sql(dsn, "SELECT sum(used_ms)::bigint FROM measured") == 1_500
    assert terminal.json("dead-letter", "drop", "dlt_0_2")["state"] == "dropped"
    assert "No dead letters." in terminal.text("dead-letter", "list")
    assert len(terminal.json("dead-letter", "list", "--state", "any")["dead_letters"]) == 2
    file.write_text("[]")
    assert "must be a JSON object" in terminal.run(*words).stderr


def test_events_and_their_readers(terminal: Terminal, served: RunningServer) -> None:
    """Events are listed in order; a reader is made, seen and forgotten."""
    lease = opened(served)
    until(lambda: lease in terminal.text("event", "list", "--type", "reservation", "--all"))
    page = terminal.json("event", "list", "--limit", "2")
    assert [each["position"] for each in page["events"]] == [1, 2]
    assert terminal.json("event", "acknowledge", "billing", "2")["position"] == 2
    assert "billing" in terminal.text("event", "consumers")
    assert "billing" in terminal.text("event", "forget", "billing")
    assert "No readers of events." in terminal.text("event", "consumers")
