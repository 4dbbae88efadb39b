"""The probe: one reserve at a time from a connection of its own, timed, then canceled.

Owns: how long an admission takes, whatever else the server does meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from gpucredits.bench.admitting import OPENED, PATH, reserve_body
from gpucredits.bench.exchange import ExchangeError, Line, Target
from gpucredits.bench.load import quantile

PACE_S = 0.02


@dataclass(frozen=True, slots=True)
class Latency:
    """How long single reserves took."""

    samples: int
    p50_s: float
    p95_s: float


def time_reserves(target: Target, *, orgs: int, seconds: float, name: str) -> Latency:
    """Reserve at a steady pace, org after org, and cancel each at once."""
    taken: list[float] = []
    until = time.monotonic() + seconds
    with Line(target) as line:
        while time.monotonic() < until:
            job_id = f"{name}-{len(taken)}"
            body = reserve_body(len(taken) * 7 % orgs, job_id)
            request = target.request(PATH, body, key=f"reserve-{job_id}")
            started = time.perf_counter()
            status, answer = line.exchange(request)
            taken.append(time.perf_counter() - started)
            if not 200 <= status < 300:
                raise ExchangeError(f"a reserve was answered {status}: {answer[:300]!r}")
            path = f"{PATH}/{OPENED.decode(answer).reservation_id}:cancel"
            line.call(path, {}, key=f"cancel-{job_id}")
            time.sleep(PACE_S)
    ordered = sorted(taken)
    return Latency(len(taken), quantile(ordered, 0.5), quantile(ordered, 0.95))
