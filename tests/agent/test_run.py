"""``gpucredits run``: real processes and signals against a real server, down to the bill."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpucredits.agent.job import SupervisedJob
from gpucredits.agent.launcher import JobCommand, Launcher, ServerAddress
from gpucredits.cli.main import main
from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client
from gpucredits.client.leases import clock_ms
from gpucredits.wire.ledger.reservation import ReservationAnswer
from support.servers.launchers import Launchers, end, is_alive, parent_of
from support.waiting import HANGS_S, until

# Says its own life by the clock that counts suspended time, so that the bill has a witness.
SAYS = """
import os, signal, sys, time
def now(): return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
"""
WAITS = SAYS + "print(os.getpid(), now(), flush=True)\ntime.sleep(600)\n"


def price_of(gpus: int, used_ms: int) -> str:
    """The oracle: a credit for each GPU-second."""
    text = format(Decimal(gpus * used_ms) / 1_000, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def lease_of(client: Client, org: str) -> ReservationAnswer:
    """The only lease of an org."""
    (lease,) = client.reservation_page(account=org, tree=True).reservations
    return lease


def is_billed(receipt: dict[str, Any], gpus: int, least_ms: int) -> bool:
    """Whether a receipt is the oracle's, for at least the time that the job itself saw."""
    exact = receipt["credits"] == price_of(gpus, receipt["used_ms"])
    return bool(exact and receipt["used_ms"] >= least_ms and receipt["state"] == "settled")


def test_a_signal_before_the_start_reaches_the_job(
    server: TemporaryServer, client: Client, org: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher that is told to end while it starts its job passes that on."""
    address = ServerAddress(url=server.url, key=server.key, ca_file=None, timeout_s=HANGS_S)
    launcher = Launcher(address, JobCommand(argv=["sleep", "600"]), print)
    start = SupervisedJob.start

    async def start_late(job: SupervisedJob, *terms: Any) -> None:
        launcher._signaled(signal.SIGTERM)  # as its handler does
        await start(job, *terms)

    monkeypatch.setattr(SupervisedJob, "start", start_late)
    monkeypatch.setattr(Launcher, "_take_signals", lambda _: None)
    run = launcher.run(org, {"job_id": "early", "gpu_type": "h100"}, wait=False)
    exit_code, receipt = asyncio.run(asyncio.wait_for(run, HANGS_S))
    assert exit_code == 128 + signal.SIGTERM
    assert receipt is not None
    assert receipt.credits == price_of(1, receipt.used_ms)


@pytest.mark.parametrize("code", [0, 7])
def test_a_command_runs_and_its_receipt_says_what_it_cost(
    launchers: Launchers, client: Client, org: str, code: int
) -> None:
    """Exit code, GPU-time, price, credits and the grant that paid."""
    script = SAYS + f"a = now()\nwhile now() < a + 40: pass\nprint(now() - a)\nsys.exit({code})"
    launched = launchers.python(org, "--gpus", "2", script=script)
    lived_ms = int(launched.line())
    exit_code, receipt, _ = launched.end()
    assert exit_code == receipt["exit_code"] == code
    assert is_billed(receipt, 2, lived_ms)
    (grant,) = client.grant_page(account=org).grants
    assert receipt["grants"] == [{"grant_id": grant.grant_id, "paid": receipt["credits"]}]
    assert receipt["price_per_gpu_hour"] == "3600"
    assert receipt["price_id"].startswith("prc_")
    lease = lease_of(client, org)
    assert (lease.settled, lease.held, lease.used_ms) == (
        receipt["credits"],
        "0",
        receipt["used_ms"],
    )


def test_the_job_sees_its_lease_and_its_gpus(
    launchers: Launchers, client: Client, org: str
) -> None:
    """The environment names the reservation and the devices."""
    script = (
        "import os; e = os.environ; "
        "print(e['GPUCREDITS_RESERVATION_ID'], e['CUDA_VISIBLE_DEVICES'])"
    )
    devices = ("--device", "GPU-1", "--device", "GPU-2")
    launched = launchers.python(org, "--gpus", "2", *devices, script=script)
    assert launched.line() == f"{lease_of(client, org).reservation_id} GPU-1,GPU-2"
    assert launched.end()[0] == 0


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        ("1", ["GPU-1", "GPU-2"]),
        ("0.5", ["GPU-1", "GPU-2"]),
        ("1.5", ["GPU-1"]),
        ("2", ["GPU-1", "GPU-1"]),
        ("2", ["GPU-1,GPU-2", "GPU-3"]),
        ("1", [""]),
    ],
)
def test_a_job_names_as_many_gpus_as_it_pays_for(gpus: str, devices: list[str]) -> None:
    """More, fewer, the same twice, or two in one name: wrong usage, before a lease is taken."""
    named = [word for each in devices for word in ("--device", each)]
    words = ["run", "--account", "acme", "--type", "h100", "--gpus", gpus, *named, "--", "true"]
    told = CliRunner().invoke(main, words)
    assert (told.exit_code, "--device" in told.output) == (2, True)


def test_a_job_without_credits_does_not_start(launchers: Launchers, client: Client) -> None:
    """A refusal has its reason, and the command never runs."""
    path = client.create_account(f"poor-{id(client)}").path
    client.set_price("h100", "3600", account=path)
    launched = launchers.python(path, script="print('ran')")
    assert launched.line().startswith("{")  # the problem, for scripts
    exit_code, receipt, _ = launched.end()
    assert (exit_code, receipt) == (1, {})


def test_a_command_that_is_not_there_costs_nothing(
    launchers: Launchers, client: Client, org: str
) -> None:
    """127 as shells have it; the lease is canceled."""
    exit_code, receipt, said = launchers.start(org, command=["/no/such/command"]).end()
    assert (exit_code, receipt) == (127, {})
    assert "nothing was charged" in said
    assert lease_of(client, org).state == "canceled"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_job_and_the_bill_is_paid(
    launchers: Launchers, org: str, number: signal.Signals
) -> None:
    """A signal to the launcher ends the job by it: 128+n, settled to the end."""
    script = WAITS.replace("print(", "signal.signal(signal.SIGINT, signal.SIG_DFL); print(")
    launched = launchers.python(org, script=script)
    launched.line()
    launched.signal(number)
    exit_code, receipt, _ = launched.end()
    assert exit_code == 128 + number
    assert is_billed(receipt, 1, 0)


def test_the_second_ctrl_c_ends_a_job_that_ignores_the_first(
    launchers: Launchers, org: str
) -> None:
    """The first is passed on, the second kills; control: after the first the job lives."""
    hears = "signal.signal(signal.SIGINT, lambda *_: print('heard', flush=True)); print("
    launched = launchers.python(
        org,
        script=WAITS.replace("print(", hears).replace(
            "time.sleep(600)", "[time.sleep(600) for _ in range(9)]"
        ),
    )
    pid = int(launched.line().split()[0])
    launched.signal(signal.SIGINT)
    assert launched.line() == "heard"
    assert is_alive(pid)
    launched.signal(signal.SIGINT)
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert is_billed(receipt, 1, 0)


def test_a_killed_child_is_billed_to_its_end(launchers: Launchers, org: str) -> None:
    """SIGKILL from elsewhere: the exit code says so and the receipt is exact."""
    launched = launchers.python(org, script=WAITS)
    pid = int(launched.line().split()[0])
    end(pid)
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert is_billed(receipt, 1, 0)


def test_nothing_of_a_job_outlives_it(launchers: Launchers, org: str) -> None:
    """Processes that a job leaves behind, in groups of their own too, end with it."""
    script = (
        "import subprocess; p = [subprocess.Popen(['sleep', '600'], start_new_session=apart, "
        "stdout=-3, stderr=-3) for apart in (True, False)]; print(*(each.pid for each in p))"
    )
    launched = launchers.python(org, script=script)
    left = [int(pid) for pid in launched.line().split()]
    assert launched.end()[0] == 0
    assert len(left) == 2
    assert not any(is_alive(pid) for pid in left)


def test_a_killed_guardian_takes_the_job_with_it(launchers: Launchers, org: str) -> None:
    """The launcher notices, and the bill is paid."""
    launched = launchers.python(org, script=WAITS)
    pid = int(launched.line().split()[0])
    end(parent_of(pid))
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert not is_alive(pid)
    assert is_billed(receipt, 1, 0)


def test_a_job_outlives_its_killed_launcher_until_its_deadline_only(
    launchers: Launchers, client: Client, org: str
) -> None:
    """The guardian ends the job when trust ends, and the settler pays all of its use."""
    launched = launchers.python(org, "--window", "3s", script=WAITS)
    pid = int(launched.line().split()[0])
    end(launched.process.pid)
    launched.process.wait()
    assert is_alive(pid)
    until(lambda: not is_alive(pid))
    lease = when_paid(client, org)
    assert lease.settled == price_of(1, lease.used_ms)
    assert lease.state == "expired"
    assert lease.ended_at is not None
    lived = datetime.fromisoformat(lease.ended_at) - datetime.fromisoformat(lease.admitted_at)
    assert timedelta(milliseconds=lease.used_ms) <= lived


def test_a_job_that_ends_after_its_launcher_was_killed_is_settled(
    launchers: Launchers, client: Client, org: str
) -> None:
    """The guardian's settler ends the lease before it lapses."""
    launched = launchers.python(org, script=WAITS)
    pid = int(launched.line().split()[0])
    end(launched.process.pid)
    launched.process.wait()
    end(pid)
    lease = when_paid(client, org)
    assert (lease.state, lease.settled) == ("settled", price_of(1, lease.used_ms))


def test_a_job_keeps_its_time_when_its_key_is_revoked(
    launchers: Launchers, client: Client, org: str
) -> None:
    """The launcher stays with its job to the end of the lease, and says how the bill is paid."""
    made = client.create_key("member", scope=org)
    key = {"GPUCREDITS_API_KEY": str(made.secret)}
    launched = launchers.python(org, "--window", "5s", script=WAITS, **key)
    pid = int(launched.line().split()[0])
    client.revoke_key(made.key_id)
    exit_code, receipt, said = launched.end()
    assert (exit_code, receipt) == (128 + signal.SIGKILL, {})
    assert not is_alive(pid)
    assert "the server refuses reports" in said
    found = re.search(r"gpucredits settle (\S+) --used ([0-9.]+)s", said)
    assert found is not None
    client.settle(found[1], used_ms=int(Decimal(found[2]) * 1_000))
    lease = when_paid(client, org)
    assert lease.settled == price_of(1, lease.used_ms)


def when_paid(client: Client, org: str) -> ReservationAnswer:
    """The only lease of an org once it has ended and its use is paid."""

    def is_paid() -> bool:
        lease = lease_of(client, org)
        return lease.state != "active" and lease.used_ms > 0

    until(is_paid)
    return lease_of(client, org)


def test_a_job_drains_at_its_last_credit(launchers: Launchers, client: Client, org: str) -> None:
    """The signal comes a grace before the end, the job may end by itself, and all use is paid."""
    path = client.create_account(f"{org}/small", funding="own").path
    client.transfer(org, path, "8")
    script = (
        SAYS
        + "signal.signal(signal.SIGUSR1, lambda *_: (print('told', flush=True), sys.exit(9)))\n"
        + "print('up', flush=True)\ntime.sleep(600)\n"
    )
    words = ("--window", "5s", "--grace", "1s", "--signal", "USR1")
    launched = launchers.python(path, *words, script=script)
    assert [launched.line(), launched.line()] == ["up", "told"]
    exit_code, receipt, said = launched.end()
    assert exit_code == 9
    assert receipt["credits"] == price_of(1, receipt["used_ms"])
    assert "insufficient_credits" in receipt["ended_because"] + said


def test_a_job_that_ignores_its_signal_is_killed_at_the_deadline(
    launchers: Launchers, client: Client, org: str
) -> None:
    """Nothing is charged beyond the credits, and the last slice is paid."""
    path = client.create_account(f"{org}/small", funding="own").path
    client.transfer(org, path, "6")
    script = WAITS.replace("print(", "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(")
    launched = launchers.python(path, "--window", "5s", script=script)
    pid = int(launched.line().split()[0])
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert not is_alive(pid)
    assert receipt["credits"] == price_of(1, receipt["used_ms"])
    assert Decimal(1) <= Decimal(receipt["credits"]) <= 6


def test_a_receipt_says_why_a_job_was_killed(launchers: Launchers, org: str) -> None:
    """A lease that is shorter than the first report is due ends its job, and is the reason."""
    exit_code, receipt, _ = launchers.python(org, "--max", "0.2", script=WAITS).end()
    assert (exit_code, receipt["ended_because"]) == (137, "expired")
    exit_code, receipt, _ = launchers.start(org, command=["sh", "-c", "kill -9 $$"]).end()
    assert (exit_code, receipt["ended_because"]) == (137, "")


@pytest.mark.parametrize("node", [None, "gpu-7"], ids=["free key", "key of a node"])
def test_a_launcher_waits_in_the_queue_and_says_why(
    launchers: Launchers, client: Client, org: str, node: str | None
) -> None:
    """The position and the reason are shown; credits let the job start."""
    path = client.create_account(f"{org}/empty", funding="own").path
    key = client.create_key("member", scope=path, node=node)
    words = ("--wait",) if node is None else ("--wait", "--node", node)
    env = {"GPUCREDITS_API_KEY": str(key.secret)}
    launched = launchers.python(path, *words, script="print('ran')", **env)
    assert re.search(r"waits, .*in the queue: .*credits", launched.said())
    client.transfer(org, path, "1000")
    assert launched.line() == "ran"
    exit_code, receipt, _ = launched.end()
    assert exit_code == 0
    assert is_billed(receipt, 1, 0)


def test_ctrl_c_leaves_the_queue(launchers: Launchers, client: Client, org: str) -> None:
    """Nothing waits and nothing is held after it."""
    path = client.create_account(f"{org}/empty", funding="own").path
    launched = launchers.python(path, "--wait", script="print('ran')")
    until(lambda: client.queue_page(account=path).queue)
    launched.signal(signal.SIGINT)
    assert launched.end()[0] == 130
    (request,) = client.queue_page(account=path).queue
    assert request.state == "canceled"


def test_a_throttled_job_is_stopped_and_goes_on(
    launchers: Launchers, client: Client, org: str
) -> None:
    """It pauses until there are tokens again, keeps its lease, and pauses are not billed."""
    client.set_rate_limit(org, capacity="4", refill_per_hour="1800")  # half of what the job takes
    launched = launchers.python(org, "--window", "3s", script=WAITS)
    pid, began_ms = map(int, launched.line().split())
    until(lambda: state_of(pid) == "T")
    seen = [clock_ms()]  # instants between which the job was stopped, all of that time

    def goes_on() -> bool:
        at_ms = clock_ms()
        if state_of(pid) != "T":
            return True
        seen.append(at_ms)
        return False

    until(goes_on)
    assert is_alive(pid)
    end(pid)
    exit_code, receipt, said = launched.end()
    lived_ms = clock_ms() - began_ms
    assert exit_code == 137
    assert "rate_limited" in said
    assert is_billed(receipt, 1, 0)
    assert seen[-1] > seen[0]
    assert receipt["used_ms"] <= lived_ms - (seen[-1] - seen[0])


def state_of(pid: int) -> str:
    """The state of a process, such as T for one that is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_fraction_of_a_gpu_is_billed_as_such(launchers: Launchers, org: str) -> None:
    """Half a GPU costs half, and the receipt says so."""
    exit_code, receipt, _ = launchers.python(org, "--gpus", "0.5", script="").end()
    assert (exit_code, receipt["gpus"]) == (0, "0.5")
    assert Decimal(receipt["credits"]) == Decimal(receipt["used_ms"]) / 2_000
    assert receipt["price_per_gpu_hour"] == "3600"


def test_a_wrong_signal_is_said_of_its_option(launchers: Launchers, org: str) -> None:
    """Before a lease is asked for."""
    launched = launchers.start(org, "--signal", "FOO", command=["true"])
    told = json.loads(launched.line())
    assert (told["reason"], told["field"]) == ("wrong_usage", "--signal")
    assert "--signal" in told["detail"]
    assert launched.end()[0] == 2
