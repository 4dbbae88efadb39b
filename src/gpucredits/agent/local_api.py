"""The agent's socket: how ``run --agent`` and schedulers on the node start and signal jobs.

A message is one packet of JSON on a unix socket (SOCK_SEQPACKET). The first of a connection is
``{"do": "run", ...}`` with three file descriptors, ``{"do": "list"}`` or ``{"do": "status"}``. An
answer has an ``event``.

Owns: the socket, and who may use it: the agent's own user and root.
Must not: know leases.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from gpucredits.agent.devices import NoDevicesError
from gpucredits.agent.job import Place, SupervisedJob, Throttle
from gpucredits.agent.node import GivenUp, JobRequest, NodeAgent
from gpucredits.agent.queue import NotAdmitted
from gpucredits.agent.receipt import Receipt
from gpucredits.client import CallError
from gpucredits.wire.ledger.reservation import ReserveRequest

PACKET_BYTES_MAX: Final = 1 << 17  # what a socket takes with its usual buffers
CALLERS_MAX: Final = 1_024
STREAMS: Final = 3
ASK_S: Final = 5.0
EARLY_MAX: Final = 100  # orders for a job that is being started
# What a caller may ask of a reserve. The message itself says for whom, and whether to wait.
FIELDS: Final = frozenset(ReserveRequest.__struct_fields__) - {"account", "wait", "node"}
SignalNumber = Annotated[int, msgspec.Meta(ge=1, lt=signal.NSIG)]
_PEER: Final = struct.Struct("3i")


class RunMessage(msgspec.Struct, kw_only=True, tag_field="do", tag="run"):
    """Start a command for an account."""

    account: str
    fields: dict[str, Any]
    argv: Annotated[list[str], msgspec.Meta(min_length=1)]
    env: dict[str, str]
    cwd: str
    signal: SignalNumber
    devices: list[str] = []
    wait: bool = False
    throttle: list[str] = []  # two commands: to slow the job down, and to let it go on


class SignalMessage(msgspec.Struct, kw_only=True, tag_field="do", tag="signal"):
    """Signal the job of this connection."""

    number: SignalNumber


class KillMessage(msgspec.Struct, kw_only=True, tag_field="do", tag="kill"):
    """End the job of this connection at once."""


class ListMessage(msgspec.Struct, kw_only=True, tag_field="do", tag="list"):
    """List the jobs."""


class StatusMessage(msgspec.Struct, kw_only=True, tag_field="do", tag="status"):
    """Get the name of the node, and what its agent knows about GPUs."""


class AgentStatus(msgspec.Struct, kw_only=True):
    """An agent: its node, its numbers of jobs and devices, and the meter that reads them."""

    node: str
    jobs: int
    devices: int | None  # null where no meter tells them
    meter: str


class JobEvent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the agent says: ``started``, ``refused``, ``said``, ``ended``, ``jobs``, ``status``."""

    event: str
    reservation_id: str | None = None
    detail: str | None = None
    errno: int | None = None
    exit_code: int | None = None
    receipt: Receipt | None = None
    jobs: list[dict[str, Any]] | None = None
    status: AgentStatus | None = None


Message = RunMessage | SignalMessage | KillMessage | ListMessage | StatusMessage
MESSAGES: Final = msgspec.json.Decoder(Message)
EVENTS: Final = msgspec.json.Decoder(JobEvent)


def lock(folder: Path) -> int:
    """Take the folder for one agent, until this process ends; jobs do not inherit it."""
    number = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise OSError(f"another agent uses {folder}: give each agent a folder of its own") from None
    return number


def listen(path: Path) -> socket.socket:
    """Open a socket that only its owner may use, in the place of one that a dead agent left."""
    if is_served(path):
        raise OSError(f"an agent already listens at {path}")
    if path.exists() and not path.is_socket():
        raise OSError(f"{path} is not a socket: move it away")
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mask = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(mask)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def is_served(path: Path) -> bool:
    """Whether an agent answers at the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


async def serve(agent: NodeAgent, listener: socket.socket) -> None:
    """Answer whoever connects, until canceled."""
    loop = asyncio.get_running_loop()
    callers: set[asyncio.Task[None]] = set()
    while True:
        link, _ = await loop.sock_accept(listener)
        if len(callers) >= CALLERS_MAX or not is_allowed(link):
            link.close()
            continue
        link.setblocking(False)
        task = asyncio.create_task(Caller(agent, link).serve())
        callers.add(task)
        task.add_done_callback(callers.discard)


def is_allowed(link: socket.socket) -> bool:
    """Whether the caller is the agent's own user or root."""
    peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return _PEER.unpack(peer)[1] in (0, os.getuid())


class Caller:
    """One connection: it starts one job at most, and hears how it ends."""

    def __init__(self, agent: NodeAgent, link: socket.socket) -> None:
        self._agent = agent
        self._link = link
        self._job: SupervisedJob | None = None
        self._starting: asyncio.Task[None] | None = None
        self._given_up = asyncio.Event()
        self._early: list[tuple[object, ...]] = []  # orders for a job that is being started

    async def serve(self) -> None:
        """Carry out the caller's messages. A job outlives its caller; a waiting request ends."""
        with self._link:
            while True:
                data, streams = await self._packet()
                if not data:
                    close_all(streams)
                    break
                try:
                    message = MESSAGES.decode(data)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    close_all(streams)
                    self._say(JobEvent(event="refused", detail=str(error)))
                    break
                self._do(message, streams)
            self._given_up.set()
            if self._starting is not None:
                await self._starting

    def _do(self, message: Message, streams: list[int]) -> None:
        match message:
            case RunMessage():
                if self._starting is None and len(streams) == STREAMS:
                    self._starting = asyncio.create_task(self._run(message, streams))
                    return
                text = "one job and three streams for each run"
                self._say(JobEvent(event="refused", detail=text))
            case SignalMessage():
                self._order("signal", message.number)
            case KillMessage():
                self._order("kill")
            case ListMessage():
                jobs = [
                    {
                        "reservation_id": each.reservation_id,
                        "pid": each.run_time.pid,
                        "used_ms": each.used_ms(),
                        "reason": each.reason,
                        "is_over": each.is_over,
                        "devices": dict(each.shares),
                        "warning": self._agent.metering.warning_of(each.reservation_id),
                    }
                    for each in self._agent.jobs.values()
                ]
                self._say(JobEvent(event="jobs", jobs=jobs))
            case StatusMessage():
                self._say(JobEvent(event="status", status=status_of(self._agent)))
        close_all(streams)

    async def _run(self, message: RunMessage, streams: list[int]) -> None:
        unknown = sorted(set(message.fields) - FIELDS)
        if unknown or "gpu_type" not in message.fields:
            text = f"fields cannot have {', '.join(unknown)}" if unknown else "fields need gpu_type"
            close_all(streams)
            self._say(JobEvent(event="refused", detail=text))
            return
        request = JobRequest(
            account=message.account,
            fields=message.fields,
            argv=message.argv,
            env=message.env,
            place=Place(message.cwd, *streams),
            drain_signal=message.signal,
            throttle=Throttle(*message.throttle) if len(message.throttle) == 2 else None,
            devices=message.devices,
            is_waiting=message.wait,
            say=lambda text: self._say(JobEvent(event="said", detail=text)),
            ended=self._ended,
            given_up=self._given_up,
        )
        try:
            self._job = await self._agent.start(request)
        except (CallError, NotAdmitted, NoDevicesError, ValueError) as error:
            self._say(JobEvent(event="refused", detail=str(error)))
        except GivenUp:
            self._say(JobEvent(event="refused", detail="the caller left while the request waited"))
        except OSError as error:
            text = f"{error.filename or 'the journal of the agent'}: {error.strerror}"
            self._say(JobEvent(event="refused", detail=text, errno=error.errno))
        else:
            self._say(JobEvent(event="started", reservation_id=self._job.reservation_id))
            for words in self._early:
                self._job.order(*words)
        finally:
            close_all(streams)

    def _order(self, *words: object) -> None:
        if self._job is not None:
            self._job.order(*words)
        else:
            if self._starting is not None and len(self._early) < EARLY_MAX:
                self._early.append(words)
            self._given_up.set()

    def _ended(self, exit_code: int, receipt: Receipt | None) -> None:
        self._say(JobEvent(event="ended", exit_code=exit_code, receipt=receipt))

    def _say(self, event: JobEvent) -> None:
        with suppress(OSError):
            self._link.send(msgspec.json.encode(event))

    async def _packet(self) -> tuple[bytes, list[int]]:
        """The next packet with its file descriptors; empty if the caller is gone."""
        await readable(self._link)
        try:
            data, streams, _, _ = socket.recv_fds(self._link, PACKET_BYTES_MAX, STREAMS)
        except OSError:
            return b"", []
        return data, list(streams)


def status_of(agent: NodeAgent) -> AgentStatus:
    """Describe this agent."""
    return AgentStatus(
        node=agent.node,
        jobs=len(agent.jobs),
        devices=len(agent.devices.devices) if agent.devices.is_known else None,
        meter="none" if agent.meter is None else agent.meter.name,
    )


def ask_status(path: Path) -> AgentStatus | None:
    """The status of the agent at ``path``; None if no agent answers this user in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.settimeout(ASK_S)
        try:
            link.connect(str(path))
            link.send(msgspec.json.encode(StatusMessage()))
            return EVENTS.decode(link.recv(PACKET_BYTES_MAX)).status
        except (OSError, msgspec.DecodeError):
            return None


def close_all(streams: list[int]) -> None:
    """Close the streams of a packet; a job has its own copies."""
    while streams:
        os.close(streams.pop())


async def readable(link: socket.socket) -> None:
    """Wait until a socket has something to read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(link, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(link)


def run_at(
    path: Path,
    message: RunMessage,
    watch: Callable[[socket.socket], None],
    say: Callable[[str], None],
) -> tuple[int, Receipt | None] | JobEvent:
    """Start a command through the agent at ``path`` and wait for its end, or why it did not start.

    ``watch`` gets the connection, so that signals can be passed on.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.connect(str(path))
        socket.send_fds(link, [msgspec.json.encode(message)], [0, 1, 2])
        watch(link)
        while data := link.recv(PACKET_BYTES_MAX):
            event = EVENTS.decode(data)
            if event.event == "refused":
                return event
            if event.event == "said":
                say(event.detail or "")
            if event.event == "ended":
                return event.exit_code or 0, event.receipt
        say("the agent is gone; the job goes on, and the agent settles the job after its restart")
    return JobEvent(event="lost", detail="the agent is gone")
