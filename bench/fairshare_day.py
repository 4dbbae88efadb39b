"""A simulated day of a scarce pool: 10,000 jobs of 50 orgs, decided every two minutes.

    python bench/fairshare_day.py [--jobs N] [--orgs N] [--gpus N] [--seed N]
                                  [--picture FILE] [--json]

In the first quarter of the day only every other org has work, and the pool is borrowed whole. Then
the others arrive and get their share back by preemption; from there on everyone has more work than
fits, until it runs out in the evening. Shares are judged while all orgs are backlogged.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from fairshare_picture import draw
from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import Decisions, WaitReason
from gpucredits.core.fairshare.snapshot import (
    Policy,
    PoolSnapshot,
    RunningJob,
    Tenant,
    WaitingRequest,
)

MINUTE = 60_000_000
DAY_MINUTES = 24 * 60
CYCLE_MINUTES = 2
ARRIVAL_MINUTE = 6 * 60
LAST_MINUTE = 15 * 60
POLICY = Policy(
    grace_ms=120_000,
    min_runtime_ms=600_000,
    preemptions_max=50,
    backfill_depth=200,
    estimate_depth=60,
    rank_all=False,
)
ERROR_LIMIT = 0.02
HUNGER_LIMIT_MINUTES = 60


@dataclass
class Job:
    """A job's own story: what it needs, and what happened to it."""

    name: str
    tenant: str
    gpus: int
    minutes: int
    submitted: int
    priority: int
    left: int = 0
    started: int = -1
    ended: int = -1
    waited_since: int = 0
    longest_wait: int = 0
    stopped: int = 0

    @property
    def org(self) -> str:
        """Whose job it is."""
        return self.tenant.split("/")[0]


@dataclass
class Day:
    """What a day showed."""

    orgs: dict[str, int]
    gpus: int
    samples: list[dict[str, int]] = field(default_factory=list)
    backlogged: list[bool] = field(default_factory=list)
    hungry: dict[str, int] = field(default_factory=dict)
    longest_hunger: int = 0
    preemptions: int = 0
    decisions: int = 0
    slowest_ms: float = 0.0
    jobs: list[Job] = field(default_factory=list)
    idle_while_waiting: int = 0


def make_jobs(rng: random.Random, orgs: dict[str, int], jobs: int, gpus: int) -> list[Job]:
    """Work for the whole day: somewhat more than the pool can do, in proportion to weights."""
    names = list(orgs)
    # Who has the pool from midnight can do more in a day.
    appetites = [weight * (1.0 if n % 2 else 1.8) for n, weight in enumerate(orgs.values())]
    drawn = []
    for number in range(jobs):
        org = rng.choices(names, weights=appetites)[0]
        late = names.index(org) % 2
        first = ARRIVAL_MINUTE if late else 0
        spread = LAST_MINUTE - first if rng.random() < 0.4 else 30
        submitted = first + int(spread * rng.random())
        size = rng.choice((1, 1, 1, 2, 2, 4, 8))
        user = f"{org}/p{rng.randrange(2)}/u{rng.randrange(2)}"
        drawn.append(
            Job(f"job-{number:05}", user, size, rng.randint(10, 120), submitted, rng.randrange(3))
        )
    # Stretch the day's work so that it takes the pool until the evening.
    work = sum(job.gpus * job.minutes for job in drawn)
    wanted = gpus * DAY_MINUTES * 0.95
    for job in drawn:
        job.minutes = max(2, round(job.minutes * wanted / work))
        job.left = job.minutes
    return sorted(drawn, key=lambda job: (job.submitted, job.name))


def simulate(jobs: list[Job], orgs: dict[str, int], gpus: int) -> Day:
    """Run the day cycle by cycle: jobs end, the pool is decided, jobs start and stop."""
    day = Day(orgs=orgs, gpus=gpus, jobs=jobs)
    tenants = tuple(Tenant(org, weight) for org, weight in orgs.items())
    coming = list(reversed(jobs))
    waiting: dict[str, Job] = {}
    running: dict[str, Job] = {}
    stopping: dict[str, int] = {}
    asked: dict[str, WaitingRequest] = {}
    minute = 0
    while coming or waiting or running:
        while coming and coming[-1].submitted <= minute:
            job = coming.pop()
            job.waited_since = minute
            waiting[job.name] = job
        end_jobs(minute, running, waiting, stopping, tick=minute > 0)
        snapshot = PoolSnapshot(
            pool="day",
            now=minute * MINUTE,
            capacity=(("gpu", gpus),),
            tenants=tenants,
            running=tuple(running_row(job, minute, stopping) for job in running.values()),
            waiting=tuple(waiting_row(job, asked) for job in waiting.values()),
            policy=POLICY,
        )
        start = time.perf_counter()
        decisions = decide(snapshot)
        day.slowest_ms = max(day.slowest_ms, (time.perf_counter() - start) * 1_000)
        day.decisions += 1
        apply(decisions, minute, running, waiting, stopping)
        note(day, minute, running, waiting, stopping, decisions)
        minute += CYCLE_MINUTES
    return day


def waiting_row(job: Job, asked: dict[str, WaitingRequest]) -> WaitingRequest:
    """A waiting job as the pool sees it; made anew only when it has run for a while."""
    row = asked.get(job.name)
    if row is None or row.duration_ms != job.left * 60_000:
        row = asked[job.name] = WaitingRequest(
            job.name,
            job.tenant,
            (job.gpus,),
            job.priority,
            job.submitted * MINUTE,
            job.left * 60_000,
        )
    return row


def running_row(job: Job, minute: int, stopping: dict[str, int]) -> RunningJob:
    """A running job as the pool sees it."""
    stop = stopping.get(job.name)
    return RunningJob(
        job.name,
        job.tenant,
        (job.gpus,),
        job.priority,
        job.started * MINUTE,
        (minute + job.left) * MINUTE,
        stopping_at=None if stop is None else stop * MINUTE,
    )


def end_jobs(
    minute: int,
    running: dict[str, Job],
    waiting: dict[str, Job],
    stopping: dict[str, int],
    *,
    tick: bool,
) -> None:
    """A cycle passes: finished jobs end, stopped ones wait again with what they have left."""
    for job in list(running.values()):
        job.left -= CYCLE_MINUTES * tick
        if job.left <= 0:
            job.ended = minute
            del running[job.name]
            stopping.pop(job.name, None)
        elif stopping.get(job.name, minute + 1) <= minute:
            del running[job.name], stopping[job.name]
            job.waited_since = minute
            waiting[job.name] = job


def apply(
    decisions: Decisions,
    minute: int,
    running: dict[str, Job],
    waiting: dict[str, Job],
    stopping: dict[str, int],
) -> None:
    """Start and stop what was decided."""
    for row in decisions.admissions:
        job = waiting.pop(row.request_id)
        job.started = minute
        job.longest_wait = max(job.longest_wait, minute - job.waited_since)
        running[job.name] = job
    for preemption in decisions.preemptions:
        stopping[preemption.job_id] = preemption.stop_at // MINUTE
        running[preemption.job_id].stopped += 1


def note(
    day: Day,
    minute: int,
    running: dict[str, Job],
    waiting: dict[str, Job],
    stopping: dict[str, int],
    decisions: Decisions,
) -> None:
    """Take a sample of who holds what."""
    held = dict.fromkeys(day.orgs, 0)
    for job in running.values():
        held[job.org] += job.gpus
    if minute < DAY_MINUTES:
        day.samples.append(held)
        day.backlogged.append({job.org for job in waiting.values()} == set(day.orgs))
    day.preemptions += len(decisions.preemptions)
    for org in {job.org for job in waiting.values()}:
        day.hungry[org] = 0 if held[org] else day.hungry.get(org, 0) + CYCLE_MINUTES
        day.longest_hunger = max(day.longest_hunger, day.hungry[org])
    smallest = min((job.gpus for job in waiting.values()), default=day.gpus + 1)
    is_promised = bool(stopping) or any(
        row.reason in {WaitReason.MAKING_ROOM, WaitReason.WOULD_DELAY_HEAD}
        for row in decisions.waiting
    )
    if smallest <= day.gpus - sum(held.values()) and not is_promised:
        day.idle_while_waiting += 1


def figures(day: Day, seconds: float) -> dict[str, object]:
    """The day in numbers, judged while every org is backlogged and the arrival has settled."""
    judged = [
        sample
        for cycle, sample in enumerate(day.samples)
        if day.backlogged[cycle] and cycle * CYCLE_MINUTES >= ARRIVAL_MINUTE + 15
    ]
    total = sum(day.orgs.values())
    errors = {
        org: abs(
            sum(sample[org] for sample in judged) / max(len(judged), 1) / day.gpus - weight / total
        )
        for org, weight in day.orgs.items()
    }
    used = sum(sum(sample.values()) for sample in judged)
    stopped = [job.stopped for job in day.jobs]
    answer: dict[str, object] = {
        "jobs": len(day.jobs),
        "orgs": len(day.orgs),
        "gpus": day.gpus,
        "seconds": round(seconds, 1),
        "decisions": day.decisions,
        "slowest_decision_ms": round(day.slowest_ms, 1),
        "minutes_judged": len(judged) * CYCLE_MINUTES,
        "share_error_max_points": round(100 * max(errors.values()), 3),
        "share_error_mean_points": round(100 * sum(errors.values()) / len(errors), 3),
        "utilisation_while_judged": round(used / max(len(judged), 1) / day.gpus, 4),
        "unfinished_jobs": sum(job.ended < 0 for job in day.jobs),
        "longest_wait_hours": round(max(job.longest_wait for job in day.jobs) / 60, 1),
        "longest_hunger_of_an_org_minutes": day.longest_hunger,
        "preemptions": day.preemptions,
        "most_preemptions_of_one_job": max(stopped),
        "cycles_idle_while_somebody_fits": day.idle_while_waiting,
    }
    answer["holds"] = (
        len(judged) * CYCLE_MINUTES >= 60
        and max(errors.values()) < ERROR_LIMIT
        and not answer["unfinished_jobs"]
        and day.longest_hunger <= HUNGER_LIMIT_MINUTES
        and day.preemptions <= len(day.jobs) // 5
        and not day.idle_while_waiting
    )
    return answer


def main() -> int:
    """Simulate, judge, draw."""
    parser = argparse.ArgumentParser(description="Simulate a day of a scarce pool.")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--orgs", type=int, default=50)
    parser.add_argument("--gpus", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    orgs = {
        f"org{number:02}": (1, 1, 2, 2, 4)[number * 5 // options.orgs]
        for number in range(options.orgs)
    }
    start = time.perf_counter()
    day = simulate(make_jobs(rng, orgs, options.jobs, options.gpus), orgs, options.gpus)
    answer = figures(day, time.perf_counter() - start)
    if options.picture:
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        options.picture.write_text(
            draw(day.samples, day.backlogged, orgs, (options.gpus, CYCLE_MINUTES))
        )
    if options.json:
        print(json.dumps(answer, indent=2))
    else:
        for name, value in answer.items():
            print(f"{name.replace('_', ' '):<34} {value}")
    return 0 if answer["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
