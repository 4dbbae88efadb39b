"""Taking requests that have their room to the ledger, and what becomes of them there.

Owns: the key of each attempt, which is the same whoever makes it; and which refusals mean waiting
on. A request that has its room either becomes a lease, waits on for another gate, or is refused;
one for which others would have to stop is asked about before anybody does.
Must not: give room (the dispatcher does).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from gpucredits.core.command import Reserve
from gpucredits.core.fairshare.decisions import Decisions
from gpucredits.core.fairshare.snapshot import PoolSnapshot
from gpucredits.core.gate import FairShareVerdict, Gate, GateReport, GateUnit, first_failing
from gpucredits.core.outcome import Outcome, Reserved
from gpucredits.core.reasons import InvariantBroken, Reason, Refused
from gpucredits.service.dispatch.ledger_calls import Asking
from gpucredits.service.dispatch.refusal import shares_of, verdict_of
from gpucredits.service.write.batch_record import ATTEMPT
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.service.write.stored_answers import encode
from gpucredits.store.database.connections import session
from gpucredits.store.dispatch import cycle, dry_runs
from gpucredits.store.dispatch.cycle import Claimed, Return
from gpucredits.store.dispatch.pool_rows import Key
from gpucredits.store.dispatch.queue import QueueState

logger = logging.getLogger(__name__)

RECOVERED_MAX: Final = 1_000
PROBES_EACH: Final = 2  # requests of one account that are asked about again in a cycle
PROBES_MAX: Final = 100
ATTEMPTS_PARTIAL: Final = 6
RETRY_US: Final = 1_000_000
PUT_OFF_US: Final = 5_000_000  # until somebody is asked about again of whom nothing was said
GATES: Final = {  # what is worth waiting for, and what people call it
    Reason.INSUFFICIENT_CREDITS: "credits",
    Reason.QUOTA_EXCEEDED: "quota",
    Reason.RATE_LIMITED: "rate limit",
    Reason.ACCOUNT_SUSPENDED: "suspension",
    Reason.ACCOUNT_DELINQUENT: "unpaid statement",
}
UNDECIDED: Final = ("the ledger", "It cannot be decided, and is asked about again.")
Ended = tuple[int, int, int, int, int, bytes]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the ledger would say of some requests: who may come in, who waits on, who is refused.

    Whom it could not be asked about is in none of them.
    """

    passed: set[Key] = field(default_factory=set)
    held: dict[Key, Return] = field(default_factory=dict)
    refused: dict[Key, Refused] = field(default_factory=dict)


class Admitting:
    """Makes leases of requests that have their room."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.asking = Asking()

    async def recover(self, pool_id: int) -> None:
        """Finish what a dispatcher began and did not live to write down."""
        async with session(self.ledger.pool) as db:
            left = await cycle.claimed_before(db, pool_id, limit=RECOVERED_MAX)
        if left:
            logger.warning(
                "pool %d: finishing %d admissions of an earlier cycle", pool_id, len(left)
            )
            await self._settle(left, {})

    async def admit(
        self, claimed: Sequence[Claimed], frozen: PoolSnapshot, decisions: Decisions
    ) -> bool:
        """Ask the ledger for their leases; True when some room was not taken after all."""
        if not frozen.capacity:
            return await self._settle(claimed, {})
        shares = shares_of(decisions)
        verdicts = {
            each.key: verdict_of(frozen, None, each.account, shares, each.granted)
            for each in claimed
        }
        return await self._settle(claimed, verdicts)

    async def probe(self, pool_id: int) -> bool:
        """Ask again, without a trace, for some whom another gate held; True if it opens.

        Whom the ledger could not be asked about stays held, and is asked about later.
        """
        async with session(self.ledger.pool) as db:
            asked = await dry_runs.probes(db, pool_id, each=PROBES_EACH, limit=PROBES_MAX)
        answers = await asyncio.gather(*(self._would_say([row]) for row in asked))
        opened, held, unknown = [], [], []
        for row, outcomes in zip(asked, answers, strict=True):
            if not outcomes:
                unknown.append(row.key)
            elif isinstance(outcomes[0], Refused) and outcomes[0].reason in GATES:
                each = row._replace(granted=command_of(row).gpu_count)
                held.append(_return(each, outcomes[0]))
            else:
                opened.append(row.key)
        async with session(self.ledger.pool) as db:
            await dry_runs.unhold(db, opened)
            await dry_runs.hold_on(db, held)
            await dry_runs.put_off(db, unknown, wait_us=PUT_OFF_US)
        return bool(opened) or not all(each.held_by for each in held)

    async def rehearse(
        self, wanted: Mapping[Key, int], verdicts: Mapping[Key, FairShareVerdict]
    ) -> Rehearsal:
        """Ask, without a trace, for requests with as many GPUs as each would get.

        What is found out of those who would not be let in is written down, as if their turn had
        come; the members of a gang are asked about together. Some are asked about with what their
        pool says, so that a refusal tells it: whom only the pool turns away passes.
        """
        async with session(self.ledger.pool) as db:
            rows = await dry_runs.still_waiting(db, list(wanted))
        asked = [row._replace(granted=wanted[row.key]) for row in rows]
        groups = _together(asked)
        answers = await asyncio.gather(
            *(self._would_say(group, verdicts.get(group[0].key)) for group in groups)
        )
        found = Rehearsal()
        for group, outcomes in zip(groups, answers, strict=True):
            for each, outcome in zip(group, outcomes or (), strict=bool(outcomes)):
                if not isinstance(outcome, Refused) or outcome.reason is Reason.FAIR_SHARE:
                    found.passed.add(each.key)
                elif waits_on(each, outcome):
                    found.held[each.key] = _return(each, outcome)
                else:
                    found.refused[each.key] = outcome
        if found.held or found.refused:
            ended = [(*key, encode(outcome)) for key, outcome in found.refused.items()]
            async with session(self.ledger.pool) as db:
                await dry_runs.hold_on(db, list(found.held.values()))
                await cycle.refuse(db, ended)
        return found

    async def turned_away(
        self, wanted: Mapping[Key, tuple[int, FairShareVerdict]]
    ) -> dict[Key, Refused]:
        """What those are told whom their pool turns away, by all gates in their order.

        Whom the ledger could not be asked about is left out.
        """
        if not wanted:
            return {}
        async with session(self.ledger.pool) as db:
            rows = await dry_runs.still_waiting(db, list(wanted))

        async def told(row: Claimed) -> Outcome | None:
            gpus, verdict = wanted[row.key]
            each = row._replace(granted=gpus)
            for _ in range(ATTEMPTS_PARTIAL + 1):
                outcomes = await self._would_say([each], verdict)
                if not outcomes:
                    break
                fewer = fewer_gpus(outcomes[0], each.granted) if each.allow_partial else 0
                if not fewer:
                    return outcomes[0]
                each = each._replace(granted=fewer)
            return None

        answers = await asyncio.gather(*(told(row) for row in rows))
        return {
            row.key: outcome
            for row, outcome in zip(rows, answers, strict=True)
            if isinstance(outcome, Refused)
        }

    async def _would_say(
        self, group: Sequence[Claimed], verdict: FairShareVerdict | None = None
    ) -> Sequence[Outcome] | None:
        async def ask() -> Sequence[Outcome]:
            requests = [Request(command_of(each, verdict)) for each in group]
            return await self.ledger.submit_all(org_id, requests, atomic=True, dry_run=True)

        org_id, number = group[0].key
        return await self.asking.told(org_id, f"request {number} of the queue", ask)

    async def _settle(
        self, claimed: Sequence[Claimed], verdicts: Mapping[Key, FairShareVerdict]
    ) -> bool:
        ended: list[Ended] = []
        returned: list[Return] = []
        whole = []
        for group in _together(claimed):
            if len(group) < group[0].gang_size:
                returned += [_return(each, None) for each in group]  # one of them was canceled
            else:
                whole.append(group)
        answers = await asyncio.gather(*(self._ask(group, verdicts) for group in whole))
        for group, outcomes in zip(whole, answers, strict=True):
            for each, outcome in zip(group, outcomes or (), strict=bool(outcomes)):
                _sort(each, outcome, ended, returned)
        async with session(self.ledger.pool) as db:
            await cycle.finish(db, ended)
            await cycle.give_back(db, returned)
        unused = any(state == QueueState.REFUSED for _, _, _, state, _, _ in ended)
        return unused or bool(returned)

    async def _ask(
        self, group: Sequence[Claimed], verdicts: Mapping[Key, FairShareVerdict]
    ) -> Sequence[Outcome | None] | None:
        """The ledger's answers; None when there is none yet, and the next cycle asks again.

        None for each when they cannot be decided: nothing was saved then, and room is given back.
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


def _together(claimed: Sequence[Claimed]) -> list[list[Claimed]]:
    """Requests by what starts together: each on its own, or a gang.

    A name may be used again: who came first is of the first gang.
    """
    named: dict[object, list[Claimed]] = {}
    for each in sorted(claimed, key=_number):
        gang = (each.org_id, each.account, each.gang, each.gang_size)
        named.setdefault(gang if each.gang else each.key, []).append(each)
    return [
        members[start : start + members[0].gang_size]
        for members in named.values()
        for start in range(0, len(members), members[0].gang_size)
    ]


def _number(each: Claimed) -> Key:
    return each.key


def command_of(each: Claimed, verdict: FairShareVerdict | None = None) -> Reserve:
    """The reserve that was asked for, of as many GPUs as there is room for."""
    asked = msgspec.json.decode(each.command, type=Reserve)
    return replace(asked, gpu_count=each.granted or asked.gpu_count, fair_share=verdict)


def _sort(
    each: Claimed, outcome: Outcome | None, ended: list[Ended], returned: list[Return]
) -> None:
    """What becomes of a request: a lease, more waiting, or an end."""
    place = (each.org_id, each.queue_id, each.attempt)
    if outcome is None:
        returned.append(Return(*place, *UNDECIDED, RETRY_US, 0))
        return
    if isinstance(outcome, Reserved):
        lease_id = outcome.reservation.reservation_id
        ended.append((*place, QueueState.ADMITTED, lease_id, encode(outcome)))
        return
    assert isinstance(outcome, Refused)  # for the type checker: a reserve is given or refused
    if waits_on(each, outcome):
        returned.append(_return(each, outcome))
    else:
        ended.append((*place, QueueState.REFUSED, 0, encode(outcome)))


def waits_on(each: Claimed, refused: Refused) -> bool:
    """Whether a refused request goes on waiting."""
    return bool(_fewer(each, refused)) or (each.is_patient and may_clear(refused))


def may_clear(refused: Refused) -> bool:
    """Whether a gate other than fair share may let a request in later that it refuses now."""
    report = first_failing(refused.reports)
    if report is not None and report.gate is not Gate.BUDGET and report.requested > report.limit:
        return False  # it alone is over the limit
    return refused.reason in GATES


def _fewer(each: Claimed, refused: Refused) -> int:
    """How many GPUs the gates would let in, if the request takes fewer; 0 when none."""
    if not each.allow_partial or each.retries >= ATTEMPTS_PARTIAL:
        return 0
    return fewer_gpus(refused, each.granted)


def fewer_gpus(outcome: Outcome, gpus: int) -> int:
    """How many GPUs the gates but fair share would let in, where they refuse so many; 0: none."""
    if not isinstance(outcome, Refused):
        return 0
    most = gpus
    for report in outcome.reports:
        if not report.passes and report.gate is not Gate.FAIR_SHARE:
            most = min(most, _room(report, gpus))
    return most if 0 < most < gpus else 0


def _room(report: GateReport, gpus: int) -> int:
    left = max(report.limit - report.current, 0)
    if report.unit is GateUnit.GPUS:
        return left
    if report.unit is GateUnit.CREDITS and report.requested:
        return gpus * left // report.requested
    return 0


def _return(each: Claimed, refused: Refused | None) -> Return:
    fewer = 0 if refused is None else _fewer(each, refused)
    if refused is None or fewer:
        return Return(*each.key, each.attempt, "", "", 0, fewer)
    gate = GATES.get(refused.reason, refused.reason.value)
    return Return(*each.key, each.attempt, gate, refused.message, RETRY_US, 0)
