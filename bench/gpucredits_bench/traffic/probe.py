"""Probes: single requests, timed one at a time over a connection of their own.

Owns: how long a reserve takes, whatever else the server does meanwhile, and how long a small report
of heartbeats takes on a server that does nothing else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from gpucredits_bench.traffic.admitting import OPENED, PATH, reserve_body
from gpucredits_bench.traffic.beating import Lease, Post
from gpucredits_bench.traffic.exchange import ExchangeError, Line, Target
from gpucredits_bench.traffic.load import quantile

PACE_S = 0.02
REPORT_EVERY_S = 0.015
REPORT_BEATS = 8


@dataclass(frozen=True, slots=True)
class Latency:
    """How long single requests took."""

    samples: int
    p50_s: float
    p95_s: float


def time_reserves(
    target: Target, *, orgs: int, seconds: float, name: str, cancels: bool = True
) -> Latency:
    """Reserve at a steady pace, org after org, and cancel each at once where that is possible."""
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
            if cancels:
                path = f"{PATH}/{OPENED.decode(answer).reservation_id}:cancel"
                line.call(path, {}, key=f"cancel-{job_id}")
            time.sleep(PACE_S)
    return latency_of(taken)


def time_reports(target: Target, leases: list[Lease], *, seconds: float) -> Latency:
    """Report every 15 ms, as one small node does."""
    post = Post(target, "node-0", leases)
    taken: list[float] = []
    due = time.monotonic()
    until = due + seconds
    with Line(target) as line:
        while due < until:
            request = post.encode(len(taken) + 1, time.monotonic())
            started = time.perf_counter()
            status, answer = line.exchange(request)
            taken.append(time.perf_counter() - started)
            problem = post.check(answer) if status == 200 else f"status {status}"
            if problem:
                raise ExchangeError(f"a report was answered {answer[:300]!r}: {problem}")
            due = max(due + REPORT_EVERY_S, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0.0))
    return latency_of(taken)


def latency_of(taken: list[float]) -> Latency:
    """The quantiles of some times."""
    ordered = sorted(taken)
    return Latency(len(taken), quantile(ordered, 0.5), quantile(ordered, 0.95))
