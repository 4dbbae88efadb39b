"""Heartbeats duplicated, reordered, delayed and cut: the bill is that of a quiet network."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from gpucredits.client import Client, Retry
from gpucredits.client.errors import Undecided
from support.faults.extent import Extent, Teller
from support.faults.faulty_proxy import Fault, FaultyProxy
from support.scenes.orgs import GPU_TYPE, new_org
from support.servers.http import RunningServer

pytestmark = pytest.mark.faults

STEPS = 12
# The longest window that a server allows, so that slack is plenty: the server's clock is moved to
# where a step begins, and the real time that a busy machine takes for a step is a part of it.
STEP_S = 100
WINDOW_S = 600
COPY_DELAY_STEPS_MAX = 3 * WINDOW_S // STEP_S  # a copy may arrive after three windows
BEAT_DELAY_STEPS_MAX = 3  # the beat itself arrives while its lease lives
SLACK_S = WINDOW_S - (BEAT_DELAY_STEPS_MAX + 1) * STEP_S  # a machine that is later voids the run
PRICE = "777.777777"
ONE_TRY = Retry(attempts_max=1, attempt_timeout_s=10.0)


@dataclass(frozen=True, slots=True)
class Beat:
    """One report, and what happens to it on the way."""

    lease: int
    seq: int
    used_ms: int
    fault: Fault | None = None


@dataclass(slots=True)
class Plan:
    """Which reports arrive at which step."""

    arrivals: dict[int, list[Beat]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, step: int, beat: Beat) -> None:
        """Let a report arrive at a step."""
        self.arrivals.setdefault(step, []).append(beat)


def reports(chance: random.Random) -> list[int]:
    """Use in all at each step: a job that waits at times, and never runs faster than the clock."""
    used_ms = 0
    in_all = []
    for _ in range(STEPS):
        used_ms += chance.randrange(STEP_S * 1_000)
        in_all.append(used_ms)
    return in_all


def scrambled(leases: list[list[int]], chance: random.Random) -> Plan:
    """Every report with something done to it; each is delivered whole at least once."""
    plan = Plan()
    for lease, in_all in enumerate(leases):
        for step, used_ms in enumerate(in_all):
            seq = step + 1
            beat = Beat(lease, seq, used_ms)
            delay = chance.randrange(BEAT_DELAY_STEPS_MAX + 1)
            plan.faults["delayed"] += delay > 0
            plan.add(step + delay, beat)
            if chance.random() < 0.4:
                plan.faults["duplicated"] += 1
                plan.add(step + chance.randrange(COPY_DELAY_STEPS_MAX + 1), beat)
            if chance.random() < 0.2:
                plan.faults["reused seq"] += 1
                later = step + delay + 1 + chance.randrange(2)
                plan.add(later, Beat(lease, seq, used_ms + chance.randrange(1, 5_000)))
            if chance.random() < 0.3:
                fault = chance.choice([Fault.CUT_REQUEST, Fault.HALF_REPLY, Fault.SWALLOW_REPLY])
                plan.faults["cut"] += 1
                plan.add(step, Beat(lease, seq, used_ms, fault))
    for arriving in plan.arrivals.values():
        chance.shuffle(arriving)
    return plan


def quiet(leases: list[list[int]]) -> Plan:
    """Every report once, in order, at its time."""
    plan = Plan()
    for lease, in_all in enumerate(leases):
        for step, used_ms in enumerate(in_all):
            plan.add(step, Beat(lease, step + 1, used_ms))
    return plan


def misbilled_by_slices(plan: Plan, leases: list[list[int]]) -> int:
    """Control: how many leases would cost something else if each report were charged its slice."""
    billed: Counter[int] = Counter()
    for beat in (each for arriving in plan.arrivals.values() for each in arriving):
        before = leases[beat.lease][beat.seq - 2] if beat.seq > 1 else 0
        billed[beat.lease] += beat.used_ms - before
    return sum(billed[lease] != in_all[-1] for lease, in_all in enumerate(leases))


@dataclass(slots=True)
class Delivery:
    """Delivers plans side by side as the clock of the server is moved."""

    direct: Client
    faulty: Client
    proxy: FaultyProxy
    highest: Counter[str] = field(default_factory=Counter)
    reordered: int = 0
    late_copies: int = 0
    unanswered: int = 0
    late_s: float = 0.0  # the most that the server's clock was past where a step begins
    moved_s: int = 0
    began_s: float = field(default_factory=time.monotonic)

    def move_clock(self, step: int) -> None:
        """Let a step begin: by the plan's time, not by that of the machine."""
        ahead_s = self.moved_s + time.monotonic() - self.began_s - (step + 1) * STEP_S
        self.late_s = max(self.late_s, ahead_s)
        if ahead_s < 0:
            more_s = math.ceil(-ahead_s)
            self.direct.advance_clock(more_s)
            self.moved_s += more_s

    def deliver(self, lease_id: str, beat: Beat) -> None:
        """Send one report; one that is cut on the way is not sent again here."""
        self.reordered += beat.seq < self.highest[lease_id]
        self.highest[lease_id] = max(beat.seq, self.highest[lease_id])
        if beat.fault is None:
            self.direct.heartbeats([(lease_id, beat.seq, beat.used_ms)])
            return
        self.proxy.plan.append(beat.fault)
        with pytest.raises(Undecided):
            self.faulty.heartbeats([(lease_id, beat.seq, beat.used_ms)])
        self.unanswered += 1

    def run(self, plans: list[tuple[Plan, list[str]]]) -> None:
        """Let time pass and reports arrive; jobs end when their last report has arrived."""
        last_beats = STEPS + BEAT_DELAY_STEPS_MAX
        for step in range(STEPS + COPY_DELAY_STEPS_MAX + 1):
            self.move_clock(step)
            for plan, lease_ids in plans:
                for beat in plan.arrivals.get(step, []):
                    self.deliver(lease_ids[beat.lease], beat)
                    self.late_copies += step > last_beats
            if step == last_beats:
                for _, lease_ids in plans:
                    for lease_id in lease_ids:
                        self.direct.settle(lease_id)


@pytest.fixture
def faulty(server: RunningServer, proxy: FaultyProxy) -> Iterator[Client]:
    """A client behind the proxy that asks once."""
    with Client(proxy.url, server.admin_secret, retry=ONE_TRY) as client:
        yield client


def test_disorder_never_changes_a_bill(
    direct: Client, faulty: Client, proxy: FaultyProxy, extent: Extent, tell: Teller
) -> None:
    """Twin leases, one on a quiet network and one on a bad one, cost the same micro-credits."""
    chance = random.Random(extent.seed)
    leases = [reports(chance) for _ in range(2 * extent.cycles)]
    plan = scrambled(leases, chance)
    orgs = [new_org(direct) for _ in range(2)]
    delivery = Delivery(direct, faulty, proxy)
    ids: list[list[str]] = []
    for org in orgs:
        direct.set_price(GPU_TYPE, PRICE, account=org)
        direct.issue(org, "100000000")
        ids.append([reserved(direct, org, number) for number in range(len(leases))])
    delivery.run([(quiet(leases), ids[0]), (plan, ids[1])])
    charged = [[direct.reservation(each).settled for each in of_org] for of_org in ids]
    equal = sum(calm == rough for calm, rough in zip(*charged, strict=True))
    faults = ", ".join(f"{name} {count}" for name, count in sorted(plan.faults.items()))
    tell(
        "heartbeats in disorder",
        f"equal charges {equal} of {len(leases)} leases, {faults}, "
        f"at most {delivery.late_s:.0f} s late of {SLACK_S} s",
        holds=charged[0] == charged[1],
        in_time=int(delivery.late_s <= SLACK_S),
        reordered=delivery.reordered,
        unanswered=delivery.unanswered,
        copies_after_the_end=delivery.late_copies,
        duplicates=plan.faults["duplicated"],
        reused=plan.faults["reused seq"],
        misbilled_by_slices=misbilled_by_slices(plan, leases),
    )
    assert charged[0] == charged[1]
    assert direct.balance(orgs[0]).spent == direct.balance(orgs[1]).spent != "0"


def reserved(client: Client, org: str, number: int) -> str:
    """A lease of an org."""
    lease = client.reserve(
        org, job_id=f"j{number}", gpu_type=GPU_TYPE, gpu_count=3, window_seconds=WINDOW_S
    )
    return lease.reservation_id
