"""A metered node: GPUs for jobs, use that is sent once, faults of the network and of clocks."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from gpucredits.wire.billing.usage import JobUsage
from gpucredits.wire.ledger.reservation import ReservationAnswer
from support.faults.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.faults.wrong_clock import CannotMakeClockError, wrong_clock
from support.servers.launchers import Launchers, end, is_alive
from support.servers.nvml import VARIABLE, CannotMakeNvmlError, make_nvml
from support.waiting import HANGS_S, until

SHOWS = "import os, time; print(os.getpid(), os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\n"
WAITS = SHOWS + "time.sleep(600)"
HOUR_S = 3_600


def witness(state: Path, tmp_path: Path) -> Path:
    """The events that the guardian of the only job writes, under a name that outlives the job."""
    (home,) = (state / "jobs").iterdir()
    kept = tmp_path / home.name
    os.link(home / "events", kept)
    return kept


def lived_ms(events: Path) -> int:
    """The oracle: how long the job ran, by what its guardian wrote down, without its pauses."""
    used, since = 0, 0
    for line in events.read_text().splitlines():
        word, at, *_ = line.split()
        if word in ("started", "resumed"):
            since = int(at)
        elif word in ("paused", "ended"):
            used, since = used + int(at) - since if since else used, 0
    return used


def when_measured(client: Client, org: str) -> tuple[ReservationAnswer, JobUsage]:
    """The only lease of an org and its measured use, once it is paid and its use has arrived."""

    def found() -> tuple[ReservationAnswer, JobUsage] | None:
        (lease,) = client.reservation_page(account=org).reservations
        usage = client.usage_page(org).leases
        if lease.state == "active" or not usage or usage[0].measured_ms < lease.used_ms:
            return None
        return lease, usage[0]

    until(lambda: found() is not None)
    (seen,) = [found()]
    assert seen is not None
    return seen


def is_exact(lease: ReservationAnswer, used_ms: int) -> bool:
    """Whether a lease cost what the oracle says: a credit for each second of a GPU."""
    cost = Decimal(str(lease.gpu_count)) * used_ms / 1_000
    return (lease.used_ms, Decimal(lease.settled)) == (used_ms, cost)


def test_jobs_get_gpus_of_their_own(
    launchers: Launchers, client: Client, org: str, state: Path, tmp_path: Path
) -> None:
    """Whole GPUs for one job, parts that share, a refusal with numbers, and use with its work.

    The agent reads them through NVML, where this machine can make a library for it.
    """
    meter, env = "simulated:2", {}
    with suppress(CannotMakeNvmlError):
        library = make_nvml(tmp_path)
        (tmp_path / "gpus").write_text("gpu GPU-a 73 1 9 0 H100\ngpu GPU-b 73 1 9 0 H100\n")
        meter = "nvml"
        env = {"LD_LIBRARY_PATH": str(library.parent), VARIABLE: str(tmp_path / "gpus")}
    launchers.agent(state, "--meter", meter, "--interval", "0.5s", **env)
    through = ("--agent", str(state))
    whole = launchers.python(org, *through, script=WAITS)
    pid, whole_gpu = whole.line().split()
    halves = [launchers.python(org, *through, "--gpus", "0.5", script=WAITS) for _ in range(2)]
    seen = [each.line().split() for each in halves]
    assert seen[0][1] == seen[1][1] != whole_gpu
    refused = launchers.python(org, *through, "--gpus", "0.1", script=WAITS)
    assert "2 h100 devices, 0 of them wholly free and 0 GPUs free in all" in refused.line()
    assert refused.end()[0] == 1
    until(lambda: any(each.events > 1 for each in client.usage_page(org).leases))
    for each in (pid, *(one for one, _ in seen)):
        end(int(each))
    used = {each.end()[1]["used_ms"] for each in (whole, *halves)}
    until(lambda: used == {each.measured_ms for each in client.usage_page(org).leases})
    assert launchers.python(org, *through, "--gpus", "2", script=SHOWS).end()[0] == 0


def test_use_is_counted_once_through_a_killed_agent(
    launchers: Launchers, client: Client, org: str, state: Path, tmp_path: Path
) -> None:
    """A kill -9 and a torn last record: bill and measured use are those of the guardian."""
    words = ("--meter", "simulated:1", "--interval", "0.5s")
    first = launchers.agent(state, *words)
    launched = launchers.python(org, "--agent", str(state), "--window", "60s", script=WAITS)
    pid = int(launched.line().split()[0])
    events = witness(state, tmp_path)
    until(lambda: client.usage_page(org).leases and client.usage_page(org).leases[0].events)
    end(first.pid)
    first.wait(HANGS_S)
    for name in ("usage", "journal"):
        with (state / name).open("ab") as file:
            file.write(b"\0\0\0\x09torn")
    second = launchers.agent(state, *words)
    end(second.pid)
    second.wait(HANGS_S)
    end(pid)
    until(lambda: "ended" in events.read_text())
    launchers.agent(state, *words)
    lease, usage = when_measured(client, org)
    assert is_exact(lease, lived_ms(events))
    assert (usage.measured_ms, usage.events > 1) == (lease.used_ms, True)


FAULTS = (
    Fault.TWICE,
    Fault.LATE,
    Fault.SWALLOW_REPLY,
    Fault.HALF_REPLY,
    Fault.CUT_REQUEST,
    Fault.RESET,
    Fault.BUSY,
)


def spoil(proxy: FaultyProxy, done: Counter[str]) -> None:
    """Let every second report and batch of use meet a fault, each kind in its turn."""
    chance = random.Random(7)
    turns = {each: itertools.cycle(chance.sample(FAULTS, len(FAULTS))) for each in REPORTED}
    counts = Counter[str]()

    def fault_for(target: str) -> Fault | None:
        if target not in turns:
            return None
        counts[target] += 1
        if counts[target] % 2:
            return None
        fault = next(turns[target])
        done[f"{target} {fault.name}"] += 1
        return fault

    proxy.chance = fault_for


REPORTED = ("/v1/heartbeats", "/v1/usage")


def test_a_bad_network_changes_no_bill(
    server: TemporaryServer,
    launchers: Launchers,
    client: Client,
    org: str,
    state: Path,
    tmp_path: Path,
) -> None:
    """Reports doubled, delayed, reordered and cut: the bill and the use of a clean network."""
    done = Counter[str]()
    with faulty_proxy(server.url) as proxy:
        spoil(proxy, done)
        launchers.agent(
            state, "--meter", "simulated:1", "--interval", "0.5s", GPUCREDITS_URL=proxy.url
        )
        launched = launchers.python(org, "--agent", str(state), "--window", "6s", script=WAITS)
        pid = int(launched.line().split()[0])
        events = witness(state, tmp_path)
        until(lambda: all(sum(of(done, each).values()) >= len(FAULTS) for each in REPORTED))
        assert is_alive(pid)
        assert {f"{each} {fault.name}" for each in REPORTED for fault in FAULTS} <= set(done)
        assert proxy.deliver_late(server.url) > 1
        end(pid)
        lease, usage = when_measured(client, org)
        proxy.deliver_late(server.url)
    assert is_exact(lease, lived_ms(events))
    assert usage.measured_ms == lease.used_ms < sent_ms(proxy)  # control: some was sent again
    assert client.reservation(lease.reservation_id).settled == lease.settled
    assert client.usage_page(org).leases[0].measured_ms == lease.used_ms


def sent_ms(proxy: FaultyProxy) -> int:
    """The use in all batches that reached the proxy, with every repeat."""
    bodies = [json.loads(each.body) for each in proxy.seen if each.target == "/v1/usage"]
    return sum(each["end_ms"] - each["start_ms"] for body in bodies for each in body["events"])


def of(done: Counter[str], target: str) -> Counter[str]:
    """The faults that a target met."""
    return Counter({name: each for name, each in done.items() if name.startswith(target)})


@pytest.mark.parametrize("drift_ppm", [5_000, -5_000])
def test_a_wrong_clock_costs_its_drift_at_most(
    launchers: Launchers, client: Client, org: str, state: Path, tmp_path: Path, drift_ppm: int
) -> None:
    """An hour off and half a per cent too fast or slow: exact by the node, renewed by the server.

    The server cuts use to its own time since admission, so a fast clock costs nobody more.
    """
    try:
        env = wrong_clock(tmp_path, shift_s=HOUR_S, drift_ppm=drift_ppm)
    except CannotMakeClockError as error:
        pytest.skip(str(error))
    launchers.agent(state, "--meter", "simulated:1", "--interval", "0.5s", **env)
    script = "import time; print(time.time(), flush=True)\n" + WAITS
    launched = launchers.python(org, "--agent", str(state), "--window", "3s", script=script, **env)
    assert float(launched.line()) - time.time() > HOUR_S - 60  # control: its clock is wrong
    pid = int(launched.line().split()[0])
    events = witness(state, tmp_path)
    (lease,) = client.reservation_page(account=org).reservations
    until(lambda: client.reservation(lease.reservation_id).seq > 5)
    assert is_alive(pid)
    end(pid)
    paid, _ = when_measured(client, org)
    assert paid.state == "settled"
    drift_ms = lived_ms(events) * abs(drift_ppm) // 10**6 + 1
    assert lived_ms(events) - drift_ms <= paid.used_ms <= lived_ms(events)
    assert Decimal(paid.settled) == Decimal(paid.used_ms) / 1_000


def test_a_job_drains_through_the_agent(
    launchers: Launchers, client: Client, org: str, state: Path, tmp_path: Path
) -> None:
    """Its last credits, the signal, SIGKILL at the deadline: charged what there was, and used."""
    path = client.create_account(f"{org}/small", funding="own").path
    client.transfer(org, path, "10")
    launchers.agent(state, "--meter", "simulated:1", "--interval", "0.5s")
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS
    words = ("--agent", str(state), "--window", "6s", "--grace", "2s")
    launched = launchers.python(path, *words, script=script)
    pid = int(launched.line().split()[0])
    events = witness(state, tmp_path)
    exit_code, receipt, _ = launched.end()
    assert (exit_code, is_alive(pid)) == (137, False)
    assert "signaled" in events.read_text()
    assert receipt["used_ms"] == min(lived_ms(events), 10_000)  # dying takes time, after the kill
    assert Decimal(receipt["credits"]) == Decimal(receipt["used_ms"]) / 1_000 <= 10
    assert "insufficient_credits" in receipt["ended_because"]


def test_a_job_waits_in_the_queue_through_the_agent(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Place and reason are shown; Ctrl-C leaves the queue; credits let the other start."""
    path = client.create_account(f"{org}/empty", funding="own").path
    launchers.agent(state, "--meter", "simulated:1")
    words = ("--agent", str(state), "--wait")
    leaves, stays = (launchers.python(path, *words, script=SHOWS) for _ in range(2))
    assert "in the queue" in leaves.said()
    assert "in the queue" in stays.said()
    leaves.signal(signal.SIGINT)
    assert leaves.end()[0] == 130
    client.transfer(org, path, "1000")
    exit_code, receipt, _ = stays.end()
    assert (exit_code, receipt["state"]) == (0, "settled")
    states: dict[str, Any] = Counter(each.state for each in client.queue_page(account=path).queue)
    assert states == {"canceled": 1, "admitted": 1}
