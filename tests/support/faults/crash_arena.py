"""A real server under load in processes of their own, to be killed and started again.

Owns: the server's process, the clients' processes and their history files, the kills and when
serving was seen to begin again. Every process is ended by its own id. The data directory and the
histories are two folders: no fault of the first reaches the second.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpucredits.client import Client
from gpucredits.client.calls import issue
from gpucredits.store.embedded import leftovers
from gpucredits.store.embedded.server import address
from gpucredits_bench.processes import processes_of
from support.faults import crash_load, history
from support.faults.altered_server import PROGRAM
from support.servers.http import RunningServer, running_server
from support.waiting import HANGS_S, until

TESTS = Path(__file__).resolve().parents[2]
KINDS = ("server", "postmaster", "postgres", "everything")
POWER = "power"  # everything at one moment; ``outage`` then says what is left on the disk
WITH_SERVER = ("server", "everything", POWER)
RECOVERY_DEADLINE_S = 300.0  # for what would hang; the figures tell how long it took
FROZEN_S = 0.05
CLIENTS = 2
WORKERS = 6
ACCOUNTS = ["blue", "blue/one", "blue/two", "red", "red/one", "red/two"]
FUNDS = "100000000"
PRICE = "1234.567891"  # a second of a GPU is no whole number of micro-credits


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@dataclass(slots=True)
class Kill:
    """One fault: when it struck, when nothing struck any longer, and when a start was seen.

    A kill strikes for a moment; a disk is full for a while.
    """

    kind: str
    at_s: float
    over_s: float = 0.0
    back_s: float = 0.0


@dataclass(slots=True)
class Arena:
    """The server, its clients, and what was done to them."""

    data_dir: Path
    notes: Path
    program: Sequence[str] = ("-m", "gpucredits")
    options: Sequence[str] = ()
    kills: list[Kill] = field(default_factory=list)
    histories: dict[str, list[Path]] = field(default_factory=dict)
    clients: list[subprocess.Popen[bytes]] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    outage: Callable[[], None] = lambda: None
    _server: RunningServer | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def server(self) -> RunningServer:
        """The running server."""
        assert self._server is not None
        return self._server

    @property
    def all_histories(self) -> list[Path]:
        """Every client's file."""
        return [path for paths in self.histories.values() for path in paths]

    def start(self) -> None:
        """Start the server on the arena's port."""
        bound = f"--window-max-seconds={crash_load.WINDOW_S}"
        starting = running_server(
            self.data_dir, bound, *self.options, program=self.program, port=self.port
        )
        self._server = self._stack.enter_context(starting)

    def close(self) -> None:
        """End the server."""
        self._stack.close()

    def client(self) -> Client:
        """A patient client of the server."""
        return Client(self.server.url, self.server.admin_secret)

    @property
    def dsn(self) -> str:
        """The address of the server's own database."""
        return address(self.data_dir / "run")

    def postmaster(self) -> int:
        """The process id in the cluster's pid file; 0 while there is none."""
        with suppress(OSError, ValueError, IndexError):
            return int((self.data_dir / "postgres" / "postmaster.pid").read_text().split()[0])
        return 0

    def struck(self, kind: str) -> Kill:
        """Note a fault that strikes now."""
        now_s = time.monotonic()
        self.kills.append(Kill(kind, now_s, now_s, now_s))
        return self.kills[-1]

    def kill(self, kind: str) -> None:
        """Kill -9 what the kind says, start the server again if it was hit, wait for the rest."""
        before = self.postmaster()
        kill = self.struck(kind)
        if kind == "server":
            # Frozen for a moment, so that a commit it has sent is done and not answered.
            for pid in processes_of(self.server.process.pid)[0]:
                os.kill(pid, signal.SIGSTOP)
            pause(FROZEN_S)
        if kind == POWER:
            self.freeze_postgres(before)
        if kind in WITH_SERVER:
            self.server.process.kill()
        if kind == "postmaster":
            os.kill(before, signal.SIGKILL)
        if kind in ("postgres", "everything", POWER):
            self.kill_postgres(before)
        if kind in WITH_SERVER:
            self.server.process.wait(RECOVERY_DEADLINE_S)
            self.close()
        if kind == POWER:
            self.outage()
        if kind in WITH_SERVER:
            self.start()
        until(lambda: self.postmaster() not in (0, before), timeout_s=RECOVERY_DEADLINE_S)
        kill.back_s = time.monotonic()

    def kill_postgres(self, postmaster: int) -> None:
        """Every process of the database; its head is stopped first, so that it helps none."""
        with suppress(ProcessLookupError):
            os.kill(postmaster, signal.SIGSTOP)
        for pid in leftovers.server_processes(self.data_dir / "postgres"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze_postgres(self, postmaster: int) -> None:
        """Let every process of the database stand still, none in the middle of a call."""
        folder = self.data_dir / "postgres"
        os.kill(postmaster, signal.SIGSTOP)
        until(lambda: stands_still(postmaster))  # it makes no more processes
        for pid in leftovers.server_processes(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        until(lambda: all(map(stands_still, leftovers.server_processes(folder))))

    def accepted(self) -> int:
        """How many calls were accepted so far."""
        return history.accepted_count(self.all_histories)

    def wait_for_accepted(self, more: int) -> None:
        """Wait until so many more calls were accepted, while the server is seen to live."""
        enough = self.accepted() + more

        def is_reached() -> bool:
            assert self.server.process.poll() is None, "the server ended by itself"
            assert all(client.poll() is None for client in self.clients), "a client ended"
            return self.accepted() >= enough

        until(is_reached, timeout_s=RECOVERY_DEADLINE_S)

    def recoveries_s(self) -> list[float]:
        """For each fault, the time from its end until a call that was sent later was accepted."""
        asked = history.read_history(self.all_histories)
        accepted = [call for call in asked if call.end == history.ACCEPTED]
        return [
            min(call.ended_s for call in accepted if call.sent_s > kill.back_s) - kill.over_s
            for kill in self.kills
        ]

    def felt(self) -> int:
        """How many faults some call ran into; the others proved nothing."""
        asked = history.read_history(self.all_histories)
        failed = [moment for call in asked for moment in call.failed_s]
        spans = [
            (kill.at_s, kill.over_s + took)
            for kill, took in zip(self.kills, self.recoveries_s(), strict=True)
        ]
        return sum(any(began <= moment <= end for moment in failed) for began, end in spans)

    def recovery_text(self) -> str:
        """The middle and the longest of the recoveries."""
        took = self.recoveries_s()
        return f"recovery p50 {statistics.median(took):.1f} s, max {max(took):.1f} s"

    def kills_text(self) -> str:
        """How often each kind of fault struck."""
        counts = Counter(kill.kind for kill in self.kills)
        return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))

    def internal_errors(self) -> int:
        """How many answers were 500, by the server's own log."""
        return (self.data_dir / "server.log").read_text().count('"status":500')


def stands_still(pid: int) -> bool:
    """Whether the kernel has stopped a process, or it is gone."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "TtZX"


@contextmanager
def arena(
    data_dir: Path,
    notes: Path,
    *,
    program: Sequence[str] = ("-m", "gpucredits"),
    options: Sequence[str] = (),
) -> Iterator[Arena]:
    """A started server with funded accounts, ended afterwards."""
    stage = Arena(data_dir, notes, program, options)
    try:
        stage.start()
        furnish(stage)
        yield stage
    finally:
        stage.close()


def furnish(stage: Arena) -> None:
    """Open and fund the accounts, as calls like any other in the history."""
    path = stage.notes / "furnishing.jsonl"
    with stage.client() as client:
        for account in ACCOUNTS:
            client.create_account(account)
        client.set_price(crash_load.GPU_TYPE, PRICE)
        with history.HistoryWriter(path) as log:
            for account in ACCOUNTS:
                key = f"fund-{account}"
                call = issue(account, FUNDS, metadata={"key": key}, key=key)
                number = log.invoke("issue", key, call.path, (call.body or b"").decode())
                sent_s = time.monotonic()
                body = client.fetch(call).body.decode()
                log.ended(number, history.ACCEPTED, sent_s, body)
    stage.histories["furnishing"] = [path]


@contextmanager
def load(stage: Arena, seed: int) -> Iterator[None]:
    """Client processes at work; at the end each finishes what it began."""
    paths = stage.histories.setdefault("load", [])
    try:
        for number in range(CLIENTS):
            path = stage.notes / f"client-{number}.jsonl"
            paths.append(path)
            stage.clients.append(client_process(stage, f"c{number}", seed, path))
        yield
        for process in stage.clients:
            process.communicate(timeout=crash_load.RESOLVE_DEADLINE_S + 30)
            assert process.returncode == 0, "a client failed"
    finally:
        for process in stage.clients:
            process.kill()
            process.communicate()


def client_process(stage: Arena, name: str, seed: int, path: Path) -> subprocess.Popen[bytes]:
    """Start one client process."""
    spec = crash_load.Spec(
        url=stage.server.url,
        secret=stage.server.admin_secret,
        name=name,
        accounts=ACCOUNTS,
        workers=WORKERS,
        seed=seed,
        history=str(path),
    )
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = stage.notes / f"{name}.json"
    told.write_bytes(msgspec.json.encode(spec))
    return subprocess.Popen(
        [sys.executable, "-m", "support.faults.crash_load", str(told)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def wreck(stage: Arena, kinds: Sequence[str], seed: int) -> None:
    """Load and kills together, then let every client finish what it began."""
    chance = random.Random(seed)
    with load(stage, seed):
        for kind in kinds:
            stage.wait_for_accepted(chance.randrange(100, 400))
            pause(chance.random() * 0.05)
            stage.kill(kind)
        stage.wait_for_accepted(100)


def verify(data_dir: Path) -> str:
    """What ``gpucredits verify`` says of the books after naming them, and its exit code."""
    command = [sys.executable, "-m", "gpucredits", "verify", "--data-dir", str(data_dir)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    said = [line for line in result.stdout.splitlines() if not line.startswith("Database: ")]
    return f"{result.returncode} {' '.join(said)} {result.stderr.strip()}".strip()


def refusal(data_dir: Path, told: str) -> str:
    """What an altered server says when it refuses to start on its database."""
    command = [sys.executable, *PROGRAM, "serve", "--port", "0", "--data-dir", str(data_dir), told]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert result.returncode == 1, result.stdout
    return result.stderr


def pause(seconds: float) -> None:
    """A moment of chance before a kill; nothing is concluded from it."""
    threading.Event().wait(seconds)
