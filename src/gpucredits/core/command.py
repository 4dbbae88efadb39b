"""Commands: what callers ask of the ledger, already well formed.

Amounts are micro-credits, instants are microseconds since 1970 UTC, durations are milliseconds. The
edge checks shapes before it makes a command; rules check the command against the rows. The module
of a command's noun in ``core.rules`` declares how the command is decided and audited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core import bounds
from gpucredits.core.account import Funding, Model, Status
from gpucredits.core.authority import Authority
from gpucredits.core.budget import Rollover
from gpucredits.core.change import Named
from gpucredits.core.gate import FairShareVerdict
from gpucredits.core.grant import Source
from gpucredits.core.heartbeat import Beat
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reconciliation.commands import Reconcile, RefundLostWork
from gpucredits.core.reservation import Exhaustion
from gpucredits.core.statement import Bill

Metadata = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAccount:
    """Open a wallet; its parent must exist. No ``funding`` means the scope's default."""

    path: str
    model: Model = Model.PREPAID
    credit_limit: int = 0
    metadata: Metadata = field(default_factory=dict)
    funding: Funding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAccount:
    """Suspend or resume an account, or change its terms; None leaves a field as it is.

    ``labels`` changes some labels, and removes labels that are None; ``metadata`` replaces all.
    ``window_max_ms`` bounds leases of the account and of accounts below it; 0 lifts the bound.
    ``by`` is the scope of the key that suspends or resumes.
    """

    path: str
    status: Status | None = None
    model: Model | None = None
    credit_limit: int | None = None
    metadata: Metadata | None = None
    labels: dict[str, str | None] | None = None
    overdraft_limit: int | None = None
    delinquent: bool | None = None
    funding: Funding | None = None
    window_max_ms: int | None = None
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStanding:
    """Pause an account whose bills are overdue, or resume it.

    ``refunded`` is what was ever given back to the account of its charges.
    """

    path: str
    bills: tuple[Bill, ...]
    refunded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Grant credits to an account out of nothing, valid on [starts_at, expires_at)."""

    account: str
    amount: int
    starts_at: int | None = None
    expires_at: int = bounds.NEVER_US
    priority: int = bounds.PRIORITY_DEFAULT
    source: Source = Source.ALLOWANCE
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUp:
    """Record a payment; only a confirmed payment makes a grant.

    The payment of a statement names its ``bill``, and what was ever ``refunded`` to the account: a
    bill that is paid cannot be paid again.
    """

    account: str
    amount: int
    payment_reference: str
    confirmed: bool = False
    expires_at: int = bounds.NEVER_US
    priority: int = bounds.PRIORITY_DEFAULT
    metadata: Metadata = field(default_factory=dict)
    bill: Bill | None = None
    refunded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmTopUp:
    """The payment arrived."""

    topup_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailTopUp:
    """The payment will not arrive."""

    topup_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseTopUp:
    """The payment was taken back: unspent credits go, and the account owes what was spent."""

    topup_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Move unheld credits between two accounts of one org, lots and windows kept."""

    source: str
    target: str
    amount: int
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Ask for a lease: GPUs of one type for a job on one node.

    ``exhaustion`` says what happens to the job when its lease cannot be renewed in full;
    ``fair_share`` is the verdict of the pool's dispatcher, if the pool has one. ``scope`` is the
    scope of the key, empty for the whole system: ``payer`` may name an account inside the scope.
    Without ``window_ms`` the window is the default, or less where bounds on leases allow less.
    """

    account: str
    job_id: str
    gpu_type: str
    milli_gpus: int
    region: str = "default"
    node: str = ""
    window_ms: int = 0
    escrow_windows: int = 0
    max_amount: int = 0
    payer: str = ""
    exhaustion: Exhaustion = Exhaustion.DRAIN
    grace_ms: int = 0
    overdraft: int = 0
    fair_share: FairShareVerdict | None = None
    metadata: Metadata = field(default_factory=dict)
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """Ask what a ``Reserve`` would be told now, and by which gate."""

    reserve: Reserve


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """The job ended: settle it and release the rest. No ``used_ms`` means the last accepted."""

    reservation_id: int
    seq: int | None = None
    used_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """The job never started: release the hold."""

    reservation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLease:
    """Tell a lease to end within ``grace_ms`` from now, whatever it could still pay for.

    ``stopping_for`` is the number of the queued request that needs the GPUs, 0 for none.
    """

    reservation_id: int
    grace_ms: int = 0
    stopping_for: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeLease:
    """Let a lease go on after all: the request it was to stop for no longer needs its GPUs."""

    reservation_id: int
    stopping_for: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """Give settled credits back to the grants that paid, last paid first."""

    reservation_id: int
    amount: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjust:
    """Charge more for a reservation than was settled (the other direction is a refund)."""

    reservation_id: int
    amount: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Post the entries of an account that are due by now: lapses, expiries, budget periods."""

    account_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuota:
    """Set the limit of an account's quota, making it if need be.

    Everything but the limit identifies the quota, and so does the scope that set it. ``by`` is the
    scope of the key that asks, here and below. For a new quota, ``used`` is what was settled in the
    window that is open, and ``past`` holds (start, end, used) of earlier cells that a rolling
    window counts.
    """

    account: str
    dimension: Dimension
    limit: int
    gpu_type: str = ""
    calendar: Calendar | None = None
    zone: str = "UTC"
    rolling_hours: int = 0
    used: int = 0
    past: tuple[tuple[int, int, int], ...] = ()
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuota:
    """Take a quota away."""

    quota_id: int
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceQuotas:
    """Let an account have these quotas and no others; quotas that were set above stay."""

    account: str
    quotas: tuple[SetQuota, ...]
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRateLimit:
    """Set how many credits an account may authorise at once, and how fast it gains more.

    Terms that are not ``named`` stay as they are.
    """

    account: str
    capacity: int
    refill_per_hour: int
    named: Named = None
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRateLimit:
    """Take an account's rate limit away."""

    account: str
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBoost:
    """Raise a quota or a rate limit for a while; no ``starts_at`` means now."""

    target_id: int
    amount: int
    ends_at: int
    starts_at: int | None = None
    refill_per_hour: int = 0
    note: str = ""
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBoost:
    """Let a boost of a limit end now, before its time."""

    target_id: int
    boost_id: int
    by: Authority = Authority.SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBudget:
    """Set an account's budget by its name; the first period begins now, or at ``starts_at``.

    An open budget changes from its next period on; terms that are not ``named`` stay as they are.
    Without a calendar there is one period.
    """

    account: str
    allowance: int
    name: str = "default"
    calendar: Calendar | None = None
    zone: str = "UTC"
    starts_at: int | None = None
    ends_at: int = bounds.NEVER_US
    rollover: Rollover = Rollover.NONE
    rollover_cap: int = 0
    rollover_us: int = 0
    priority: int = bounds.PRIORITY_DEFAULT
    warn_percent: tuple[int, ...] = ()
    named: Named = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndBudget:
    """Issue no further periods of a budget; the current one runs to its end."""

    account: str
    name: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceBudgets:
    """Let an account have these open budgets and no others, at once."""

    account: str
    budgets: tuple[SetBudget, ...]


Command = (
    CreateAccount
    | UpdateAccount
    | ReviewStanding
    | Issue
    | TopUp
    | ConfirmTopUp
    | FailTopUp
    | ReverseTopUp
    | Transfer
    | Reserve
    | Beat
    | Settle
    | Cancel
    | StopLease
    | ResumeLease
    | Refund
    | Adjust
    | Reconcile
    | RefundLostWork
    | Sweep
    | Explain
    | SetQuota
    | EndQuota
    | ReplaceQuotas
    | SetRateLimit
    | EndRateLimit
    | AddBoost
    | EndBoost
    | SetBudget
    | EndBudget
    | ReplaceBudgets
)
