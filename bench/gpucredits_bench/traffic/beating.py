"""Nodes that report heartbeats: bodies made of ready pieces, every answer checked.

Owns: what a node sends, what it expects back, and the two ways of driving nodes: closed loop (the
next report leaves when the last is answered) and open loop (reports leave by the clock, and
lateness counts as latency).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from gpucredits.core.money import cost, format_credits
from gpucredits_bench.traffic.exchange import ExchangeError, Peer, Target

PATH = "/v1/heartbeats"
CONTINUE = b'"decision":"continue"'
CHECK_EVERY = 50  # answers between two that are read in full
TICK_S = 0.001
PROBLEMS_MAX = 5


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """A reservation as the generator knows it: its id, its rate, and when it was admitted."""

    reservation_id: str
    rate: int
    admitted_at: float  # by the machine's monotonic clock, when the answer came


class BeatResult(msgspec.Struct):
    """What the generator reads of an answer in full."""

    reservation_id: str
    decision: str | None
    settled: str


class BeatResults(msgspec.Struct):
    """The answer to one report."""

    results: list[BeatResult]


RESULTS = msgspec.json.Decoder(BeatResults)


class Post:
    """The leases of one report, with the pieces of its body that never change."""

    __slots__ = ("_admitted_at", "_head", "_pieces", "leases", "used_ms")

    def __init__(self, target: Target, node: str, leases: list[Lease]) -> None:
        self.leases = leases
        self.used_ms = 0
        self._admitted_at = max(lease.admitted_at for lease in leases)
        self._head = target.head(PATH) + b"content-length: %d\r\n\r\n"
        first = f'{{"node":"{node}","beats":['.encode()
        pieces = [f'{{"reservation_id":"{each.reservation_id}","seq":'.encode() for each in leases]
        pieces[0] = first + pieces[0]
        self._pieces = pieces

    def passed_ms(self, now: float) -> int:
        """The time since the last admission was answered: no more than the server's."""
        return int((now - self._admitted_at) * 1_000)

    def encode(self, seq: int, now: float) -> bytes:
        """The report: all time that has passed was used, and none that has not."""
        self.used_ms = self.passed_ms(now)
        tail = b'%d,"used_ms":%d}' % (seq, self.used_ms)
        body = (tail + b",").join(self._pieces) + tail + b"]}"
        return self._head % len(body) + body

    def check(self, body: bytes) -> str:
        """What is wrong with an answer, read in full against the formula; nothing if it is so."""
        results = RESULTS.decode(body).results
        if len(results) != len(self.leases):
            return f"{len(results)} results for {len(self.leases)} beats"
        for lease, result in zip(self.leases, results, strict=True):
            due = format_credits(cost(lease.rate, self.used_ms))
            if (result.reservation_id, result.settled) != (lease.reservation_id, due):
                return f"{lease.reservation_id} settled {result.settled}, and {due} is due"
        return ""


@dataclass(slots=True)
class Tally:
    """What was answered within the window that counts."""

    counting_from: float
    until: float
    beats: int = 0
    posts: int = 0
    checked: int = 0
    latencies: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, beats: int, asked_at: float, now: float) -> None:
        """Count an answer if it came within the window."""
        self.count(beats, now)
        self.time(asked_at, now)

    def count(self, beats: int, now: float) -> None:
        """Count what an answer completed."""
        if self.counting_from <= now < self.until:
            self.beats += beats
            self.posts += 1

    def time(self, asked_at: float, now: float) -> None:
        """Note how long an answer took."""
        if self.counting_from <= now < self.until:
            self.latencies.append(now - asked_at)

    def complain(self, problem: str) -> None:
        """Keep the first few problems; any makes the run worthless."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


class Node(Peer):
    """One node on one connection, reporting its leases post by post, round and round."""

    def __init__(self, posts: list[Post], tally: Tally, first_seq: int) -> None:
        super().__init__()
        self._posts = posts
        self._tally = tally
        self._seq = first_seq
        self._index = 0
        self._asked_at = 0.0
        self.is_waiting = False
        self.on_idle: Callable[[Node], None] = lambda _: None

    @property
    def seq(self) -> int:
        """The highest seq that was reported."""
        return self._seq

    def report(self, asked_at: float) -> None:
        """Send the next report; latency counts from ``asked_at``."""
        self._asked_at = asked_at
        self.is_waiting = True
        self._send()

    def _send(self) -> None:
        """Send it when its use has advanced since it was last sent: every beat is charged."""
        post, now = self._posts[self._index], time.monotonic()
        if post.passed_ms(now) > post.used_ms:
            self.write(post.encode(self._seq, now))
        else:
            asyncio.get_running_loop().call_later(TICK_S, self._send)

    def answered(self, status: int, body: bytes) -> None:
        """Check the answer and ask for more work."""
        now = time.monotonic()
        self.is_waiting = False
        tally, post = self._tally, self._posts[self._index]
        if status != 200 or body.count(CONTINUE) != len(post.leases):
            tally.complain(f"{status}: {body[:300].decode(errors='replace')}")
        elif tally.posts % CHECK_EVERY == 0:
            tally.checked += len(post.leases)
            problem = post.check(body)
            if problem:
                tally.complain(problem)
        tally.add(len(post.leases), self._asked_at, now)
        self._index += 1
        if self._index == len(self._posts):
            self._index = 0
            self._seq += 1
        self.on_idle(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """A line that breaks while an answer is awaited is a problem."""
        if self.is_waiting:
            self._tally.complain(f"the server hung up: {exc}")
            self.is_waiting = False


async def drive_closed(nodes: list[Node], tally: Tally) -> None:
    """Keep one report of every node under way until the window ends."""

    def again(node: Node) -> None:
        now = time.monotonic()
        if now < tally.until and not tally.problems:
            node.report(now)

    for node in nodes:
        node.on_idle = again
        node.report(time.monotonic())
    await drained(nodes, tally)


async def drive_open(nodes: list[Node], tally: Tally, posts_per_second: float) -> None:
    """Send reports by the clock; one that finds no idle node waits, and its wait is latency."""
    idle = deque(nodes)
    late: deque[float] = deque()

    def again(node: Node) -> None:
        if late:
            node.report(late.popleft())
        else:
            idle.append(node)

    for node in nodes:
        node.on_idle = again
    began = time.monotonic()
    sent = 0
    while time.monotonic() < tally.until and not tally.problems:
        due = int((time.monotonic() - began) * posts_per_second)
        while sent < due:
            sent += 1
            asked_at = began + sent / posts_per_second  # when it was due, which is past
            if idle:
                idle.popleft().report(asked_at)
            else:
                late.append(asked_at)
        await asyncio.sleep(TICK_S)
    late.clear()
    await drained(nodes, tally)


class Waiting(Protocol):
    """Whoever may be waiting for an answer."""

    is_waiting: bool


async def drained(peers: Sequence[Waiting], tally: Tally) -> None:
    """Wait until nothing is under way."""
    deadline = tally.until + 30.0
    while any(peer.is_waiting for peer in peers):
        if time.monotonic() > deadline:
            raise ExchangeError("some reports were never answered")
        await asyncio.sleep(0.01)
