"""``gpucredits run``: one command under one lease, without an agent.

Owns: the steps admit, start, report, settle and receipt, and the meaning of signals on the way.
Must not: know options or print tables (``cli`` does).
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpucredits.agent.job import SupervisedJob, Throttle
from gpucredits.agent.job_files import JobFiles
from gpucredits.agent.queue import wait_in_queue
from gpucredits.agent.receipt import Receipt, receipt_of
from gpucredits.agent.run_time import SIGNALED
from gpucredits.client import AsyncClient, Refused, Retry, Undecided
from gpucredits.client.errands import Errands
from gpucredits.client.leases import clock_ms
from gpucredits.client.standing import BEAT_MS_MIN, admitted
from gpucredits.client.trust import shown_by
from gpucredits.core.duration import format_ms
from gpucredits.wire.ledger.reservation import ReservationAnswer

EXIT_NOT_FOUND: Final = 127  # as shells say
EXIT_NOT_RUN: Final = 126
FORWARDED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
IMPATIENT: Final = (signal.SIGINT, signal.SIGQUIT)  # pressed twice, they mean now


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where the server is, and the key for it."""

    url: str
    key: str
    ca_file: str | None
    timeout_s: float
    cert_file: str | None = None
    cert_key_file: str | None = None

    def client(self, **retry: Any) -> AsyncClient:
        """A client that repeats its calls for as long as the options allow."""
        terms = Retry(**{"deadline_s": self.timeout_s, **retry})
        shown = shown_by(self.cert_file, self.cert_key_file)
        return AsyncClient(self.url, self.key, retry=terms, ca_file=self.ca_file, shown=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommand:
    """What to run: words, environment, the signal that asks it to end, and how to slow it down."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    drain_signal: int = signal.SIGTERM
    throttle: Throttle | None = None


class Interrupted(Exception):  # noqa: N818  # it states what happened
    """Somebody ended the launcher before the job had started."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = SIGNALED + number


@dataclass(slots=True)
class Launcher:
    """One run of one command."""

    server: ServerAddress
    command: JobCommand
    say: Callable[[str], None]
    job: SupervisedJob | None = None
    interrupted: int = 0
    _is_alone: bool = False
    _times: dict[int, int] = field(default_factory=dict)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(
        self, account: str, fields: Mapping[str, Any], *, wait: bool
    ) -> tuple[int, Receipt | None]:
        """Run the command: its exit code, and its receipt if the job started and is settled."""
        self._take_signals()
        async with self.server.client() as client, own_folder() as folder:
            lease, sent_at_ms = await self._admit(client, account, fields, wait=wait)
            errands = Errands(
                reservation_id=lease.reservation_id, wants_token=bool(fields.get("token"))
            )
            files = JobFiles(folder, errands)
            job = self.job = SupervisedJob(
                reservation_id=lease.reservation_id,
                standing=admitted(lease, sent_at_ms),
                seq=lease.seq,
                told=self._tell,
                files=files,
            )
            try:
                self._go_on()
                await files.make(client, lease, sent_at_ms)
                self._go_on()
            except BaseException:
                await client.cancel(lease.reservation_id)
                raise
            env = {**self.command.env, **lease_env(lease), **files.env()}
            try:
                await job.start(self.command.argv, env, self._terms(job))
            except OSError as error:  # no guardian can be started
                job.run_time.failure = error.errno or errno.EIO
            if job.run_time.failure:
                await job.dismiss()
                await client.cancel(lease.reservation_id)
                return self._not_started(job.run_time.failure), None
            if self.interrupted:  # while the command was being started
                job.order("signal", int(self.interrupted))
            await self._report_to_the_end(job)
            return await self._settle(client, job)

    async def _admit(
        self, client: AsyncClient, account: str, fields: Mapping[str, Any], *, wait: bool
    ) -> tuple[ReservationAnswer, int]:
        """Take a lease; also when the request for it was sent."""
        sent_at_ms = clock_ms()
        if wait:
            reservation_id = await wait_in_queue(client, account, fields, self.say, self._woken)
            if reservation_id is None:
                raise Interrupted(self.interrupted)
            sent_at_ms = clock_ms()
            lease = await client.reservation(reservation_id)
        else:
            lease = await client.reserve(account, **fields)
        return lease, sent_at_ms

    def _go_on(self) -> None:
        """Raise Interrupted if the user gave up before the command was started."""
        if self.interrupted:
            raise Interrupted(self.interrupted)

    async def _report_to_the_end(self, job: SupervisedJob) -> None:
        """Report whenever a report is due, until the job is over; errands delay no report."""
        errands: asyncio.Task[str] | None = None
        async with self.server.client(attempts_max=1) as client:
            while not job.is_over:
                wait_ms = job.standing.beat_at_ms - clock_ms()
                if wait_ms > 0:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(job.changed(), wait_ms / 1_000)
                    continue
                report = asyncio.create_task(self._report(client, job))
                while not (report.done() or job.is_over):
                    change = asyncio.create_task(job.changed())
                    await asyncio.wait({report, change}, return_when=asyncio.FIRST_COMPLETED)
                    change.cancel()
                if not report.done():
                    report.cancel()
                with suppress(asyncio.CancelledError):
                    await report
                if errands is None or errands.done():
                    errands = asyncio.create_task(job.run_errands(client))
            if errands is not None:
                await errands
            if problem := await job.run_errands(client):
                self.say(f"{job.reservation_id}: no report of the last checkpoint: {problem}")

    async def _report(self, client: AsyncClient, job: SupervisedJob) -> None:
        """Send one report; without an answer, the last answer stays in force."""
        job.seq += 1
        sent_at_ms = clock_ms()
        patience_ms = max((job.standing.ends_at_ms - sent_at_ms) // 2, BEAT_MS_MIN)
        beat = (job.reservation_id, job.seq, job.certain_ms())
        try:
            async with asyncio.timeout(patience_ms / 1_000):
                answers = await client.heartbeats([beat])
        except Refused as refused:  # such as of a key that was revoked: the job keeps its time
            self._alone(job, f"the server refuses reports ({refused})")
            return
        except (Undecided, TimeoutError):
            self._alone(job, "the server does not answer")
            return
        self._together(job)
        answer = answers.results[0]
        if answer.reason and answer.reason != job.standing.reason:
            self.say(f"{answer.decision}: {answer.reason}")
        job.hear(answer, sent_at_ms)

    def _alone(self, job: SupervisedJob, why: str) -> None:
        """Note an outage: the job runs on until its deadline. The user is told once per outage."""
        now_ms = clock_ms()
        job.unheard(now_ms)
        if not self._is_alone:
            self._is_alone = True
            left_ms = max(job.standing.ends_at_ms - now_ms, 0) // 1_000 * 1_000
            self.say(f"{why}; the lease lasts for {format_ms(left_ms)} more")

    def _together(self, job: SupervisedJob) -> None:
        """Note the end of an outage: this answer has settled the use meanwhile."""
        if self._is_alone:
            self._is_alone = False
            self.say(f"the server answers again; {job.reservation_id} is settled up to now")

    async def _settle(self, client: AsyncClient, job: SupervisedJob) -> tuple[int, Receipt | None]:
        """Pay the bill; if no server answers, the guardian becomes the settler."""
        exit_code = job.run_time.exit_code
        try:
            await client.settle(job.reservation_id, used_ms=job.used_ms())
        except Undecided as error:
            self.say(
                f"{job.reservation_id} will be settled as soon as the server answers ({error}); "
                f"if it takes over a day: {settle_by_hand(job)}"
            )
            await job.leave()
            return exit_code, None
        except Refused as refused:
            self.say(f"{job.reservation_id}: {refused}")
            if refused.is_about_caller:
                self.say(f"the bill is open; pay it with another key: {settle_by_hand(job)}")
                await job.dismiss()
                return exit_code, None
        await job.dismiss()
        try:
            receipt = await receipt_of(
                client, job.reservation_id, exit_code=exit_code, because=job.ended_because
            )
        except (Undecided, Refused) as error:
            self.say(f"{job.reservation_id} is settled; there is no receipt: {error}")
            return exit_code, None
        return exit_code, receipt

    def _terms(self, job: SupervisedJob) -> dict[str, Any]:
        """The guardian's terms: how to drain, and how to pay if the launcher dies."""
        bill = {
            "url": self.server.url,
            "key": self.server.key,
            "ca_file": self.server.ca_file,
            "cert_file": self.server.cert_file,
            "cert_key_file": self.server.cert_key_file,
            "reservation_id": job.reservation_id,
            "folder": str(job.files.folder) if job.files else None,
        }
        argv = [sys.executable, "-m", "gpucredits.agent.guard.settle"]
        return {
            "signal": int(self.command.drain_signal),
            "throttle": self.command.throttle.terms() if self.command.throttle else None,
            "settle": {"argv": argv, "bill": bill},
        }

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
                loop.add_signal_handler(number, self._signaled, number)
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGTSTP, self._suspended)

    def _signaled(self, number: int) -> None:
        """Pass a signal on to the job; the second Ctrl-C ends it at once."""
        self._times[number] = self._times.get(number, 0) + 1
        if self.job is None or not self.job.run_time.is_started:
            self.interrupted = number
            self._woken.set()
        elif number in IMPATIENT and self._times[number] > 1:
            self.job.order("kill")
        else:
            self.job.order("signal", int(number))

    def _suspended(self) -> None:
        self.say("a job under a lease cannot be suspended; it goes on")

    def _tell(self, event: str) -> None:
        if event.startswith("signaled"):
            reason = self.job.standing.reason if self.job else ""
            self.say(f"the job is told to end ({reason or 'its lease ends'})")

    def _not_started(self, number: int) -> int:
        self.say(f"{self.command.argv[0]}: {os.strerror(number)}; nothing was charged")
        return exit_code_of(number)


@asynccontextmanager
async def own_folder() -> AsyncIterator[Path]:
    """A folder for the files of a job, for as long as its launcher lives."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="gpucredits-run-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settle_by_hand(job: SupervisedJob) -> str:
    """The command that pays the bill of a job that has ended."""
    return f"gpucredits settle {job.reservation_id} --used {job.used_ms() / 1_000}s"


def lease_env(lease: ReservationAnswer) -> dict[str, str]:
    """The environment variables that tell a job its lease."""
    return {
        "GPUCREDITS_RESERVATION_ID": lease.reservation_id,
        "GPUCREDITS_JOB_ID": lease.job_id,
    }


def exit_code_of(number: int) -> int:
    """The exit code for a command that could not be started, as shells give it."""
    return EXIT_NOT_FOUND if number == errno.ENOENT else EXIT_NOT_RUN
