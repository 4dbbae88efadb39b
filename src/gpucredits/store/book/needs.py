"""Which rows the commands of a batch need in their books.

Owns: the sets of rows with which books are loaded. Which rows a command touches is declared beside
its rule, in core.
Must not: decide anything; a row that does not exist is the rules' business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gpucredits.core.command import Command
from gpucredits.core.decide import RULES
from gpucredits.core.heartbeat import Beat
from gpucredits.store.book.cached_book import CachedBooks

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
    jobs: set[tuple[int, str, str]] = field(default_factory=set)
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
        self.paths |= {(org_id, each) for each in touched.paths}
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
        if not touched.from_cache:
            self.must_read = True
