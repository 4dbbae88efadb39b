"""Rules for quotas: making, changing and ending them.

Owns: what a quota counts when it is new: all that already runs.
Must not: end or refuse anything that runs; the next renewal sees the new limit.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.core.account import Account, is_below
from gpucredits.core.authority import refuse_from_below
from gpucredits.core.book import Book, NotInBook
from gpucredits.core.command import EndQuota, ReplaceQuotas, SetQuota
from gpucredits.core.gate import quantity
from gpucredits.core.limit_states import quota_state
from gpucredits.core.limits import boosted
from gpucredits.core.outcome import QuotaSaved
from gpucredits.core.quota import (
    Counter,
    Dimension,
    JobLeases,
    Quota,
    Tally,
    unit_of,
    window_at,
)
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.rule import Rule, State, Touches, without_nulls
from gpucredits.core.rules.credit.funding import find
from gpucredits.core.rules.limits.gates import quota_name
from gpucredits.core.rules.limits.setting import too_many, zone_unknown
from gpucredits.core.rules.upkeep.counting import begin_anew
from gpucredits.core.rules.upkeep.roll import roll_due

WINDOW = Dimension.CREDITS_PER_WINDOW


def set_quota(book: Book, command: SetQuota, now: int) -> QuotaSaved | Refused:
    """Set a limit; a quota that is new counts what runs and holds now.

    A key changes the quota of its own scope, or takes over one that was set below it. Beside a
    quota that was set above, it adds one of its own, which must not be higher.
    """
    account = find(book, command.account)
    if isinstance(account, Refused):
        return account
    if wrong := check_quota(command) or higher_than_above(book, account, command, now):
        return wrong
    quota = same_quota(book, account, command)
    if quota is not None:
        book.touch(quota)
        quota.limit = command.limit
        quota.set_by = command.by
        book.limits.lanes.clear()
        return QuotaSaved(quota, account.path)
    if full := too_many("quotas", len(open_quotas(book, account)), bounds.QUOTAS_MAX, account):
        return full
    if not book.counts_anew:
        raise NotInBook
    roll_due(book, now)
    quota = Quota(
        quota_id=book.next_id(),
        account_id=account.account_id,
        dimension=command.dimension,
        limit=command.limit,
        gpu_type=command.gpu_type,
        calendar=command.calendar,
        zone=command.zone,
        rolling_hours=command.rolling_hours,
        created_at=now,
        seeded=command.used + sum(used for _, _, used in command.past),
        first_entry_id=book.org.next_entry_id,
        set_by=command.by,
    )
    book.add(quota)
    if quota.dimension is Dimension.CREDITS_PER_JOB:
        begin_anew(book, account, quota, live_below(book, account, quota.gpu_type))
        return QuotaSaved(quota, account.path)
    counter = count_anew(book, account, quota)
    if quota.dimension is WINDOW:
        counter.starts_at, counter.ends_at = window_at(quota, now)
        counter.base = sum(used for _, _, used in command.past)
        counter.used = counter.base + command.used
        for starts_at, ends_at, used in command.past:
            book.add(Tally(quota.quota_id, starts_at, ends_at, used))
    book.add(counter)
    return QuotaSaved(quota, account.path)


def check_quota(command: SetQuota) -> Refused | None:
    """Refuse a quota that makes no sense."""
    per_window = command.dimension is WINDOW
    windows = (command.calendar is not None) + (command.rolling_hours > 0)
    if windows != per_window or command.rolling_hours > bounds.ROLLING_HOURS_MAX:
        return Refused(
            Reason.LIMIT_INVALID,
            "A quota on credits per window has either a calendar or 1 to "
            f"{bounds.ROLLING_HOURS_MAX} rolling hours; other quotas have neither.",
        )
    return zone_unknown(command.zone)


def open_quotas(book: Book, account: Account) -> list[Quota]:
    """The quotas of an account that have not ended."""
    quotas = book.limits.quotas.get(account.account_id, ())
    return [quota for quota in quotas if not quota.ended_at]


def alike_quotas(book: Book, account: Account, command: SetQuota) -> list[Quota]:
    """The quotas of an account that are the same as a command's but for limit and scope."""
    return [
        quota
        for quota in open_quotas(book, account)
        if quota.dimension is command.dimension
        and quota.gpu_type == command.gpu_type
        and quota.calendar == command.calendar
        and quota.zone == command.zone
        and quota.rolling_hours == command.rolling_hours
    ]


def same_quota(book: Book, account: Account, command: SetQuota) -> Quota | None:
    """The quota that a command is about, if the account has it: of its scope, else from below."""
    reached = (q for q in alike_quotas(book, account, command) if q.set_by >= command.by)
    return min(reached, key=lambda quota: quota.set_by, default=None)


def higher_than_above(book: Book, account: Account, command: SetQuota, now: int) -> Refused | None:
    """Refuse a quota that promises more than one which was set above it."""
    for quota in alike_quotas(book, account, command):
        limit = boosted(quota.limit, book.limits.boosts_of(quota), now)
        if quota.set_by < command.by and command.limit > limit:
            most = quantity(limit, unit_of(quota.dimension))
            instead = f"This key may set {most} or less beside it."
            return refuse_from_below(
                command.by, quota.set_by, account.path, f"The quota on {quota_name(quota)}", instead
            )
    return None


def count_anew(book: Book, account: Account, quota: Quota) -> Counter:
    """What a quota counts, from the live leases below its account."""
    counter = Counter(quota.quota_id)
    jobs: dict[tuple[int, str, str], JobLeases] = {}
    for lease in live_below(book, account, quota.gpu_type):
        counter.held += lease.ahead if quota.dimension is WINDOW else 0
        if quota.dimension is Dimension.CONCURRENT_GPUS:
            counter.count += lease.milli_gpus
            counter.leaving += lease.milli_gpus if lease.leaving else 0
        elif quota.dimension is Dimension.CONCURRENT_JOBS:
            key = (lease.account_id, lease.job_id, quota.gpu_type)
            row = jobs.setdefault(key, JobLeases(*key))
            row.live += 1
            row.leaving += lease.leaving
    if quota.dimension is Dimension.CONCURRENT_JOBS:
        counter.count = len(jobs)
        counter.leaving = sum(1 for row in jobs.values() if row.leaving)
        note_jobs(book, account, quota.gpu_type, jobs)
    return counter


def note_jobs(
    book: Book, account: Account, gpu_type: str, jobs: dict[tuple[int, str, str], JobLeases]
) -> None:
    """Put the counts of jobs right that no quota had asked for until now."""
    below = {row.account_id for row in book.accounts.values() if is_below(row.path, account.path)}
    for key, row in book.limits.jobs.items():
        if key[0] in below and key[2] == gpu_type and key not in jobs and row.live:
            book.touch(row)
            row.live = row.leaving = 0
    for key, counted in jobs.items():
        known = book.limits.jobs.get(key)
        if known is None:
            book.add(counted)
        else:
            book.touch(known)
            known.live, known.leaving = counted.live, counted.leaving


def live_below(book: Book, account: Account, gpu_type: str) -> list[Reservation]:
    """Live leases of an account and those below it, of one GPU type or of any."""
    return [
        lease
        for lease in book.reservations.values()
        if lease.state is ReservationState.ACTIVE
        and gpu_type in ("", lease.gpu_type)
        and is_below(lease.account, account.path)
    ]


def end_quota(book: Book, command: EndQuota, now: int) -> QuotaSaved | Refused:
    """Take a quota away; what it counted stays on record."""
    quota = find_quota(book, command.quota_id)
    if quota is None:
        return Refused(Reason.LIMIT_UNKNOWN, "There is no such quota.")
    path = book.accounts[quota.account_id].path
    bound, instead = f"The quota on {quota_name(quota)}", "Ask for a raise instead."
    if refused := refuse_from_below(command.by, quota.set_by, path, bound, instead):
        return refused
    book.touch(quota)
    quota.ended_at = now
    book.limits.lanes.clear()
    return QuotaSaved(quota, path)


def find_quota(book: Book, quota_id: int) -> Quota | None:
    """A quota that has not ended, by its id."""
    every = (quota for quotas in book.limits.quotas.values() for quota in quotas)
    return next((q for q in every if q.quota_id == quota_id and not q.ended_at), None)


def touches_quotas(command: SetQuota | ReplaceQuotas) -> Touches:
    """The account; where a quota is new, the leases below it too."""
    account = (command.account,)
    return Touches(paths=account, counted=account, sets_limits=True)


def touches_quota(command: EndQuota) -> Touches:
    """The quota."""
    return Touches(limits=(command.quota_id,))


def quota_before(book: Book, command: SetQuota | EndQuota) -> State | None:
    """The quota that is about to change."""
    if isinstance(command, EndQuota):
        quota = find_quota(book, command.quota_id)
    else:
        account = book.paths.get(command.account)
        quota = None if account is None else same_quota(book, account, command)
    if quota is None:
        return None
    path = book.accounts[quota.account_id].path
    return without_nulls(quota_state(book.org.org_id, path, quota))


def quota_after(org_id: int, outcome: QuotaSaved) -> tuple[str, State]:
    """The account and its quota."""
    return outcome.path, without_nulls(quota_state(org_id, outcome.path, outcome.quota))


RULES: tuple[Rule, ...] = (
    Rule(SetQuota, set_quota, touches_quotas, "quota.set", quota_before, quota_after),
    Rule(EndQuota, end_quota, touches_quota, "quota.end", quota_before, quota_after),
)
