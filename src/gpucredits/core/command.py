"""Commands: what callers ask of the ledger, already well formed.

Amounts are micro-credits, instants are microseconds since 1970 UTC, durations are milliseconds.
Shapes are checked at the edge before a command is made; rules check it against the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core import bounds
from gpucredits.core.account import Model, Status
from gpucredits.core.grant import Source

Metadata = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAccount:
    """Open a wallet; its parent must exist."""

    path: str
    model: Model = Model.PREPAID
    credit_limit: int = 0
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAccount:
    """Suspend or resume, or change model and credit limit; None leaves a field as it is."""

    path: str
    status: Status | None = None
    model: Model | None = None
    credit_limit: int | None = None
    metadata: Metadata | None = None


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
    """Record a payment; only a confirmed one makes a grant."""

    account: str
    amount: int
    payment_reference: str
    confirmed: bool = False
    expires_at: int = bounds.NEVER_US
    priority: int = bounds.PRIORITY_DEFAULT
    metadata: Metadata = field(default_factory=dict)


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
    """The payment was taken back; what was spent of it becomes debt."""

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
    """Ask for a lease: GPUs of one type for a job on one node."""

    account: str
    job_id: str
    gpu_type: str
    gpu_count: int
    region: str = "default"
    node: str = ""
    window_ms: int = bounds.WINDOW_MS_DEFAULT
    escrow_windows: int = 0
    max_amount: int = 0
    payer: str = ""
    metadata: Metadata = field(default_factory=dict)


@dataclass(slots=True)  # not frozen: made tens of thousands of times a second
class Beat:
    """A node's report: settle what was used in all, and renew the lease."""

    reservation_id: int
    seq: int
    used_ms: int


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
    """Write down what the clock has already made true of an account."""

    account_id: int


Command = (
    CreateAccount
    | UpdateAccount
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
    | Refund
    | Adjust
    | Sweep
)
