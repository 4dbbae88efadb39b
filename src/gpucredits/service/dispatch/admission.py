"""A cycle's questions to the ledger: leases for requests that have room, and dry runs.

Owns: the key of each attempt, which every dispatcher makes alike, and the refusals that mean: wait
on. A request with room becomes a lease, waits on for another gate, or is refused. Before leases
stop for a request, a dry run asks whether the ledger would admit the request. Orders to stop and to
resume leases go to the ledger too; the next cycle repeats an order that failed. Also owns the time
limit for answers: an org that exceeded it is left out for a while, so that it delays nobody else.
Must not: give room, or choose which leases stop (the cycle and core.fairshare do).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from gpucredits.core import ids
from gpucredits.core.book import InvariantBroken
from gpucredits.core.command import Reserve, ResumeLease, StopLease
from gpucredits.core.fairshare.decisions import Decisions, Preemption, shares_of, verdict_of
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import FairShareVerdict, Gate, GateReport, GateUnit
from gpucredits.core.money import whole_gpus
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.limits.gates import first_failing
from gpucredits.service.write.batch_record import ATTEMPT, encode
from gpucredits.service.write.errors import Busy
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.database.connections import session
from gpucredits.store.database.errors import Conflict, Unavailable
from gpucredits.store.dispatch import cycle
from gpucredits.store.dispatch.pools import Drain
from gpucredits.store.dispatch.queue import Key, QueuedRequest, QueueState

Answer = TypeVar("Answer")

TOLD_WITHIN_S: Final = 2.0  # what leaves no trace
DONE_WITHIN_S: Final = 3.0  # what is done, and found done when it is asked for again
LEFT_ALONE_S: Final = 5.0

logger = logging.getLogger(__name__)

RECOVERED_MAX: Final = 1_000
PROBES_EACH: Final = 2  # requests of one account that are asked about again in a cycle
PROBES_MAX: Final = 100
ATTEMPTS_PARTIAL: Final = 6
PUT_OFF_US: Final = 5_000_000  # until somebody is asked about again of whom nothing was said
GATES: Final = {  # what is worth waiting for, and what people call it
    Reason.INSUFFICIENT_CREDITS: "credits",
    Reason.QUOTA_EXCEEDED: "quota",
    Reason.RATE_LIMITED: "rate limit",
    Reason.ACCOUNT_SUSPENDED: "suspension",
    Reason.ACCOUNT_DELINQUENT: "unpaid statement",
}
UNDECIDED: Final = ("the ledger", "It cannot be decided, and is asked about again.")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The ledger's answers to a dry run: the requests that pass, wait on, or are refused.

    A request without an answer is in none of the three.
    """

    passed: set[Key] = field(default_factory=set)
    held: dict[Key, QueuedRequest] = field(default_factory=dict)
    refused: dict[Key, Refused] = field(default_factory=dict)


class Admitting:
    """Makes leases of requests that have their room."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.asking = Asking()

    async def recover(self, pool_id: int) -> None:
        """Finish the claims of a dispatcher that died before it wrote down their end."""
        async with session(self.ledger.pool) as db:
            left = await cycle.claimed_before(db, pool_id, limit=RECOVERED_MAX)
        if left:
            logger.warning(
                "pool %d: finishing %d admissions of an earlier cycle", pool_id, len(left)
            )
            await self._settle(left, {})

    async def admit(
        self, claimed: Sequence[QueuedRequest], frozen: PoolSnapshot, decisions: Decisions
    ) -> bool:
        """Ask the ledger for the leases of claims; True if some claimed room stays free."""
        if not frozen.capacity:
            return await self._settle(claimed, {})
        shares = shares_of(decisions)
        verdicts = {
            each.key: verdict_of(frozen, None, each.account, shares, each.granted)
            for each in claimed
        }
        return await self._settle(claimed, verdicts)

    async def probe(self, pool_id: int) -> bool:
        """Ask in a dry run for some requests that another gate holds; True if the gate opens.

        A request without an answer stays held, and is asked about later.
        """
        async with session(self.ledger.pool) as db:
            asked = await cycle.probes(db, pool_id, each=PROBES_EACH, limit=PROBES_MAX)
        answers = await asyncio.gather(*(self._would_say([request]) for request in asked))
        opened, held, unknown = [], [], []
        for request, outcomes in zip(asked, answers, strict=True):
            if not outcomes:
                unknown.append(request.key)
            elif isinstance(outcomes[0], Refused) and outcomes[0].reason in GATES:
                whole = request._replace(granted=request.milli_gpus)
                held.append(_held(whole, outcomes[0]))
            else:
                opened.append(request.key)
        async with session(self.ledger.pool) as db:
            await cycle.unhold(db, opened)
            await cycle.hold(db, held)
            await cycle.put_off(db, unknown, wait_us=PUT_OFF_US)
        return bool(opened) or not all(request.held_by for request in held)

    async def rehearse(
        self, wanted: Mapping[Key, QueuedRequest], verdicts: Mapping[Key, FairShareVerdict]
    ) -> Rehearsal:
        """Ask in a dry run for requests, each with the GPUs that are ``granted`` to it.

        Holds and refusals are written down as if the requests' turn had come. The members of a
        gang are asked about together. If the pool's verdict is given, the refusal includes it; a
        request that only the pool turns away passes.
        """
        groups = _together(list(wanted.values()))
        answers = await asyncio.gather(
            *(self._would_say(group, verdicts.get(group[0].key)) for group in groups)
        )
        found = Rehearsal()
        for group, outcomes in zip(groups, answers, strict=True):
            for request, outcome in zip(group, outcomes or (), strict=bool(outcomes)):
                if not isinstance(outcome, Refused) or outcome.reason is Reason.FAIR_SHARE:
                    found.passed.add(request.key)
                elif waits_on(request, outcome):
                    found.held[request.key] = _held(request, outcome)
                else:
                    found.refused[request.key] = outcome
        if found.held or found.refused:
            ended = [
                wanted[key]._replace(outcome=encode(outcome))
                for key, outcome in found.refused.items()
            ]
            async with session(self.ledger.pool) as db:
                await cycle.hold(db, list(found.held.values()))
                await cycle.refuse(db, ended)
        return found

    async def turned_away(
        self, wanted: Sequence[QueuedRequest], verdicts: Mapping[Key, FairShareVerdict]
    ) -> dict[Key, Refused]:
        """The refusals of requests that their pool turns away, with all gates in order.

        Requests without an answer are left out.
        """

        async def told(request: QueuedRequest) -> Outcome | None:
            for _ in range(ATTEMPTS_PARTIAL + 1):
                outcomes = await self._would_say([request], verdicts[request.key])
                if not outcomes:
                    break
                fewer = fewer_gpus(outcomes[0], request.granted) if request.allow_partial else 0
                if not fewer:
                    return outcomes[0]
                request = request._replace(granted=fewer)
            return None

        answers = await asyncio.gather(*(told(request) for request in wanted))
        return {
            request.key: outcome
            for request, outcome in zip(wanted, answers, strict=True)
            if isinstance(outcome, Refused)
        }

    async def stop(self, pool: str, orders: Sequence[Preemption], *, grace_ms: int) -> None:
        """Shorten leases to their grace, each for the request that needs its room."""

        async def stop(row: Preemption) -> None:
            org_id, number = ids.parse_id(ids.RESERVATION, row.job_id)
            _, waiter = ids.parse_id(ids.QUEUE, row.for_request)
            order = StopLease(reservation_id=number, grace_ms=grace_ms, stopping_for=waiter)
            await self._order(org_id, "an order to stop", Request(order, actor=f"pool {pool}"))

        await asyncio.gather(*(stop(row) for row in orders))

    async def resume(self, pool: str, drains: Sequence[Drain]) -> None:
        """Withdraw orders to stop for leases whose room is no longer needed."""

        async def resume(row: Drain) -> None:
            back = ResumeLease(reservation_id=row.reservation_id, stopping_for=row.stopping_for)
            await self._order(
                row.org_id, "an order taken back", Request(back, actor=f"pool {pool}")
            )

        await asyncio.gather(*(resume(row) for row in drains))

    async def _order(self, org_id: int, what: str, request: Request) -> None:
        await self.asking.done(org_id, what, lambda: self.ledger.submit(org_id, request))

    async def _would_say(
        self, group: Sequence[QueuedRequest], verdict: FairShareVerdict | None = None
    ) -> Sequence[Outcome] | None:
        async def ask() -> Sequence[Outcome]:
            requests = [Request(command_of(each, verdict)) for each in group]
            return await self.ledger.submit_all(org_id, requests, atomic=True, dry_run=True)

        org_id, number = group[0].key
        return await self.asking.told(org_id, f"request {number} of the queue", ask)

    async def _settle(
        self, claimed: Sequence[QueuedRequest], verdicts: Mapping[Key, FairShareVerdict]
    ) -> bool:
        became: list[QueuedRequest] = []
        whole = []
        for group in _together(claimed):
            if len(group) < group[0].gang_size:
                became += [_held(each, None) for each in group]  # one of them was canceled
            else:
                whole.append(group)
        answers = await asyncio.gather(*(self._ask(group, verdicts) for group in whole))
        for group, outcomes in zip(whole, answers, strict=True):
            became += map(_became, group, outcomes or ())
        returned = [each for each in became if each.state == QueueState.WAITING]
        ended = [each for each in became if each.state != QueueState.WAITING]
        async with session(self.ledger.pool) as db:
            await cycle.finish(db, ended)
            await cycle.give_back(db, returned)
        return bool(returned) or any(each.state == QueueState.REFUSED for each in ended)

    async def _ask(
        self, group: Sequence[QueuedRequest], verdicts: Mapping[Key, FairShareVerdict]
    ) -> Sequence[Outcome | None] | None:
        """The ledger's answers; None if there are none yet, and the next cycle asks again.

        If the ledger cannot decide, each answer is None: nothing was saved, and room is given back.
        """

        async def ask() -> Sequence[Outcome | None]:
            requests = [
                Request(
                    command_of(each, verdicts.get(each.key)),
                    key=f"queue {each.queue_id} {each.attempt}",
                    fingerprint=ATTEMPT,
                    actor=each.actor,
                    request_id=each.request_id,
                )
                for each in group
            ]
            try:
                return await self.ledger.submit_all(org_id, requests, atomic=True)
            except InvariantBroken:
                logger.exception("request %d of the queue of org %d: no decision", number, org_id)
                return [None] * len(requests)

        org_id, number = group[0].key
        return await self.asking.done(org_id, f"request {number} of the queue", ask)


def _together(claimed: Sequence[QueuedRequest]) -> list[list[QueuedRequest]]:
    """Requests by what starts together: each on its own, or a gang.

    A gang's name may be used again: requests form gangs in the order of their arrival.
    """
    named: dict[object, list[QueuedRequest]] = {}
    for each in sorted(claimed, key=lambda each: each.key):
        gang = (each.org_id, each.account, each.gang, each.gang_size)
        named.setdefault(gang if each.gang else each.key, []).append(each)
    return [
        members[start : start + members[0].gang_size]
        for members in named.values()
        for start in range(0, len(members), members[0].gang_size)
    ]


def command_of(each: QueuedRequest, verdict: FairShareVerdict | None = None) -> Reserve:
    """The reserve of a request, for the GPUs that it is granted."""
    asked = each.reserve
    return replace(asked, milli_gpus=each.granted or asked.milli_gpus, fair_share=verdict)


def _became(each: QueuedRequest, outcome: Outcome | None) -> QueuedRequest:
    """A claimed request after the ledger's answer: admitted, waiting again, or refused."""
    if outcome is None:
        gate, said = UNDECIDED
        return each._replace(
            state=QueueState.WAITING, held_by=gate, held_sentence=said, milli_gpus_max=0
        )
    if isinstance(outcome, Reserved):
        return each._replace(
            state=QueueState.ADMITTED,
            reservation_id=outcome.reservation.reservation_id,
            outcome=encode(outcome),
        )
    assert isinstance(outcome, Refused)  # for the type checker: a reserve is given or refused
    if waits_on(each, outcome):
        return _held(each, outcome)
    return each._replace(state=QueueState.REFUSED, outcome=encode(outcome))


def _held(each: QueuedRequest, refused: Refused | None) -> QueuedRequest:
    """A request that waits again: for the gate that refused it, or for fewer GPUs."""
    fewer = 0 if refused is None else _fewer(each, refused)
    gate, said = "", ""
    if refused is not None and not fewer:
        gate, said = GATES.get(refused.reason, refused.reason.value), refused.message
    return each._replace(
        state=QueueState.WAITING,
        held_by=gate,
        held_sentence=said,
        milli_gpus_max=fewer,
        retries=each.retries + 1,
    )


def waits_on(each: QueuedRequest, refused: Refused) -> bool:
    """Whether a refused request waits on."""
    return bool(_fewer(each, refused)) or (each.is_patient and may_clear(refused))


def may_clear(refused: Refused) -> bool:
    """Whether the gate that refuses a request now, other than fair share, may pass it later."""
    report = first_failing(refused.reports)
    if report is None or report.gate is Gate.BUDGET or report.clears_at is not None:
        return refused.reason in GATES
    return refused.reason in GATES and report.requested <= report.limit  # or it alone is over it


def _fewer(each: QueuedRequest, refused: Refused) -> int:
    """The GPUs that the gates would admit, if the request allows fewer; 0 if none."""
    if not each.allow_partial or each.retries >= ATTEMPTS_PARTIAL:
        return 0
    return fewer_gpus(refused, each.granted)


def fewer_gpus(outcome: Outcome, milli_gpus: int) -> int:
    """The GPUs that all gates but fair share would admit instead of a refused number; or 0."""
    if not isinstance(outcome, Refused):
        return 0
    most = milli_gpus
    for report in outcome.reports:
        if not report.passes and report.gate is not Gate.FAIR_SHARE:
            most = min(most, _room(report, milli_gpus))
    most = whole_gpus(most)  # nobody gets part of a GPU that did not ask for it
    return most if 0 < most < milli_gpus else 0


def _room(report: GateReport, milli_gpus: int) -> int:
    left = max(report.limit - report.current, 0)
    if report.unit is GateUnit.GPUS:
        return left
    if report.unit is GateUnit.CREDITS and report.requested:
        return milli_gpus * left // report.requested
    return 0


def spared(drains: Iterable[Drain], orders: Sequence[Preemption]) -> list[Drain]:
    """Draining leases whose room is no longer needed, neither by the first request nor another."""
    stopped = {ids.parse_id(ids.RESERVATION, row.job_id) for row in orders}
    return [row for row in drains if (row.org_id, row.reservation_id) not in stopped]


class Asking:
    """Asks with a time limit; None means that there is no answer now."""

    def __init__(self) -> None:
        self._silent: dict[int, float] = {}  # orgs, and until when they are left alone

    async def told(
        self, org_id: int, what: object, ask: Callable[[], Awaitable[Answer]]
    ) -> Answer | None:
        """The answer to a dry run, which changes nothing."""
        return await self._answer(org_id, what, ask, TOLD_WITHIN_S)

    async def done(
        self, org_id: int, what: object, ask: Callable[[], Awaitable[Answer]]
    ) -> Answer | None:
        """The answer to a write; without an answer, the write may still be done."""
        return await self._answer(org_id, what, ask, DONE_WITHIN_S)

    async def _answer(
        self, org_id: int, what: object, ask: Callable[[], Awaitable[Answer]], within_s: float
    ) -> Answer | None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._silent.get(org_id, 0.0):
            return None
        try:
            async with asyncio.timeout(within_s):
                return await ask()
        except TimeoutError:
            logger.warning("org %d has too much to do, and is left alone for a while", org_id)
            now = loop.time()
            self._silent = {org: until for org, until in self._silent.items() if now < until}
            self._silent[org_id] = now + LEFT_ALONE_S
        except (Busy, Conflict, Unavailable) as error:
            logger.warning("org %d: %s is asked again: %s", org_id, what, error)
        except Exception:  # a guard: others must have their turn
            logger.exception("org %d: %s cannot be decided", org_id, what)
        return None
