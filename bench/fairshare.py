"""How long one fair-share decision takes, and how that grows with the pool.

    python bench/fairshare.py [--resources 1|3] [--rounds N] [--json]

The snapshot is built before the clock starts. Each size is decided several times and the fastest
counts, which is the one least disturbed by the rest of the machine. Growth is the ratio of times
over the ratio of rows: 1.0 is linear.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.snapshot import (
    PoolSnapshot,
    RunningJob,
    Tenant,
    WaitingRequest,
)

HOUR = 3_600_000_000
NOW = 1_000 * HOUR
LIMIT_MS = 250
SIZES = ((1_000, 10_000), (10_000, 10_000), (1_000, 100_000), (10_000, 100_000))
GPUS = (1, 1, 1, 2, 2, 4, 8)


def build(waiting: int, running: int, resources: int) -> PoolSnapshot:
    """A full pool of 50 orgs with 5 projects of 4 users each, a little of it free."""
    rng = random.Random(waiting * 31 + running)
    orgs = [f"org{number:02}" for number in range(50)]
    users = [
        f"{org}/p{project}/u{user}" for org in orgs for project in range(5) for user in range(4)
    ]
    tenants = tuple(Tenant(org, rng.randint(1, 8)) for org in orgs)

    shapes: dict[tuple[int, ...], tuple[int, ...]] = {}

    def amounts() -> tuple[int, ...]:
        """Amounts of one job; equal ones are one object, as a loader would make them."""
        gpus = rng.choice(GPUS)
        drawn = (gpus, gpus * 8, gpus * rng.choice((32, 64, 128)))[:resources]
        return shapes.setdefault(drawn, drawn)

    jobs = tuple(
        RunningJob(
            f"job-{number}",
            rng.choice(users),
            amounts(),
            priority=rng.randint(0, 2),
            started_at=NOW - rng.randint(1, 10 * HOUR),
            expected_end=NOW + rng.randint(1, 10 * HOUR),
        )
        for number in range(running)
    )
    requests = tuple(
        WaitingRequest(
            f"request-{number}",
            rng.choice(users),
            amounts(),
            priority=rng.randint(0, 2),
            submitted_at=NOW - rng.randint(1, HOUR),
            duration_ms=rng.randint(60_000, 7_200_000),
        )
        for number in range(waiting)
    )
    used = [sum(job.amounts[axis] for job in jobs) for axis in range(resources)]
    names = ("gpu", "cpu", "memory")
    capacity = tuple((names[axis], total + total // 200) for axis, total in enumerate(used))
    return PoolSnapshot(
        pool="bench", now=NOW, capacity=capacity, tenants=tenants, running=jobs, waiting=requests
    )


def measure(waiting: int, running: int, resources: int, rounds: int) -> dict[str, int | float]:
    """The fastest of several decisions over one snapshot."""
    snapshot = build(waiting, running, resources)
    # A decision makes many small rows and throws few away: the collector would look through all
    # of them and the snapshot for nothing. Whoever decides often pauses it for that moment.
    gc.collect()
    gc.disable()
    fastest = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        decisions = decide(snapshot)
        fastest = min(fastest, time.perf_counter() - start)
    gc.enable()
    return {
        "waiting": waiting,
        "running": running,
        "ms": round(fastest * 1_000, 1),
        "admitted": len(decisions.admissions),
        "preempted": len(decisions.preemptions),
    }


def main() -> int:
    """Measure every size and say how the time grows."""
    parser = argparse.ArgumentParser(description="Measure fair-share decisions.")
    parser.add_argument("--resources", type=int, choices=(1, 3), default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        measure(waiting, running, options.resources, options.rounds) for waiting, running in SIZES
    ]
    first, last = rows[0], rows[-1]
    growth = round(last["ms"] / first["ms"] / 10, 2)
    answer = {
        "resources": options.resources,
        "rows": rows,
        "limit_ms": LIMIT_MS,
        "largest_ms": last["ms"],
        "growth_at_ten_times_the_rows": growth,
        "holds": last["ms"] < LIMIT_MS,
    }
    if options.json:
        print(json.dumps(answer, indent=2))
    else:
        print("waiting  running        ms  admitted  preempted")
        for row in rows:
            print(
                f"{row['waiting']:>7}  {row['running']:>7}  {row['ms']:>8}"
                f"  {row['admitted']:>8}  {row['preempted']:>9}"
            )
        print(f"ten times the rows take {growth * 10:.1f} times as long; limit {LIMIT_MS} ms")
    return 0 if answer["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
