"""Measure the time-based credits against the plain way: sort and replay with a heap per question.

Every figure is processor time of this process, so a busy machine slows both sides alike; the ratios
are what counts. Prints tables, then which bars are met; exits non-zero if one is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from heapq import heappop, heappush

from gpucredits import CreditTracker, GPUCredit, IrreconcilableError
from gpucredits.library import timeline

SIZES = (10_000, 100_000, 1_000_000)
BAR_SIZE = 100_000
SEED = 20_26

# An add has an amount, a timestamp and a duration; a charge an amount and a timestamp.
Event = tuple[str, int, int, int] | tuple[str, int, int]


# --- the baseline -------------------------------------------------------------------------------


def replayed_balance(events: list[Event], asked: int) -> int | None:
    """Answer one question from nothing: sort all steps up to it, then replay with a heap."""
    steps: list[tuple[int, int, int, int, int]] = []
    for arrival, event in enumerate(events):
        if event[2] > asked:
            continue
        if len(event) == 4:
            end = event[2] + event[3]
            steps.append((event[2], 1, arrival, event[1], end))
            if end < asked:
                steps.append((end + 1, 0, arrival, 0, end))
        else:
            steps.append((event[2], 2, arrival, event[1], 0))
    steps.sort()
    left: dict[int, int] = {}
    heap: list[tuple[int, int]] = []
    balance = windows = 0
    for _, rank, arrival, amount, end in steps:
        if rank == 1:
            windows += 1
            usable = amount + min(0, balance)
            balance += amount
            if usable > 0:
                left[arrival] = usable
                heappush(heap, (end, arrival))
        elif rank == 0:
            windows -= 1
            balance -= left.pop(arrival, 0)
        else:
            balance -= amount
            spend_from(heap, left, amount)
    return balance if windows and balance >= 0 else None


def spend_from(heap: list[tuple[int, int]], left: dict[int, int], amount: int) -> None:
    """Take credits from the grant that ends first, again and again."""
    while amount and heap:
        grant = heap[0][1]
        has = left.get(grant, 0)
        if has > amount:
            left[grant] = has - amount
            return
        heappop(heap)
        left.pop(grant, None)
        amount -= has


# --- workloads ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A kind of history: how long grants last, and how much is charged."""

    name: str
    duration_max: int
    charge_max: int


SHAPES = (
    Shape("short-lived grants, charges about half", 2_000, 100),
    Shape("most grants stay alive", 10**9, 10),
    Shape("more charged than granted, mostly in debt", 2_000, 250),
)


def history(shape: Shape, size: int, rng: random.Random) -> list[Event]:
    """Events in order of time, half grants and half charges."""
    return [event_at(shape, when, rng) for when in range(size)]


def event_at(shape: Shape, when: int, rng: random.Random) -> Event:
    """One event of a shape."""
    if rng.random() < 0.5:
        return ("add", rng.randint(1, 100), when, rng.randint(1, shape.duration_max))
    return ("sub", rng.randint(0, shape.charge_max), when)


def record(credit: GPUCredit, event: Event) -> None:
    """Hand one event to the class under test."""
    if len(event) == 4:
        credit.add_credit("g", event[1], event[2], event[3])
    else:
        credit.subtract(event[1], event[2])


# --- measuring ----------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """Processor time that some work takes."""
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


@dataclass(frozen=True)
class Row:
    """One shape at one size; times in microseconds."""

    shape: str
    events: int
    replay_inside_us: float
    replay_at_head_us: float
    record_us: float
    query_us: float
    append_and_query_us: float
    late_and_query_us: float

    @property
    def query_ratio(self) -> float:
        """How many settled questions fit into one replay."""
        return self.replay_inside_us / self.query_us

    @property
    def append_ratio(self) -> float:
        """How many appends, each with a question at the head, fit into one replay."""
        return self.replay_at_head_us / self.append_and_query_us

    @property
    def late_ratio(self) -> float:
        """How many late events, each with a question, fit into one replay."""
        return self.replay_at_head_us / self.late_and_query_us


def measure(shape: Shape, size: int) -> Row:
    """All figures for one shape at one size."""
    rng = random.Random(SEED)
    events = history(shape, size, rng)
    credit = GPUCredit()

    def build() -> None:
        for event in events:
            record(credit, event)

    record_s = seconds(build)
    quarters = [size // 2] if size >= 1_000_000 else [size // 4, size // 2, 3 * size // 4]
    check(credit.get_balance(size // 2) == replayed_balance(events, size // 2), "answers differ")
    inside_s = seconds(lambda: [replayed_balance(events, when) for when in quarters])
    head_s = seconds(lambda: replayed_balance(events, size - 1))
    questions = [rng.randrange(size) for _ in range(20_000)]
    query_s = seconds(lambda: [credit.get_balance(when) for when in questions]) / len(questions)
    appends = [event_at(shape, size + step, rng) for step in range(2_000)]

    def append_and_ask() -> None:
        for event in appends:
            record(credit, event)
            credit.get_balance(event[2])

    late_s = seconds(lambda: run_late(credit, shape, size, rng)) / LATE_PAIRS
    append_s = seconds(append_and_ask) / len(appends)
    return Row(
        shape.name,
        size,
        *(
            1e6 * value
            for value in (
                inside_s / len(quarters),
                head_s,
                record_s / size,
                query_s,
                append_s,
                late_s,
            )
        ),
    )


LATE_PAIRS = 200


def run_late(credit: GPUCredit, shape: Shape, size: int, rng: random.Random) -> None:
    """One late event within the last 1 %, then one question there; many times."""
    for _ in range(LATE_PAIRS):
        record(credit, event_at(shape, size - 1 - rng.randrange(size // 100), rng))
        credit.get_balance(size - 1 - rng.randrange(size // 100))


def measure_batches() -> dict[str, float]:
    """Seconds for the batch functions at their full sizes."""
    rng = random.Random(SEED)
    top = 10**9
    grants = [
        (rng.randint(1, top), rng.randint(0, top), rng.randint(0, top)) for _ in range(200_000)
    ]
    asked = [rng.randint(0, top) for _ in range(200_000)]
    events: list[Event] = [
        ("add", amount, when, length) if rng.random() < 0.5 else ("sub", amount, when)
        for amount, when, length in grants[:100_000]
    ]
    one_replay = seconds(lambda: replayed_balance(events, top // 2))
    balances_s = seconds(lambda: timeline.balances(events, asked[:100_000]))
    return {
        "active_credits_200k_200k_s": seconds(lambda: timeline.active_credits(grants, asked)),
        "balances_100k_100k_s": balances_s,
        "balances_ratio": one_replay * 100_000 / balances_s,
    }


def measure_dump(size: int) -> dict[str, float]:
    """Size and loading time of a dump, against the same events as compact JSON."""
    tracker = CreditTracker()
    rows: list[list[object]] = []
    for row in tracker_rows(size, random.Random(SEED)):
        rows.append(row)
        replay_row(tracker, row)
    data = tracker.dump()
    text = json.dumps(rows, separators=(",", ":"))
    del tracker, rows
    loaded: list[CreditTracker] = []
    load_s = seconds(lambda: loaded.append(CreditTracker.load(data)))
    first_query_s = seconds(lambda: balance_or_none(loaded[0], size))
    check(loaded[0].dump() == data, "a loaded dump differs")
    loaded.clear()
    parsed: list[list[list[object]]] = []
    json_s = seconds(lambda: parsed.append(json.loads(text)))

    def rebuild() -> None:
        tracker = CreditTracker()
        for row in parsed[0]:
            replay_row(tracker, row)

    rebuild_s = seconds(rebuild)
    return {
        "events": size,
        "dump_bytes": len(data),
        "json_bytes": len(text.encode()),
        "load_s": load_s,
        "load_and_first_query_s": load_s + first_query_s,
        "json_loads_s": json_s,
        "json_loads_and_rebuild_s": json_s + rebuild_s,
    }


def tracker_rows(size: int, rng: random.Random) -> Iterator[list[object]]:
    """Grants, charges and refunds in order of time, as a service would log them."""
    for when in range(size):
        turn = when % 10
        if turn < 5:
            end = when + rng.randint(1, 5_000)
            yield ["add", f"grant-{when}", rng.randint(500, 1_000), when, end]
        elif turn < 9:
            yield ["charge", rng.randint(1, 500), when, f"charge-{when}"]
        else:
            yield ["refund", f"charge-{when - 1}", rng.randint(0, 1), when]


def replay_row(tracker: CreditTracker, row: list[object]) -> None:
    """Hand one logged row to a tracker."""
    getattr(tracker, str(row[0]))(*row[1:])


def balance_or_none(tracker: CreditTracker, when: int) -> int | None:
    """A question that a history out of balance does not stop."""
    try:
        return tracker.get_balance(when)
    except IrreconcilableError:
        return None


def check(condition: bool, problem: str) -> None:
    """Stop the benchmark when what it measures is wrong."""
    if not condition:
        raise SystemExit(f"benchmark is void: {problem}")


# --- reporting ----------------------------------------------------------------------------------


def bars(
    rows: list[Row], batches: dict[str, float], dump: dict[str, float]
) -> list[tuple[str, bool]]:
    """Each promise with whether this run kept it; the worst shape counts."""
    at_bar = [row for row in rows if row.events == BAR_SIZE]
    query = min(row.query_ratio for row in at_bar)
    late = min(row.late_ratio for row in at_bar)
    append = min(row.append_ratio for row in at_bar)
    rebuilt = dump["json_loads_and_rebuild_s"] / dump["load_and_first_query_s"]
    return [
        (f"settled query at least 1,000x a replay: {query:,.0f}x", query >= 1_000),
        (f"late event and query at least 50x: {late:,.0f}x", late >= 50),
        (f"append and query at least 1,000x: {append:,.0f}x", append >= 1_000),
        (
            f"100,000 events, 100,000 queries, at least 1,000x: {batches['balances_ratio']:,.0f}x",
            batches["balances_ratio"] >= 1_000,
        ),
        (
            f"dump smaller than JSON: {dump['json_bytes'] / dump['dump_bytes']:.1f}x",
            dump["dump_bytes"] < dump["json_bytes"],
        ),
        (
            f"dump loads faster than json.loads: {dump['json_loads_s'] / dump['load_s']:.1f}x",
            dump["load_s"] < dump["json_loads_s"],
        ),
        (
            f"dump loads and answers faster than json.loads and rebuild: {rebuilt:.1f}x",
            dump["load_and_first_query_s"] < dump["json_loads_and_rebuild_s"],
        ),
    ]


def print_rows(rows: list[Row]) -> None:
    """The growth table, one block per shape."""
    shape = ""
    for row in rows:
        if row.shape != shape:
            shape = row.shape
            print(f"\n{shape}")
            print(
                f"{'events':>10}{'replay ms':>11}{'record us':>11}{'query us':>10}{'ratio':>11}",
                end="",
            )
            print(f"{'append+q us':>13}{'ratio':>10}{'late+q us':>12}{'ratio':>8}")
        print(
            f"{row.events:>10,}{row.replay_at_head_us / 1e3:>11,.1f}{row.record_us:>11.2f}"
            f"{row.query_us:>10.2f}{row.query_ratio:>10,.0f}x{row.append_and_query_us:>13.2f}"
            f"{row.append_ratio:>9,.0f}x{row.late_and_query_us:>12,.0f}{row.late_ratio:>7,.0f}x"
        )


def main() -> int:
    """Run everything and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--size-max", type=int, default=SIZES[-1], help="largest history")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.size_max]
    rows = [measure(shape, size) for shape in SHAPES for size in sizes]
    batches = measure_batches()
    dump = measure_dump(options.size_max)
    results = bars(rows, batches, dump)
    if options.json:
        found = {"rows": [asdict(row) for row in rows], "batches": batches, "dump": dump}
        print(json.dumps({**found, "bars": dict(results)}, indent=2))
    else:
        print("Processor time; a ratio is against one sort-and-replay per question.")
        print_rows(rows)
        print()
        for name, value in {**batches, **dump}.items():
            print(f"{name:>30}  {value:,.2f}")
        print()
        for promise, is_met in results:
            print(f"{'met   ' if is_met else 'MISSED'}  {promise}")
    return 0 if all(is_met for _, is_met in results) else 1


if __name__ == "__main__":
    sys.exit(main())
