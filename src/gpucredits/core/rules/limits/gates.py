"""The four gates at admission: what each says of a request, at every scope.

Owns: the one evaluation that admissions, refusals and explanations share. Reports stand in the
order in which a refusal names them: the most lasting obstacle first. Credits have to be found
(budget), then room under every quota from org to user, then tokens (rate limit), then a turn (fair
share).
Must not: change rows, except by what the clock has already made true.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from gpucredits.core.account import Account, Model, lineage, scope_of
from gpucredits.core.book import Book, invariant
from gpucredits.core.gate import (
    FairShareVerdict,
    Gate,
    GateReport,
    GateUnit,
    ScopeShare,
    quantity,
)
from gpucredits.core.grant import DEBT, GrantState
from gpucredits.core.limits import TokenBucket, advance, boosted, bucket_terms, tokens
from gpucredits.core.money import RATE_PER_MS, count, format_credits, time_covered_ms
from gpucredits.core.outcome import Funder
from gpucredits.core.quota import Dimension, Quota, unit_of
from gpucredits.core.reasons import Detail, Reason, Refused
from gpucredits.core.reservation import Reservation
from gpucredits.core.rules.limits.clearing import (
    drawn_at,
    funded_at,
    raised_at,
    window_clears_at,
)
from gpucredits.core.rules.upkeep.counting import taken_of_cap

REASONS = {
    Gate.BUDGET: Reason.INSUFFICIENT_CREDITS,
    Gate.QUOTA: Reason.QUOTA_EXCEEDED,
    Gate.RATE_LIMIT: Reason.RATE_LIMITED,
    Gate.FAIR_SHARE: Reason.FAIR_SHARE,
}
WORDS = {
    Dimension.CREDITS_PER_JOB: "credits per job",
    Dimension.CONCURRENT_GPUS: "concurrent GPUs",
    Dimension.CONCURRENT_JOBS: "concurrent jobs",
    Dimension.CREDITS_PER_WINDOW: "credits",
}


def evaluate(  # who asks, who pays, and what the pool says
    book: Book,
    payer: Account,
    funders: Sequence[Account],
    lease: Reservation,
    verdict: FairShareVerdict | None,
    now: int,
) -> tuple[GateReport, ...]:
    """What every gate says of a lease that is to hold ``lease.held`` and has not entered yet."""
    reports = [budget_report(book, payer, funders, lease.held, now)]
    if book.gated:
        accounts = [book.paths[path] for path in reversed(lineage(lease.account))]
        reports += [
            quota_report(book, account, quota, lease, now)
            for account in accounts
            for quota in sorted(book.limits.quotas.get(account.account_id, ()), key=quota_order)
            if not quota.ended_at and quota.gpu_type in ("", lease.gpu_type)
        ]
        reports += [
            rate_report(book, account, bucket, lease.held, now)
            for account in accounts
            if (bucket := book.limits.buckets.get(account.account_id)) and not bucket.ended_at
        ]
    if verdict is not None:
        reports += pool_reports(lease.account, lease.gpu_type, lease.region, verdict)
    return tuple(reports)


def all_pass(
    book: Book, payer: Account, lease: Reservation, verdict: FairShareVerdict | None, now: int
) -> bool:
    """Whether every report of ``evaluate`` would pass; most requests need none of them in words."""
    if payer.spendable < lease.held or not (verdict is None or verdict.passes):
        return False
    if not book.gated:
        return True
    for path in lineage(lease.account):
        account_id = book.paths[path].account_id
        for quota in book.limits.quotas.get(account_id, ()):
            if quota.ended_at or quota.gpu_type not in ("", lease.gpu_type):
                continue
            limit = limit_at(book, quota, now)
            current, requested = standing(book, quota, lease, limit, now)
            if current + requested > limit:
                return False
        bucket = book.limits.buckets.get(account_id)
        if bucket is not None and not bucket.ended_at:
            level, _ = tokens_at(book, bucket, now)
            if level < lease.held:
                return False
    return True


def refusal(reports: tuple[GateReport, ...], now: int) -> Refused | None:
    """The refusal that the first failing gate makes, with everything the others say."""
    report = first_failing(reports)
    if report is None:
        return None
    is_counted = report.unit in (GateUnit.JOBS, GateUnit.REQUESTS)

    def number(value: int) -> str | int:
        return value if is_counted else quantity(value, report.unit)

    detail: Detail = {"account": report.account, "scope": report.scope}
    if report.gate is Gate.BUDGET:
        detail["available"] = number(report.available)
        detail["needed"] = number(report.requested)
    detail |= {
        "gate": report.gate.value,
        "name": report.name,
        "limit": number(report.limit),
        "current": number(report.current),
        "requested": number(report.requested),
    }
    if clears := all_clear_at(reports):
        detail["clears_at"] = clears
    limits = tuple(each for each in reports if each.gate is Gate.RATE_LIMIT)
    if report.gate is Gate.RATE_LIMIT and (refilled := all_clear_at(limits)):
        detail["clears_in_ms"] = -((now - refilled) // 1_000)
    return Refused(REASONS[report.gate], report.sentence, detail, reports)


def first_failing(reports: tuple[GateReport, ...]) -> GateReport | None:
    """The report that a refusal names: reports stand in order of precedence."""
    return next((report for report in reports if not report.passes), None)


def all_clear_at(reports: tuple[GateReport, ...]) -> int | None:
    """When all gates that are closed would be open; None where of one no instant is known."""
    instants = [report.clears_at for report in reports if not report.passes]
    known = [at for at in instants if at is not None]
    return max(known) if known and len(known) == len(instants) else None


def budget_report(
    book: Book, payer: Account, funders: Sequence[Account], needed: int, now: int
) -> GateReport:
    """Whether the payer can fund the first hold, down to its floor.

    Where it cannot, the gate clears when the first account that may pay can. An account that pays
    later is told of its credit limit and of how much it has used of it.
    """
    passes = payer.spendable >= needed
    clears = None
    if not passes:
        instants = [funded_at(book, each, needed, now) for each in funders]
        clears = min((at for at in instants if at is not None), default=None)
    if payer.model is Model.POSTPAID:
        return GateReport(
            Gate.BUDGET,
            scope_of(payer.path),
            payer.path,
            "credit limit" if payer.available <= 0 else "credits",
            GateUnit.CREDITS,
            payer.credit_limit + max(payer.available, 0),
            max(-payer.available, 0),
            needed,
            passes,
            clears,
            credit=payer.credit_limit,
        )
    return GateReport(
        Gate.BUDGET,
        scope_of(payer.path),
        payer.path,
        "credits",
        GateUnit.CREDITS,
        payer.spendable + payer.reserved,
        payer.reserved,
        needed,
        passes,
        clears,
    )


def funder_reports(
    book: Book, funders: Sequence[Account], needed: int, now: int
) -> tuple[Funder, ...]:
    """Whether each account that may pay can hold ``needed`` now, and when it could."""
    return tuple(
        Funder(
            each.path,
            each.funding,
            each.spendable,
            each.spendable >= needed,
            None if each.spendable >= needed else funded_at(book, each, needed, now),
        )
        for each in funders
    )


def quota_order(quota: Quota) -> tuple[int, int]:
    """The order in which the quotas of one account are checked."""
    return quota.dimension, quota.quota_id


def quota_name(quota: Quota) -> str:
    """How people are told which quota it is."""
    name = WORDS[quota.dimension]
    if quota.calendar is not None:
        name += f" per {quota.calendar.name.lower()} ({quota.zone})"
    elif quota.rolling_hours:
        name += f" in {count(quota.rolling_hours, 'hour')}"
    return f"{name} on {quota.gpu_type}" if quota.gpu_type else name


def limit_at(book: Book, quota: Quota, now: int) -> int:
    """What a quota allows at an instant, with its boosts."""
    if quota.quota_id not in book.limits.boosts:
        return quota.limit
    return boosted(quota.limit, book.limits.boosts_of(quota), now)


def standing(book: Book, quota: Quota, lease: Reservation, limit: int, now: int) -> tuple[int, int]:
    """What a quota has counted, and what a lease would add: it passes where both fit the limit."""
    match quota.dimension:
        case Dimension.CREDITS_PER_JOB:
            current = taken_of_cap(book, lease, quota)
            if is_used_up(lease, limit - current):
                return current, -(-lease.rate // RATE_PER_MS)
            return current, lease.held
        case Dimension.CONCURRENT_GPUS:
            return book.limits.counters[quota.quota_id].count, lease.milli_gpus
        case Dimension.CONCURRENT_JOBS:
            row = book.limits.jobs.get((lease.account_id, lease.job_id, quota.gpu_type))
            requested = 0 if row is not None and row.live else 1
            return book.limits.counters[quota.quota_id].count, requested
        case Dimension.CREDITS_PER_WINDOW:
            counter = book.limits.counters[quota.quota_id]
            return book.limits.used_at(quota, counter, now) + counter.held, lease.held


def is_used_up(lease: Reservation, left: int) -> bool:
    """Whether what is left of a cap pays for less than a millisecond of a lease."""
    return lease.rate > 0 and not time_covered_ms(lease.rate, max(left, 0))


def quota_report(
    book: Book, account: Account, quota: Quota, lease: Reservation, now: int
) -> GateReport:
    """Whether one quota has room for a lease."""
    limit = limit_at(book, quota, now)
    current, requested = standing(book, quota, lease, limit, now)
    passes = current + requested <= limit
    clears = None
    told = ""
    boosts = book.limits.boosts_of(quota)
    may_rise = requested > limit and raised_at(quota.limit, boosts, requested, now) is not None
    if quota.dimension is Dimension.CREDITS_PER_WINDOW:
        if not passes:
            counter = book.limits.counters[quota.quota_id]
            clears = window_clears_at(book, quota, counter, requested, now)
    else:
        is_cap = quota.dimension is Dimension.CREDITS_PER_JOB
        if is_cap and current and is_used_up(lease, limit - current):
            told = cap_used_up(account, quota, lease, current, limit)
        if not passes:
            clears = raised_at(quota.limit, boosts, current + requested, now)
    return GateReport(
        Gate.QUOTA,
        scope_of(account.path),
        account.path,
        quota_name(quota),
        unit_of(quota.dimension),
        limit,
        current,
        requested,
        passes,
        clears,
        told,
        may_rise=may_rise,
    )


def cap_used_up(
    account: Account, quota: Quota, lease: Reservation, current: int, limit: int
) -> str:
    """What a job is told whose other leases leave it nothing."""
    return (
        f"Other leases of job {lease.job_id} have cost or hold {format_credits(current)} of the "
        f"{format_credits(limit)} {quota_name(quota)} that {account.path} allows. It clears when "
        "those that run return what they do not use, or when the limit is raised."
    )


def tokens_at(book: Book, bucket: TokenBucket, now: int) -> tuple[int, int]:
    """The tokens of a bucket at an instant and what it can hold, with its boosts."""
    if bucket.bucket_id not in book.limits.boosts and now >= bucket.level_at:
        return tokens(bucket, now), bucket.capacity
    seen = copy(bucket)
    terms = advance(seen, bucket_terms(bucket, book.limits.boosts_of(bucket)), now)
    return seen.level, terms.capacity


def rate_report(
    book: Book, account: Account, bucket: TokenBucket, needed: int, now: int
) -> GateReport:
    """Whether a bucket has tokens for the first hold."""
    level, capacity = tokens_at(book, bucket, now)
    passes = level >= needed
    boosts = book.limits.boosts_of(bucket)
    return GateReport(
        Gate.RATE_LIMIT,
        scope_of(account.path),
        account.path,
        "rate limit",
        GateUnit.CREDITS,
        capacity,
        capacity - level,
        needed,
        passes,
        None if passes else drawn_at(bucket, boosts, needed, now),
    )


def fair_share_refusal(
    account: str, gpu_type: str, region: str, verdict: FairShareVerdict, now: int
) -> Refused:
    """The refusal of a request that the pool alone turns away, before a lease was drafted."""
    refused = refusal(pool_reports(account, gpu_type, region, verdict), now)
    invariant(refused is not None, "whom a pool turns away does not pass it")
    assert refused is not None  # for the type checker
    return refused


def pool_reports(
    account: str, gpu_type: str, region: str, verdict: FairShareVerdict
) -> tuple[GateReport, ...]:
    """What a pool says of a request: for each scope its share and what it holds."""
    shares = verdict.shares or (ScopeShare(account, verdict.limit, verdict.current),)
    name = f"fair share of {gpu_type} in {region}"
    return tuple(fair_share_report(share, name, verdict) for share in shares)


def fair_share_report(share: ScopeShare, name: str, verdict: FairShareVerdict) -> GateReport:
    """What the pool says at one scope, in the words of whoever divides it."""
    return GateReport(
        Gate.FAIR_SHARE,
        scope_of(share.account),
        share.account,
        name,
        GateUnit.GPUS,
        share.fair,
        share.held,
        verdict.requested,
        verdict.passes,
        verdict.clears_at,
        verdict.sentence,
        ceiling=verdict.ceiling,
    )


def who_would_pay(book: Book, payer: Account, amount: int) -> tuple[tuple[int, int], ...]:
    """(grant, amount) in consumption order, grant 0 for a debt, if so much were settled now."""
    lots: list[tuple[int, int]] = []
    for grant in book.grants[payer.account_id]:
        if not amount or grant.state is not GrantState.ACTIVE:
            break
        part = min(grant.remaining, amount)
        lots.append((grant.grant_id, part))
        amount -= part
    if amount:
        lots.append((DEBT, amount))
    return tuple(lots)
