"""Guards of a job that are killed or stopped, and full disks: nothing outlives its trust."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpucredits.agent import local_api
from gpucredits.agent.local_api import JobEvent, RunMessage
from gpucredits.cli.node.doctor import SOCKET
from gpucredits.client import Client
from gpucredits.wire.ledger.reservation import ReservationAnswer
from support.servers.launchers import Launched, Launchers, end, is_alive, parent_of
from support.waiting import HANGS_S, until

# A job of four processes: the first, one of its group, one of another session, and a daemon.
SCATTERS = """
import os, subprocess, time
near = subprocess.Popen(["sleep", "600"], stdout=-3)
apart = subprocess.Popen(["sleep", "600"], stdout=-3, start_new_session=True)
reader, writer = os.pipe()
if not os.fork():
    os.setsid()
    if not os.fork():
        os.write(writer, str(os.getpid()).encode())
        os.close(1)
        time.sleep(600)
    os._exit(0)
daemon = int(os.read(reader, 20))
print(os.getpid(), near.pid, apart.pid, daemon, flush=True)
time.sleep(600)
"""
# What it leaves behind is a new process after each millisecond, for some seconds.
HOPS = """
import os, time
ends_at = time.monotonic() + 5
if not os.fork():
    while time.monotonic() < ends_at:
        if os.fork():
            os._exit(0)
    print("outlived", flush=True)
    os._exit(0)
time.sleep(0.1)
"""
WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def family(launched: Launched) -> list[int]:
    """The processes of a scattered job; the first one first. All of them live."""
    pids = [int(pid) for pid in launched.line().split()]
    assert len(pids) == 4
    assert all(is_alive(pid) for pid in pids)
    return pids


def all_are_gone(pids: list[int]) -> bool:
    """Whether no process of a job is left."""
    return not any(is_alive(pid) for pid in pids)


def lease_of(client: Client, org: str) -> ReservationAnswer:
    """The newest lease of an org."""
    return max(client.reservation_page(account=org).reservations, key=lambda each: each.admitted_at)


def is_exact(receipt: dict[str, Any]) -> bool:
    """Whether a receipt is settled at a credit for each second of its use."""
    return (receipt["state"], Decimal(receipt["credits"])) == (
        "settled",
        Decimal(receipt["used_ms"]) / 1_000,
    )


def test_nothing_outlives_its_job_by_forking(launchers: Launchers, org: str) -> None:
    """A process that lives for less than a look at it ends with its group, and so does the job."""
    launched = launchers.python(org, script=HOPS)
    heard, exit_code, receipt, said = launched.line(), *launched.end()
    assert (exit_code, receipt.get("state")) == (0, "settled"), said
    assert heard == ""


def test_nothing_outlives_a_killed_guardian(launchers: Launchers, org: str) -> None:
    """Daemons and other sessions end with it as the first process does, and the bill is paid."""
    launched = launchers.python(org, script=SCATTERS)
    pids = family(launched)
    end(parent_of(pids[0]))
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert all_are_gone(pids)
    assert is_exact(receipt)


def test_nothing_outlives_guardian_and_warden(launchers: Launchers, org: str) -> None:
    """Both killed: the launcher finds what is left by the mark that it carries."""
    launched = launchers.python(org, script=SCATTERS)
    pids = family(launched)
    guardian = parent_of(pids[0])
    end(parent_of(guardian))
    end(guardian)
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert all_are_gone(pids)
    assert is_exact(receipt)


def test_the_next_agent_ends_what_killed_guards_left(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Agent, warden and guardian killed together: the next agent finds the rest, and pays."""
    first = launchers.agent(state)
    pids = family(launchers.python(org, "--agent", str(state), script=SCATTERS))
    until(lambda: lease_of(client, org).seq > 0)
    guardian = parent_of(pids[0])
    for pid in (first.pid, parent_of(guardian), guardian):
        end(pid)
    first.wait(HANGS_S)
    assert is_alive(pids[2])  # control: the kernel ends only the first process
    launchers.agent(state)
    until(lambda: all_are_gone(pids))
    until(lambda: lease_of(client, org).state == "settled")
    lease = lease_of(client, org)
    assert Decimal(lease.settled) == Decimal(lease.used_ms) / 1_000


def test_a_stopped_guardian_goes_on(launchers: Launchers, client: Client, org: str) -> None:
    """Stopped, with its launcher killed: the job still ends where its trust does, and is billed."""
    launched = launchers.python(org, "--window", "3s", script=SCATTERS)
    pids = family(launched)
    os.kill(parent_of(pids[0]), signal.SIGSTOP)
    end(launched.process.pid)
    until(lambda: all_are_gone(pids))
    until(lambda: lease_of(client, org).state != "active" and lease_of(client, org).used_ms > 0)
    lease = lease_of(client, org)
    assert Decimal(lease.settled) == Decimal(lease.used_ms) / 1_000


def test_a_killed_warden_ends_no_job(launchers: Launchers, org: str) -> None:
    """The guardian goes on without it: the job ends when it is told to, and is billed."""
    launched = launchers.python(org, script=SCATTERS)
    pids = family(launched)
    end(parent_of(parent_of(pids[0])))
    assert all(is_alive(pid) for pid in pids)
    launched.signal(signal.SIGTERM)
    exit_code, receipt, _ = launched.end()
    assert exit_code == 128 + signal.SIGTERM
    assert all_are_gone(pids)
    assert is_exact(receipt)


def fill_disk(pid: int) -> None:
    """Let every further write of a process to a file fail."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))


def empty_disk(pid: int) -> None:
    """Let a process write again."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def test_a_full_disk_ends_no_job_and_holds_up_no_bill(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """A job is reported, ended and settled; a new one is refused and costs nothing, until later."""
    agent = launchers.agent(state, "--interval", "0.5s")
    through = ("--agent", str(state), "--window", "3s")
    launched = launchers.python(org, *through, script=WAITS)
    pid = int(launched.line())
    fill_disk(agent.pid)
    fill_disk(parent_of(pid))
    before = lease_of(client, org).seq
    until(lambda: lease_of(client, org).seq > before + 2)
    assert is_alive(pid)
    end(pid)
    exit_code, receipt, _ = launched.end()
    assert exit_code == 137
    assert is_exact(receipt)
    refused = launchers.python(org, *through, script=WAITS)
    exit_code, receipt, said = refused.end()
    assert (exit_code, receipt) == (126, {})
    assert "File too large" in said
    assert lease_of(client, org).state == "canceled"
    empty_disk(agent.pid)
    exit_code, receipt, _ = launchers.python(org, *through, script="").end()
    assert exit_code == 0
    assert is_exact(receipt)


def test_an_end_that_could_not_be_written_is_told(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Full disk and no agent: the guardian keeps the end for the next agent, which bills it all."""
    first = launchers.agent(state)
    launched = launchers.python(org, "--agent", str(state), "--window", "60s", script=WAITS)
    pid = int(launched.line())
    guardian = parent_of(pid)
    fill_disk(guardian)
    until(lambda: lease_of(client, org).seq > 0)
    reported_ms = lease_of(client, org).used_ms
    end(first.pid)
    first.wait(HANGS_S)
    end(pid)
    until(lambda: not is_alive(pid))
    launchers.agent(state)
    until(lambda: lease_of(client, org).state == "settled")
    lease = lease_of(client, org)
    assert Decimal(lease.settled) == Decimal(lease.used_ms) / 1_000
    assert lease.used_ms > reported_ms  # control: a guardian that is gone leaves what was reported
    until(lambda: not is_alive(guardian))


def test_an_end_is_written_when_there_is_room_again(launchers: Launchers, org: str) -> None:
    """A guardian without an agent stays for its last words only as long as the disk is full."""
    with tempfile.TemporaryDirectory(prefix="gca-") as folder:
        first = launchers.agent(Path(folder))
        launched = launchers.python(org, "--agent", folder, "--window", "60s", script=WAITS)
        pid = int(launched.line())
        guardian = parent_of(pid)
        events = next((Path(folder) / "jobs").iterdir()) / "events"
        fill_disk(guardian)
        end(first.pid)
        first.wait(HANGS_S)
        end(pid)
        until(lambda: not is_alive(pid))
        assert is_alive(guardian)
        assert "ended" not in events.read_text()  # control: there is no room
        empty_disk(guardian)
        until(lambda: not is_alive(guardian))
        assert "ended" in events.read_text().splitlines()[-1]


def test_two_agents_share_no_folder(launchers: Launchers, state: Path) -> None:
    """A second one is refused, also where the first one's socket was taken away."""
    launchers.agent(state)
    serve = [sys.executable, "-m", "gpucredits", "agent", "serve", "--state-dir", str(state)]

    def second() -> str:
        done = subprocess.run(
            serve, env=launchers.env, capture_output=True, text=True, timeout=HANGS_S, check=False
        )
        assert done.returncode
        return done.stderr

    assert "another agent uses" in second()
    (state / SOCKET).unlink()
    assert "another agent uses" in second()


def test_a_file_in_the_place_of_the_socket_stays(launchers: Launchers, state: Path) -> None:
    """It is named, and nobody's file is deleted."""
    place = state / SOCKET
    place.write_text("mine")
    serve = [sys.executable, "-m", "gpucredits", "agent", "serve", "--state-dir", str(state)]
    done = subprocess.run(
        serve, env=launchers.env, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert done.returncode
    assert "is not a socket: move it away" in done.stderr
    assert place.read_text() == "mine"


def test_a_job_without_its_folder_gives_its_lease_back(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """A working directory that is not there: refused by name, and nothing is held."""
    launchers.agent(state)
    message = RunMessage(
        account=org,
        fields={"job_id": "lost", "gpu_type": "h100"},
        argv=["true"],
        env={},
        cwd="/no/such/folder",
        signal=15,
    )
    answer = local_api.run_at(state / SOCKET, message, no_signals, no_words)
    assert isinstance(answer, JobEvent)
    assert "/no/such/folder: No such file" in (answer.detail or "")
    lease = lease_of(client, org)
    assert (lease.state, lease.held) == ("canceled", "0")
    assert list((state / "jobs").iterdir()) == []


def no_signals(_link: socket.socket) -> None:
    """Nobody signals this job."""


def no_words(_text: str) -> None:
    """Nobody reads what is said."""
