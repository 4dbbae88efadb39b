"""Which rows each kind of command needs in its book.

Owns: the arrays with which a book is opened, one entry for each row or account wanted.
Must not: decide anything; a row that is not there is the rules' business.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core.account import lineage
from gpucredits.core.command import (
    AddBoost,
    Adjust,
    Beat,
    Cancel,
    Command,
    ConfirmTopUp,
    CreateAccount,
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
from gpucredits.core.reasons import invariant


@dataclass(slots=True)
class Needs:
    """What a batch of commands touches, as (org, …) lists side by side."""

    orgs: set[int] = field(default_factory=set)
    lease_orgs: list[int] = field(default_factory=list)
    lease_ids: list[int] = field(default_factory=list)
    paths: set[tuple[int, str]] = field(default_factory=set)
    account_ids: set[tuple[int, int]] = field(default_factory=set)
    topups: set[tuple[int, int]] = field(default_factory=set)
    corrected: set[tuple[int, int]] = field(default_factory=set)
    prices: set[tuple[int, str, str, str]] = field(default_factory=set)
    keys: set[tuple[int, str]] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    limits: set[tuple[int, int]] = field(default_factory=set)
    jobs: set[tuple[int, str, str]] = field(default_factory=set)
    only_renews: bool = False  # nothing ends: leave out what only the end of a lease needs

    def add_beats(self, org_id: int, beats: list[Beat]) -> None:
        """Leases of one org that report; a lease named twice is loaded once."""
        self.orgs.add(org_id)
        ids = {beat.reservation_id for beat in beats}
        self.lease_ids.extend(ids)
        self.lease_orgs.extend([org_id] * len(ids))

    def add(self, org_id: int, command: Command) -> None:
        """The rows that one command may read or change."""
        self.orgs.add(org_id)
        match command:
            case Beat() | Settle() | Cancel() | StopLease():
                self._lease(org_id, command.reservation_id)
            case Refund() | Adjust():
                self._lease(org_id, command.reservation_id)
                self.corrected.add((org_id, command.reservation_id))
            case Reserve() | Explain():
                asked = command.reserve if isinstance(command, Explain) else command
                self._reserve(org_id, asked)
            case CreateAccount() | UpdateAccount() | ReviewStanding():
                self.paths.update((org_id, path) for path in lineage(command.path))
            case Issue() | TopUp():
                self.paths.add((org_id, command.account))
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
                self.whole.add(org_id)  # what runs is counted, once what lapsed is gone
            case EndRateLimit() | SetBudget() | EndBudget() | ReplaceBudgets():
                self.paths.add((org_id, command.account))
            case EndQuota():
                self.limits.add((org_id, command.quota_id))
            case AddBoost():
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
        self.lease_orgs.append(org_id)
        self.lease_ids.append(reservation_id)
