"""What an account paid for in a time: groups of it, the total, and the leases of its jobs.

Owns: reading all of one page at one moment.
Must not: roll anything forward: what was spent is on the books.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.store.billing.day_edges import by_days
from gpucredits.store.billing.job_spending import list_jobs
from gpucredits.store.billing.lease_spending import (
    LeaseInTime,
    LeaseTime,
    lease_time,
    list_leases,
)
from gpucredits.store.billing.spending import Grouping, Spent, SpentPage, sum_all, sum_groups
from gpucredits.store.billing.usage_events import Measured, measured
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import PLANNED_ONCE, snapshot
from gpucredits.store.ledger.accounts import accounts_under

LAST = 2**63 - 1  # a place that no page reaches


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuestion:
    """A page of what the subtree of an account paid for in [since, until).

    Groups go on at ``place``, none are shown at LAST; leases ``before`` a number, none before 0.
    """

    org_id: int
    account: str
    since: int
    until: int
    by: Grouping = "job"
    limit: int = 100
    place: int = 0
    before: int = LAST


@dataclass(frozen=True, slots=True)
class LeaseUsage:
    """A lease with what was spent on it in the time, and what nodes measured."""

    lease: LeaseInTime
    measured: Measured


@dataclass(frozen=True, slots=True)
class UsageRead:
    """The groups with the total, and leases; they go on ``before`` a number, 0 after the last."""

    paid: SpentPage
    leases: list[LeaseUsage]
    before: int


async def read_usage(pool: Pool, asked: UsageQuestion) -> UsageRead:
    """The page that was asked for. ``until`` is now at the latest: what is told stays true."""
    async with snapshot(pool, planned=PLANNED_ONCE) as connection:
        accounts = await accounts_under(connection, asked.org_id, asked.account, tree=True)
        time = await by_days(connection, asked.org_id, asked.since, asked.until)
        which = await lease_time(connection, asked.org_id, accounts, time)
        paid = await _paid(connection, asked, which)
        if not asked.before:
            return UsageRead(paid, [], 0)
        spent = await list_leases(connection, which, before=asked.before, limit=asked.limit + 1)
        shown = spent[: asked.limit]
        before = shown[-1].reservation_id if len(spent) > asked.limit else 0
        return UsageRead(paid, await _leases(connection, asked, shown), before)


async def _paid(connection: Connection, asked: UsageQuestion, which: LeaseTime) -> SpentPage:
    accounts, time = which.accounts, which.time
    limit = 0 if asked.place == LAST else asked.limit
    if asked.by != "job":
        page = await sum_groups(
            connection, asked.org_id, accounts, time, by=asked.by, limit=limit, offset=asked.place
        )
        return page if limit else page._replace(following=None)
    jobs: list[Spent] = []
    following = None
    if limit:
        jobs, following = await list_jobs(
            connection, which, before=asked.place or LAST, limit=limit
        )
    amount = await sum_all(connection, asked.org_id, accounts, time)
    return SpentPage(jobs, amount, None, following)


async def _leases(
    connection: Connection, asked: UsageQuestion, shown: list[LeaseInTime]
) -> list[LeaseUsage]:
    if not shown:
        return []
    numbers = [lease.reservation_id for lease in shown]
    found = await measured(connection, asked.org_id, numbers)
    return [LeaseUsage(lease, found.get(lease.reservation_id, Measured())) for lease in shown]
