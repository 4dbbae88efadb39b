"""What waits in a lane, org by org, and what of it is carried out next.

Owns: fairness between orgs, bounds on what waits, and that an org's commands are carried out in
their order: of an org that is under way nothing more is taken.
Must not: wait itself, or know what a command means (batch and core do).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpucredits.core.heartbeat import Beat
from gpucredits.service.write.batch import Job
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.heartbeats import BeatCall, BeatJob

BUSY_RETRY_S = 1.0

OrgBeat = tuple[int, Beat]  # an org's number, and what one of its leases reports


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTerms:
    """Bounds of one lane, in commands or heartbeats.

    A batch that follows another at once waits up to ``linger_s`` for ``linger_below``, one that
    begins beside others up to ``beside_s`` for ``beside_below``: large batches of few orgs cost
    less for each of their commands. After a pause nothing waits for company.

    Large batches are for a crowd, that is for more than ``crowd`` waiting. Otherwise one has up to
    ``calm_max``: it holds fewer orgs, and for less long, and others want these too.

    In a crowd, orgs with ``many`` waiting and those with fewer are in batches of their own, in
    turns: a report is answered with its last heartbeat, and that of a large org need not wait for
    many small ones. What a batch has left for the next one waits for no more company.
    """

    batch_max: int
    calm_max: int = 1_000_000
    crowd: int = 0
    many: int = 1_000_000
    turn_max: int  # of one org before it is another's turn
    org_batch_max: int = 1_000_000  # of one org in one batch: all that others wait for behind it
    org_waiting_max: int
    linger_s: float = 0.0
    linger_below: int = 0
    beside_s: float = 0.0
    beside_below: int = 0


@dataclass(slots=True, eq=False)
class OrgQueue:
    """What waits for one org, and how many commands or heartbeats that is."""

    jobs: deque[Job] = field(default_factory=deque)
    waiting: int = 0


class BatchQueue:
    """Queues of orgs: put jobs in, take a batch out, give its orgs back when it is done."""

    def __init__(self, terms: BatchTerms) -> None:
        self.terms = terms
        self.queues: dict[int, OrgQueue] = {}
        self.turns: deque[int] = deque()  # orgs with something that can be taken, next one first
        self.ready = 0  # how many commands or heartbeats that is
        self.waiting = 0  # how many wait, those of orgs that are under way among them
        self._under_way: set[int] = set()
        self.is_cut = False  # whether the last batch has left some that it could have taken
        self._had_many = False  # the last batch that left others aside

    def put(self, job: Job) -> None:
        """Let a job wait; Busy when its org has too much waiting."""
        org_id, size = job.org_id, job.size
        self.ensure_room(org_id, size)
        queue = self.queues.get(org_id)
        if queue is None:
            queue = self.queues[org_id] = OrgQueue()
        if org_id not in self._under_way:
            if not queue.jobs:
                self.turns.append(org_id)
            self.ready += size
        queue.jobs.append(job)
        queue.waiting += size
        self.waiting += size

    def put_beats(self, beats: Sequence[OrgBeat], call: BeatCall, now: float) -> None:
        """Let heartbeats wait, with those of their orgs that wait already; Busy in their places."""
        queues, most = self.queues, self.terms.turn_max
        for place, (org_id, beat) in enumerate(beats):
            queue = queues.get(org_id)
            last = queue.jobs[-1] if queue is not None and queue.jobs else None
            if queue is None or type(last) is not BeatJob or len(last.beats) >= most:
                try:
                    self.put(BeatJob(org_id, [beat], [call], [place], now))
                except Busy as busy:
                    call.answer(place, busy)
            elif queue.waiting >= self.terms.org_waiting_max:
                call.answer(place, Busy(BUSY_RETRY_S))
            else:
                last.add(beat, call, place)
                queue.waiting += 1
                self.waiting += 1
                if org_id not in self._under_way:
                    self.ready += 1

    def ensure_room(self, org_id: int, size: int) -> None:
        """Busy when so much more of an org cannot wait now."""
        queue = self.queues.get(org_id)
        waiting = 0 if queue is None else queue.waiting
        if waiting + size > self.terms.org_waiting_max:
            raise Busy(BUSY_RETRY_S)

    def take(self) -> list[Job]:
        """The next batch, orgs in turn; an org that has had its part waits for the next one."""
        jobs: list[Job] = []
        terms, turns = self.terms, self.turns
        is_crowd = self.waiting > terms.crowd
        room = terms.batch_max if is_crowd else min(terms.batch_max, terms.calm_max)
        left: dict[int, int] = {}
        line = self._leave_one_kind() if is_crowd else None
        while turns and room > 0:
            org_id = turns.popleft()
            queue = self.queues[org_id]
            part = left.get(org_id)
            if part is None:
                part = terms.org_batch_max
                self.ready -= queue.waiting
            share = min(terms.turn_max, room, part)
            while queue.jobs and share > 0:
                job = queue.jobs.popleft()
                size = job.size
                queue.waiting -= size
                share -= size
                room -= size
                part -= size
                jobs.append(job)
            left[org_id] = part
            if queue.jobs and part > 0:
                turns.append(org_id)
        while turns and turns[-1] in left:  # back in line when the batch was full
            turns.pop()
        if line is not None:  # those that were not taken keep their order
            turns.clear()
            turns.extend([org_id for org_id in line if org_id not in left])
        self.is_cut = bool(turns) or any(self.queues[org_id].jobs for org_id in left)
        self._under_way.update(left)
        self.waiting -= sum([job.size for job in jobs])
        return jobs

    def _leave_one_kind(self) -> list[int] | None:
        """Leave in line those with many waiting or the others; how it was, if there are both."""
        turns, queues, many = self.turns, self.queues, self.terms.many
        if self.ready < many:
            return None
        line = list(turns)
        large = [org_id for org_id in line if queues[org_id].waiting >= many]
        if not large or len(large) == len(line):
            return None
        self._had_many = not self._had_many
        turns.clear()
        if self._had_many:
            turns.extend(large)
        else:
            turns.extend([org_id for org_id in line if queues[org_id].waiting < many])
        return line

    def give_back(self, orgs: Iterable[int]) -> None:
        """A batch is done: what waits for its orgs can be taken."""
        for org_id in orgs:
            self._under_way.remove(org_id)
            queue = self.queues[org_id]
            if queue.jobs:
                self.turns.append(org_id)
                self.ready += queue.waiting
            else:
                del self.queues[org_id]
