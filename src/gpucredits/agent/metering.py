"""Metering a node: read its GPUs each interval, spool the use of each job, send it, guard idleness.

Owns: the meter's thread, the readings on their way to the server, and warning and draining jobs
that leave their GPUs unused. A meter that fails or hangs delays no heartbeat and ends no job.
Must not: take leases, beat or settle.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpucredits.agent.attribution import family_of, gpus_of_job, utilization_of
from gpucredits.agent.job import EarlyEnd, SupervisedJob
from gpucredits.agent.meters.reading import DeviceReading, Meter, MeterError
from gpucredits.agent.usage import SentReading, UsageSpool, UseSoFar
from gpucredits.client import AsyncClient, CallError, Invalid, Refused
from gpucredits.client.leases import clock_ms
from gpucredits.core.rules.leases.idle_guard import (
    BUSY,
    GpuSample,
    IdleAct,
    IdleStanding,
    IdleTerms,
    IdleWatch,
    JobSample,
    judged,
    watched,
)
from gpucredits.wire.billing.usage import IdleGuardAnswer

METER_TIMEOUT_S: Final = 10.0
SEND_TIMEOUT_S: Final = 30.0
TERMS_EVERY_MS: Final = 300_000
REFUSED_BYTES_MAX: Final = 1 << 20
IDLE: Final = "idle_gpus"
BAD_REQUEST: Final = 400
OFF: Final = IdleTerms()
_RANDOM = secrets.SystemRandom()


@dataclass(slots=True)
class Guarded:
    """What the idle guard knows of one job."""

    watch: IdleWatch = field(default_factory=IdleWatch)
    standing: IdleStanding = BUSY


@dataclass(slots=True, kw_only=True)
class Metering:
    """The readings of one node."""

    node: str
    folder: Path
    jobs: Mapping[str, SupervisedJob]
    meter: Meter | None = None
    interval_s: float = 15.0
    log: Callable[[str], None] = lambda _text: None
    drained: Callable[[SupervisedJob], None] = lambda _job: None  # an end that the guard has set
    usage: UsageSpool = field(init=False)
    _terms: dict[str, tuple[int, IdleTerms]] = field(default_factory=dict)
    _guarded: dict[str, Guarded] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)  # leases that are paid, with readings to send
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _reading: asyncio.Future[list[DeviceReading]] | None = None
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "meter"))
    _trouble: str = ""

    def __post_init__(self) -> None:
        """Open the spool, which may hold readings of an earlier agent."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.usage = UsageSpool(self.folder / "usage")

    async def run(self, client: AsyncClient) -> None:
        """Read and send in each interval; send the last readings of a job soon after its end."""
        self._ended |= set(self.usage.known()) - set(self.jobs)
        while True:
            pause_s = self.interval_s * _RANDOM.uniform(0.9, 1.1)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), pause_s)
            self._woken.clear()
            await self.turn(client)

    async def turn(self, client: AsyncClient) -> None:
        """Read, judge and send once."""
        readings = {each.uuid: each for each in await self._look()}
        await self._refresh_terms(client)
        await self._record(readings)
        await self._send(client)

    def ended(self, job: SupervisedJob) -> None:
        """Take the last reading of a job that has ended, and send it soon."""
        use = UseSoFar(job.reservation_id, job.used_ms(), self._offset(job), None)
        self._keep([use])
        self._guarded.pop(job.reservation_id, None)

    def paid(self, reservation_id: str) -> None:
        """Forget a lease once all of its readings are sent."""
        self._ended.add(reservation_id)
        self._woken.set()

    def warning_of(self, reservation_id: str) -> str:
        """The idle guard's warning about a job; empty if there is none."""
        guarded = self._guarded.get(reservation_id)
        return guarded.standing.sentence if guarded else ""

    async def _look(self) -> list[DeviceReading]:
        """Read the GPUs; empty while the meter fails, or still hangs in an earlier reading."""
        if self.meter is None:
            return []
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.run_in_executor(self._thread, self.meter.read)
        try:
            readings = await asyncio.wait_for(asyncio.shield(self._reading), METER_TIMEOUT_S)
        except TimeoutError:
            self._tell_trouble(f"the meter does not answer within {METER_TIMEOUT_S:.0f}s")
            return []
        except MeterError as error:
            self._reading = None
            self._tell_trouble(str(error))
            return []
        self._reading = None
        self._trouble = ""
        return readings

    def _tell_trouble(self, text: str) -> None:
        """Log what is wrong with the meter, once for each new trouble."""
        if text != self._trouble:
            self.log(f"the meter cannot read the GPUs: {text}")
        self._trouble = text

    async def _record(self, readings: Mapping[str, DeviceReading]) -> None:
        """Spool the use of each job and let the guard judge it; yield to other tasks in between."""
        uses = []
        for number, job in enumerate(list(self.jobs.values())):
            if job.is_over or not job.run_time.is_started:
                continue
            gpus: tuple[GpuSample, ...] = ()
            if readings and job.shares:
                gpus = gpus_of_job(job.shares, readings, family_of(job.run_time.pid))
                self._guard(job, gpus)
            work = utilization_of(gpus)
            uses.append(UseSoFar(job.reservation_id, job.certain_ms(), self._offset(job), work))
            if number % 100 == 99:
                await asyncio.sleep(0)
        self._keep(uses)

    def _offset(self, job: SupervisedJob) -> int:
        return max(clock_ms() - job.admitted_ms, 0)

    def _keep(self, uses: list[UseSoFar]) -> None:
        """Spool readings. A full disk loses no use: a later reading covers the same time."""
        before = self.usage.halvings
        try:
            self.usage.add(uses)
        except OSError as error:
            self.log(f"readings cannot be written now; they are taken again: {error}")
        if self.usage.halvings > before:
            self.log(f"too many readings wait: merging pairs has left {self.usage.waiting}")

    def _guard(self, job: SupervisedJob, gpus: tuple[GpuSample, ...]) -> None:
        """Warn or drain a job that leaves its GPUs unused, by the terms of its account."""
        terms = self._terms.get(job.account, (0, OFF))[1]
        if not terms.is_on:
            self._guarded.pop(job.reservation_id, None)
            return
        guarded = self._guarded.setdefault(job.reservation_id, Guarded())
        now_ms = clock_ms()
        guarded.watch = watched(guarded.watch, JobSample(now_ms, gpus), terms)
        before = guarded.standing
        guarded.standing = judged(
            before, guarded.watch, terms, started_ms=job.admitted_ms, now_ms=now_ms
        )
        if guarded.standing.act is before.act:
            return
        match guarded.standing.act:
            case IdleAct.WARN:
                self._say(job, f"warning: {guarded.standing.sentence}")
            case IdleAct.DRAIN if job.drain is None:
                self._say(job, f"the job drains: {guarded.standing.sentence}")
                job.end_early(EarlyEnd(now_ms, now_ms + terms.grace_ms, IDLE))
                self.drained(job)
            case _:
                self._say(job, "the GPUs are in use again")

    def _say(self, job: SupervisedJob, text: str) -> None:
        self.log(f"{job.reservation_id}: {text}")
        job.say(text)

    async def _refresh_terms(self, client: AsyncClient) -> None:
        """Ask now and then for the idle guard of each account that has a job."""
        if self.meter is None:
            return
        accounts = {job.account for job in self.jobs.values() if job.shares and not job.is_over}
        self._terms = {each: known for each, known in self._terms.items() if each in accounts}
        now_ms = clock_ms()
        for account in accounts:
            if account in self._terms and now_ms < self._terms[account][0]:
                continue
            known = self._terms.get(account, (0, OFF))[1]
            try:
                async with asyncio.timeout(METER_TIMEOUT_S):
                    known = terms_in(await client.idle_guard(account))
            except (CallError, TimeoutError) as error:
                self.log(f"the idle guard of {account} cannot be read: {error}")
            self._terms[account] = (now_ms + TERMS_EVERY_MS, known)

    async def _send(self, client: AsyncClient) -> None:
        """Send batches until none is left; send a batch that got no answer again later."""
        try:
            while batch := self.usage.batch():
                if not await self._sent(client, batch):
                    return
                self.usage.done()
            done = [each for each in self._ended if not self.usage.is_open(each)]
            self.usage.forget(done)
            self._ended.difference_update(done)
        except OSError as error:
            self.log(f"readings cannot be written, so they are not sent: {error}")

    async def _sent(self, client: AsyncClient, batch: list[SentReading]) -> bool:
        """Send a batch; whether the server has decided about it."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                answer = await client.report_usage(list(map(event_of, batch)), node=self.node)
        except (Invalid, Refused) as error:
            if isinstance(error, Refused) and error.status not in (BAD_REQUEST, 422):
                self.log(f"the server refuses readings for now; they are sent again: {error}")
                return False
            self._set_aside(batch, error)
            return True
        except (CallError, TimeoutError) as error:
            self.log(f"no answer to {len(batch)} readings; {self.usage.waiting} wait: {error}")
            return False
        unknown = {row.reservation_id for row in answer.results if row.status == "unknown"}
        if unknown:
            self.log(f"the server knows no lease {', '.join(sorted(map(str, unknown)))}")
        return True

    def _set_aside(self, batch: list[SentReading], error: CallError) -> None:
        """Write readings that the server refuses for good to a file for people."""
        place = self.folder / "usage.refused"
        self.log(f"the server refuses {len(batch)} readings for good, kept in {place}: {error}")
        if not place.exists() or place.stat().st_size < REFUSED_BYTES_MAX:
            with place.open("a") as file:
                file.writelines(json.dumps(row._asdict()) + "\n" for row in batch)


def event_of(row: SentReading) -> dict[str, Any]:
    """A reading in the form that the server takes."""
    event: dict[str, Any] = {
        "reservation_id": row.reservation_id,
        "seq": row.seq,
        "start_ms": row.start_ms,
        "end_ms": row.end_ms,
    }
    return event if row.utilization is None else {**event, "gpu_utilization": row.utilization}


def terms_in(answer: IdleGuardAnswer) -> IdleTerms:
    """The terms of a guard from the server's answer."""
    return IdleTerms(
        window_ms=answer.window_seconds * 1_000,
        utilization_percent=answer.utilization_percent,
        memory_percent=answer.memory_percent,
        startup_ms=answer.startup_seconds * 1_000,
        warning_ms=answer.warning_seconds * 1_000,
        grace_ms=answer.grace_seconds * 1_000,
    )
