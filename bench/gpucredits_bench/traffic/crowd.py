"""A crowd of tenants: the generator's process of ``gpucredits bench burst``.

Owns: polite orgs, whose jobs come by the clock and end at once, and a hostile one, which asks for
thousands of jobs at once, in single requests and in batches, and reports the few that it got.
``python -m gpucredits_bench.traffic.crowd SPEC`` runs one of the two and prints its answers.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import uvloop

from gpucredits_bench.traffic.admitting import (
    OPENED,
    PATH,
    Opened,
    reserve_body,
    reserve_item,
)
from gpucredits_bench.traffic.exchange import HOST, ExchangeError, Peer, Target
from gpucredits_bench.traffic.load import COUNTED, COUNTING, giving, say

SETTLE_BODY = b'{"seq":1,"used_ms":1}'
TICK_S = 0.001
DRAIN_S = 60.0
BATCH_PATH = "/v1/reservations:batch"
BEATS_PATH = "/v1/heartbeats"
BATCH = 100  # reserves in one request of the hostile tenant
BURST_EVERY_S = 1.0
BEATS_EVERY_S = 0.1
ADMITTED = "admitted"
QUEUE_FULL = "queue_full"
REQUEST_LIMIT = "request_limit"


class Tenant(msgspec.Struct, frozen=True, array_like=True):
    """An org and the key that it speaks with."""

    org: int
    token: str


class Given(msgspec.Struct, frozen=True, array_like=True):
    """A lease that a tenant was given, and when the answer came, by the machine's clock."""

    reservation_id: str
    given_at: float

    def used_ms(self, now: float) -> int:
        """The time since then: no more than the server's."""
        return int((now - self.given_at) * 1_000)


class Spec(msgspec.Struct, kw_only=True):
    """Who comes, how often (in jobs of all tenants together), and for how long."""

    mode: Literal["polite", "hostile"]
    port: int
    tenants: list[Tenant]
    jobs_per_second: float
    warm_up_s: float
    seconds: float
    lines: int
    name: str


class Figures(msgspec.Struct, kw_only=True):
    """What the jobs that were due within the window were answered, and the leases still open."""

    offered: int
    latencies_s: list[float]
    answers: dict[str, int]
    admitted_by_org: dict[int, int]
    beats: dict[str, int]
    leases: list[Given]
    problems: list[str]


@dataclass(slots=True)
class Minutes:
    """What was asked and answered in the window so far."""

    counting_from: float
    until: float
    offered: int = 0
    latencies: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    admitted: Counter[int] = field(default_factory=Counter)
    beats: Counter[str] = field(default_factory=Counter)
    leases: list[Given] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def counts(self, due_at: float) -> bool:
        """Whether something that was due then belongs to the window."""
        return self.counting_from <= due_at < self.until


@dataclass(frozen=True, slots=True)
class Errand:
    """Something to send: jobs of a tenant that were due at an instant, or its heartbeats."""

    tenant: Tenant
    request: bytes
    due_at: float
    jobs: int = 1
    settles: bool = False
    beats: int = 0


class Visitor(Peer):
    """One connection that runs errands, one after another, whoever's they are."""

    def __init__(self, port: int, minutes: Minutes) -> None:
        super().__init__()
        self._port = port
        self._minutes = minutes
        self._errand: Errand | None = None
        self._is_settling = False
        self.on_idle: Callable[[Visitor], None] = lambda _: None

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is awaited."""
        return self._errand is not None

    def run(self, errand: Errand) -> None:
        """Begin an errand."""
        self._errand = errand
        self.write(errand.request)

    def answered(self, status: int, body: bytes) -> None:
        """Note the answer; a polite job that was admitted is ended before the next errand."""
        errand = self._errand
        assert errand is not None
        if self._is_settling:
            self._is_settling = False
            if status != 200:
                self._minutes.problems.append(f"a settle was answered {status}: {body[:200]!r}")
        elif errand.beats:
            self._minutes.beats.update(beat_labels(status, body, errand.beats))
        else:
            self._note(errand, status, body)
            if errand.settles and status in (200, 201):
                self._is_settling = True
                self.write(settle_request(self._port, errand.tenant, OPENED.decode(body)))
                return
        self._errand = None
        self.on_idle(self)

    def _note(self, errand: Errand, status: int, body: bytes) -> None:
        minutes = self._minutes
        labels, leases = labels_of(status, body, errand.jobs)
        now = time.monotonic()
        if not errand.settles:
            minutes.leases.extend(Given(lease, now) for lease in leases)
        if not minutes.counts(errand.due_at):
            return
        minutes.offered += errand.jobs
        minutes.latencies.append(now - errand.due_at)
        minutes.answers.update(labels)
        minutes.admitted[errand.tenant.org] += labels[ADMITTED]

    def connection_lost(self, exc: Exception | None) -> None:
        """A line that breaks while an answer is awaited is a problem."""
        if self._errand is not None:
            self._minutes.problems.append(f"the server hung up: {exc}")
            self._errand = None


class Lines:
    """Connections with what waits for one of them."""

    def __init__(self, visitors: list[Visitor]) -> None:
        self._idle = deque(visitors)
        self._late: deque[Errand] = deque()
        self._visitors = visitors
        for visitor in visitors:
            visitor.on_idle = self._again

    def put(self, errand: Errand) -> None:
        """Send it now, or as soon as a connection is free; its wait is latency."""
        if self._idle:
            self._idle.popleft().run(errand)
        else:
            self._late.append(errand)

    def _again(self, visitor: Visitor) -> None:
        if self._late:
            visitor.run(self._late.popleft())
        else:
            self._idle.append(visitor)

    async def drain(self) -> None:
        """Wait until everything is answered."""
        deadline = time.monotonic() + DRAIN_S
        while any(visitor.is_waiting for visitor in self._visitors):
            if time.monotonic() > deadline:
                raise ExchangeError("some requests were never answered")
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Hang up."""
        for visitor in self._visitors:
            visitor.close()


def settle_request(port: int, tenant: Tenant, lease: Opened) -> bytes:
    """The end of a job that was just admitted."""
    number = lease.reservation_id
    target = Target(port, tenant.token)
    return target.request(f"{PATH}/{number}:settle", SETTLE_BODY, key=f"settle-{number}")


def labels_of(status: int, body: bytes, jobs: int) -> tuple[Counter[str], list[str]]:
    """What became of the jobs of a request: by gate how many, and the leases that were given."""
    if not 200 <= status < 300:
        return Counter({refusal(status, msgspec.json.decode(body)): jobs}), []
    answer = msgspec.json.decode(body)
    labels: Counter[str] = Counter()
    leases = []
    for result in answer.get("results", [{"reservation": answer}]):
        lease = result.get("reservation")
        if lease is None:
            labels[refusal(result["status"], result["problem"])] += 1
        else:
            labels[ADMITTED] += 1
            leases.append(lease["reservation_id"])
    return labels, leases


def refusal(status: int, problem: dict[str, object]) -> str:
    """Which gate refused: the bound of the queue, the limit on requests, or the reason given."""
    if status == 503:
        return QUEUE_FULL
    if status == 429 and "limit" in problem:
        return REQUEST_LIMIT
    return str(problem["reason"])


def beat_labels(status: int, body: bytes, beats: int) -> Counter[str]:
    """What was decided about each beat of a report."""
    if status != 200:
        return Counter({refusal(status, msgspec.json.decode(body)): beats})
    results = msgspec.json.decode(body)["results"]
    return Counter(str(each.get("decision") or each.get("reason")) for each in results)


async def come_politely(spec: Spec, lines: Lines, minutes: Minutes) -> None:
    """Every org's jobs by the clock, orgs in turn."""
    began = time.monotonic()
    sent = 0
    while (now := time.monotonic()) < minutes.until:
        while sent < (now - began) * spec.jobs_per_second:
            tenant = spec.tenants[sent % len(spec.tenants)]
            job_id = f"{spec.name}-{sent}"
            request = Target(spec.port, tenant.token).request(
                PATH, reserve_body(tenant.org, job_id), key=f"reserve-{job_id}"
            )
            due_at = began + sent / spec.jobs_per_second
            lines.put(Errand(tenant, request, due_at, settles=True))
            sent += 1
        await asyncio.sleep(TICK_S)
    await lines.drain()


async def come_at_once(spec: Spec, lines: Lines, minutes: Minutes) -> None:
    """A burst each second: half of its jobs in single requests, half in batches; and reports."""
    began = time.monotonic()
    tenant = spec.tenants[0]
    each = int(spec.jobs_per_second * BURST_EVERY_S)
    bursts, reports = 0, 0
    while (now := time.monotonic()) < minutes.until:
        if now - began >= bursts * BURST_EVERY_S:
            for errand in burst(spec, tenant, f"{spec.name}-{bursts}", each, now):
                lines.put(errand)
            bursts += 1
        if minutes.leases and now - began >= reports * BEATS_EVERY_S:
            reports += 1
            lines.put(report(spec, tenant, minutes.leases, reports, now))
        await asyncio.sleep(TICK_S)
    await lines.drain()


def burst(spec: Spec, tenant: Tenant, name: str, jobs: int, now: float) -> list[Errand]:
    """All jobs of one burst."""
    target = Target(spec.port, tenant.token)
    batches = jobs // 2 // BATCH
    errands = []
    for number in range(batches):
        items = [reserve_item(tenant.org, f"{name}-{number}-{place}") for place in range(BATCH)]
        body = msgspec.json.encode({"items": items})
        request = target.request(BATCH_PATH, body, key=f"batch-{name}-{number}")
        errands.append(Errand(tenant, request, now, jobs=BATCH))
    for number in range(jobs - batches * BATCH):
        job_id = f"{name}-{number}"
        body = reserve_body(tenant.org, job_id)
        errands.append(Errand(tenant, target.request(PATH, body, key=f"reserve-{job_id}"), now))
    return errands


def report(spec: Spec, tenant: Tenant, leases: list[Given], seq: int, now: float) -> Errand:
    """Heartbeats of everything that runs."""
    beats = [
        {"reservation_id": lease.reservation_id, "seq": seq, "used_ms": lease.used_ms(now)}
        for lease in leases[-BATCH:]
    ]
    body = msgspec.json.encode({"node": "node-0", "beats": beats})
    request = Target(spec.port, tenant.token).request(BEATS_PATH, body)
    return Errand(tenant, request, now, beats=len(beats))


async def come(spec: Spec) -> Figures:
    """Do what the spec says, and give what was answered."""
    now = time.monotonic()
    minutes = Minutes(now + spec.warm_up_s, now + spec.warm_up_s + spec.seconds)
    visitors = [Visitor(spec.port, minutes) for _ in range(spec.lines)]
    loop = asyncio.get_running_loop()
    for visitor in visitors:
        await loop.create_connection(giving(visitor), HOST, spec.port)
    loop.call_later(max(minutes.counting_from - time.monotonic(), 0.0), say, COUNTING)
    lines = Lines(visitors)
    drive = come_politely if spec.mode == "polite" else come_at_once
    await drive(spec, lines, minutes)
    say(COUNTED)
    lines.close()
    return Figures(
        offered=minutes.offered,
        latencies_s=minutes.latencies,
        answers=dict(minutes.answers),
        admitted_by_org=dict(minutes.admitted),
        beats=dict(minutes.beats),
        leases=minutes.leases,
        problems=minutes.problems,
    )


def main() -> None:
    """Run one spec and print its figures as the last line."""
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec)
    try:
        figures = uvloop.run(come(spec))
    except (ExchangeError, OSError) as error:
        sys.exit(f"load generator: {error}")
    say(msgspec.json.encode(figures) + b"\n")


if __name__ == "__main__":
    main()
