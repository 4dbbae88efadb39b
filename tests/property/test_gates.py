"""Random work under random limits: counters, windows, tokens and decisions against a naive model.

Two ledgers run side by side, one that keeps its book and one that loads what a store would load.
"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gpucredits.core import command as commands
from gpucredits.core.command import Command
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.limits import tokens
from gpucredits.core.outcome import (
    Boosted,
    Closed,
    Explained,
    Outcome,
    QuotaSaved,
    RateLimitSaved,
    Reserved,
)
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from oracle.gates_model import (
    HOUR_MS,
    MINUTE,
    SECOND,
    SPRING,
    GatesModel,
    ModelBucket,
    ModelLease,
    ModelQuota,
)
from support.books.ledger import CREDIT, Ledger

PATHS = ["acme", "acme/vision", "acme/vision/alice", "acme/vision/bob"]
RATES = {"h100": 35_999_999, "a100": 3_600_001}
SORTS: dict[str, dict[str, object]] = {
    "gpus": {"dimension": Dimension.CONCURRENT_GPUS},
    "jobs": {"dimension": Dimension.CONCURRENT_JOBS},
    "day": {"dimension": Dimension.CREDITS_PER_WINDOW, "calendar": Calendar.DAY},
    "berlin": {
        "dimension": Dimension.CREDITS_PER_WINDOW,
        "calendar": Calendar.DAY,
        "zone": "Europe/Berlin",
    },
    "1": {"dimension": Dimension.CREDITS_PER_WINDOW, "rolling_hours": 1},
    "3": {"dimension": Dimension.CREDITS_PER_WINDOW, "rolling_hours": 3},
}
UNITS = {"gpus": 1_000, "jobs": 1}
kinds = st.sampled_from(["h100", "h100", "a100"])
picks = st.integers(0, 20)
waits = st.sampled_from(
    [1, 999, SECOND, 17 * SECOND + 3, 59 * SECOND, 3 * MINUTE, 25 * MINUTE, 61 * MINUTE]
)
credit_limits = st.sampled_from([0, 500_000, 2_500_000, 6 * CREDIT, 50 * CREDIT])


class Gates(RuleBasedStateMachine):
    """Leases, beats, limits and boosts, one command at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.ledgers = (Ledger(), Ledger(fresh=True))
        self.model = GatesModel()
        self.now = SPRING - 90 * MINUTE
        for ledger in self.ledgers:
            ledger.now = self.now
            for kind, rate in RATES.items():
                ledger.price(kind, rate)
            for path in PATHS:
                ledger.open(path)
            ledger.grant("acme", 10**14)

    @initialize(sort=st.sampled_from(list(SORTS)), limit=st.integers(2, 5), path=st.integers(0, 3))
    def first_limit(self, sort: str, limit: int, path: int) -> None:
        """There is always some limit."""
        self.set_quota(PATHS[path], sort, "", limit * UNITS.get(sort, CREDIT))

    @rule(
        path=st.sampled_from(PATHS),
        sort=st.sampled_from(["gpus", "jobs"]),
        kind=st.sampled_from(["", "", "h100"]),
        limit=st.integers(0, 6),
    )
    def limit_work(self, path: str, sort: str, kind: str, limit: int) -> None:
        """Set how much may run at once."""
        self.set_quota(path, sort, kind, limit * UNITS[sort])

    @rule(
        path=st.sampled_from(PATHS),
        sort=st.sampled_from(["day", "berlin", "1", "3"]),
        kind=st.sampled_from(["", "", "a100"]),
        limit=credit_limits,
    )
    def limit_credits(self, path: str, sort: str, kind: str, limit: int) -> None:
        """Set how much may be spent in a window."""
        self.set_quota(path, sort, kind, limit)

    def set_quota(self, path: str, sort: str, kind: str, limit: int) -> None:
        """Set a quota in both ledgers and in the model; a new one has no past."""
        command = commands.SetQuota(account=path, limit=limit, gpu_type=kind, **SORTS[sort])  # type: ignore[arg-type]
        outcome = self.run(command)
        assert isinstance(outcome, QuotaSaved)
        number = outcome.quota.quota_id
        if number in self.model.quotas:
            self.model.quotas[number].limit = limit
        else:
            self.model.quotas[number] = ModelQuota(
                path, sort, kind, limit, first_slice=len(self.model.slices)
            )
        self.compare()

    @rule(
        path=st.sampled_from(PATHS),
        capacity=st.sampled_from([400_000, 2_000_000, 20 * CREDIT]),
        refill=st.sampled_from([0, 3_600_001, 36 * CREDIT]),
    )
    def limit_rate(self, path: str, capacity: int, refill: int) -> None:
        """Set a rate limit."""
        command = commands.SetRateLimit(account=path, capacity=capacity, refill_per_hour=refill)
        self.run(command)
        known = self.model.buckets.get(path)
        if known is None:
            before = self.model.lifted.get(path)
            level = before.look(self.now).__floor__() if before else capacity
            older = frozenset(self.model.leases)
            known = ModelBucket(path, capacity, refill, Fraction(level), self.now, older)
            self.model.buckets[path] = known
        known.look(self.now)
        known.capacity, known.refill = capacity, refill
        known.look(self.now)
        self.compare()

    @precondition(lambda self: self.model.buckets)
    @rule(pick=picks)
    def lift_rate(self, pick: int) -> None:
        """Take a rate limit away."""
        path = list(self.model.buckets)[pick % len(self.model.buckets)]
        assert isinstance(self.run(commands.EndRateLimit(account=path)), RateLimitSaved)
        self.model.lifted[path] = self.model.buckets.pop(path)
        self.compare()

    @precondition(lambda self: self.model.quotas)
    @rule(pick=picks, start=waits, length=waits, more=st.integers(1, 3))
    def boost(self, pick: int, start: int, length: int, more: int) -> None:
        """Raise a quota for a while."""
        number = list(self.model.quotas)[pick % len(self.model.quotas)]
        quota = self.model.quotas[number]
        amount = more * UNITS.get(quota.sort, CREDIT)
        begins, ends = self.now + start, self.now + start + length
        command = commands.AddBoost(target_id=number, amount=amount, starts_at=begins, ends_at=ends)
        assert isinstance(self.run(command), Boosted)
        quota.boosts.append((begins, ends, amount))
        self.compare()

    @rule(
        path=st.sampled_from(PATHS),
        kind=kinds,
        gpus=st.sampled_from([1_000, 2_000, 3_000, 500, 460, 1]),
        job=st.sampled_from("abc"),
        window_ms=st.sampled_from([60_000, 120_000, 5_400_000]),
    )
    def reserve(self, path: str, kind: str, gpus: int, job: str, window_ms: int) -> None:
        """Ask for a lease: the model knows the answer."""
        command = commands.Reserve(
            account=path,
            job_id=job,
            gpu_type=kind,
            milli_gpus=gpus,
            window_ms=window_ms,
            node=f"node-{len(self.model.leases)}",
        )
        rate = gpus * RATES[kind]
        hold = rate * window_ms // HOUR_MS
        ends = self.now + window_ms * 1_000
        lease = ModelLease(0, path, job, kind, gpus, rate, window_ms, self.now, ends, hold)
        lease.admitted = self.now
        expected = self.model.admits(lease, self.now)
        explained = self.run(commands.Explain(reserve=command))
        if isinstance(explained, Explained):
            assert explained.admitted is (not expected)
        outcome = self.run(command)
        if expected:
            assert isinstance(outcome, Refused), expected
            assert outcome.reason == expected
        else:
            assert isinstance(outcome, Reserved), outcome
            lease.number = outcome.reservation.reservation_id
            self.model.leases[lease.number] = lease
            for bucket in self.model.on_the_way(path):
                bucket.level = bucket.look(self.now) - hold
        self.compare()

    @precondition(lambda self: self.model.leases)
    @rule(pick=picks, percent=st.sampled_from([0, 50, 100, 100, 100]))
    def beat(self, pick: int, percent: int) -> None:
        """A node reports some of the time that has passed since its last beat."""
        lease = self.one_of(pick)
        stored = self.ledgers[0].stored.reservations[lease.number]
        told_ms = stored.used_ms + (self.now - lease.at) * percent // 100_000
        used_ms = self.model.authorised(lease, stored.used_ms, told_ms, self.now)
        expected = self.model.renews(lease, used_ms, self.now) if lease.live else None
        outcome = self.run(Beat(lease.number, stored.seq + 1, told_ms))
        assert isinstance(outcome, BeatResult)
        if not lease.live:
            assert outcome.decision == "stop"
            self.charged_late(lease, outcome.settled, used_ms)
            self.compare()
            return
        assert outcome.settled == lease.rate * used_ms // HOUR_MS
        if expected is not None:
            ended = outcome.decision == "stop"
            hold = expected[1]
            assert ended or (outcome.decision, outcome.held) == (expected[0], hold)
            assert not ended or hold * HOUR_MS < lease.rate
        self.settled(lease, outcome.settled, outcome.held)
        lease.ends = self.now + outcome.expires_in_ms * 1_000
        if outcome.decision == "stop":
            lease.lapsed = True
            self.model.end(lease, self.now)
        self.compare()

    @precondition(lambda self: self.model.leases)
    @rule(pick=picks, percent=st.sampled_from([0, 70, 100]))
    def settle(self, pick: int, percent: int) -> None:
        """A job ends."""
        lease = self.one_of(pick)
        stored = self.ledgers[0].stored.reservations[lease.number]
        told_ms = stored.used_ms + (self.now - lease.at) * percent // 100_000
        used_ms = self.model.authorised(lease, stored.used_ms, told_ms, self.now)
        outcome = self.run(commands.Settle(reservation_id=lease.number, used_ms=told_ms))
        if lease.live:
            assert isinstance(outcome, Closed)
            assert outcome.settled == lease.rate * used_ms // HOUR_MS
            self.settled(lease, outcome.settled, outcome.released)
            self.model.end(lease, self.now)
        elif isinstance(outcome, Closed):
            self.charged_late(lease, outcome.settled, used_ms)
        self.compare()

    @rule(span=waits)
    def wait(self, span: int) -> None:
        """Time passes."""
        self.now += span
        for ledger in self.ledgers:
            ledger.now = self.now
        self.model.lapse(self.now)

    def settled(self, lease: ModelLease, settled: int, held: int) -> None:
        """Note a slice, and that what it newly authorised was drawn."""
        due = settled - lease.settled
        self.model.slices.append((lease.path, lease.kind, due, lease.at, self.now))
        for bucket in self.model.on_the_way(lease.path):
            bucket.change(lease, held - lease.held + due, self.now)
        lease.settled, lease.held, lease.at = settled, held, self.now

    def charged_late(self, lease: ModelLease, settled: int, used_ms: int) -> None:
        """Use of a lapsed lease counts where it was: before the lapse."""
        if lease.lapsed:
            assert settled == lease.rate * used_ms // HOUR_MS
        due = settled - lease.settled
        self.model.slices.append((lease.path, lease.kind, due, lease.at, lease.ends))
        for bucket in self.model.on_the_way(lease.path):
            bucket.change(lease, due, self.now)
        lease.settled = settled
        if due:
            lease.at = lease.ends

    def one_of(self, pick: int) -> ModelLease:
        """A lease, the newest most often."""
        known = list(self.model.leases.values())
        return known[-1 - pick % min(len(known), 6)]

    def run(self, command: Command) -> Outcome:
        """Carry a command out in both ledgers, which must answer the same."""
        first, second = (ledger.do(command) for ledger in self.ledgers)
        assert repr(first) == repr(second)
        return first

    def compare(self) -> None:
        """What the quotas count and the buckets hold is what the model finds from scratch."""
        for ledger in self.ledgers:
            book = ledger.view()
            for number, quota in self.model.quotas.items():
                counter = book.limits.counters[number]
                expected = self.model.count(quota, self.now)
                if quota.sort in ("gpus", "jobs"):
                    assert counter.count == expected
                    assert 0 <= counter.leaving <= counter.count
                elif counter.starts_at <= self.now < counter.ends_at:
                    assert counter.used + counter.held == expected
            for path, bucket in self.model.buckets.items():
                row = book.limits.buckets[book.paths[path].account_id]
                assert tokens(row, self.now) == bucket.look(self.now).__floor__()


TestGates = Gates.TestCase
TestGates.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    phases=[Phase.generate],
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
