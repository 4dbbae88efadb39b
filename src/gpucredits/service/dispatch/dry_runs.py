"""Dry runs of reserves into a pool, and which requests count as demand because of them.

Owns: dry runs and explanations of reserves that go through the queue: the pool's verdict, the
number of GPUs, and whether waiting could ever help. Also owns which requests a cycle asks about,
and which requests it leaves out.
Must not: write anything, or decide.

An account without credits, or a suspended one, would take a share of a full pool from accounts that
can pay, and delay them. So when a request lacks room, dry runs ask the ledger about the first few
requests of each account. If one of these fails, a request of the account counts only after a dry
run of its own. A pass is believed for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from gpucredits.core.command import Reserve
from gpucredits.core.gate import FairShareVerdict
from gpucredits.core.outcome import Outcome
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.limits.gates import fair_share_refusal
from gpucredits.service.dispatch.admission import ATTEMPTS_PARTIAL, Rehearsal, fewer_gpus, may_clear
from gpucredits.service.dispatch.pools import GpuPool, GpuPools, PoolMissing
from gpucredits.service.dispatch.queue import QueueOptions, queued
from gpucredits.service.dispatch.snapshot import Room, capacity_of, granted, request_id
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.dispatch.pools import PoolRows
from gpucredits.store.dispatch.queue import Key, QueuedRequest, QueueState

FRONT: Final = 2  # requests of each account, the next ones to start, that are always asked about
FURTHER: Final = 1  # and of those behind them, in a cycle
FURTHER_FAILED: Final = 100  # the same for an account with a request that failed
ASKED_MAX: Final = 100  # in one round, but for those of accounts that failed
BEHIND_MAX: Final = 20  # so many are asked about before those behind the front are left for later
BELIEVED_US: Final = 10_000_000

UNUSED: Final = 1 << 60  # numbers that no request in a queue has


class LedgerAndPools(Protocol):
    """The parts of the service that a dry run needs."""

    @property
    def ledger(self) -> Ledger:
        """The way into the ledger."""

    @property
    def gpu_pools(self) -> GpuPools:
        """The pools."""


async def rehearsed(services: LedgerAndPools, org_id: int, options: QueueOptions) -> Outcome:
    """The lease or the refusal that a reserve would get now without waiting."""
    command = await as_decided(services, org_id, options)
    return await services.ledger.submit(org_id, Request(command), dry_run=True)


async def rehearsed_together(
    services: LedgerAndPools, org_id: int, wanted: Sequence[QueueOptions]
) -> list[Outcome]:
    """The answers that a gang would get now: all leases, or the refusal of all."""
    commands = await _with_verdict(services, org_id, wanted, 0)
    requests = [Request(command) for command in commands]
    return await services.ledger.submit_all(org_id, requests, atomic=True, dry_run=True)


async def never_admitted(
    services: LedgerAndPools, org_id: int, wanted: Sequence[QueueOptions]
) -> Refused | None:
    """The refusal of requests that can never be admitted together; None if waiting may help.

    Members of a gang that come one by one are checked one by one.
    """
    commands = [options.reserve for options in wanted]
    if await _exceed_pool(services, wanted):
        commands = await _with_verdict(services, org_id, wanted, 0)
    requests = [Request(command) for command in commands]
    outcomes = await services.ledger.submit_all(org_id, requests, atomic=True, dry_run=True)
    for options, outcome in zip(wanted, outcomes, strict=True):
        if not isinstance(outcome, Refused) or outcome.reason is Reason.RESERVATION_EXISTS:
            continue  # the job's lease on that node may end
        fewer = fewer_gpus(outcome, options.reserve.milli_gpus) if options.allow_partial else 0
        if not fewer and not may_clear(outcome):
            return outcome
    verdict = commands[0].fair_share
    if verdict is None or verdict.passes:
        return None
    return over_pool(commands[0], verdict, outcomes[0])


def over_pool(asked: Reserve, verdict: FairShareVerdict, outcome: Outcome) -> Refused:
    """The pool's refusal of a request, with the reports of the other gates."""
    refused = fair_share_refusal(asked.account, asked.gpu_type, asked.region, verdict, 0)
    reports = outcome.reports if isinstance(outcome, Refused) else ()
    return replace(refused, reports=reports or refused.reports)


async def _exceed_pool(services: LedgerAndPools, wanted: Sequence[QueueOptions]) -> bool:
    """Whether requests need more than the present capacity of their pool.

    A drained pool has no size: its GPUs may come back.
    """
    first = wanted[0].reserve
    known = services.gpu_pools.find(first.gpu_type, first.region)
    if known is None or not known.milli_gpus or any(options.allow_partial for options in wanted):
        return False
    if not _is_over(known, wanted):
        return False
    try:
        pool, _ = await services.gpu_pools.read(first.gpu_type, first.region)
    except PoolMissing:
        return False
    return bool(pool.milli_gpus) and _is_over(pool, wanted)


def _is_over(pool: GpuPool, wanted: Sequence[QueueOptions]) -> bool:
    needed = {
        "gpu": sum(options.reserve.milli_gpus for options in wanted),
        "cpu": sum(options.cpus for options in wanted),
        "memory": sum(options.memory for options in wanted),
    }
    return any(needed[name] > amount for name, amount in capacity_of(pool))


async def as_decided(services: LedgerAndPools, org_id: int, options: QueueOptions) -> Reserve:
    """A reserve with its pool's verdict now, and with the GPUs that it would get."""
    [command] = await _with_verdict(services, org_id, [options], 0)
    for _ in range(ATTEMPTS_PARTIAL if options.allow_partial else 0):
        outcome = await services.ledger.submit(org_id, Request(command), dry_run=True)
        fewer = fewer_gpus(outcome, command.milli_gpus)
        if not fewer:
            break
        verdict = command.fair_share
        if verdict is None or not verdict.passes:  # whom a pool turns away, it does not ask again
            command = replace(command, milli_gpus=fewer)
        else:
            [command] = await _with_verdict(services, org_id, [options], fewer)
    return command


async def _with_verdict(
    services: LedgerAndPools, org_id: int, wanted: Sequence[QueueOptions], milli_gpus_max: int
) -> list[Reserve]:
    """Reserves that start together, with their pool's verdict."""
    asked = [options.reserve for options in wanted]
    pool = services.gpu_pools.find(asked[0].gpu_type, asked[0].region)
    if pool is None or not pool.gates:
        return asked
    requests = [
        queued(org_id, options, queue_id=UNUSED + place)._replace(milli_gpus_max=milli_gpus_max)
        for place, options in enumerate(wanted)
    ]
    verdict, milli_gpus = await services.gpu_pools.verdict(pool, requests)
    return [
        replace(each, milli_gpus=count, fair_share=verdict)
        for each, count in zip(asked, milli_gpus, strict=True)
    ]


class Passed:
    """Requests that passed a dry run, and when they passed."""

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}

    def note(self, keys: Collection[Key], now: int) -> None:
        """Note that requests passed now."""
        self._at = {key: at for key, at in self._at.items() if now < at + BELIEVED_US}
        self._at |= dict.fromkeys(keys, now)

    def __contains__(self, request: QueuedRequest) -> bool:
        return request.key in self._at

    def forget(self, now: int) -> None:
        """Forget passes that are too old."""
        self.note((), now)


@dataclass(slots=True)
class Survey:
    """The findings of one cycle about waiting requests, round by round."""

    rows: PoolRows
    passed: Passed
    found: Rehearsal = field(default_factory=Rehearsal)
    asked: set[Key] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def doubtful(self) -> dict[str, QueuedRequest]:
        """The requests to ask about next, in a pool where a request lacks room."""
        looked: dict[str, int] = {}
        further: dict[str, int] = {}
        chosen: dict[str, QueuedRequest] = {}
        usual = 0
        for request in self.rows.waiting:
            if request.state != QueueState.WAITING or request.held_by:
                continue
            account = request.account
            place = looked[account] = looked.get(account, 0) + 1
            if request.key in self.asked or request in self.passed:
                continue
            has_failed = account in self.failed
            if place > FRONT:
                further[account] = further.get(account, 0) + 1
                if further[account] > (FURTHER_FAILED if has_failed else FURTHER):
                    continue
            if not has_failed:
                usual += 1
                if usual > (ASKED_MAX if place <= FRONT else BEHIND_MAX):
                    continue
            chosen[request_id(request.key)] = request
        return chosen

    def learn(self, found: Rehearsal, asked: Collection[Key]) -> bool:
        """Note the ledger's answers; whether a request would not be admitted now."""
        accounts = {request.key: request.account for request in self.rows.waiting}
        self.asked |= set(asked)
        self.passed.note(found.passed, self.rows.now)
        self.found.held.update(found.held)
        self.found.refused.update(found.refused)
        unfit = [key for key, row in found.held.items() if row.held_by] + list(found.refused)
        self.failed |= {accounts[key] for key in unfit if key in accounts}
        return bool(found.held or found.refused)

    def seen(self) -> PoolRows:
        """The pool's rows, without requests that do not count or are still to be asked about."""
        held = self.found.held
        waiting = [
            request
            if (row := held.get(request.key)) is None
            else request._replace(
                held_by=row.held_by, milli_gpus_max=row.milli_gpus_max, retries=row.retries
            )
            for request in self.rows.waiting
            if request.key not in self.found.refused and not self._is_left_out(request)
        ]
        return replace(self.rows, waiting=waiting)

    @property
    def leaves_somebody_out(self) -> bool:
        """Whether a request that cannot wait is still to be asked about."""
        return any(
            not request.is_patient and self._is_left_out(request) for request in self.rows.waiting
        )

    def _is_left_out(self, request: QueuedRequest) -> bool:
        return (
            request.account in self.failed
            and request.state == QueueState.WAITING
            and not request.held_by
            and request.key not in self.asked
            and request not in self.passed
        )


def with_gangs(
    rows: PoolRows, named: Mapping[str, QueuedRequest], free: Room
) -> dict[Key, QueuedRequest]:
    """Requests and the other members of their gangs, with the GPUs granted to each."""
    waiting = [each for each in rows.waiting if each.state == QueueState.WAITING]
    gangs = {(each.account, each.gang) for each in named.values() if each.gang}
    members = [each for each in waiting if (each.account, each.gang) in gangs]
    return {
        each.key: each._replace(granted=granted(each, free)) for each in (*named.values(), *members)
    }
