"""What the gates cost a heartbeat in the pure rules: beats a second with and without them.

Run it as ``python bench/gates.py``. Rounds of each kind alternate in one process, so that the ratio
holds even where the machine's speed does not.
"""

from __future__ import annotations

from time import perf_counter

from gpucredits.core import command as commands
from gpucredits.core.book import Book, Org
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.price import Price
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Decision

CREDIT = 1_000_000
START = 1_750_000_000 * CREDIT
JOBS = 1_000
USERS = 50
ROUNDS = 100
BEAT_MS = 1_000


def filled_book(*, gated: bool) -> tuple[Book, list[int]]:
    """An org with many running jobs, with limits at all three scopes or with none."""
    book = Book(Org(1, "acme"), counts_anew=True)
    book.prices.append(Price(1, "h100", "default", 36 * CREDIT, 0))
    paths = ["acme", "acme/vision", *(f"acme/vision/user-{n}" for n in range(USERS))]
    for path in paths:
        accept(book, commands.CreateAccount(path=path))
    accept(book, commands.Issue(account="acme", amount=10**14))
    if gated:
        for path in paths:
            limit(book, path)
    leases = []
    for number in range(JOBS):
        outcome = decide(
            book,
            commands.Reserve(
                account=paths[2 + number % USERS],
                job_id=f"job-{number}",
                gpu_type="h100",
                milli_gpus=1_000,
            ),
            START,
        )
        assert isinstance(outcome, Reserved)
        leases.append(outcome.reservation.reservation_id)
    return book, leases


def limit(book: Book, path: str) -> None:
    """A daily quota, both concurrency quotas, a cap for each job and a rate limit."""
    for dimension, calendar in (
        (Dimension.CREDITS_PER_WINDOW, Calendar.DAY),
        (Dimension.CONCURRENT_GPUS, None),
        (Dimension.CONCURRENT_JOBS, None),
        (Dimension.CREDITS_PER_JOB, None),
    ):
        accept(
            book,
            commands.SetQuota(account=path, dimension=dimension, limit=10**13, calendar=calendar),
        )
    accept(book, commands.SetRateLimit(account=path, capacity=10**12, refill_per_hour=10**11))


def accept(book: Book, command: commands.Command) -> None:
    """Carry out a command that must be carried out."""
    outcome = decide(book, command, START)
    assert not isinstance(outcome, Refused), outcome


def beat_all(book: Book, leases: list[int], seq: int) -> float:
    """One beat of every job; the seconds it took."""
    now = START + seq * BEAT_MS * 1_000
    beats = [Beat(lease, seq, seq * BEAT_MS) for lease in leases]
    book.changed.clear()
    book.moved.clear()
    book.limits.lanes.clear()  # as in a new batch
    began = perf_counter()
    answers = [decide(book, command, now) for command in beats]
    took = perf_counter() - began
    assert all(isinstance(a, BeatResult) and a.decision is Decision.CONTINUE for a in answers)
    book.entries.clear()
    return took


def main() -> None:
    """Alternate rounds, and print both rates and their ratio."""
    plain, gated = filled_book(gated=False), filled_book(gated=True)
    best = [float("inf"), float("inf")]
    for seq in range(1, ROUNDS + 1):
        best[0] = min(best[0], beat_all(*plain, seq))
        best[1] = min(best[1], beat_all(*gated, seq))
    without, with_gates = (JOBS / seconds for seconds in best)
    print(f"without gates       {without:12,.0f} beats/s")
    print(f"three scopes gated  {with_gates:12,.0f} beats/s")
    print(f"cost of the gates   {without / with_gates:12.2f} x")


if __name__ == "__main__":
    main()
