"""The first count of a new quota on credits per window: what was spent in its window before.

Owns: asking the store for it under the org's lock, so that nothing is missed or counted twice, and
which commands have to be alone in their transaction for that.
Must not: decide anything; a quota that exists already has its own count.
"""

from __future__ import annotations

from dataclasses import replace

from gpucredits.core.book import NotInBook
from gpucredits.core.command import Command, ReplaceQuotas, SetQuota
from gpucredits.core.quota import CELLS, Dimension, Quota, window_at
from gpucredits.core.rules.limits.quotas import check_quota, same_quota
from gpucredits.store.book.cached_book import CachedBook
from gpucredits.store.database.connection import Connection
from gpucredits.store.limits.quotas import spent_in

QuotaCommand = SetQuota | ReplaceQuotas


def opens_windows(command: QuotaCommand) -> bool:
    """Whether a command may begin to count what was spent before it."""
    quotas = (command,) if isinstance(command, SetQuota) else command.quotas
    return any(each.dimension is Dimension.CREDITS_PER_WINDOW for each in quotas)


async def with_spending(connection: Connection, cached: CachedBook, command: Command) -> Command:
    """The command, told what the ledger knows of the windows that it would open."""
    if isinstance(command, SetQuota):
        return await quota_with_spending(connection, cached, command)
    if isinstance(command, ReplaceQuotas):
        quotas = [await quota_with_spending(connection, cached, each) for each in command.quotas]
        return replace(command, quotas=tuple(quotas))
    return command


async def quota_with_spending(
    connection: Connection, cached: CachedBook, command: SetQuota
) -> SetQuota:
    """One quota with what was spent in its window, and for rolling hours in each past cell."""
    account = cached.book.paths.get(command.account)
    if (
        command.dimension is not Dimension.CREDITS_PER_WINDOW
        or account is None
        or check_quota(command) is not None
        or same_quota(cached.book, account, command) is not None
    ):
        return command
    if not cached.book.counts_anew:
        raise NotInBook  # it will be read again, maybe in another window
    windows = windows_of(command, cached.now)
    org_id = cached.book.org.org_id
    spent = await spent_in(connection, org_id, account.path, command.gpu_type, windows)
    *past, (_, used) = zip(windows, spent, strict=True)
    cells = tuple((starts_at, ends_at, part) for (starts_at, ends_at), part in past if part)
    return replace(command, used=used, past=cells)


def windows_of(command: SetQuota, now: int) -> list[tuple[int, int]]:
    """The window that is open now, after the past cells that it still counts."""
    quota = Quota(
        quota_id=0,
        account_id=0,
        dimension=command.dimension,
        limit=command.limit,
        calendar=command.calendar,
        zone=command.zone,
        rolling_hours=command.rolling_hours,
    )
    starts_at, ends_at = window_at(quota, now)
    cell = ends_at - starts_at
    before = 0 if command.calendar is not None else CELLS
    past = [(starts_at - n * cell, starts_at - (n - 1) * cell) for n in range(before, 0, -1)]
    return [*past, (starts_at, ends_at)]
