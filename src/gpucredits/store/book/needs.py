"""The rows that a batch of commands touches, and whether cached books hold every one of them.

A decision on a cached book is the one that a book read anew would give: the version of the org says
that no row has changed, and this module that no row is missing. A lease that starts or ends needs
every limit of its account and of those above it, with what they count, and the leases of its job
where a quota counts jobs. Caps on jobs are always read.

Owns: the sets of rows with which books are loaded, what is noted of a reading, and whether the
clock has passed a book by. Which rows a command touches is declared beside its rule, in core.
Must not: read anything (load does), or decide. This module is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gpucredits.core.account import lineage
from gpucredits.core.command import Command
from gpucredits.core.decide import RULES
from gpucredits.core.heartbeat import Beat
from gpucredits.core.quota import Dimension
from gpucredits.core.rule import Touches
from gpucredits.store.book.cached_book import CachedBook, CachedBooks

PER_JOB, JOBS = Dimension.CREDITS_PER_JOB, Dimension.CONCURRENT_JOBS
Row = TypeVar("Row", bound=tuple[int, *tuple[Any, ...]])


@dataclass(slots=True)
class Needs:
    """The rows that a batch of commands touches; each row begins with its org."""

    orgs: set[int] = field(default_factory=set)
    leases: dict[int, set[int]] = field(default_factory=dict)  # of each org
    paths: set[tuple[int, str]] = field(default_factory=set)
    account_ids: set[tuple[int, int]] = field(default_factory=set)
    topups: set[tuple[int, int]] = field(default_factory=set)
    references: set[tuple[int, str]] = field(default_factory=set)
    corrected: set[tuple[int, int]] = field(default_factory=set)
    prices: set[tuple[int, str, str, str]] = field(default_factory=set)
    keys: set[tuple[int, str]] = field(default_factory=set)
    anew: set[int] = field(default_factory=set)  # orgs whose limits are set
    counted: set[tuple[int, str]] = field(default_factory=set)
    limits: set[tuple[int, int]] = field(default_factory=set)
    jobs: set[tuple[int, str, str, str]] = field(default_factory=set)  # with the GPU type
    # a quota is new, or an account is suspended: read what runs below accounts that are counted
    counts_anew: bool = False
    only_renews: bool = False  # nothing ends: leave out what only the end of a lease needs
    chains: bool = False  # a lease may change payers: read the accounts above it with their grants
    must_read: bool = False  # cached books and prices do not have every row
    were_read: bool = False  # keys were looked for, and the leases of jobs

    def add_beats(self, org_id: int, beats: list[Beat]) -> None:
        """Leases of one org that report; a lease named twice is loaded once."""
        self.orgs.add(org_id)
        ids = {beat.reservation_id for beat in beats}
        known = self.leases.get(org_id)
        if known is None:
            self.leases[org_id] = ids
        else:
            known |= ids

    def beyond(self, kept: CachedBooks) -> Needs:
        """The needs without the leases that cached books have.

        Where a lease may end, its limits must be read: a cached book does not have all of them.
        """
        leases = {}
        for org_id, ids in self.leases.items():
            cached = kept.get(org_id)
            wanted = ids
            if cached is not None and (self.only_renews or not cached.gated):
                wanted = ids.difference(cached.book.reservations)  # a walk over ids alone
            if wanted:
                leases[org_id] = wanted
        return replace(self, leases=leases)

    def of(self, orgs: set[int]) -> Needs:
        """The needs of some of the orgs."""

        def some(rows: set[Row]) -> set[Row]:
            return {row for row in rows if row[0] in orgs}

        return Needs(
            orgs=self.orgs & orgs,
            leases={org_id: ids for org_id, ids in self.leases.items() if org_id in orgs},
            paths=some(self.paths),
            account_ids=some(self.account_ids),
            topups=some(self.topups),
            references=some(self.references),
            corrected=some(self.corrected),
            prices=some(self.prices),
            keys=some(self.keys),
            anew=self.anew & orgs,
            counted=some(self.counted),
            limits=some(self.limits),
            jobs=some(self.jobs),
            counts_anew=self.counts_anew,
            only_renews=self.only_renews,
            chains=self.chains,
            must_read=self.must_read,
        )

    def add(self, org_id: int, command: Command) -> None:
        """The rows that a command declares that it touches."""
        touched = RULES[type(command)].touches(command)
        self.orgs.add(org_id)
        if touched.leases:
            self.leases.setdefault(org_id, set()).update(touched.leases)
        if touched.paths:
            self.paths.update([(org_id, each) for each in touched.paths])
            self.prices.update([(org_id, *each) for each in touched.prices])
            self.jobs.update([(org_id, *each) for each in touched.jobs])
        if not touched.from_cache:  # the others name nothing else
            self.must_read = True
            self._add_rare(org_id, touched)

    def _add_rare(self, org_id: int, touched: Touches) -> None:
        """The rows of commands that always read the database."""
        self.account_ids |= {(org_id, each) for each in touched.account_ids}
        self.topups |= {(org_id, each) for each in touched.topups}
        self.references |= {(org_id, each) for each in touched.references}
        self.corrected |= {(org_id, each) for each in touched.corrected}
        self.prices |= {(org_id, *each) for each in touched.prices}
        self.jobs |= {(org_id, *each) for each in touched.jobs}
        self.limits |= {(org_id, each) for each in touched.limits}
        self.counted |= {(org_id, each) for each in touched.counted}
        if touched.sets_limits:
            self.anew.add(org_id)


def is_enough(needs: Needs, kept: CachedBooks) -> bool:
    """Whether books hold every needed row except prices; a used key is found later.

    A book knows nothing of a job that is new to it: it assumes that the job has no leases, and the
    guard checks that.
    """
    if needs.must_read or len(kept) != len(needs.orgs):
        return False
    for org_id, ids in needs.leases.items():
        if not ids <= kept[org_id].book.reservations.keys():
            return False
    if needs.only_renews:
        return True
    return (
        all(has_funder(kept[org_id], path) for org_id, path in needs.paths)
        and all(knows_ends(kept[org_id], ids) for org_id, ids in needs.leases.items())
        and all(knows_job(kept[job[0]], job) for job in needs.jobs)
    )


def has_funder(cached: CachedBook, path: str) -> bool:
    """Whether an account is there with all that it may spend."""
    account = cached.book.paths.get(path)
    if account is None or account.account_id in cached.book.bare:
        return False
    return not cached.budgeted or account.account_id in cached.with_budgets


def knows_ends(cached: CachedBook, ids: Iterable[int]) -> bool:
    """Whether all is there that the end of some leases changes."""
    if not cached.gated:
        return True
    book = cached.book
    for number in ids:
        lease = book.reservations[number]
        types = job_quotas(cached, lease.account, lease.gpu_type)
        if types is None:
            return False
        for each in types:
            if (lease.account_id, lease.job_id, each) not in book.limits.jobs:
                return False
    return True


def knows_job(cached: CachedBook, job: tuple[int, str, str, str]) -> bool:
    """Whether all is there that one more lease of a job changes; its account is in the book."""
    if not cached.gated:
        return True
    _, path, job_id, gpu_type = job
    types = job_quotas(cached, path, gpu_type)
    if types is None or not knows_past(cached, path):
        return False
    account_id, jobs = cached.book.paths[path].account_id, cached.book.limits.jobs
    is_known = (account_id, job_id, "") in jobs  # with leases of any type
    if not is_known and any((account_id, job_id, each) not in jobs for each in types):
        cached.unread_jobs.add((account_id, job_id))
    return True


def job_quotas(cached: CachedBook, path: str, gpu_type: str) -> list[str] | None:
    """The GPU type, or "", of every quota on jobs that a lease meets.

    None where some limits on its way are not in the book, or one of them is a cap on jobs.
    """
    book, types = cached.book, []
    for each in lineage(path):
        account = book.paths.get(each)
        if account is None or account.account_id not in cached.counted:
            return None
        for quota in book.limits.quotas.get(account.account_id, ()):
            if quota.ended_at or quota.gpu_type not in ("", gpu_type):
                continue
            if quota.dimension is PER_JOB:
                return None
            if quota.dimension is JOBS:
                types.append(quota.gpu_type)
    return types


def knows_past(cached: CachedBook, path: str) -> bool:
    """Whether the past of every rolling window is there: a refusal says when it has room again."""
    book = cached.book
    for each in lineage(path):
        number = book.paths[each].account_id
        if number not in cached.tallied and any(
            quota.rolling_hours for quota in book.limits.quotas.get(number, ())
        ):
            return False
    return True


def is_fresh(cached: CachedBook, now: int) -> bool:
    """Whether the clock has made nothing due that a book read anew would hold."""
    return max(now, cached.book.org.clock) < cached.fresh_until and not cached.book.complete


def is_usable(cached: CachedBook, needs: Needs, now: int) -> bool:
    """Whether the clock has made nothing due that a batch on the book would have to see.

    Without limits a beat sees its payer only; with them, whatever has lapsed in the org.
    """
    if is_fresh(cached, now):
        return True
    if cached.gated or not needs.only_renews:
        return False
    book, now = cached.book, max(now, cached.book.org.clock)
    leases, accounts = book.reservations, book.accounts
    payers = {
        leases[number].payer_id for number in needs.leases[book.org.org_id] if number in leases
    }
    return all(accounts[payer].due_at > now for payer in payers - book.complete)


def note_complete(books: CachedBooks, needs: Needs, accounts: dict[int, list[int]]) -> None:
    """Note the accounts of each org that are complete, among those read just now.

    If a batch only renews and nothing is due, quotas on concurrent use are not read. The past of
    rolling windows is read for leases that may start.
    """
    starting = {job[0] for job in needs.jobs}
    for org_id, numbers in accounts.items():
        cached = books[org_id]
        if cached.gated and (cached.book.complete or not needs.only_renews):
            cached.counted.update(numbers)
            if org_id in starting:
                cached.tallied.update(numbers)
    for org_id, path in needs.paths:
        cached_book = books.get(org_id)
        account = None if cached_book is None else cached_book.book.paths.get(path)
        if cached_book is not None and account is not None:
            cached_book.with_budgets.add(account.account_id)
