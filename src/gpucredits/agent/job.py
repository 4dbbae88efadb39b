"""One supervised job: its guardian, its use, and the server's last answer about its lease.

``run`` and the agent share it. Owns: starting the guardian, giving it the orders that follow from
a standing, and following its events.
Must not: report. The caller reports, and passes the server's answers to ``hear``.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from gpucredits.agent.guard import warden
from gpucredits.agent.guard.leftovers import MARK, end_leftovers, is_running
from gpucredits.agent.job_files import JobFiles
from gpucredits.agent.run_time import RunTime
from gpucredits.client import AsyncClient
from gpucredits.client.leases import clock_ms
from gpucredits.client.standing import BEAT_MS_MIN, EXPIRED, Standing, heard, seq_after
from gpucredits.wire.ledger.heartbeat import BeatAnswer

GUARDIAN_END_S: Final = 10.0
GIVEN_MAX: Final = 10  # deadlines that are remembered
IN_FLIGHT_MS: Final = 1_000  # an order may still be on its way to the guardian for so long
NO_ANSWER: Final = "no_answer"  # why a job ended whose lease ran out while no server answered


@dataclass(frozen=True, slots=True)
class Place:
    """The folder and the three streams of a job that does not share its launcher's."""

    cwd: str
    stdin: int
    stdout: int
    stderr: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """Commands of the user's shell that slow a job down and let it go on, instead of signals."""

    pause: str
    resume: str

    def terms(self) -> dict[str, str]:
        """The form in which the guardian takes it."""
        return {"pause": self.pause, "resume": self.resume}


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """An end that the node has set, earlier than the lease's: when to signal and when to end."""

    signal_at_ms: int
    ends_at_ms: int
    reason: str


def quiet_stdin() -> int | None:
    """Give the job no terminal as stdin: its process group is in the background."""
    return subprocess.DEVNULL if os.isatty(0) else None


@dataclass(slots=True, kw_only=True)
class SupervisedJob:
    """A job that runs under a lease."""

    reservation_id: str
    standing: Standing
    seq: int = 0
    account: str = ""
    admitted_ms: int = 0  # by the node's own clock
    mark: str = field(default_factory=lambda: secrets.token_hex(16))  # what its processes carry
    shares: Mapping[str, int] = field(default_factory=dict)  # of devices, in thousandths
    drain: EarlyEnd | None = None
    run_time: RunTime = field(default_factory=RunTime)
    told: Callable[[str], None] = lambda _line: None
    say: Callable[[str], None] = lambda _text: None  # to whoever started the job
    files: JobFiles | None = None
    _certain_ms: int = 0
    _is_pausing: bool = False
    _is_unheard: bool = False
    _given: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=GIVEN_MAX))
    _process: subprocess.Popen[bytes] | None = None
    _writer: asyncio.StreamWriter | None = None
    _follower: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, or its guardian has."""
        return self.run_time.is_over

    def used_ms(self) -> int:
        """What the job has used until now."""
        return self.run_time.used_ms(clock_ms())

    def certain_ms(self) -> int:
        """The least use that the job can have: its guardian will report no less.

        A job that is alive after the clock was read has used the time until then. A job that has
        ended, or is about to pause, has used at least what was certain before.
        """
        used_ms = self.used_ms()
        is_exact = self.run_time.runs_since_ms is None
        pid, start = self.run_time.pid, self.run_time.pid_start
        if is_exact or (not self._is_pausing and is_running(pid, start)):
            self._certain_ms = used_ms
        return self._certain_ms

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        terms: Mapping[str, Any],
        place: Place | None = None,
    ) -> None:
        """Start the job below a guardian; return once the job runs or has failed to start."""
        ours, theirs = socket.socketpair()
        with theirs:
            script = [sys.executable, "-I", "-S", warden.__file__]
            self._process = subprocess.Popen(  # noqa: ASYNC220, S603  # our own program; the user's command
                [*script, str(theirs.fileno()), *argv],
                env={**env, MARK: self.mark},
                pass_fds=(theirs.fileno(),),
                cwd=place.cwd if place else None,
                stdin=place.stdin if place else quiet_stdin(),
                stdout=place.stdout if place else None,
                stderr=place.stderr if place else None,
                start_new_session=True,
            )
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._given.append((clock_ms(), self.standing.ends_at_ms))
        first = {**terms, "ends_at_ms": self.standing.ends_at_ms}
        self._writer.write(json.dumps(first).encode() + b"\n")
        self._follower = asyncio.create_task(self._follow(reader))
        while not (self.run_time.is_started or self.is_over):
            await self.changed()

    def require_started(self, command: str) -> None:
        """OSError if the command could not be started."""
        if number := self.run_time.failure:
            raise OSError(number, os.strerror(number), command)

    async def adopt(self, path: Path) -> None:
        """Take over a job whose guardian listens at ``path``; it repeats its events so far.

        The guardian keeps its deadline until the next answer of the server.
        """
        reader, self._writer = await asyncio.open_unix_connection(str(path))
        self._follower = asyncio.create_task(self._follow(reader))
        while not (self.run_time.is_started or self.is_over):
            await self.changed()

    async def changed(self) -> None:
        """Wait until something has happened to the job."""
        await self._changed.wait()
        self._changed.clear()

    def hear(self, answer: BeatAnswer, sent_at_ms: int) -> None:
        """Apply the server's answer to the report that was sent at ``sent_at_ms``."""
        self.standing = heard(self.standing, answer, sent_at_ms)
        self.seq = seq_after(self.seq, answer)
        self._is_unheard = answer.decision is None
        self._order_standing()

    def unheard(self, now_ms: int) -> None:
        """Note that a report got no answer: report again soon. The job's deadline stays."""
        self.standing = replace(self.standing, beat_at_ms=now_ms + 4 * BEAT_MS_MIN)
        self._is_unheard = True

    def order(self, *words: object) -> None:
        """Give the guardian an order. ``_follow`` notices if the guardian is gone."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write((" ".join(map(str, words)) + "\n").encode())

    async def run_errands(self, client: AsyncClient) -> str:
        """Report the job's last checkpoint and renew its token; the text says what failed."""
        if self.files is None:
            return ""
        self.files.look(self.used_ms(), self.run_time.ended_at_ms or clock_ms())
        return await self.files.run_errands(client)

    async def leave(self) -> None:
        """Disconnect from the guardian: it pays the bill when the job ends, as if we had died."""
        if self._writer is not None:
            self._writer.close()
        if self._follower is not None:
            await self._follower

    async def dismiss(self) -> None:
        """End the guardian: the bill is paid, or the caller will pay it."""
        self.order("done")
        if self._writer is not None:
            await self._drained(self._writer)
            self._writer.close()
        if self._follower is not None:
            await self._follower
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):  # its warden still ends what is left
                await asyncio.to_thread(self._process.wait, GUARDIAN_END_S)

    async def _drained(self, writer: asyncio.StreamWriter) -> None:
        try:
            await writer.drain()
        except OSError:
            return

    @property
    def reason(self) -> str:
        """Why the job drains, pauses or has stopped; empty while the job runs normally."""
        return self.drain.reason if self.drain else self.standing.reason

    @property
    def ended_because(self) -> str:
        """Why the job had to end; empty if the job ended by itself."""
        if self.run_time.is_signaled and self.reason:
            return self.reason
        if not self._was_at_deadline(self.run_time.ended_at_ms):
            return ""
        return self.reason or (NO_ANSWER if self._is_unheard else EXPIRED)

    def _was_at_deadline(self, at_ms: int) -> bool:
        """Whether the job ended at or after a deadline that its guardian may have had then.

        An answer that arrives while the job is being killed moves the deadline too late. So the
        deadline that this answer replaced counts too.
        """
        replaced_ms = [*[given_ms for given_ms, _ in self._given][1:], at_ms]
        return any(
            ends_at <= at_ms and until >= at_ms - IN_FLIGHT_MS
            for (_, ends_at), until in zip(self._given, replaced_ms, strict=False)
        )

    def end_early(self, drain: EarlyEnd) -> None:
        """Drain the job for a reason of the node's own, although its lease would allow more."""
        self.drain = drain
        self._order_standing()

    def _deadlines(self) -> tuple[int | None, int]:
        """When the job is signaled, if at all, and when it ends: at the lease's end or earlier."""
        signal_at, ends_at = self.standing.signal_at_ms, self.standing.ends_at_ms
        if self.drain is None:
            return signal_at, ends_at
        signal_at = min(signal_at or self.drain.signal_at_ms, self.drain.signal_at_ms)
        return signal_at, min(ends_at, self.drain.ends_at_ms)

    def _order_standing(self) -> None:
        signal_at, ends_at = self._deadlines()
        self._given.append((clock_ms(), ends_at))
        self.order("until", "-" if signal_at is None else signal_at, ends_at)
        if self.standing.is_paused != self.run_time.is_paused:
            self._is_pausing = self.standing.is_paused
            self.order("pause" if self.standing.is_paused else "resume")

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        """Follow the guardian's events to its end; the job of a killed guardian has ended too."""
        try:
            while line := await reader.readline():
                text = line.decode().strip()
                self.run_time.hear(text)
                self._is_pausing = self._is_pausing and not self.run_time.is_paused
                self.told(text)
                self._changed.set()
        except ConnectionError:
            pass
        if not self.is_over:
            await asyncio.to_thread(self._end_rest)
            self.run_time.hear(f"ended {clock_ms()} -9")
        self._changed.set()

    def _end_rest(self) -> None:
        """End what the warden leaves of a job whose guardian was killed."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GUARDIAN_END_S)
        end_leftovers(self.mark)
