"""One cycle of a pool: read its rows, decide, claim the room, ask the ledger, tell everybody.

``Dispatcher.cycle`` is the whole of it, in nine numbered steps. Before a lease stops for a request,
a dry run asks whether the ledger would admit the request. So a request that cannot be paid for
stops no lease, and takes no share either (service.dispatch.dry_runs). If a request no longer waits,
leases that drain for it run on, unless another request needs their room.

Owns: the order of the steps. A crash between any two of them neither loses a request nor admits one
twice: room is claimed in the database before the ledger is asked, and the ledger is asked with a
key made from the claim.
Must not: decide (core.fairshare does) or speak SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from gpucredits.core.fairshare.decisions import (
    Decisions,
    WaitDecision,
    WaitReason,
    as_told,
    dump,
    dump_decisions,
    shares_of,
    verdict_of,
)
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import FairShareVerdict
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.limits.gates import fair_share_refusal
from gpucredits.service.dispatch.admission import Admitting, spared
from gpucredits.service.dispatch.dry_runs import Passed, Survey, with_gangs
from gpucredits.service.dispatch.queue import EXPIRED, Places
from gpucredits.service.dispatch.snapshot import (
    decided,
    fitting,
    granted,
    needless,
    request_id,
    room_in,
    snapshot_of,
    used_by_now,
)
from gpucredits.service.write.batch_record import encode
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import session
from gpucredits.store.database.connections import snapshot as one_moment
from gpucredits.store.dispatch import cycle as dispatch
from gpucredits.store.dispatch import pools, queue
from gpucredits.store.dispatch.cycle import DispatchLease
from gpucredits.store.dispatch.pools import NO_POOL, PoolRows, lapsed_in, read_pool_rows
from gpucredits.store.dispatch.queue import Key, QueuedRequest

Row = TypeVar("Row")

LEASE_US: Final = 5_000_000
ADMISSIONS_MAX: Final = 500  # in one cycle
SWEPT_MAX: Final = 500
ROWS_KEPT_MAX: Final = 5_000  # larger snapshots are not kept
USAGE_EVERY_US: Final = 5_000_000
ROUNDS_MAX: Final = 4  # decisions in one cycle, as those who would stop others turn out unfit to
UNPLACED: Final = ("", WaitReason.GANG_INCOMPLETE.value)  # nobody has given it a place yet


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle's rows and decision; leases may be stopped for the requests in ``fit``.

    ``refused`` are requests that the pool turns away; ``counted`` is the decision that counted them
    as demand. ``is_partial`` means that another cycle must follow, because a caller still waits for
    an answer.
    """

    rows: PoolRows
    snapshot: PoolSnapshot
    decisions: Decisions
    counted: Decisions
    refused: dict[str, WaitDecision]
    fit: frozenset[str] = frozenset()
    is_partial: bool = False

    @property
    def requests(self) -> dict[str, QueuedRequest]:
        """The requests that were decided on, by their ids."""
        return {request_id(request.key): request for request in self.rows.waiting}

    @property
    def is_contended(self) -> bool:
        """Whether a request lacks room."""
        return bool(self.refused) or any(row.position for row in self.decisions.waiting)

    def verdicts(self, requests: Mapping[str, QueuedRequest]) -> dict[Key, FairShareVerdict]:
        """The pool's verdicts on requests that it turns away, with the shares that count them."""
        shares = shares_of(self.counted)
        return {
            requests[name].key: verdict_of(self.snapshot, row, row.tenant, shares)
            for name, row in self.refused.items()
            if name in requests
        }

    @property
    def stoppers(self) -> set[str]:
        """The requests for which leases would be stopped."""
        return {row.for_request for row in self.decisions.preemptions} - self.refused.keys()


class Dispatcher:
    """Dispatches pools as ``holder``, one cycle at a time; a pool has one holder at most."""

    def __init__(self, ledger: Ledger, *, holder: str, lease_us: int = LEASE_US) -> None:
        self.ledger = ledger
        self.pool = ledger.pool
        self.holder = holder
        self.lease_us = lease_us
        self.admitting = Admitting(ledger)
        self._passed = Passed()
        self._places = Places()
        self._put_off: set[int] = set()  # pools that stopped nobody in their last cycle

    async def cycle(self, pool_id: int) -> bool:
        """Run one cycle if this holder dispatches the pool; True if another should follow."""
        # 1. Take or renew the lease to dispatch the pool: one dispatcher works, the others look on.
        async with session(self.pool) as db:
            lease = await dispatch.take_lease(db, pool_id, self.holder, lease_us=self.lease_us)
        if lease is None:
            return False
        # 2. Finish what an earlier cycle claimed, and did not live to write down.
        await self.admitting.recover(pool_id)
        # 3. Write down what is over (deadlines, lapsed leases, gates that opened); read the pool.
        rows = await self.look(pool_id)
        if rows is None:
            return False
        # 4. Add what was used since the last time to what is remembered of it.
        await self._keep_usage(rows)
        if not rows.waiting:
            await self.admitting.resume(rows.pool.name, needless(rows))
            return False
        # 5. Decide, and ask the ledger in dry runs whether those who count would be let in.
        cycle = await self.decide(rows)
        return await self.apply(lease._replace(version=rows.version), cycle)

    async def apply(self, lease: DispatchLease, cycle: Cycle) -> bool:
        """Carry out a decision; True if there is more to do at once."""
        # 6. Claim the room of those who start, if nobody has let anything in since the rows.
        chosen = self._chosen(cycle)
        some = _whole_gangs(chosen, ADMISSIONS_MAX)
        unused = False
        if some:
            async with session(self.pool) as db:
                claimed = await dispatch.claim(db, lease, some)
            if claimed is None:  # somebody else has let something in: look again
                return True
            # 7. Ask the ledger for their leases, with keys made from the claims.
            unused = await self.admitting.admit(claimed, cycle.snapshot, cycle.decisions)
        # 8. Tell leases to stop for requests that would be let in, and others to go on after all.
        # Room that was not taken may do for those for whom work would be stopped: they look again
        # first, but only once, lest those who cannot pay put it off for ever.
        if unused and lease.pool_id not in self._put_off:
            self._put_off.add(lease.pool_id)
        else:
            self._put_off.discard(lease.pool_id)
            await self._preempt(cycle)
        # 9. Write down refusals, places and the snapshot, and wake everybody who waits for news.
        await self._tell(cycle)
        return len(some) < len(chosen) or unused or cycle.is_partial

    async def release(self) -> None:
        """Give up all pools, so that another dispatcher need not wait."""
        async with session(self.pool) as db:
            await dispatch.drop_leases(db, self.holder)

    async def look(self, pool_id: int) -> PoolRows | None:
        """Read the pool's rows, after writing down what is over by the clock."""
        if pool_id == NO_POOL:
            async with session(self.pool) as db:
                await dispatch.move_to_pools(db)
        rows = await self._read(pool_id)
        if rows is None:
            return None
        late = any(lease.expires_at <= rows.now for lease in rows.running)
        async with session(self.pool) as db:
            expired = await dispatch.expire(db, pool_id, encode(EXPIRED))
            if expired:
                await queue.tell(db)
            lapsed = await lapsed_in(db, rows.pool, limit=SWEPT_MAX) if late else []
        by_org: dict[int, list[int]] = {}
        for org_id, payer_id in lapsed:
            by_org.setdefault(org_id, []).append(payer_id)
        await asyncio.gather(*(self._sweep(*each) for each in by_org.items()))
        opened = await self.admitting.probe(pool_id) if _has_held(rows) else False
        return await self._read(pool_id) if expired or lapsed or opened else rows

    async def _read(self, pool_id: int) -> PoolRows | None:
        async with one_moment(self.pool) as db:
            return await read_pool_rows(db, pool_id)

    async def _sweep(self, org_id: int, payers: Sequence[int]) -> None:
        """Sweep lapsed leases of an org; a lease counts as running until then."""
        await self.admitting.asking.done(
            org_id, "a lapse", lambda: self.ledger.sweep(org_id, payers)
        )

    async def decide(self, rows: PoolRows) -> Cycle:
        """Decide; decide again without requests that the ledger would refuse."""
        cycle = await self._decide(rows)
        self._passed.forget(rows.now)
        survey = Survey(rows, self._passed)
        requests: dict[str, QueuedRequest] = {}
        fit: frozenset[str] = frozenset()
        for _ in range(ROUNDS_MAX):
            requests |= cycle.requests
            wanted = {name: requests[name] for name in cycle.stoppers - fit}
            if cycle.is_contended:
                wanted |= survey.doubtful()
            if not wanted:
                break
            asked = with_gangs(cycle.rows, wanted, room_in(cycle.snapshot))
            found = await self.admitting.rehearse(asked, cycle.verdicts(wanted))
            fit |= {request_id(key) for key in found.passed}
            if not survey.learn(found, asked):
                break
            cycle = await self._decide(survey.seen())
        return replace(cycle, fit=fit, is_partial=cycle.is_partial or survey.leaves_somebody_out)

    async def _decide(self, rows: PoolRows) -> Cycle:
        """Decide once; turn away requests that do not wait and cannot start now.

        Requests for more than the pool has are turned away too, unless the pool had more when they
        came, or is drained. The next cycle decides on the rest of the room.
        """
        snapshot = snapshot_of(rows)
        decisions = counted = await decided(snapshot)
        impatient = {request_id(each.key) for each in rows.waiting if not each.is_patient}
        new = {
            request_id(each.key)
            for each in rows.waiting
            if each.reason in UNPLACED and not each.allow_partial and rows.pool.milli_gpus
        }
        refused = {
            row.request_id: as_told(row) if row.request_id in impatient else row
            for row in decisions.waiting
            if row.request_id in impatient
            or (row.reason is WaitReason.EXCEEDS_POOL and row.request_id in new)
        }
        later = _finds_less(rows, snapshot, decisions) & refused.keys()
        if refused:
            snapshot = snapshot_of(rows, without=refused)
            refused = {name: row for name, row in refused.items() if name not in later}
            decisions = await decided(snapshot)
            refused |= {
                row.request_id: as_told(row)
                for row in decisions.waiting
                if row.request_id in impatient
            }
        return Cycle(rows, snapshot, decisions, counted, refused, is_partial=bool(later))

    @staticmethod
    def _chosen(cycle: Cycle) -> list[QueuedRequest]:
        """The requests that start, each with the GPUs that it is granted."""
        requests, free = cycle.requests, room_in(cycle.snapshot)
        return [
            (request := requests[row.request_id])._replace(
                granted=granted(request, free), overtook=row.overtakes
            )
            for row in cycle.decisions.admissions
        ]

    async def _preempt(self, cycle: Cycle) -> None:
        """Order leases to stop for requests that would be admitted; withdraw needless orders."""
        stoppers = cycle.stoppers & cycle.fit
        orders = [row for row in cycle.decisions.preemptions if row.for_request in stoppers]
        pool = cycle.snapshot.pool
        await self.admitting.stop(pool, orders, grace_ms=cycle.snapshot.policy.grace_ms)
        await self.admitting.resume(pool, spared(needless(cycle.rows), orders))

    async def _tell(self, cycle: Cycle) -> None:
        """Write down the place of each request, and the snapshot of the decision."""
        requests = cycle.requests
        refused = await self._refusals(cycle, requests)
        places = self._places.news(
            cycle.rows.pool.pool_id,
            (
                (requests[row.request_id], row)
                for row in cycle.decisions.waiting
                if row.request_id not in cycle.refused
            ),
        )
        async with session(self.pool) as db:
            await dispatch.refuse(db, refused)
            await dispatch.place(db, places)
            if cycle.decisions.admissions or cycle.decisions.preemptions or places:
                await self._keep(db, cycle)
            await queue.tell(db)

    async def _refusals(
        self, cycle: Cycle, requests: Mapping[str, QueuedRequest]
    ) -> list[QueuedRequest]:
        """The requests that the pool turns away, with their refusals by all gates."""
        free = room_in(cycle.snapshot)
        verdicts = cycle.verdicts(requests)
        told = await self.admitting.turned_away(
            [
                request._replace(granted=granted(request, free))
                for name in cycle.refused
                if not (request := requests[name]).is_patient
            ],
            verdicts,
        )
        refused = []
        for name, row in cycle.refused.items():
            request = requests[name]
            said = turned_away(cycle.snapshot, row, verdicts[request.key], told.get(request.key))
            refused.append(request._replace(outcome=encode(said)))
        return refused

    @staticmethod
    async def _keep(db: Connection, cycle: Cycle) -> None:
        snapshot = cycle.snapshot
        if not snapshot.capacity:
            return
        if len(snapshot.running) + len(snapshot.waiting) > ROWS_KEPT_MAX:
            return
        await pools.keep_snapshot(
            db,
            cycle.rows.pool.pool_id,
            taken_at=snapshot.now,
            snapshot=await asyncio.to_thread(_json, dump, snapshot),
            decision=await asyncio.to_thread(_json, dump_decisions, cycle.decisions),
        )

    async def _keep_usage(self, rows: PoolRows) -> None:
        """Add the use since the last time to the stored past use."""
        since = rows.used_until
        if not rows.pool.half_life_ms or rows.now < since + USAGE_EVERY_US:
            return
        async with session(self.pool) as db:
            await pools.keep_usage(
                db, rows.pool.pool_id, since=since, until=rows.now, usage=used_by_now(rows)
            )


def _json(plain: Callable[[Row], dict[str, Any]], row: Row) -> bytes:
    return msgspec.json.encode(plain(row))


def _has_held(rows: PoolRows) -> bool:
    return any(request.held_by and request.retry_at <= rows.now for request in rows.waiting)


def _finds_less(rows: PoolRows, snapshot: PoolSnapshot, decisions: Decisions) -> set[str]:
    """The requests that would get fewer GPUs now, because others have been admitted first."""
    if not decisions.admissions:
        return set()
    free = room_in(snapshot)
    left = room_in(snapshot, without={row.request_id for row in decisions.admissions})
    return {
        request_id(request.key)
        for request in rows.waiting
        if request.allow_partial and 0 < fitting(request, left) < granted(request, free)
    }


def turned_away(
    snapshot: PoolSnapshot, row: WaitDecision, verdict: FairShareVerdict, said: Refused | None
) -> Refused:
    """The refusal of a request: the ledger's (``said``), or else the pool's own."""
    if said is None:
        gpu_type, _, region = snapshot.pool.rpartition("/")
        said = fair_share_refusal(row.tenant, gpu_type, region, verdict, snapshot.now)
    if said.reason is Reason.FAIR_SHARE:
        said.detail["position"] = row.position
        said.detail["waiting"] = len(snapshot.waiting)
    return said


def _whole_gangs(chosen: Sequence[QueuedRequest], most: int) -> list[QueuedRequest]:
    """The first requests up to a number, in whole gangs; a larger gang comes alone."""
    if len(chosen) <= most:
        return list(chosen)
    end = most
    while end > 0 and _same_gang(chosen[end - 1], chosen[end]):
        end -= 1
    if not end:
        end = next(
            (at for at in range(1, len(chosen)) if not _same_gang(chosen[at - 1], chosen[at])),
            len(chosen),
        )
    return list(chosen[:end])


def _same_gang(one: QueuedRequest, other: QueuedRequest) -> bool:
    return bool(one.gang) and (one.account, one.gang) == (other.account, other.gang)
