"""Jobs that a time concerns, and what was spent on each of them in it.

Owns: the leases of jobs added up, in the order of the latest lease of each job.
Must not: read entries, except those of days that the time cuts in two and of leases that changed
payers.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.core.bounds import DAY_US
from gpucredits.store.billing.lease_spending import (
    LEASE,
    SPENT_ON_LEASES,
    LeaseInTime,
    LeaseTime,
    candidates_of,
    is_concerned,
    list_spent,
    query_of,
)
from gpucredits.store.billing.spending import Spent
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.where import Where

ROUNDS_MAX = 8  # of leases that are looked at for a page of jobs, each as long as the page
JOBS = """
SELECT c.reservation_id, r.job_id FROM ([candidates]) AS c
CROSS JOIN LATERAL (
    SELECT l.job_id FROM reservations l
    WHERE l.org_id = [org] AND l.reservation_id = c.reservation_id OFFSET 0
) AS r ORDER BY 1 DESC
"""
# Admitted on the first day or later, or charged in the time.
OF_JOBS = f"""
    SELECT l.* FROM unnest([jobs]::text[]) AS w(job_id)
    CROSS JOIN LATERAL (
        {LEASE} WHERE l.org_id + 0 = [org] AND l.job_id = w.job_id AND [own] OFFSET 0
    ) AS l
    WHERE l.reservation_id < [beyond] AND (l.reservation_id >= [first] OR EXISTS (
        SELECT FROM lease_days d WHERE d.org_id = [org] AND d.reservation_id = l.reservation_id
            AND d.day + 0 BETWEEN [from_day] AND [to_day])) -- not by the day
"""  # noqa: S608  # constant texts only
# Leases that the time concerns, added up by job. Of one that changed payers nothing is added.
ADDED_UP = f"""
SELECT s.job_id, max(s.reservation_id),
    coalesce(sum(s.amount) FILTER (WHERE [paid]), 0)::bigint,
    count(*) FILTER (WHERE s.amount <> 0 AND [paid]), bool_or([moved])
FROM ({SPENT_ON_LEASES}) AS s
WHERE s.amount <> 0 OR (s.admitted_at >= [since] AND s.admitted_at < [until]) GROUP BY 1
"""  # noqa: S608  # constant texts only
# Of a lease that changed payers: what some of them paid, from their entries of the time.
SHARES = """
SELECT w.reservation_id,
    sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END)::bigint AS amount
FROM unnest($2::bigint[], $3::bigint[]) AS w(reservation_id, first)
CROSS JOIN unnest($4::bigint[]) AS p(payer_id)
CROSS JOIN LATERAL (
    SELECT e.type, e.amount FROM entries e
    WHERE e.org_id = $1 AND e.account_id = p.payer_id AND e.entry_id >= greatest(w.first, $5)
        AND e.entry_id < $6 AND e.reservation_id = w.reservation_id AND e.type IN (6, 7, 9)
) AS e GROUP BY 1
"""


async def list_jobs(
    connection: Connection, which: LeaseTime, *, before: int, limit: int
) -> tuple[list[Spent], int | None]:
    """Jobs of leases that a time concerns, in the order of their latest, and where to go on.

    A job stands where its latest lease does. The leases of a long job are looked at a bounded
    number at a time, so a page may be short, or empty, and not the last.
    """
    found: list[Spent] = []
    if not limit or which.time.is_empty:
        return found, None
    for _ in range(ROUNDS_MAX):
        looked_at = await _look_for_jobs(connection, which, before=before, limit=2 * limit)
        chosen = _of_few_jobs(looked_at, min(2 * (limit - len(found)), limit))
        jobs = await _jobs(connection, which, sorted({job_id for _, job_id in chosen}))
        for number, job_id in chosen:
            before = number
            job = jobs.get(job_id)
            if job is not None and job.latest == number and job.amount:
                found.append(Spent(job_id, job.amount, job.leases))
                if len(found) == limit:
                    return found, before
        if len(chosen) == len(looked_at) < 2 * limit:
            return found, None
    return found, before


def _of_few_jobs(leases: list[tuple[int, str]], jobs_max: int) -> list[tuple[int, str]]:
    """The first of some leases, up to a number of jobs."""
    names: set[str] = set()
    for place, (_, job_id) in enumerate(leases):
        if job_id not in names and len(names) == jobs_max:
            return leases[:place]
        names.add(job_id)
    return leases


@dataclass(slots=True)
class JobInTime:
    """The latest lease of a job that a time concerns, and what payers spent on all of them."""

    latest: int = 0
    amount: int = 0
    leases: int = 0


async def _jobs(connection: Connection, which: LeaseTime, jobs: list[str]) -> dict[str, JobInTime]:
    """All leases of jobs, added up; only payments of the requested accounts count."""
    if not jobs:
        return {}
    where = Where()
    places = _places_of_jobs(where, which, jobs)
    places |= {"since": where.value(which.time.since), "until": where.value(which.time.until)}
    if which.accounts is None:
        places |= {"paid": "true", "moved": "false"}
    else:
        paying = f"s.payer_id = ANY ({where.value(which.accounts)}::bigint[])"
        places |= {"paid": f"(s.payers = '{{}}' AND {paying})", "moved": "s.payers <> '{}'"}
    rows = await connection.fetch(query_of(ADDED_UP, which, where, OF_JOBS, places), *where.values)
    found = {row[0]: JobInTime(row[1], row[2], row[3]) for row in rows}
    moved = [row[0] for row in rows if row[4]]
    if moved:
        await _add_moved(connection, which, moved, found)
    return found


async def _add_moved(
    connection: Connection, which: LeaseTime, jobs: list[str], found: dict[str, JobInTime]
) -> None:
    """Add what the requested accounts have paid for leases that changed payers."""
    where = Where()
    places = _places_of_jobs(where, which, jobs)
    leases = await list_spent(connection, which, where, OF_JOBS, places)
    moved = [each for each in leases if each.payers and is_concerned(each, which.time)]
    shares = await _shares(connection, which, moved)
    for each in moved:
        amount = shares.get(each.reservation_id, 0)
        job = found[each.job_id]
        job.amount += amount
        job.leases += 1 if amount else 0


def _places_of_jobs(where: Where, which: LeaseTime, jobs: list[str]) -> dict[str, str]:
    """The places of the query for the leases of some jobs."""
    own = "true"
    if which.accounts is not None:
        own = f"l.account_id = ANY ({where.value(which.accounts)}::bigint[])"
    return {
        "jobs": where.value(jobs),
        "own": own,
        "first": where.value(which.first),
        "beyond": where.value(which.beyond),
        "from_day": where.value(which.time.since // DAY_US),
        "to_day": where.value((which.time.until - 1) // DAY_US),
    }


async def _shares(
    connection: Connection, which: LeaseTime, moved: list[LeaseInTime]
) -> dict[int, int]:
    if not moved:
        return {}
    payers = {each.payer_id for each in moved} | {
        number for each in moved for number in each.payers[::2]
    }
    rows = await connection.fetch(
        SHARES,
        which.org_id,
        [each.reservation_id for each in moved],
        [each.first_entry_id for each in moved],
        sorted(payers.intersection(which.accounts or ())),
        which.time.first,
        which.time.beyond,
    )
    return {row[0]: row[1] for row in rows}


async def _look_for_jobs(
    connection: Connection, which: LeaseTime, *, before: int, limit: int
) -> list[tuple[int, str]]:
    """Leases that a time may concern, the latest first, with their jobs."""
    where = Where()
    candidates, places = candidates_of(where, which, before=before, limit=limit)
    query = where.into(JOBS, candidates=candidates, **places, org=where.value(which.org_id))
    return [(row[0], row[1]) for row in await connection.fetch(query, *where.values)]
