"""A server that is killed under running jobs and comes back after five windows: the bills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from gpucredits.client import Client, Retry
from gpucredits.client.leases import clock_ms
from gpucredits.core.bounds import AWAY_US_MIN
from gpucredits.wire.ledger.reservation import ReservationAnswer
from support.scenes.orgs import new_org
from support.servers.launchers import Launchers
from support.servers.mortal_server import MortalServer
from support.waiting import HANGS_S, until

WINDOW_MS = 3_000
AWAY_MS = 5 * WINDOW_MS
# Writes down that it lives, so that a job which outlives its trust has a witness.
LIVES = """
import os, signal, sys, time
def now(): return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
place = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print(now(), flush=True)
while True:
    os.pwrite(place, b"%020d" % now(), 0)
    time.sleep(0.01)
"""


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    """A server that may be killed."""
    with MortalServer(tmp_path) as server:
        yield server


def lease_of(client: Client, org: str, job: str) -> ReservationAnswer:
    """The lease of a job."""
    page = client.reservation_page(account=org, tree=True).reservations
    (lease,) = [each for each in page if each.job_id == job]
    return lease


def charged(client: Client, org: str, jobs: Iterable[str]) -> Decimal:
    """What jobs have cost so far."""
    return sum((Decimal(lease_of(client, org, job).settled) for job in jobs), Decimal(0))


def bill(used_ms: int) -> str:
    """The oracle: a credit for each second."""
    return format((Decimal(used_ms) / 1_000).normalize(), "f")


def is_sound(server: MortalServer) -> bool:
    """Whether every rule holds on the books of a running server."""
    words = [sys.executable, "-m", "gpucredits", "verify", "--json", "--data-dir"]
    done = subprocess.run(
        [*words, str(server.data_dir)], capture_output=True, timeout=HANGS_S, check=False
    )
    return bool(json.loads(done.stdout)["findings"] == [])


def test_a_server_that_is_away_for_five_windows(mortal: MortalServer, tmp_path: Path) -> None:
    """With escrow a job lives and is trued up; without it ends by itself; both bills are exact.

    A lease of another launcher, which went on, reports in the grace and is renewed. Nobody was
    charged more than the exposure that was stated before.
    """
    assert AWAY_US_MIN < AWAY_MS * 1_000, "it counts as an outage"
    asking = Retry(deadline_s=HANGS_S)
    with Client(mortal.url, mortal.key, retry=asking) as client, Launchers(mortal) as launchers:
        org = new_org(client)
        client.issue(org, "100000")
        jobs = {}
        for name, window, escrow in (("strict", "3s", "0"), ("escrow", "10s", "10")):
            words = ("--job", name, "--window", window, "--escrow", escrow, "--timeout", "60s")
            command = [sys.executable, "-c", LIVES, str(tmp_path / name)]
            jobs[name] = launchers.start(org, *words, command=command)
            jobs[name].line()
        until(lambda: lease_of(client, org, "escrow").seq and lease_of(client, org, "strict").seq)
        other = client.reserve(org, job_id="other", gpu_type="h100", window_seconds=14)
        other_ms = clock_ms()
        stated = Decimal(client.exposure_page(account=org).total.total)
        before = charged(client, org, jobs)

        mortal.kill()
        killed_ms = clock_ms()
        until(lambda: clock_ms() >= killed_ms + AWAY_MS)
        strict_ms = int((tmp_path / "strict").read_text())
        assert strict_ms < killed_ms + WINDOW_MS, "no job outlives its trust"
        assert int((tmp_path / "escrow").read_text()) > killed_ms + AWAY_MS - WINDOW_MS
        assert "the server does not answer" in jobs["escrow"].said()
        mortal.start()

        used_ms = clock_ms() - other_ms
        answer = client.heartbeats([(other.reservation_id, 1, used_ms)]).results[0]
        assert (answer.decision, answer.settled) == ("continue", bill(used_ms))
        client.settle(other.reservation_id)
        code, receipt, _ = jobs["strict"].end()
        assert (code, receipt["credits"]) == (128 + signal.SIGKILL, bill(receipt["used_ms"]))
        assert receipt["ended_because"] == "no_answer"
        until(lambda: lease_of(client, org, "escrow").used_ms > AWAY_MS)
        assert charged(client, org, jobs) - before <= stated
        jobs["escrow"].signal(signal.SIGTERM)
        code, receipt, said = jobs["escrow"].end()
        assert (code, receipt["credits"]) == (0, bill(receipt["used_ms"]))
        assert receipt["ended_because"] == ""
        assert "the server answers again" in said
        assert is_sound(mortal)


def test_an_agent_keeps_its_jobs_alive_on_escrow(
    mortal: MortalServer, tmp_path: Path, state: Path
) -> None:
    """Jobs of an agent live and die as those of a launcher do; the bills are exact."""
    asking = Retry(deadline_s=HANGS_S)
    with Client(mortal.url, mortal.key, retry=asking) as client, Launchers(mortal) as launchers:
        org = new_org(client)
        client.issue(org, "100000")
        launchers.agent(state, "--interval", "1s")
        jobs = {}
        for name, window, escrow in (("strict", "3s", "0"), ("escrow", "10s", "10")):
            words = ("--agent", str(state), "--job", name, "--window", window, "--escrow", escrow)
            command = [sys.executable, "-c", LIVES, str(tmp_path / name)]
            jobs[name] = launchers.start(org, *words, command=command)
            jobs[name].line()
        until(lambda: lease_of(client, org, "escrow").seq and lease_of(client, org, "strict").seq)

        mortal.kill()
        killed_ms = clock_ms()
        until(lambda: clock_ms() >= killed_ms + AWAY_MS)
        assert int((tmp_path / "strict").read_text()) < killed_ms + WINDOW_MS
        assert int((tmp_path / "escrow").read_text()) > killed_ms + AWAY_MS - WINDOW_MS
        mortal.start()

        code, receipt, _ = jobs["strict"].end()
        assert (code, receipt["credits"]) == (128 + signal.SIGKILL, bill(receipt["used_ms"]))
        until(lambda: lease_of(client, org, "escrow").used_ms > AWAY_MS)
        jobs["escrow"].signal(signal.SIGTERM)
        code, receipt, _ = jobs["escrow"].end()
        assert (code, receipt["credits"]) == (0, bill(receipt["used_ms"]))
        assert is_sound(mortal)


def test_nobody_waits_for_a_bill_that_waits_for_the_server(
    mortal: MortalServer, tmp_path: Path
) -> None:
    """The launcher and its pipes end with the job; the settler pays when the server is back."""
    with Client(mortal.url, mortal.key, retry=Retry(deadline_s=HANGS_S)) as client:
        org = new_org(client)
        client.issue(org, "100000")
        with Launchers(mortal) as launchers:
            command = [sys.executable, "-c", LIVES, str(tmp_path / "lives")]
            words = ("--job", "late", "--window", "600s", "--timeout", "1s")
            launched = launchers.start(org, *words, command=command)
            launched.line()
            mortal.kill()
            launched.signal(signal.SIGTERM)
            code, receipt, said = launched.end()  # control: the server is still away
            assert (code, receipt) == (0, {})
            assert "will be settled as soon as the server answers" in said
        mortal.start()
        until(lambda: lease_of(client, org, "late").state == "settled")
        lease = lease_of(client, org, "late")
        assert lease.settled == bill(lease.used_ms) != "0"
