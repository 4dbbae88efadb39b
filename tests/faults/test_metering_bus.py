"""A server with a bus under load: NATS and the server are killed again and again."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from gpucredits.client import Client, Retry, Undecided
from support.engines.nats_server import nats_server
from support.engines.postgres import TestServer, sql
from support.faults.crash_arena import free_port
from support.faults.extent import Extent, Teller
from support.servers.http import running_server
from support.waiting import HANGS_S, until

pytestmark = pytest.mark.faults

JOBS = 6
EACH = 20  # events in a request
COUNTED = "SELECT coalesce(sum(events), 0)::bigint FROM measured"
BRIEF = Retry(pause_s_first=0.02, pause_s_max=0.2, attempt_timeout_s=10.0, deadline_s=2.0)


@dataclass
class Load:
    """Nodes that report use until they are told to stop; each repeats what was not accepted."""

    url: str
    secret: str
    leases: list[str]
    accepted: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def report(self, lease: str) -> None:
        """Report the use of one lease, a second in each event, until told to stop."""
        last = 1
        with Client(self.url, self.secret, retry=BRIEF) as client:
            while not self.stop.is_set():
                events = [
                    {
                        "reservation_id": lease,
                        "seq": seq,
                        "start_ms": seq * 1_000,
                        "end_ms": (seq + 1) * 1_000,
                        "node": "n1",
                    }
                    for seq in range(last, last + EACH)
                ]
                try:
                    answer = client.report_usage(events)
                except Undecided:
                    self.failures += 1
                    continue
                assert answer.accepted == EACH, answer
                last += EACH
                self.accepted[lease] = last - 1


@contextmanager
def reporting(load: Load) -> Iterator[None]:
    """Keep up the load."""
    threads = [threading.Thread(target=load.report, args=(lease,)) for lease in load.leases]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        load.stop.set()
        for thread in threads:
            thread.join(HANGS_S)


def opened_leases(client: Client) -> list[str]:
    """Leases of several orgs."""
    client.set_price("h100", "36")
    leases = []
    for number in range(JOBS):
        org = f"org{number}"
        client.create_account(org)
        client.issue(org, "1000")
        lease = client.reserve(org, job_id="j", gpu_type="h100", node="n1", window_seconds=600)
        leases.append(lease.reservation_id)
    return leases


def test_no_event_is_lost_and_none_counts_twice(
    postgres: TestServer, data_dir: Path, extent: Extent, tell: Teller
) -> None:
    """After all kills, each accepted event of each lease was counted once."""
    chance = random.Random(extent.seed)
    kills = {"nats": 0, "server": 0}
    port = free_port()
    with ExitStack() as stack:
        dsn = stack.enter_context(postgres.database())
        nats = stack.enter_context(nats_server())
        options = ("--database-url", dsn, "--bus", nats.url)
        server = stack.enter_context(running_server(data_dir, *options, port=port))
        with Client(server.url, server.admin_secret) as client:
            leases = opened_leases(client)
        load = Load(server.url, server.admin_secret, leases)
        with reporting(load):
            for cycle in range(extent.cycles):
                until(partial(has_moved, load, sum(load.accepted.values())))
                if cycle % 2:
                    server.process.kill()
                    server.process.wait(HANGS_S)
                    kills["server"] += 1
                if not cycle % 2 or chance.random() < 0.5:
                    nats.kill()
                    nats.start()
                    kills["nats"] += 1
                if cycle % 2:
                    server = stack.enter_context(running_server(data_dir, *options, port=port))
        total = sum(load.accepted.values())
        until(lambda: sql(dsn, COUNTED) >= total)
        found, rows = sql(dsn, COUNTED), sql(dsn, "SELECT count(*) FROM usage_events")
        letters = sql(dsn, "SELECT count(*) FROM dead_letters")
    figures = f"{total:,} events accepted, {found:,} counted, {letters} dead letters"
    # What was sent last and never answered may be there as well, once.
    holds = total <= found == rows <= total + JOBS * EACH and not letters
    tell("bus killed under load", figures, holds=holds, **kills, requests_failed=load.failures)
    assert holds, figures


def has_moved(load: Load, before: int) -> bool:
    """Whether more was accepted meanwhile."""
    return sum(load.accepted.values()) > before + EACH
