"""``agent doctor`` says what is wrong and what to do; the unit for systemd is a unit."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpucredits import agent
from gpucredits.agent.meters.reading import MeterError
from gpucredits.cli.node import doctor
from gpucredits.client import Client
from gpucredits.service.access.permissions import ALLOWED, Permission
from support.servers.launchers import Launchers
from support.servers.nvml import VARIABLE, CannotMakeNvmlError, make_nvml
from support.waiting import HANGS_S

NEEDS = """
import sys
import gpucredits.agent.node, gpucredits.cli.node.agent
server = {"asyncpg", "starlette", "gpucredits.store", "gpucredits.service"}
print(*sorted(server & set(sys.modules)))
"""
UNIT = Path(agent.__file__).with_name("gpucredits-agent.service")


def test_a_node_needs_no_part_of_the_server() -> None:
    """The agent's commands load no database driver: a node has the client's packages only."""
    done = subprocess.run(
        [sys.executable, "-c", NEEDS], capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    assert done.stdout.split() == []


def test_the_doctor_knows_which_roles_reserve() -> None:
    """The list of the node is that of the server."""
    assert set(doctor.RESERVING) == {str(role) for role in ALLOWED[Permission.RESERVE]}


def test_the_meter_is_examined(tmp_path: Path) -> None:
    """How many devices and how busy; no GPUs, no meter and no words for one are told apart."""
    assert doctor.meter("simulated:2") == "simulated, 2 GPUs: 2 devices, 90% busy"
    assert "no GPUs are read or given to jobs: --meter none" in doctor.meter("none")
    with pytest.raises(MeterError, match="shows no GPU"):
        doctor.meter("simulated:0")
    with pytest.raises(MeterError, match="there is no meter"):
        doctor.meter("rocm")
    with pytest.raises(MeterError, match="start dcgm-exporter"):
        doctor.meter("dcgm:http://127.0.0.1:1/metrics")


def test_the_doctor_reads_a_real_driver_library(tmp_path: Path) -> None:
    """As a process of its own, which finds the library by the loader's path; MIG is counted."""
    try:
        library = make_nvml(tmp_path)
    except CannotMakeNvmlError as error:
        pytest.skip(str(error))
    script = tmp_path / "gpus"
    script.write_text("gpu GPU-b 0 0 9 1 H100\nmig MIG-1 1 9 H100 MIG 1g.10gb\n")
    code = "from gpucredits.cli.node import doctor; print(doctor.meter('auto'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LD_LIBRARY_PATH": str(library.parent), VARIABLE: str(script)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert "NVML, driver 570.86.10: 1 devices, 1 of them MIG instances" in done.stdout, done.stderr


def test_the_folder_is_examined(tmp_path: Path) -> None:
    """Missing, open to others, too deep for sockets, with readings set aside: each has advice."""
    assert "MiB free" in doctor.writable(tmp_path)
    with pytest.raises(OSError, match="agent serve makes it"):
        doctor.writable(tmp_path / "none")
    tmp_path.chmod(0o777)
    with pytest.raises(OSError, match="chmod go-w"):
        doctor.writable(tmp_path)
    with pytest.raises(OSError, match="choose a shorter --state-dir"):
        doctor.socket_path(tmp_path / ("deep" * 30))
    assert "of 107 bytes" in doctor.socket_path(Path("/var/lib/gpucredits-agent"))
    aside = tmp_path / "usage.refused"
    assert doctor.refused(aside) == "none"
    aside.write_text("{}")
    with pytest.raises(OSError, match="would not take"):
        doctor.refused(aside)
    (tmp_path / "usage").write_bytes(b"torn")
    assert doctor.spooled(tmp_path / "usage") == "0 records, 4 torn bytes are dropped"


def test_the_node_is_examined() -> None:
    """Clock, processes, guardian and open files of this machine are fit."""
    assert "since boot" in doctor.monotonic_clock()
    assert "tick" in doctor.processes()
    assert "runs with" in doctor.starts_guardian()
    assert doctor.open_files()


class Doctor:
    """Runs the command with a key of a role, bound to a node or to none."""

    def __init__(self, launchers: Launchers, client: Client, org: str) -> None:
        self.launchers, self._client, self._org = launchers, client, org

    def key(self, role: Any, node: str | None) -> str:
        """The secret of a fresh key."""
        made = self._client.create_key(role, scope=self._org, node=node)
        assert made.secret is not None
        return made.secret

    def rows(self, key: str, *words: str) -> dict[str, str]:
        """State and finding of each check."""
        done = self.run("doctor", *words, key=key)
        found = [re.split(r"  +", line, maxsplit=2) for line in done.stdout.splitlines()[1:]]
        return {name: f"{state} {detail}" for name, state, detail in found}

    def run(self, *words: str, key: str) -> subprocess.CompletedProcess[str]:
        """Run a command about the agent to its end."""
        return subprocess.run(
            [sys.executable, "-m", "gpucredits", "agent", *words],
            env={**self.launchers.env, "GPUCREDITS_API_KEY": key, "COLUMNS": "400"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )


@pytest.fixture
def examiner(launchers: Launchers, client: Client, org: str) -> Doctor:
    """Somebody who examines nodes."""
    return Doctor(launchers, client, org)


def test_a_key_that_cannot_start_jobs_is_bad(examiner: Doctor, state: Path) -> None:
    """Of a role that may not reserve, or bound to another node; control: a member's of this one."""
    words = ("--state-dir", str(state), "--node", "gpu-7")
    rows = examiner.rows(examiner.key("agent", "gpu-7"), *words)
    assert rows["server"].startswith("bad key ")
    assert "role agent, which may not reserve" in rows["server"]
    assert "gpucredits key create member" in rows["server"]
    rows = examiner.rows(examiner.key("member", "gpu-8"), *words)
    assert rows["server"].startswith("ok ")
    assert rows["node"].startswith("bad this node is gpu-7")
    assert "bound to node gpu-8" in rows["node"]
    rows = examiner.rows(examiner.key("member", "gpu-7"), *words)
    assert rows["node"] == "ok gpu-7, and the key acts for it only"
    rows = examiner.rows(examiner.key("member", None), *words)
    assert rows["node"] == "ok gpu-7; the key is bound to no node"


def test_an_agent_that_runs_says_its_meter_and_node(examiner: Doctor, state: Path) -> None:
    """The doctor asks it, and does not look for GPUs that only the agent was told of."""
    examiner.launchers.agent(state, "--meter", "simulated:4", "--node", "gpu-7")
    key = examiner.key("member", "gpu-7")
    rows = examiner.rows(key, "--state-dir", str(state))
    assert rows["meter"] == "ok simulated, 4 GPUs: 4 devices, read by the agent"
    assert rows["node"].startswith("ok gpu-7")
    assert "as node gpu-7, 0 jobs" in rows["agent"]
    other = examiner.rows(key, "--state-dir", str(state), "--node", "gpu-8")
    assert "is that of node gpu-7, not of gpu-8" in other["agent"]


def test_an_agent_with_the_key_of_another_node_does_not_start(
    examiner: Doctor, state: Path
) -> None:
    """It says which node the key is for, and makes no folder."""
    words = ("serve", "--state-dir", str(state / "own"), "--node", "gpu-7")
    done = examiner.run(*words, key=examiner.key("member", "gpu-8"))
    assert done.returncode == 1
    assert "bound to node gpu-8: give --node gpu-8, or a key of gpu-7" in done.stderr
    assert not (state / "own").exists()


def test_an_agent_is_told_that_its_key_cannot_reserve(examiner: Doctor, state: Path) -> None:
    """It starts all the same: there may be jobs to adopt."""
    key = examiner.key("agent", "gpu-7")
    agent = examiner.launchers.agent(state, "--node", "gpu-7", GPUCREDITS_API_KEY=key)
    assert agent.stderr is not None
    lines = iter(agent.stderr.readline, "")
    assert any("which may not reserve" in line for line in lines)


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    """The check of systemd itself finds nothing; control: it finds a wrong line."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed")

    def verify(text: str) -> str:
        unit = tmp_path / UNIT.name
        unit.write_text(text)
        done = subprocess.run(
            [tool, "verify", "--man=no", str(unit)],
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        lines = (done.stdout + done.stderr).splitlines()
        return "\n".join(line for line in lines if UNIT.name in line)

    assert verify(UNIT.read_text()) == ""
    assert "Unknown" in verify(UNIT.read_text().replace("RestartSec", "RestartSecs"))
