"""Admissions: connections that reserve and settle, one pair after another, or reserve in batches.

Owns: what is sent and expected. Each connection keeps a few leases open and settles the oldest for
the time that has really passed, so every settlement charges. A pair counts when its settlement is
answered with what the formula says.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import msgspec

from gpucredits.core.money import MILLI_PER_GPU, cost, format_credits
from gpucredits_bench.traffic.beating import Tally
from gpucredits_bench.traffic.exchange import Peer, Target
from gpucredits_bench.workload import GPU_TYPE, PRICE_PER_GPU_HOUR, WINDOW_S, job_path

PATH = "/v1/reservations"
BATCH_PATH = f"{PATH}:batch"
OPEN_LEASES = 4  # of a connection: a lease is settled after as many pairs
ADMITTED = b'"status":201'


class Opened(msgspec.Struct):
    """What is read of the answer to a reserve."""

    reservation_id: str
    state: str


class Ended(msgspec.Struct):
    """What is read of the answer to a settle."""

    settled: str


OPENED = msgspec.json.Decoder(Opened)
ENDED = msgspec.json.Decoder(Ended)


def reserve_item(org: int, job_id: str) -> dict[str, object]:
    """A request for one GPU on behalf of an org's person, as it stands in a batch."""
    return {
        "account": job_path(org),
        "job_id": job_id,
        "gpu_type": GPU_TYPE,
        "gpu_count": 1,
        "node": "node-0",
        "window_seconds": WINDOW_S,
    }


def reserve_body(org: int, job_id: str) -> bytes:
    """The same as a request of its own."""
    return msgspec.json.encode(reserve_item(org, job_id))


class Dispatcher(Peer):
    """One connection that admits a job and ends an earlier one, org after org."""

    def __init__(self, target: Target, tally: Tally, name: str, orgs: Iterator[int]) -> None:
        super().__init__()
        self._target = target
        self._tally = tally
        self._name = name
        self._orgs = orgs
        self._count = 0
        self._asked_at = 0.0
        self._open: deque[tuple[str, float]] = deque()  # leases, and when they were answered
        self._due = ""  # what the settlement that is under way must charge
        self.is_waiting = False

    def begin(self) -> None:
        """Reserve for the next job."""
        self._count += 1
        self._asked_at = time.monotonic()
        self.is_waiting = True
        job_id = f"{self._name}-{self._count}"
        body = reserve_body(next(self._orgs), job_id)
        self.write(self._target.request(PATH, body, key=f"reserve-{job_id}"))

    def answered(self, status: int, body: bytes) -> None:
        """After a reserve settle the oldest lease, after a settle go on."""
        now = time.monotonic()
        self.is_waiting = False
        if not 200 <= status < 300:
            self._tally.complain(f"{status}: {body[:300].decode(errors='replace')}")
        elif not self._due:
            self._open.append((OPENED.decode(body).reservation_id, now))
            self._tally.time(self._asked_at, now)
            if len(self._open) > OPEN_LEASES:
                self._settle(now)
            else:
                self._go_on(now)
        elif (settled := ENDED.decode(body).settled) != self._due:
            self._tally.complain(f"settled {settled}, and {self._due} is due")
        else:
            self._due = ""
            self._tally.count(1, now)
            self._go_on(now)

    def _settle(self, now: float) -> None:
        reservation_id, opened_at = self._open.popleft()
        used_ms = int((now - opened_at) * 1_000)
        self._due = format_credits(cost(MILLI_PER_GPU * PRICE_PER_GPU_HOUR, used_ms))
        self.is_waiting = True
        body = b'{"seq":1,"used_ms":%d}' % used_ms
        path = f"{PATH}/{reservation_id}:settle"
        key = f"settle-{self._name}-{self._count}"
        self.write(self._target.request(path, body, key=key))

    def _go_on(self, now: float) -> None:
        if now < self._tally.until and not self._tally.problems:
            self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """A line that breaks while an answer is awaited is a problem."""
        if self.is_waiting:
            self._tally.complain(f"the server hung up: {exc}")
            self.is_waiting = False


class Batcher(Peer):
    """One connection that admits jobs of one org in batches, org after org."""

    def __init__(
        self, target: Target, tally: Tally, name: str, orgs: Iterator[int], size: int
    ) -> None:
        super().__init__()
        self._target = target
        self._tally = tally
        self._name = name
        self._orgs = orgs
        self._size = size
        self._count = 0
        self._asked_at = 0.0
        self.is_waiting = False

    def begin(self) -> None:
        """Reserve for the next jobs."""
        self._count += 1
        self._asked_at = time.monotonic()
        self.is_waiting = True
        key = f"{self._name}-{self._count}"
        org = next(self._orgs)
        items = [reserve_item(org, f"{key}-{number}") for number in range(self._size)]
        body = msgspec.json.encode({"items": items})
        self.write(self._target.request(BATCH_PATH, body, key=key))

    def answered(self, status: int, body: bytes) -> None:
        """Every item must have been admitted."""
        now = time.monotonic()
        self.is_waiting = False
        if status != 200 or body.count(ADMITTED) != self._size:
            self._tally.complain(f"{status}: {body[:300].decode(errors='replace')}")
            return
        self._tally.add(self._size, self._asked_at, now)
        if now < self._tally.until and not self._tally.problems:
            self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """A line that breaks while an answer is awaited is a problem."""
        if self.is_waiting:
            self._tally.complain(f"the server hung up: {exc}")
            self.is_waiting = False
