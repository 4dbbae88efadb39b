"""The agent of a node: many jobs, one report for all of them, and a journal of their leases.

Owns: admitting, starting, adopting, reporting and settling the jobs of one node.
Must not: serve the socket (``local_api``), read GPUs (``metering``), enforce deadlines (guardians).
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from gpucredits.agent.devices import NodeDevices, NoDevicesError, visible
from gpucredits.agent.job import EarlyEnd, Place, SupervisedJob, Throttle
from gpucredits.agent.job_files import JobFiles
from gpucredits.agent.journal import NodeJournal, last_words
from gpucredits.agent.launcher import ServerAddress, lease_env
from gpucredits.agent.metering import Metering
from gpucredits.agent.meters.reading import Meter
from gpucredits.agent.queue import wait_in_queue
from gpucredits.agent.receipt import Receipt, receipt_of
from gpucredits.client import AsyncClient, CallError, Refused, Undecided
from gpucredits.client.errands import Errands
from gpucredits.client.leases import clock_ms
from gpucredits.client.standing import Standing, admitted
from gpucredits.core.money import parse_gpus
from gpucredits.wire.ledger.heartbeat import BEATS_MAX
from gpucredits.wire.ledger.reservation import ReservationAnswer

INTERVAL_S: Final = 15.0
JITTER: Final = 0.1  # of the interval, so that nodes do not report in step
SETTLE_PAUSE_S: Final = 5.0
SETTLES_MAX: Final = 16  # at once, so that the end of many jobs is no burst
PATIENCE_S_MIN: Final = 1.0  # guardians end jobs in time, however long an answer takes
PATIENCE_S_MAX: Final = 10.0
_RANDOM = secrets.SystemRandom()
Ended = Callable[[int, Receipt | None], None]


class GivenUp(Exception):  # noqa: N818  # it states what happened
    """The caller who asked for a job left while the request waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What to run, for which account, and on which GPUs; ``fields`` go into the reserve."""

    account: str
    fields: Mapping[str, Any]
    argv: Sequence[str]
    env: Mapping[str, str]
    place: Place
    drain_signal: int = signal.SIGTERM
    throttle: Throttle | None = None
    devices: Sequence[str] = ()
    is_waiting: bool = False
    say: Callable[[str], None] = lambda _text: None
    ended: Ended = lambda _code, _receipt: None
    given_up: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def gpu_type(self) -> str:
        """The GPU type that the request asks for."""
        return str(self.fields["gpu_type"])

    @property
    def milli_gpus(self) -> int:
        """The thousandths of GPUs that the request asks for."""
        return parse_gpus(str(self.fields.get("gpu_count", 1)))


@dataclass(slots=True)
class NodeAgent:
    """The jobs of one node."""

    server: ServerAddress
    folder: Path
    node: str
    interval_s: float = INTERVAL_S
    log: Callable[[str], None] = lambda _text: None
    devices: NodeDevices = field(default_factory=NodeDevices)
    meter: Meter | None = None
    jobs: dict[str, SupervisedJob] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _settling: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SETTLES_MAX))
    _freed: asyncio.Event = field(default_factory=asyncio.Event)  # a job gave its devices back
    _errands: asyncio.Task[None] | None = None
    _journal: NodeJournal | None = None
    _metering: Metering | None = None

    @property
    def metering(self) -> Metering:
        """The readings, opened with the first use."""
        if self._metering is None:
            self._metering = Metering(
                node=self.node,
                folder=self.folder,
                jobs=self.jobs,
                meter=self.meter,
                interval_s=self.interval_s,
                log=self.log,
                drained=self._note_drain,
            )
        return self._metering

    @property
    def journal(self) -> NodeJournal:
        """The journal, opened with the first use."""
        if self._journal is None:
            (self.folder / "jobs").mkdir(parents=True, exist_ok=True, mode=0o700)
            self._journal = NodeJournal(self.folder / "journal")
        return self._journal

    async def run(self) -> None:
        """Adopt the jobs of an earlier agent, then report and meter until canceled."""
        await self.adopt_all()
        async with self.server.client(attempts_max=1) as client, asyncio.TaskGroup() as group:
            group.create_task(self._report_when_due(client))
            group.create_task(self.metering.run(client))

    async def _report_when_due(self, client: AsyncClient) -> None:
        due_ms = clock_ms()
        while True:
            pause_s = max(min([due_ms, *self._due()]) - clock_ms(), 0) / 1_000
            if pause_s:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), pause_s)
                self._woken.clear()  # a new job may be due before all others
                continue
            await self.report(client)
            pause_s = self.interval_s * _RANDOM.uniform(1 - JITTER, 1 + JITTER)
            due_ms = clock_ms() + int(pause_s * 1_000)

    def _due(self) -> list[int]:
        """When each job has to be reported again."""
        return [each.standing.beat_at_ms for each in self.jobs.values() if not each.is_over]

    async def report(self, client: AsyncClient) -> None:
        """Report all jobs at once, after writing the reports to the journal."""
        live = [each for each in self.jobs.values() if not each.is_over]
        for start in range(0, len(live), BEATS_MAX):
            await self._report(client, live[start : start + BEATS_MAX])

    async def _report(self, client: AsyncClient, jobs: Sequence[SupervisedJob]) -> None:
        beats = []
        for job in jobs:
            job.seq += 1
            beats.append((job.reservation_id, job.seq, job.certain_ms()))
        self._note({"kind": "beat", "beats": beats})
        sent_at_ms = clock_ms()
        left_s = (min(job.standing.ends_at_ms for job in jobs) - sent_at_ms) / 1_000
        try:
            async with asyncio.timeout(min(max(left_s / 2, PATIENCE_S_MIN), PATIENCE_S_MAX)):
                answers = (await client.heartbeats(beats, node=self.node)).results
        except (CallError, TimeoutError) as error:
            self.log(f"no answer to the report of {len(jobs)} jobs: {error}")
            for job in jobs:
                job.unheard(clock_ms())
            return
        for job, answer in zip(jobs, answers, strict=True):
            job.hear(answer, sent_at_ms)
        if self._errands is None or self._errands.done():  # no report waits for errands
            self._errands = asyncio.create_task(self._run_errands(client, jobs))

    async def _run_errands(self, client: AsyncClient, jobs: Sequence[SupervisedJob]) -> None:
        for job in jobs:
            if problem := await job.run_errands(client):
                self.log(f"{job.reservation_id}: its checkpoint or token failed: {problem}")

    async def start(self, request: JobRequest) -> SupervisedJob:
        """Take a lease for a command and start it, on devices of its own.

        Raises CallError, NotAdmitted, NoDevicesError, GivenUp or OSError if there is none.
        """
        fields = {**request.fields, "node": self.node}
        async with self.server.client() as client:
            if request.is_waiting:
                lease, sent_at_ms = await self._wait_for_lease(client, request, fields)
            else:
                holder = secrets.token_hex(8)
                gpu_type, milli_gpus = request.gpu_type, request.milli_gpus
                self.devices.give(holder, milli_gpus, gpu_type, request.devices)
                sent_at_ms = clock_ms()
                try:
                    lease = await client.reserve(request.account, **fields)
                except BaseException:
                    self._take_back(holder)
                    raise
                self.devices.rename(holder, lease.reservation_id)
            try:
                job = await self._start(client, request, lease, sent_at_ms)
            except BaseException:
                self._take_back(lease.reservation_id)
                raise
        self._look_after(job, request.ended)
        return job

    async def _wait_for_lease(
        self, client: AsyncClient, request: JobRequest, fields: Mapping[str, Any]
    ) -> tuple[ReservationAnswer, int]:
        """Wait for a lease and take devices for it; also when the granted request was sent.

        Devices are not kept while the request waits. If another job takes the devices meanwhile,
        the lease is given back and the request waits again.
        """
        while not request.given_up.is_set():
            await self._wait_for_devices(request)
            found = await wait_in_queue(
                client, request.account, fields, request.say, request.given_up
            )
            if found is None:
                break
            sent_at_ms = clock_ms()
            lease = await client.reservation(found)
            milli_gpus = parse_gpus(str(lease.gpu_count))
            try:
                self.devices.give(found, milli_gpus, request.gpu_type, request.devices)
            except NoDevicesError as error:
                await client.cancel(found)
                request.say(str(error))
                continue
            return lease, sent_at_ms
        raise GivenUp

    async def _wait_for_devices(self, request: JobRequest) -> None:
        """Wait until a job's devices are free; NoDevicesError if the node does not have them."""
        asked = (request.milli_gpus, request.gpu_type, request.devices)
        self.devices.require_possible(*asked)
        is_told = False
        while not self.devices.could_give(*asked):
            if not is_told:
                request.say(f"the job waits for GPUs of node {self.node}")
                is_told = True
            self._freed.clear()
            freed = asyncio.create_task(self._freed.wait())
            given_up = asyncio.create_task(request.given_up.wait())
            await asyncio.wait({freed, given_up}, return_when=asyncio.FIRST_COMPLETED)
            freed.cancel()
            given_up.cancel()
            if request.given_up.is_set():
                raise GivenUp

    async def _start(
        self, client: AsyncClient, request: JobRequest, lease: ReservationAnswer, sent_at_ms: int
    ) -> SupervisedJob:
        """Start the command of a lease below a guardian."""
        name = lease.reservation_id
        shares = self.devices.given.get(name, {})
        files = self._files(name, wants_token=bool(request.fields.get("token")))
        job = SupervisedJob(
            reservation_id=name,
            standing=admitted(lease, sent_at_ms),
            account=lease.account,
            admitted_ms=clock_ms(),
            shares=shares,
            mark=str(self.home(name)),
            say=request.say,
            files=files,
        )
        home = self.home(name)
        note = {
            "kind": "start",
            "id": name,
            "account": job.account,
            "admitted_ms": job.admitted_ms,
            "devices": dict(shares),
            "token": files.errands.wants_token,
        }
        terms = {
            "signal": int(request.drain_signal),
            "throttle": request.throttle.terms() if request.throttle else None,
            "log": str(home / "events"),
            "listen": str(home / "guardian.sock"),
        }
        own = {**request.env, **visible(shares), **lease_env(lease), **files.env()}
        try:
            home.mkdir(mode=0o700)
            self.journal.write(note)
            await files.make(client, lease, sent_at_ms)
            await job.start(request.argv, own, terms, request.place)
            job.require_started(request.argv[0])
        except BaseException:
            with suppress(CallError):  # without a server the lease lapses
                await client.cancel(name)
            await self._close(job)
            raise
        return job

    def _note(self, record: dict[str, Any]) -> None:
        """Write to the journal; on a full disk, log that and let jobs and bills go on."""
        try:
            self.journal.write(record)
        except OSError as error:
            self.log(f"the journal cannot be written ({record['kind']}): {error}")

    def _take_back(self, holder: str) -> None:
        """Free the devices of a job, and wake the requests that wait for devices."""
        self.devices.take_back(holder)
        self._freed.set()

    def _note_drain(self, job: SupervisedJob) -> None:
        """Write down that the node ends a job, so that a later agent ends it too."""
        if job.drain is not None:
            self._note({"kind": "drain", "id": job.reservation_id, "drain": asdict(job.drain)})

    def home(self, reservation_id: str) -> Path:
        """The folder of a job: its guardian's socket and events, its token and its checkpoint."""
        return self.folder / "jobs" / reservation_id

    def _files(self, reservation_id: str, *, wants_token: bool) -> JobFiles:
        errands = Errands(reservation_id=reservation_id, wants_token=wants_token)
        return JobFiles(self.home(reservation_id), errands)

    async def adopt_all(self) -> None:
        """Take over the journal's jobs: jobs that run, and jobs with an open bill."""
        for reservation_id in list(self.journal.starts):
            await self._adopt(reservation_id)

    async def _adopt(self, reservation_id: str) -> None:
        """Take over one job. A job without a guardian has ended; its bill is still open."""
        seq, used_ms = self.journal.used[reservation_id]
        start = self.journal.starts[reservation_id]
        now_ms = clock_ms()
        # Its guardian knows the deadline. The agent asks at once.
        standing = Standing(ends_at_ms=now_ms + 1_000, beat_at_ms=now_ms)
        job = SupervisedJob(
            reservation_id=reservation_id,
            standing=standing,
            seq=seq,
            account=start.get("account", ""),
            admitted_ms=min(start.get("admitted_ms", now_ms), now_ms),  # the machine may be another
            shares=start.get("devices", {}),
            mark=str(self.home(reservation_id)),
            drain=EarlyEnd(**start["drain"]) if "drain" in start else None,
            files=self._files(reservation_id, wants_token=start.get("token", False)),
        )
        self.devices.hold(reservation_id, job.shares)
        home = self.home(reservation_id)
        try:
            await job.adopt(home / "guardian.sock")
            self.log(f"{reservation_id} still runs as process {job.run_time.pid}")
        except OSError:
            job.run_time = last_words(home / "events", used_ms, job.mark)
            self.log(f"{reservation_id} ended while no agent ran")
        self._look_after(job, lambda _code, _receipt: None)

    def _look_after(self, job: SupervisedJob, ended: Ended) -> None:
        self.jobs[job.reservation_id] = job
        self._woken.set()
        task = asyncio.create_task(self._to_the_end(job, ended))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _to_the_end(self, job: SupervisedJob, ended: Ended) -> None:
        """Wait for a job's end and pay its bill, however long the server is away."""
        while not job.is_over:
            await job.changed()
        exit_code = job.run_time.exit_code
        self._take_back(job.reservation_id)
        self.metering.ended(job)
        self._note({"kind": "end", "id": job.reservation_id, "used_ms": job.used_ms()})
        async with self._settling, self.server.client() as client:
            await self._run_errands(client, [job])
            is_paid = True
            while True:
                try:
                    await client.settle(job.reservation_id, used_ms=job.used_ms())
                except Undecided as error:
                    self.log(f"{job.reservation_id} is not settled yet: {error}")
                    await asyncio.sleep(SETTLE_PAUSE_S)
                    continue
                except Refused as refused:  # somebody else has ended the lease, or the key is bad
                    self.log(f"{job.reservation_id}: {refused}")
                    is_paid = not refused.is_about_caller
                    job.say(f"{job.reservation_id}: {refused}")
                break
            await self._close(job, is_paid=is_paid)
            receipt = None
            with suppress(CallError):
                receipt = await receipt_of(
                    client, job.reservation_id, exit_code=exit_code, because=job.ended_because
                )
        ended(exit_code, receipt)

    async def _close(self, job: SupervisedJob, *, is_paid: bool = True) -> None:
        """Forget a job; an open bill is left to the next agent, which may have another key."""
        if is_paid:
            self._note({"kind": "paid", "id": job.reservation_id})
            self.metering.paid(job.reservation_id)
        await job.dismiss()
        self.jobs.pop(job.reservation_id, None)
        if is_paid:
            shutil.rmtree(self.home(job.reservation_id), ignore_errors=True)
