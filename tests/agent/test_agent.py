"""``gpucredits agent``: jobs of a real agent that is killed, restarted and asked."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucredits.agent.local_api import RunMessage, run_at
from gpucredits.client import Client
from gpucredits.wire.ledger.reservation import ReservationAnswer
from support.servers.launchers import Launchers, end, is_alive
from support.waiting import HANGS_S, until

WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def when_paid(client: Client, org: str) -> ReservationAnswer:
    """The only lease of an org once it has ended and its use is paid."""

    def lease() -> ReservationAnswer:
        (found,) = client.reservation_page(account=org).reservations
        return found

    until(lambda: lease().state != "active" and lease().used_ms > 0)
    return lease()


def is_exact(lease: ReservationAnswer) -> bool:
    """Whether a lease of one GPU cost a credit for each second of its use."""
    return Decimal(lease.settled) == Decimal(lease.used_ms) / 1_000


def test_a_job_runs_through_the_agent(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Output, exit code and receipt are those of ``run`` without an agent."""
    launchers.agent(state)
    words = ("--agent", str(state))
    launched = launchers.python(org, *words, script="print('ran'); raise SystemExit(7)")
    assert launched.line() == "ran"
    exit_code, receipt, _ = launched.end()
    assert exit_code == receipt["exit_code"] == 7
    lease = when_paid(client, org)
    assert is_exact(lease)
    assert (lease.state, lease.settled) == ("settled", receipt["credits"])
    assert lease.node
    assert list((state / "jobs").iterdir()) == []


def test_many_jobs_share_an_agent(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Each is reported and billed for itself; one that is refused harms nobody."""
    launchers.agent(state)
    words = ("--agent", str(state), "--window", "5s")
    started = [launchers.python(org, *words, script=WAITS) for _ in range(4)]
    pids = [int(each.line()) for each in started]
    missing = launchers.start(org, *words, command=["/no/such/command"])
    exit_code, receipt, said = missing.end()
    assert (exit_code, receipt) == (127, {})
    assert "No such file or directory" in said
    assert "nothing was charged" in said
    leases = client.reservation_page(account=org, state="active").reservations
    assert len(leases) == 4
    until(lambda: all(client.reservation(each.reservation_id).seq > 2 for each in leases))
    for pid in pids:
        end(pid)
    assert [each.end()[0] for each in started] == [137] * 4
    assert all(is_exact(client.reservation(each.reservation_id)) for each in leases)


def test_a_restarted_agent_adopts_its_jobs(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Killed with -9, started again: the same process goes on, is renewed, and is billed whole."""
    first = launchers.agent(state)
    launched = launchers.python(org, "--agent", str(state), "--window", "30s", script=WAITS)
    pid = int(launched.line())
    end(first.pid)
    first.wait(HANGS_S)
    assert is_alive(pid)
    launchers.agent(state)
    (lease,) = client.reservation_page(account=org).reservations
    before = client.reservation(lease.reservation_id).seq
    until(lambda: client.reservation(lease.reservation_id).seq > before)
    assert is_alive(pid)
    end(pid)
    paid = when_paid(client, org)
    assert paid.state == "settled"
    assert is_exact(paid)


def test_a_job_that_ended_without_an_agent_is_billed_to_its_end(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """The guardian wrote the end down; the next agent pays. Control: nothing was paid before."""
    first = launchers.agent(state)
    launched = launchers.python(org, "--agent", str(state), script=WAITS)
    pid = int(launched.line())
    end(first.pid)
    first.wait(HANGS_S)
    end(pid)
    events = next((state / "jobs").iterdir()) / "events"
    until(lambda: "ended" in events.read_text())
    lines = [line.split() for line in events.read_text().splitlines()]
    lived_ms = int(lines[-1][1]) - int(lines[0][1])
    (lease,) = client.reservation_page(account=org).reservations
    assert lease.state == "active"
    launchers.agent(state)
    paid = when_paid(client, org)
    assert (paid.state, paid.used_ms) == ("settled", lived_ms)
    assert is_exact(paid)


def test_a_bill_outlives_the_key_of_its_agent(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """A job ends while its agent's key is revoked: an agent with another key pays the bill."""
    made = client.create_key("member", scope=org)
    first = launchers.agent(state, GPUCREDITS_API_KEY=str(made.secret))
    launched = launchers.python(org, "--agent", str(state), script=WAITS)
    pid = int(launched.line())
    client.revoke_key(made.key_id)
    end(pid)
    exit_code, receipt, _ = launched.end()  # nobody waits for the bill
    assert (exit_code, receipt) == (137, {})
    (lease,) = client.reservation_page(account=org).reservations
    assert lease.state == "active"  # control: nothing was paid
    end(first.pid)
    first.wait(HANGS_S)
    launchers.agent(state)
    paid = when_paid(client, org)
    assert paid.state == "settled"
    assert is_exact(paid)
    until(lambda: list((state / "jobs").iterdir()) == [])


def test_a_job_without_an_agent_ends_at_its_deadline(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """No job outlives its trust; the use up to the end of the lease is billed late."""
    first = launchers.agent(state)
    launched = launchers.python(org, "--agent", str(state), "--window", "5s", script=WAITS)
    pid = int(launched.line())
    end(first.pid)
    first.wait(HANGS_S)
    until(lambda: not is_alive(pid))
    until(lambda: client.reservation_page(account=org).reservations[0].state == "expired")
    launchers.agent(state)
    paid = when_paid(client, org)
    assert paid.state == "expired"
    assert is_exact(paid)


def test_doctor_says_what_is_wrong(launchers: Launchers, state: Path) -> None:
    """Without an agent the doctor says so, and with one all is well."""
    doctor = [sys.executable, "-m", "gpucredits", "agent", "doctor", "--state-dir", str(state)]

    def ask() -> tuple[int, str]:
        done = subprocess.run(
            doctor, env=launchers.env, capture_output=True, text=True, timeout=HANGS_S, check=False
        )
        return done.returncode, done.stdout

    code, text = ask()
    assert (code, "no agent listens" in text) == (1, True)
    launchers.agent(state)
    code, text = ask()
    assert (code, "bad" in text) == (0, False)


def test_a_job_too_large_for_the_node_does_not_wait(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """It is told how many GPUs the node has, and takes no lease; over the socket as well."""
    launchers.agent(state, "--meter", "simulated:4")
    words = ("--agent", str(state), "--gpus", "5", "--wait")
    launched = launchers.start(org, *words, command=["true"])
    assert "needs 5 GPUs of the node, and it has 4 h100 devices" in launched.line()
    assert launched.end()[0] == 1
    answer = asked(state, org, gpus=5, wait=True)
    assert answer["event"] == "refused"
    assert "it has 4 h100 devices" in answer["detail"]
    assert client.reservation_page(account=org).reservations == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"\xff",
        b'{"do": "run", "account": "\xff"}',
        b'{"do": ' + b"[" * 100_000,
        {"argv": []},
        {"signal": 0},
        {"signal": 2**63},
    ],
    ids=["no text", "no text within", "deep", "no command", "no signal", "no such signal"],
)
def test_a_message_that_makes_no_sense_is_refused(
    launchers: Launchers, client: Client, org: str, state: Path, wrong: bytes | dict[str, Any]
) -> None:
    """Whoever sends it is told, takes no lease, and its streams are closed."""
    launchers.agent(state)
    packet = wrong if isinstance(wrong, bytes) else run_message(org, **wrong)
    reader, writer = os.pipe()
    with connected(state) as link, open(reader, "rb") as stream:  # noqa: PTH123  # a pipe
        socket.send_fds(link, [packet], [writer] * 3)
        os.close(writer)
        answer = json.loads(link.recv(1 << 17))
        assert (answer["event"], bool(answer["detail"])) == ("refused", True)
        os.set_blocking(reader, False)
        until(lambda: stream.read() == b"")  # the last copy of the other end is closed
    assert client.reservation_page(account=org).reservations == []


def test_a_signal_that_does_not_exist_ends_no_job(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """The caller is told, and the job goes on under its guardian."""
    launchers.agent(state)
    with connected(state) as link:
        started = answer_to(link, run_message(org, argv=["sleep", "600"]))
        assert started["event"] == "started", started
        link.send(b'{"do": "signal", "number": 9223372036854775807}')
        assert json.loads(link.recv(1 << 17))["event"] == "refused"
    with connected(state) as link:
        (job,) = answer_to(link, b'{"do": "list"}')["jobs"]
    assert (job["is_over"], is_alive(job["pid"])) == (False, True)
    end(job["pid"])
    assert is_exact(when_paid(client, org))


def test_a_signal_before_the_start_reaches_the_job(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Whoever signals a job that is being started is heard once it runs."""
    launchers.agent(state)
    message = RunMessage(
        account=org,
        fields={"job_id": "early", "gpu_type": "h100"},
        argv=["sleep", "600"],
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        signal=int(signal.SIGTERM),
    )

    def signal_early(link: socket.socket) -> None:
        link.settimeout(HANGS_S)
        link.send(json.dumps({"do": "signal", "number": int(signal.SIGUSR1)}).encode())

    ended = run_at(state / "agent.sock", message, signal_early, print)
    assert isinstance(ended, tuple), ended
    assert ended[0] == 128 + signal.SIGUSR1
    assert is_exact(when_paid(client, org))


def test_a_job_that_cannot_start_leaves_no_lease(
    launchers: Launchers, client: Client, org: str, state: Path
) -> None:
    """Its folder is not there: refused, the lease is given back, and the agent keeps nothing."""
    launchers.agent(state)
    answer = asked(state, org, cwd="/no/such/folder")
    assert (answer["event"], answer["errno"]) == ("refused", 2)
    (lease,) = client.reservation_page(account=org).reservations
    assert (lease.state, lease.settled) == ("canceled", "0")
    assert list((state / "jobs").iterdir()) == []


def asked(state: Path, org: str, **fields: Any) -> dict[str, Any]:
    """The first answer of an agent's socket to a run."""
    with connected(state) as link:
        return answer_to(link, run_message(org, **fields))


def connected(state: Path) -> socket.socket:
    """A connection to an agent."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.settimeout(HANGS_S)
    link.connect(str(state / "agent.sock"))
    return link


def run_message(org: str, *, gpus: int = 1, **fields: Any) -> bytes:
    """What asks an agent to run a command."""
    job = {"gpu_type": "h100", "gpu_count": gpus, "job_id": "asked"}
    env = {"PATH": os.environ["PATH"]}
    message = {"do": "run", "account": org, "fields": job, "argv": ["true"], "env": env}
    return json.dumps({**message, "cwd": "/", "signal": 15, **fields}).encode()


def answer_to(link: socket.socket, packet: bytes) -> dict[str, Any]:
    """The next answer after a packet with three streams."""
    socket.send_fds(link, [packet], [0, 1, 2])
    answer: dict[str, Any] = json.loads(link.recv(1 << 17))
    return answer
