"""The load generator's process: ``python -m gpucredits_bench.traffic.load SPEC``.

Owns: reading what to do, opening the connections, telling when the window that counts begins and
ends (one JSON line each on standard output), and the figures of the window.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

import msgspec
import uvloop

from gpucredits_bench.traffic.admitting import Batcher, Dispatcher
from gpucredits_bench.traffic.beating import (
    Lease,
    Node,
    Post,
    Tally,
    drained,
    drive_closed,
    drive_open,
)
from gpucredits_bench.traffic.exchange import HOST, ExchangeError, Peer, Target

LEAD_S = 0.2  # between the last connection and the first report
COUNTING = b'{"event":"counting"}\n'
COUNTED = b'{"event":"counted"}\n'


class Spec(msgspec.Struct, kw_only=True):
    """What to do: ``nodes`` report their leases, or ``dispatchers`` admit jobs."""

    mode: Literal["closed", "open", "admissions", "batches"]
    port: int
    token: str
    warm_up_s: float
    seconds: float
    first_seq: int = 1
    beats_per_post: int = 100
    beats_per_second: float = 0.0
    nodes: list[list[Lease]] = []
    dispatchers: int = 0
    batch: int = 100
    orgs: int = 1
    first_org: int = 0
    org_step: int = 1
    name: str = "load"


class Figures(msgspec.Struct, kw_only=True):
    """What the window showed; latencies in seconds, of a report or of a pair."""

    done: int
    posts: int
    checked: int
    seconds: float
    cpu_s: float
    last_seq: int
    p50_s: float
    p95_s: float
    problems: list[str]

    @property
    def per_second(self) -> float:
        """Beats, or pairs, per second."""
        return self.done / self.seconds


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of an ordered sample lies; 0 of nothing."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


async def generate(spec: Spec) -> Figures:
    """Do what the spec says, and give the figures of its window."""
    target = Target(spec.port, spec.token)
    tally = Tally(0.0, 0.0)
    peers: list[Node] | list[Dispatcher | Batcher]
    if spec.mode in ("admissions", "batches"):
        peers = dispatchers_of(spec, target, tally)
    else:
        peers = nodes_of(spec, target, tally)
    loop = asyncio.get_running_loop()
    for peer in peers:
        await loop.create_connection(giving(peer), HOST, spec.port)
    tally.counting_from = time.monotonic() + LEAD_S + spec.warm_up_s
    tally.until = tally.counting_from + spec.seconds
    marks: list[float] = []
    loop.call_later(LEAD_S + spec.warm_up_s, mark, marks, COUNTING)
    loop.call_later(LEAD_S + spec.warm_up_s + spec.seconds, mark, marks, COUNTED)
    await asyncio.sleep(LEAD_S)
    await drive(spec, peers, tally)
    for peer in peers:
        peer.close()
    ordered = sorted(tally.latencies)
    return Figures(
        done=tally.beats,
        posts=tally.posts,
        checked=tally.checked,
        seconds=spec.seconds,
        cpu_s=marks[1] - marks[0] if len(marks) == 2 else 0.0,
        last_seq=max((each.seq for each in peers if isinstance(each, Node)), default=0),
        p50_s=quantile(ordered, 0.5),
        p95_s=quantile(ordered, 0.95),
        problems=tally.problems,
    )


def giving(peer: Peer) -> Callable[[], Peer]:
    """What a connection is made with: a function that gives this peer."""
    return lambda: peer


def mark(marks: list[float], line: bytes) -> None:
    """Tell that the window begins or ends, and note the processor time used so far."""
    marks.append(time.process_time())
    say(line)


def say(line: bytes) -> None:
    """Tell whoever started this process."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def nodes_of(spec: Spec, target: Target, tally: Tally) -> list[Node]:
    """The nodes with their reports."""
    size = spec.beats_per_post
    return [
        Node(
            [
                Post(target, f"node-{number}", leases[first : first + size])
                for first in range(0, len(leases), size)
            ],
            tally,
            spec.first_seq,
        )
        for number, leases in enumerate(spec.nodes)
        if leases
    ]


def dispatchers_of(spec: Spec, target: Target, tally: Tally) -> list[Dispatcher | Batcher]:
    """The dispatchers, each beginning with another org."""
    made: list[Dispatcher | Batcher] = []
    served = range(spec.first_org, spec.orgs, spec.org_step)
    for number in range(spec.dispatchers):
        orgs = islice(cycle(served), number * 31 % len(served), None)
        name = f"{spec.name}-{number}"
        if spec.mode == "batches":
            made.append(Batcher(target, tally, name, orgs, spec.batch))
        else:
            made.append(Dispatcher(target, tally, name, orgs))
    return made


async def drive(spec: Spec, peers: list[Node] | list[Dispatcher | Batcher], tally: Tally) -> None:
    """Drive the peers until the window has ended and nothing is under way."""
    nodes = [each for each in peers if isinstance(each, Node)]
    dispatchers = [each for each in peers if isinstance(each, Dispatcher | Batcher)]
    if spec.mode == "closed":
        await drive_closed(nodes, tally)
    elif spec.mode == "open":
        await drive_open(nodes, tally, spec.beats_per_second / spec.beats_per_post)
    for each in dispatchers:
        each.begin()
    await drained(dispatchers, tally)


def main() -> None:
    """Run one spec and print its figures as the last line."""
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec)
    try:
        figures = uvloop.run(generate(spec))
    except (ExchangeError, OSError) as error:
        sys.exit(f"load generator: {error}")
    sys.stdout.buffer.write(msgspec.json.encode(figures) + b"\n")


if __name__ == "__main__":
    main()
