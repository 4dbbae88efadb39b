"""What reserves into a pool would be told now, with nothing left behind.

Owns: dry runs and explanations of reserves that go through the queue: what the pool says of them,
how many GPUs they end up with, and which of them waiting could never help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from gpucredits.core.command import Reserve
from gpucredits.core.gate import FairShareVerdict
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.limits.gates import fair_share_refusal
from gpucredits.service.dispatch.admission import ATTEMPTS_PARTIAL, fewer_gpus, may_clear
from gpucredits.service.dispatch.pools import GpuPool, GpuPools, PoolMissing
from gpucredits.service.dispatch.queue import QueueOptions
from gpucredits.service.dispatch.snapshot import capacity_of
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.dispatch.pool_rows import OpenTicket

UNUSED: Final = 1 << 60  # numbers that no request in a queue has


class LedgerAndPools(Protocol):
    """The parts of the service that a dry run needs."""

    @property
    def ledger(self) -> Ledger:
        """The way into the ledger."""

    @property
    def gpu_pools(self) -> GpuPools:
        """The pools."""


async def rehearsed(services: LedgerAndPools, org_id: int, wish: QueueOptions) -> Outcome:
    """The lease or the refusal that a reserve would get if it came now and did not wait."""
    command = await as_decided(services, org_id, wish)
    return await services.ledger.submit(org_id, Request(command), dry_run=True)


async def rehearsed_together(
    services: LedgerAndPools, org_id: int, wishes: Sequence[QueueOptions]
) -> list[Outcome]:
    """What a gang would get: all its leases, or the refusal of all."""
    commands = await _with_verdict(services, org_id, wishes, 0)
    requests = [Request(command) for command in commands]
    return await services.ledger.submit_all(org_id, requests, atomic=True, dry_run=True)


async def never_admitted(
    services: LedgerAndPools, org_id: int, wishes: Sequence[QueueOptions]
) -> Refused | None:
    """Why requests that would wait together can never be let in; None if waiting may help.

    The members of a gang that come one by one are looked at each on its own.
    """
    commands = [wish.reserve for wish in wishes]
    if await _exceed_pool(services, wishes):
        commands = await _with_verdict(services, org_id, wishes, 0)
    requests = [Request(command) for command in commands]
    outcomes = await services.ledger.submit_all(org_id, requests, atomic=True, dry_run=True)
    for wish, outcome in zip(wishes, outcomes, strict=True):
        if not isinstance(outcome, Refused) or outcome.reason is Reason.RESERVATION_EXISTS:
            continue  # the job's lease on that node may end
        fewer = fewer_gpus(outcome, wish.reserve.gpu_count) if wish.allow_partial else 0
        if not fewer and not may_clear(outcome):
            return outcome
    verdict = commands[0].fair_share
    if verdict is None or verdict.passes:
        return None
    return over_pool(commands[0], verdict, outcomes[0])


def over_pool(asked: Reserve, verdict: FairShareVerdict, outcome: Outcome) -> Refused:
    """The pool's refusal of a request that another gate refuses as well, for now."""
    refused = fair_share_refusal(asked.account, asked.gpu_type, asked.region, verdict, 0)
    reports = outcome.reports if isinstance(outcome, Refused) else ()
    return replace(refused, reports=reports or refused.reports)


async def _exceed_pool(services: LedgerAndPools, wishes: Sequence[QueueOptions]) -> bool:
    """Whether requests need more than their whole pool has, as it is set now.

    A drained pool has no size: its GPUs may come back.
    """
    first = wishes[0].reserve
    known = services.gpu_pools.find(first.gpu_type, first.region)
    if known is None or not known.gpus or any(wish.allow_partial for wish in wishes):
        return False
    if not _is_over(known, wishes):
        return False
    try:
        pool, _ = await services.gpu_pools.read(first.gpu_type, first.region)
    except PoolMissing:
        return False
    return bool(pool.gpus) and _is_over(pool, wishes)


def _is_over(pool: GpuPool, wishes: Sequence[QueueOptions]) -> bool:
    needed = {
        "gpu": sum(wish.reserve.gpu_count for wish in wishes),
        "cpu": sum(wish.cpus for wish in wishes),
        "memory": sum(wish.memory for wish in wishes),
    }
    return any(needed[name] > amount for name, amount in capacity_of(pool))


async def as_decided(services: LedgerAndPools, org_id: int, wish: QueueOptions) -> Reserve:
    """A reserve with what its pool would say of it now, and of as many GPUs as it would get."""
    [command] = await _with_verdict(services, org_id, [wish], 0)
    for _ in range(ATTEMPTS_PARTIAL if wish.allow_partial else 0):
        outcome = await services.ledger.submit(org_id, Request(command), dry_run=True)
        fewer = fewer_gpus(outcome, command.gpu_count)
        if not fewer:
            break
        verdict = command.fair_share
        if verdict is None or not verdict.passes:  # whom a pool turns away, it does not ask again
            command = replace(command, gpu_count=fewer)
        else:
            [command] = await _with_verdict(services, org_id, [wish], fewer)
    return command


async def _with_verdict(
    services: LedgerAndPools, org_id: int, wishes: Sequence[QueueOptions], gpus_max: int
) -> list[Reserve]:
    """Reserves that start together with what their pool would say of them."""
    asked = [wish.reserve for wish in wishes]
    pool = services.gpu_pools.find(asked[0].gpu_type, asked[0].region)
    if pool is None or not pool.gates:
        return asked
    tickets = [ticket_of(org_id, place, wish, gpus_max) for place, wish in enumerate(wishes)]
    verdict, gpus = await services.gpu_pools.verdict(pool, tickets)
    return [
        replace(each, gpu_count=count, fair_share=verdict)
        for each, count in zip(asked, gpus, strict=True)
    ]


def ticket_of(org_id: int, place: int, wish: QueueOptions, gpus_max: int) -> OpenTicket:
    """A request as a pool would see it, without a place in any queue."""
    return OpenTicket(
        org_id=org_id,
        queue_id=UNUSED + place,
        account=wish.reserve.account,
        gpus=wish.reserve.gpu_count,
        cpus=wish.cpus,
        memory=wish.memory,
        priority=wish.priority,
        gang=wish.gang,
        gang_size=wish.gang_size,
        expected_ms=wish.expected_ms,
        is_patient=False,
        allow_partial=wish.allow_partial,
        gpus_max=gpus_max,
        held_by="",
        retry_at=0,
        submitted_at=0,
        state=0,
        granted=0,
        position=0,
        reason="",
        needed=0,
        available=0,
        behind="",
        starts_at=0,
    )
