"""What people are told whom a pool turns away: the numbers, and how long the queue is.

Owns: the refusals of fair share, in the shape that every refusal has.
Must not: decide.
"""

from __future__ import annotations

from gpucredits.core.fairshare.decisions import Waiting, sentence
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import Verdict
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.gates import fair_share_refusal

EXPIRED = Refused(Reason.FAIR_SHARE, "Its turn did not come before its deadline.")
CANCELLED = Refused(Reason.FAIR_SHARE, "It was cancelled while it waited.")


def turned_away(snapshot: PoolSnapshot, row: Waiting, said: Refused | None) -> Refused:
    """Why a request was not let in: as the ledger ``said`` it, or the pool alone if it did not."""
    if said is None:
        verdict = verdict_of(snapshot, row)
        gpu_type, _, region = snapshot.pool.rpartition("/")
        said = fair_share_refusal(row.tenant, gpu_type, region, verdict, snapshot.now)
    if said.reason is Reason.FAIR_SHARE:
        said.detail["position"] = row.position
        said.detail["waiting"] = len(snapshot.waiting)
    return said


def verdict_of(snapshot: PoolSnapshot, row: Waiting | None, requested: int = 0) -> Verdict:
    """What the pool says of a request in numbers: of the resource that lacks, or of its GPUs."""
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
        text = (
            f"{requested} of the {limit - current} {name} that are free in {snapshot.pool} are its."
        )
        return Verdict(True, limit, current, requested, text)
    said = row._replace(position=0, behind="another request" if row.behind else "")
    text = sentence(said)
    return Verdict(False, limit, current, row.needed, f"{text[0].upper()}{text[1:]}", row.starts_at)
