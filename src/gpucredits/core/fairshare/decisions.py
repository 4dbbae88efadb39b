"""What a cycle decided, row by row, with the numbers behind each and a sentence for people.

Owns: the output of a decision.
Must not: decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from gpucredits.core.fairshare.filling import Fraction
from gpucredits.core.wording import be


class Basis(StrEnum):
    """On what grounds a request was admitted."""

    SHARE = "share"  # its org stays within, or was still below, its fair share
    BORROWED = "borrowed"  # nobody below their share could use the capacity
    BACKFILLED = "backfilled"  # it overtook the head of the queue without delaying it
    UNGATED = "ungated"  # the pool has no capacity set


class WaitReason(StrEnum):
    """Which constraint keeps a request waiting."""

    OTHER_GATE = "other_gate"
    GANG_INCOMPLETE = "gang_incomplete"
    EXCEEDS_POOL = "exceeds_pool"
    DRAINED = "drained"
    BORROWING_OFF = "borrowing_off"
    MAKING_ROOM = "making_room"
    CAPACITY = "capacity"
    WOULD_DELAY_HEAD = "would_delay_head"
    HELD_FOR_HEAD = "held_for_head"
    BACKFILL_OFF = "backfill_off"
    BACKFILL_DEPTH = "backfill_depth"
    NOT_RANKED = "not_ranked"


class Admission(NamedTuple):
    """A request that starts now; requests of one gang follow each other.

    ``overtakes``: somebody who came before it waits on.
    """

    request_id: str
    tenant: str
    basis: Basis
    overtakes: bool = False


class Preemption(NamedTuple):
    """A job that has to stop by ``stop_at``, for whom, and the tenant that was above its share.

    ``overdue``: not for that, but because it outstayed the time for which it overtook others.
    """

    job_id: str
    tenant: str
    stop_at: int
    for_request: str
    above: str
    held: Fraction
    fair: Fraction
    overdue: bool = False


class WaitDecision(NamedTuple):
    """A request that waits: its place in the queue (0: none), why, and when it may start.

    ``resource``, ``needed`` and ``available`` are the numbers of the constraint: of the resource
    that lacks, or of the gang's members. ``behind`` names the head or the gate it waits for.
    """

    request_id: str
    tenant: str
    position: int
    reason: WaitReason
    resource: str = ""
    needed: int = 0
    available: int = 0
    behind: str = ""
    starts_at: int | None = None


class Share(NamedTuple):
    """A tenant's dominant share: the fair one, and what it holds before and after this cycle.

    Every share is a fraction of the pool, as (numerator, denominator).
    """

    path: str
    weight: int
    fair: Fraction
    before: Fraction
    after: Fraction


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Decisions:
    """Everything a cycle decided, in the order it was decided; shares in path order."""

    pool: str
    now: int
    admissions: tuple[Admission, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    waiting: tuple[WaitDecision, ...] = ()
    shares: tuple[Share, ...] = ()


_THINGS: Final = {"gpu": "GPU", "cpu": "CPU"}
_WORDS: Final = {
    WaitReason.OTHER_GATE: "it waits for {behind}, not for capacity.",
    WaitReason.GANG_INCOMPLETE: "{available} of the {needed} members of its gang {are} here.",
    WaitReason.EXCEEDS_POOL: "it needs {needed} {things}, and the whole pool has {available}.",
    WaitReason.DRAINED: "the pool is drained: nobody new gets in until it has {things} again.",
    WaitReason.BORROWING_OFF: "it needs {needed} {things}, its org may not borrow, and "
    "{available} {are} left of what it is entitled to.",
    WaitReason.MAKING_ROOM: "it needs {needed} {things}; work with less of a claim is being "
    "stopped to make room.",
    WaitReason.CAPACITY: "it needs {needed} {things}, and {available} {are} free.",
    WaitReason.WOULD_DELAY_HEAD: "it needs {needed} {things} of the {available} that {are} free, "
    "but starting it now would delay {behind}, which is before it.",
    WaitReason.HELD_FOR_HEAD: "the {available} {things} that {are} free {are} kept for {behind}, "
    "which has waited long.",
    WaitReason.BACKFILL_OFF: "{behind} is before it, and nobody overtakes in this pool.",
    WaitReason.BACKFILL_DEPTH: "it is too far back to be looked at for overtaking {behind}.",
    WaitReason.NOT_RANKED: "the pool is full, and it is far back.",
}


def sentence(row: WaitDecision) -> str:
    """Why a request waits, in words."""
    place = f"Number {row.position} in the queue: " if row.position else ""
    of_available = row.reason in {WaitReason.HELD_FOR_HEAD, WaitReason.DRAINED}
    number = row.available if of_available else row.needed
    things = things_of(row.resource, number)
    return place + _WORDS[row.reason].format(**row._asdict(), things=things, are=be(row.available))


def things_of(resource: str, number: int) -> str:
    """What so many of a resource are called."""
    thing = _THINGS.get(resource)
    return resource if thing is None else thing if number == 1 else f"{thing}s"
