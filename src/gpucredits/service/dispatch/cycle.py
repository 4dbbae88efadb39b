"""One cycle of a pool: freeze, decide, claim the room, ask the ledger, tell everybody.

Nobody is stopped for a request before the ledger was asked, without a trace, whether it would let
that request in: who cannot pay makes nobody stop, and takes no share either (service.demand).
Work that makes room for a request which no longer waits goes on, unless another one needs its room.

Owns: the order of these steps, and that a crash between any two of them neither loses a request
nor lets one in twice: room is claimed in the database before the ledger is asked, and the ledger is
asked with a key made from the claim.
Must not: decide (core.fairshare does) or speak SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from gpucredits.core.fairshare.decisions import Decisions, WaitDecision, WaitReason
from gpucredits.core.fairshare.plain import dump, dump_decisions
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import FairShareVerdict
from gpucredits.service.dispatch.admission import Admitting
from gpucredits.service.dispatch.decision_thread import decided
from gpucredits.service.dispatch.demand import Passed, Survey, with_gangs
from gpucredits.service.dispatch.positions import Placing
from gpucredits.service.dispatch.preemption import StopOrders, spared
from gpucredits.service.dispatch.refusal import EXPIRED, as_told, shares_of, turned_away, verdict_of
from gpucredits.service.dispatch.snapshot import (
    fitting,
    freeze,
    granted,
    needless,
    request_id,
    room_in,
    used_by_now,
)
from gpucredits.service.write.ledger import Ledger
from gpucredits.service.write.stored_answers import encode
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.connections import session
from gpucredits.store.database.consistent_read import snapshot as one_moment
from gpucredits.store.dispatch import cycle as dispatch
from gpucredits.store.dispatch import pool_history, queue
from gpucredits.store.dispatch.cycle import DispatchLease
from gpucredits.store.dispatch.pool_rows import Key, OpenTicket, PoolRows, lapsed_in, take_picture
from gpucredits.store.dispatch.pools import NO_POOL

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
    """What a cycle decided on, and its decision; ``fit`` are those others may be stopped for.

    ``is_partial`` says that another has to follow for somebody who waits for an answer.
    """

    picture: PoolRows
    snapshot: PoolSnapshot
    decisions: Decisions
    refused: dict[str, WaitDecision]
    fit: frozenset[str] = frozenset()
    is_partial: bool = False

    @property
    def is_contended(self) -> bool:
        """Whether somebody lacks room."""
        return bool(self.refused) or any(row.position for row in self.decisions.waiting)

    def verdicts(self, tickets: Mapping[str, OpenTicket]) -> dict[Key, FairShareVerdict]:
        """What the pool says of those of some requests that it turns away."""
        shares = shares_of(self.decisions)
        return {
            tickets[name].key: verdict_of(self.snapshot, row, row.tenant, shares)
            for name, row in self.refused.items()
            if name in tickets
        }

    @property
    def stoppers(self) -> set[str]:
        """Requests for which work would be stopped."""
        return {row.for_request for row in self.decisions.preemptions} - self.refused.keys()


class Dispatcher:
    """Dispatches pools, one cycle at a time, as ``holder``; of several only one gets the lease."""

    def __init__(self, ledger: Ledger, *, holder: str, lease_us: int = LEASE_US) -> None:
        self.ledger = ledger
        self.pool = ledger.pool
        self.holder = holder
        self.lease_us = lease_us
        self.admitting = Admitting(ledger)
        self._passed = Passed()
        self._placing = Placing()
        self._stopping = StopOrders(ledger, self.admitting.asking)
        self._put_off: set[int] = set()  # pools that stopped nobody in their last cycle

    async def cycle(self, pool_id: int) -> bool:
        """Run one cycle if the pool is ours to dispatch; True when another should follow."""
        async with session(self.pool) as db:
            lease = await dispatch.take_lease(db, pool_id, self.holder, lease_us=self.lease_us)
        if lease is None:
            return False
        await self.admitting.recover(pool_id)
        picture = await self.look(pool_id)
        if picture is None:
            return False
        await self._keep_usage(picture)
        if not picture.waiting:
            await self._stopping.resume(picture.pool.name, needless(picture))
            return False
        cycle = await self.decide(picture)
        return await self.apply(lease._replace(version=picture.version), cycle)

    async def release(self) -> None:
        """Let another take over without waiting for our leases to lapse."""
        async with session(self.pool) as db:
            await dispatch.drop_leases(db, self.holder)

    async def look(self, pool_id: int) -> PoolRows | None:
        """The pool as it is, once everything is written down that the clock has made true."""
        if pool_id == NO_POOL:
            async with session(self.pool) as db:
                await dispatch.move_to_pools(db)
        async with one_moment(self.pool) as db:
            picture = await take_picture(db, pool_id)
        if picture is None:
            return None
        late = any(lease.expires_at <= picture.now for lease in picture.running)
        async with session(self.pool) as db:
            expired = await dispatch.expire(db, pool_id, encode(EXPIRED))
            if expired:
                await queue.tell(db)
            lapsed = await lapsed_in(db, picture.pool, limit=SWEPT_MAX) if late else []
        by_org: dict[int, list[int]] = {}
        for org_id, payer_id in lapsed:
            by_org.setdefault(org_id, []).append(payer_id)
        await asyncio.gather(*(self._sweep(*each) for each in by_org.items()))
        opened = await self.admitting.probe(pool_id) if _has_held(picture) else False
        if not (expired or lapsed or opened):
            return picture
        async with one_moment(self.pool) as db:
            return await take_picture(db, pool_id)

    async def _sweep(self, org_id: int, payers: Sequence[int]) -> None:
        """Write down which leases of an org have lapsed; until that is done they count."""
        await self.admitting.asking.done(
            org_id, "a lapse", lambda: self.ledger.sweep(org_id, payers)
        )

    async def decide(self, picture: PoolRows) -> Cycle:
        """Decide, as often as those who would take a share or stop work turn out not to get in."""
        cycle = await self._decide(picture)
        self._passed.forget(picture.now)
        survey = Survey(picture, self._passed)
        tickets: dict[str, OpenTicket] = {}
        fit: frozenset[str] = frozenset()
        for _ in range(ROUNDS_MAX):
            tickets |= {request_id(ticket.key): ticket for ticket in cycle.picture.waiting}
            wanted = {name: tickets[name] for name in cycle.stoppers - fit}
            if cycle.is_contended:
                wanted |= survey.doubtful()
            if not wanted:
                break
            asked = with_gangs(cycle.picture, wanted, room_in(cycle.snapshot))
            found = await self.admitting.rehearse(asked, cycle.verdicts(wanted))
            fit |= {request_id(key) for key in found.passed}
            if not survey.learn(found, asked):
                break
            cycle = await self._decide(survey.seen())
        return replace(cycle, fit=fit, is_partial=cycle.is_partial or survey.leaves_somebody_out)

    async def _decide(self, picture: PoolRows) -> Cycle:
        """Decide; those who do not wait and cannot start now are turned away, not queued.

        So are those who wait for more than the pool has; but not if it had more when they came, or
        is drained. Who takes what is left is left for the next cycle while others leave something.
        """
        snapshot = freeze(picture)
        decisions = await decided(snapshot)
        impatient = {request_id(ticket.key) for ticket in picture.waiting if not ticket.is_patient}
        new = {
            request_id(ticket.key)
            for ticket in picture.waiting
            if ticket.reason in UNPLACED and not ticket.allow_partial and picture.pool.gpus
        }
        refused = {
            row.request_id: as_told(row) if row.request_id in impatient else row
            for row in decisions.waiting
            if row.request_id in impatient
            or (row.reason is WaitReason.EXCEEDS_POOL and row.request_id in new)
        }
        later = _finds_less(picture, snapshot, decisions) & refused.keys()
        if refused:
            snapshot = freeze(picture, without=refused)
            refused = {name: row for name, row in refused.items() if name not in later}
            decisions = await decided(snapshot)
            refused |= {
                row.request_id: as_told(row)
                for row in decisions.waiting
                if row.request_id in impatient
            }
        return Cycle(picture, snapshot, decisions, refused, is_partial=bool(later))

    async def apply(self, lease: DispatchLease, cycle: Cycle) -> bool:
        """Carry out what was decided; True when there is more to do at once."""
        tickets = {request_id(ticket.key): ticket for ticket in cycle.picture.waiting}
        free = room_in(cycle.snapshot)
        chosen = [tickets[row.request_id] for row in cycle.decisions.admissions]
        overtakes = {row.request_id for row in cycle.decisions.admissions if row.overtakes}
        some = _whole_gangs(chosen, ADMISSIONS_MAX)
        more = len(some) < len(chosen)
        unused = False
        if some:
            async with session(self.pool) as db:
                claimed = await dispatch.claim(
                    db,
                    lease,
                    [
                        (*each.key, granted(each, free), request_id(each.key) in overtakes)
                        for each in some
                    ],
                )
            if claimed is None:  # somebody else has let something in: look again
                return True
            unused = await self.admitting.admit(claimed, cycle.snapshot, cycle.decisions)
        # Room that was not taken after all may do for those for whom work would be stopped: they
        # look again first, but only once, lest those who cannot pay put it off for ever.
        if unused and lease.pool_id not in self._put_off:
            self._put_off.add(lease.pool_id)
        else:
            self._put_off.discard(lease.pool_id)
            await self._preempt(cycle)
        await self._tell(cycle, tickets)
        return more or unused or cycle.is_partial

    async def _preempt(self, cycle: Cycle) -> None:
        """Tell leases to stop for requests that would be let in; others may go on after all."""
        stoppers = cycle.stoppers & cycle.fit
        orders = [row for row in cycle.decisions.preemptions if row.for_request in stoppers]
        pool = cycle.snapshot.pool
        await self._stopping.stop(pool, orders, grace_ms=cycle.snapshot.policy.grace_ms)
        await self._stopping.resume(pool, spared(needless(cycle.picture), orders))

    async def _tell(self, cycle: Cycle, tickets: dict[str, OpenTicket]) -> None:
        """Write down where everybody stands, and the snapshot it comes from."""
        refused = await self._refusals(cycle, tickets)
        places = self._placing.news(
            cycle.picture.pool.pool_id,
            (
                (tickets[row.request_id], row)
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
        self, cycle: Cycle, tickets: dict[str, OpenTicket]
    ) -> list[tuple[int, int, bytes]]:
        """What those are told whom the pool turns away, with what every other gate says."""
        free = room_in(cycle.snapshot)
        rows = {tickets[name].key: row for name, row in cycle.refused.items()}
        verdicts = cycle.verdicts(tickets)
        told = await self.admitting.turned_away(
            {
                key: (granted(tickets[row.request_id], free), verdicts[key])
                for key, row in rows.items()
                if not tickets[row.request_id].is_patient
            }
        )
        return [
            (*key, encode(turned_away(cycle.snapshot, row, verdicts[key], told.get(key))))
            for key, row in rows.items()
        ]

    @staticmethod
    async def _keep(db: Connection, cycle: Cycle) -> None:
        snapshot = cycle.snapshot
        if not snapshot.capacity:
            return
        if len(snapshot.running) + len(snapshot.waiting) > ROWS_KEPT_MAX:
            return
        await pool_history.keep_snapshot(
            db,
            cycle.picture.pool.pool_id,
            taken_at=snapshot.now,
            snapshot=await asyncio.to_thread(_json, dump, snapshot),
            decision=await asyncio.to_thread(_json, dump_decisions, cycle.decisions),
        )

    async def _keep_usage(self, picture: PoolRows) -> None:
        """Add what was used since the last time to what is remembered of it."""
        since = picture.used_until
        if not picture.pool.half_life_ms or picture.now < since + USAGE_EVERY_US:
            return
        async with session(self.pool) as db:
            await pool_history.keep_usage(
                db,
                picture.pool.pool_id,
                since=since,
                until=picture.now,
                usage=used_by_now(picture),
            )


def _json(plain: Callable[[Row], dict[str, Any]], row: Row) -> bytes:
    return msgspec.json.encode(plain(row))


def _has_held(picture: PoolRows) -> bool:
    return any(ticket.held_by and ticket.retry_at <= picture.now for ticket in picture.waiting)


def _finds_less(picture: PoolRows, frozen: PoolSnapshot, decisions: Decisions) -> set[str]:
    """Those who would take fewer GPUs than were free, once others have been let in."""
    if not decisions.admissions:
        return set()
    free = room_in(frozen)
    left = room_in(frozen, without={row.request_id for row in decisions.admissions})
    return {
        request_id(ticket.key)
        for ticket in picture.waiting
        if ticket.allow_partial and 0 < fitting(ticket, left) < granted(ticket, free)
    }


def _whole_gangs(chosen: Sequence[OpenTicket], most: int) -> list[OpenTicket]:
    """The first so many, but never a part of a gang; a larger gang goes alone."""
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


def _same_gang(one: OpenTicket, other: OpenTicket) -> bool:
    return bool(one.gang) and (one.account, one.gang) == (other.account, other.gang)
