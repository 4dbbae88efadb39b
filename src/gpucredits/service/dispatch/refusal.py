"""What people are told whom a pool turns away: the numbers, and how long the queue is.

Owns: the refusals of fair share, in the shape that every refusal has.
Must not: decide.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpucredits.core.account import lineage
from gpucredits.core.fairshare.decisions import (
    Decisions,
    Share,
    WaitDecision,
    WaitReason,
    sentence,
    things_of,
)
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import FairShareVerdict, ScopeShare
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.limits.gates import fair_share_refusal
from gpucredits.core.wording import be

EXPIRED = Refused(Reason.FAIR_SHARE, "Its turn did not come before its deadline.")
CANCELED = Refused(Reason.FAIR_SHARE, "It was canceled while it waited.")


Shares = Mapping[str, Share]
"""What is fair and what is held, by the path of the tenant."""


def turned_away(
    snapshot: PoolSnapshot, row: WaitDecision, verdict: FairShareVerdict, said: Refused | None
) -> Refused:
    """Why a request was not let in: as the ledger ``said`` it, or the pool alone if it did not."""
    if said is None:
        gpu_type, _, region = snapshot.pool.rpartition("/")
        said = fair_share_refusal(row.tenant, gpu_type, region, verdict, snapshot.now)
    if said.reason is Reason.FAIR_SHARE:
        said.detail["position"] = row.position
        said.detail["waiting"] = len(snapshot.waiting)
    return said


def as_told(row: WaitDecision) -> WaitDecision:
    """Why a request that does not wait is turned away: no work is stopped for it."""
    if row.reason is not WaitReason.MAKING_ROOM:
        return row
    return row._replace(reason=WaitReason.CAPACITY, starts_at=None)


def shares_of(decisions: Decisions) -> Shares:
    """The shares of a decision, to be looked up."""
    return {share.path: share for share in decisions.shares}


def verdict_of(
    snapshot: PoolSnapshot,
    row: WaitDecision | None,
    account: str,
    shares: Shares,
    requested: int = 0,
) -> FairShareVerdict:
    """What the pool says of a request in numbers: of the resource that lacks, or of its GPUs."""
    gpus = snapshot.capacity[0][1] if snapshot.capacity else 0
    known = [shares[path] for path in reversed(lineage(account)) if path in shares]
    scopes = tuple(
        ScopeShare(
            each.path,
            gpus * each.fair[0] // each.fair[1],
            gpus * each.before[0] // each.before[1],
        )
        for each in known
        if gpus  # of a drained pool nobody has a share: its totals are told
    )
    name, limit = snapshot.capacity[0] if snapshot.capacity else ("gpu", 0)
    axis = 0
    if row is not None:
        for axis, (name, limit) in enumerate(snapshot.capacity):  # noqa: B007  # the one it names
            if name == row.resource:
                break
        else:
            axis = 0
            name, limit = snapshot.capacity[0]
    current = sum(job.amounts[axis] for job in snapshot.running)
    if row is None:
        free = limit - current
        text = (
            f"{requested} of the {free} {things_of(name, free)} that {be(free)} free in "
            f"{snapshot.pool} {be(requested)} its."
        )
        return FairShareVerdict(True, limit, current, requested, text, shares=scopes)
    said = row._replace(position=0, behind="another request" if row.behind else "")
    text = sentence(said)
    words = f"{text[0].upper()}{text[1:]}"
    needed = row.needed  # shares are told in GPUs, so what is wanted of another resource is too
    if axis and limit and scopes:
        needed = -(-needed * gpus // limit)
    return FairShareVerdict(False, limit, current, needed, words, row.starts_at, scopes)
