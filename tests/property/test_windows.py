"""A grant pays for use inside its window, however often a job reports.

Jobs run evenly on grants that start, end and are topped up while they run. What each grant should
have left follows from time alone: the use of every moment is paid by the first grant of the order
that was usable then. Any heartbeats that keep the leases alive have to lead there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gpucredits.core.command import Settle
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed
from gpucredits.core.reservation import Decision
from support.books.claims import check_claims
from support.books.ledger import CREDIT, START, Ledger

CI = settings(max_examples=200, derandomize=True, deadline=None, database=None)
FAR = 10_000_000
LAST_MS = 500_000
REPORT_MS, WINDOW_MS = 200_000, 250_000
PLENTY = 10**9 * CREDIT
MS_PER_HOUR = 3_600_000


@dataclass(frozen=True)
class Lot:
    """Credits that are issued at an instant for a window, in ms from the start."""

    issued: int
    starts: int
    ends: int
    priority: int
    amount: int

    def rank(self) -> tuple[int, int, int, int]:
        """Its place in the order; of two that are else alike, the one that was issued first."""
        return self.priority, self.ends, self.starts, self.issued


@dataclass(frozen=True)
class Job:
    """A job that uses every ``pace``-th part of the time, and when it would report in between."""

    starts: int
    ends: int
    gpus: int
    pace: int
    beats: frozenset[int]

    def used(self, at: int) -> int:
        """How many ms it has used by an instant."""
        return (min(max(at, self.starts), self.ends) - self.starts) // self.pace

    def cost(self, price: int, at: int) -> int:
        """What it has cost by an instant."""
        return self.gpus * price * self.used(at) // MS_PER_HOUR


BASE = Lot(0, 0, FAR, 9_000, PLENTY)  # so that nobody ever runs out
steps = st.integers(0, LAST_MS // 500).map(lambda half_seconds: half_seconds * 500)


@st.composite
def lots(draw: st.DrawFn, amounts: st.SearchStrategy[int]) -> Lot:
    """A lot whose window may have begun before it is issued, or begin later."""
    issued = draw(steps)
    starts = max(issued, draw(steps))
    length = draw(st.sampled_from([500, 3_000, 30_000, 90_000, 200_000, FAR]))
    return Lot(issued, starts, starts + length, draw(st.sampled_from([1, 100, 500])), draw(amounts))


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A job that may report at any half second, and does at least every 200 s."""
    starts = draw(steps)
    ends = min(starts + draw(steps), LAST_MS) + 500
    free = draw(st.sets(steps, max_size=8))
    beats = {at for at in free if starts < at < ends}
    beats |= set(range(starts + REPORT_MS, ends, REPORT_MS))
    return Job(
        starts, ends, draw(st.integers(1, 3)), draw(st.sampled_from([1, 2])), frozenset(beats)
    )


def remainders_by_time(price: int, given: list[Lot], running: list[Job]) -> list[int]:
    """What is left of every lot if each moment is paid by the first lot of the order then."""
    left = [lot.amount for lot in given]
    instants = {at for lot in given for at in (lot.issued, lot.starts, lot.ends)}
    instants |= {at for job in running for at in (job.starts, job.ends)}
    for since, until in pairwise(sorted(instants)):
        due = sum(job.cost(price, until) - job.cost(price, since) for job in running)
        able = [
            place
            for place, lot in enumerate(given)
            if max(lot.issued, lot.starts) <= since and until <= lot.ends
        ]
        for place in sorted(able, key=lambda n: (*given[n].rank(), n)):
            part = min(left[place], due)
            left[place] -= part
            due -= part
        assert not due
    return left


def spent_of_each(price: int, given: list[Lot], running: list[Job], *, fresh: bool) -> list[int]:
    """What the ledger's grants have paid, by the same order of lots, and nothing else."""
    ledger = Ledger(fresh=fresh)
    ledger.price("h100", price)
    ledger.open("acme")
    account = ledger.stored.paths["acme"].account_id
    grants: dict[int, int] = {}
    leases: dict[int, int] = {}
    seqs: dict[int, int] = {}
    for at in sorted(moments(given, running)):
        ledger.now = START + at * 1_000
        for place, lot in enumerate(given):
            if lot.issued == at:
                ends = START + lot.ends * 1_000
                grants[place] = ledger.grant(
                    "acme",
                    lot.amount,
                    starts_at=START + lot.starts * 1_000,
                    expires_at=ends,
                    priority=lot.priority,
                ).grant_id
        for place, job in enumerate(running):
            if job.starts == at:
                leases[place] = ledger.lease(
                    "acme", milli_gpus=1_000 * job.gpus, job_id=str(place), window_ms=WINDOW_MS
                ).reservation_id
            elif at in job.beats:
                seqs[place] = seqs.get(place, 0) + 1
                told = ledger.accept(Beat(leases[place], seqs[place], job.used(at)), BeatResult)
                assert told.decision is Decision.CONTINUE
            elif job.ends == at:
                bill = ledger.accept(
                    Settle(reservation_id=leases[place], used_ms=job.used(at)), Closed
                )
                assert bill.settled == job.cost(price, at)
        check_claims(ledger.stored)
    paid = dict.fromkeys(grants.values(), 0)
    for lease in ledger.stored.reservations.values():
        for number, part in lease.paid:
            paid[number] += part
    assert ledger.stored.accounts[account].reserved == 0
    return [paid[grants[place]] for place in range(len(given))]


def moments(given: list[Lot], running: list[Job]) -> set[int]:
    """When something is done; grants start and end by themselves."""
    found = {lot.issued for lot in given}
    for job in running:
        found |= {job.starts, job.ends, *job.beats}
    return found


def check(price: int, given: list[Lot], running: list[Job], *, fresh: bool) -> None:
    """The ledger's grants have paid what time alone says."""
    left = remainders_by_time(price, given, running)
    expected = [lot.amount - rest for lot, rest in zip(given, left, strict=True)]
    assert spent_of_each(price, given, running, fresh=fresh) == expected


prices = st.sampled_from([36 * CREDIT, 36 * CREDIT, 7, 1_234_567, 3_600_001])
small = st.sampled_from([1, 10_000, 300_000, 1_000_000, 5_000_000])


@CI
@given(price=prices, given=st.lists(lots(small), max_size=5), job=jobs(), fresh=st.booleans())
def test_one_job_on_grants_that_run_out_and_end(
    price: int, given: list[Lot], job: Job, fresh: bool
) -> None:
    """Whichever of its heartbeats a job sends, the same grants pay the same."""
    check(price, [BASE, *given], [job], fresh=fresh)


@CI
@given(
    price=prices,
    given=st.lists(lots(st.just(PLENTY)), max_size=5),
    running=st.lists(jobs(), min_size=1, max_size=4),
    fresh=st.booleans(),
)
def test_several_jobs_on_grants_that_end(
    price: int, given: list[Lot], running: list[Job], fresh: bool
) -> None:
    """However the reports of several jobs are interleaved, the same grants pay the same."""
    check(price, [BASE, *given], running, fresh=fresh)


@CI
@given(
    amount=small,
    ends=steps.filter(bool),
    running=st.lists(jobs(), min_size=1, max_size=4),
    fresh=st.booleans(),
)
def test_several_jobs_on_one_grant_that_runs_out_and_ends(
    amount: int, ends: int, running: list[Job], fresh: bool
) -> None:
    """What one job leaves of a grant that has ended, another that used it first may claim."""
    check(36 * CREDIT, [BASE, Lot(0, 0, ends, 1, amount)], running, fresh=fresh)


def paid_when_reported(price: int, given: list[Lot], job: Job) -> list[int]:
    """What lots would pay if each report took all of its use from those that are usable then."""
    paid = [0 for _ in given]
    before = 0
    for at in sorted({*job.beats, job.ends}):
        due = job.cost(price, at) - before
        before += due
        able = [n for n, lot in enumerate(given) if max(lot.issued, lot.starts) <= at <= lot.ends]
        for place in sorted(able, key=lambda n: given[n].priority):
            part = min(given[place].amount - paid[place], due)
            paid[place] += part
            due -= part
    return paid


def test_a_ledger_that_does_not_cut_slices_would_be_seen() -> None:
    """Control: paid when reported, two identical jobs leave 860 and 800; the ledger leaves 860."""
    price = 3_600 * CREDIT  # a credit a second
    given = [Lot(0, 0, FAR, 9_000, 1_000 * CREDIT), Lot(0, 0, 60_000, 1, 200 * CREDIT)]
    often, once = (
        Job(0, 200_000, 1, 1, frozenset(range(every, 200_000, every)))
        for every in (10_000, 200_000)
    )
    for job, left in ((often, 860), (once, 800)):
        assert paid_when_reported(price, given, job)[0] == (1_000 - left) * CREDIT
        assert spent_of_each(price, given, [job], fresh=False) == [140 * CREDIT, 60 * CREDIT]
