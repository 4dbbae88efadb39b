"""Which rows each kind of command needs in its book.

Owns: the arrays with which a book is opened, one entry for each row or account wanted.
Must not: decide anything; a row that is not there is the rules' business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gpucredits.core.account import lineage
from gpucredits.core.command import (
    AddBoost,
    Adjust,
    Cancel,
    Command,
    ConfirmTopUp,
    CreateAccount,
    EndBoost,
    EndBudget,
    EndQuota,
    EndRateLimit,
    Explain,
    FailTopUp,
    Issue,
    Refund,
    ReplaceBudgets,
    ReplaceQuotas,
    Reserve,
    ResumeLease,
    ReverseTopUp,
    ReviewStanding,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Settle,
    StopLease,
    Sweep,
    TopUp,
    Transfer,
    UpdateAccount,
)
from gpucredits.core.heartbeat import Beat
from gpucredits.core.reasons import invariant
from gpucredits.store.book.cached_book import CachedBooks

Row = TypeVar("Row", bound=tuple[int, *tuple[Any, ...]])


@dataclass(slots=True)
class Needs:
    """What a batch of commands touches, as (org, …) lists side by side."""

    orgs: set[int] = field(default_factory=set)
    leases: dict[int, set[int]] = field(default_factory=dict)  # of each org
    paths: set[tuple[int, str]] = field(default_factory=set)
    account_ids: set[tuple[int, int]] = field(default_factory=set)
    topups: set[tuple[int, int]] = field(default_factory=set)
    references: set[tuple[int, str]] = field(default_factory=set)
    corrected: set[tuple[int, int]] = field(default_factory=set)
    prices: set[tuple[int, str, str, str]] = field(default_factory=set)
    keys: set[tuple[int, str]] = field(default_factory=set)
    anew: set[int] = field(default_factory=set)  # orgs of which limits are set
    counted: set[tuple[int, str]] = field(default_factory=set)
    limits: set[tuple[int, int]] = field(default_factory=set)
    jobs: set[tuple[int, str, str]] = field(default_factory=set)
    # a quota is new, or an account is suspended: read what runs below accounts that are counted
    counts_anew: bool = False
    only_renews: bool = False  # nothing ends: leave out what only the end of a lease needs
    chains: bool = False  # a lease may change payers: read the accounts above it with their grants
    must_read: bool = False  # more than cached books and prices can tell
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
        """What cached books do not hold: leases that they hold are left out.

        Where a lease may end, its limits have to be read: a cached book does not hold them all.
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
        """Those of some of the orgs."""

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
        """The rows that one command may read or change."""
        self.orgs.add(org_id)
        match command:
            case Beat() | Settle() | Cancel() | StopLease() | ResumeLease():
                self._lease(org_id, command.reservation_id)
            case Reserve() | Explain():
                asked = command.reserve if isinstance(command, Explain) else command
                self._reserve(org_id, asked)
                self.must_read = self.must_read or asked is not command
            case _:
                self.must_read = True
                self._add_rare(org_id, command)

    def _add_rare(self, org_id: int, command: Command) -> None:
        match command:
            case Refund() | Adjust():
                self._lease(org_id, command.reservation_id)
                self.corrected.add((org_id, command.reservation_id))
            case CreateAccount() | UpdateAccount() | ReviewStanding():
                self.paths.update((org_id, path) for path in lineage(command.path))
                self.counted.add((org_id, command.path))  # read where it is suspended
            case Issue():
                self.paths.add((org_id, command.account))
            case TopUp():
                self.paths.add((org_id, command.account))
                self.references.add((org_id, command.payment_reference))
            case Transfer():
                self.paths.update(((org_id, command.source), (org_id, command.target)))
            case ConfirmTopUp() | FailTopUp() | ReverseTopUp():
                self.topups.add((org_id, command.topup_id))
            case Sweep():
                self.account_ids.add((org_id, command.account_id))
            case _:
                self._add_policy(org_id, command)

    def _add_policy(self, org_id: int, command: Command) -> None:
        match command:
            case SetQuota() | ReplaceQuotas() | SetRateLimit():
                self.anew.add(org_id)
                self.paths.add((org_id, command.account))
                if not isinstance(command, SetRateLimit):
                    self.counted.add((org_id, command.account))
            case EndRateLimit() | SetBudget() | EndBudget() | ReplaceBudgets():
                self.paths.add((org_id, command.account))
            case EndQuota():
                self.limits.add((org_id, command.quota_id))
            case AddBoost() | EndBoost():
                self.limits.add((org_id, command.target_id))
            case _:
                invariant(holds=False, claim="the store knows how to load what a command touches")

    def _reserve(self, org_id: int, command: Reserve) -> None:
        owners = lineage(command.account)
        self.paths.update((org_id, path) for path in owners)
        self.prices.update(
            (org_id, command.gpu_type, command.region, owner) for owner in (*owners, "")
        )
        self.jobs.add((org_id, command.account, command.job_id))

    def _lease(self, org_id: int, reservation_id: int) -> None:
        self.leases.setdefault(org_id, set()).add(reservation_id)
