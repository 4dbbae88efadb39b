"""Admissions: connections that reserve and settle, one pair after another.

Owns: what a pair sends and expects. A pair counts when both its halves were answered in time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from gpucredits.bench.beating import Tally
from gpucredits.bench.exchange import Peer, Target
from gpucredits.bench.workload import GPU_TYPE, WINDOW_S, job_path

PATH = "/v1/reservations"
SETTLE_BODY = b'{"seq":1,"used_ms":0}'


class Opened(msgspec.Struct):
    """What is read of the answer to a reserve."""

    reservation_id: str
    state: str


OPENED = msgspec.json.Decoder(Opened)


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
    """One connection that admits a job and ends it again, org after org."""

    def __init__(self, target: Target, tally: Tally, name: str, orgs: Iterator[int]) -> None:
        super().__init__()
        self._target = target
        self._tally = tally
        self._name = name
        self._orgs = orgs
        self._count = 0
        self._asked_at = 0.0
        self._is_open = False
        self.is_waiting = False

    def admit(self) -> None:
        """Reserve for the next job."""
        self._count += 1
        self._asked_at = time.monotonic()
        self.is_waiting = True
        job_id = f"{self._name}-{self._count}"
        body = reserve_body(next(self._orgs), job_id)
        self.write(self._target.request(PATH, body, key=f"reserve-{job_id}"))

    def answered(self, status: int, body: bytes) -> None:
        """After a reserve settle, after a settle count the pair and go on."""
        tally = self._tally
        if not 200 <= status < 300:
            tally.complain(f"{status}: {body[:300].decode(errors='replace')}")
            self.is_waiting = False
            return
        if not self._is_open:
            self._is_open = True
            path = f"{PATH}/{OPENED.decode(body).reservation_id}:settle"
            key = f"settle-{self._name}-{self._count}"
            self.write(self._target.request(path, SETTLE_BODY, key=key))
            return
        self._is_open = False
        now = time.monotonic()
        tally.add(1, self._asked_at, now)
        if now < tally.until and not tally.problems:
            self.admit()
        else:
            self.is_waiting = False

    def connection_lost(self, exc: Exception | None) -> None:
        """A line that breaks while an answer is awaited is a problem."""
        if self.is_waiting:
            self._tally.complain(f"the server hung up: {exc}")
            self.is_waiting = False
