"""Outcomes: what a command that was carried out answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core.account import Account, Funding
from gpucredits.core.budget import Budget
from gpucredits.core.gate import GateReport, GateUnit
from gpucredits.core.grant import Grant
from gpucredits.core.heartbeat import BeatResult
from gpucredits.core.limits import Boost, TokenBucket
from gpucredits.core.quota import Quota
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.core.topup import TopUpRow


@dataclass(frozen=True, slots=True)
class AccountSaved:
    """The account as it now is.

    ``stands`` says why the account still admits nothing after its own suspension was lifted.
    """

    account: Account
    stands: Refused | None = None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The account as it now is, what it received in all, and what is overdue since when."""

    account: Account
    received: int
    overdue: int
    since: int
    at: int
    changed: bool


@dataclass(frozen=True, slots=True)
class Granted:
    """The grant that was made."""

    grant: Grant
    path: str


@dataclass(frozen=True, slots=True)
class ToppedUp:
    """The top-up as it now is, and the grant it made if it was confirmed."""

    topup: TopUpRow
    path: str
    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class Transferred:
    """What moved: (grant left, grant arrived in, amount) for each lot."""

    transfer_id: int
    source: str
    target: str
    amount: int
    lots: tuple[tuple[int, int, int], ...]
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reserved:
    """The lease that was given."""

    reservation: Reservation
    account: str
    payer: str
    expires_in_ms: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A reservation that has ended, what its end released, and why a report was not charged."""

    reservation_id: int
    state: ReservationState
    settled: int
    released: int
    used_ms: int
    flagged: str = ""


@dataclass(frozen=True, slots=True)
class Stopping:
    """A lease that was told to stop, and the instant beyond which it is not renewed."""

    reservation_id: int
    stops_at: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """A lease that goes on because its order to stop was withdrawn, and its present end."""

    reservation_id: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Queued:
    """Requests that wait in the queue of a pool."""

    queue_id: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refunded:
    """What went back: (grant, amount) for each lot; grant 0 is debt, -1 the house's overrun."""

    reservation_id: int
    amount: int
    lots: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Adjusted:
    """What was charged on top: (grant, amount) for each lot."""

    reservation_id: int
    amount: int
    lots: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What the reconciler posted: charged in addition, or given back (negative), lot by lot.

    ``measured_ms`` is the measured use that counts, ``total`` what was posted for the reservation
    in all.
    """

    reservation_id: int
    amount: int
    measured_ms: int
    total: int
    lots: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LostWorkRefunded:
    """The lost use that was given back, and (grant, amount) for each lot."""

    reservation_id: int
    lost_ms: int
    amount: int
    lots: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Swept:
    """How many entries were due, and whether the account is next due later than before.

    An account whose leases were renewed moves on without an entry.
    """

    entries: int
    moved_on: bool


@dataclass(frozen=True, slots=True)
class Funder:
    """An account of a funding chain: what it can spend, and whether that pays for a window."""

    account: str
    funding: Funding
    spendable: int
    can_pay: bool
    clears_at: int | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer that a request would get: from every gate, the price, and the grants that pay.

    ``lots`` are (grant, amount) of the first hold, as if it were settled now. ``refusal`` is
    what the request would be refused with; ``funders`` are the accounts that may pay, nearest
    first.
    """

    admitted: bool
    account: str
    payer: str
    price: int
    price_id: int
    hold: int
    lease_ms: int
    lots: tuple[tuple[int, int], ...]
    reports: tuple[GateReport, ...]
    refusal: Refused | None = None
    funders: tuple[Funder, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaSaved:
    """The quota as it now is."""

    quota: Quota
    path: str


@dataclass(frozen=True, slots=True)
class QuotasReplaced:
    """The quotas that an account now has, in the order asked for, and those it no longer has."""

    path: str
    quotas: tuple[Quota, ...]
    ended: tuple[Quota, ...]


@dataclass(frozen=True, slots=True)
class RateLimitSaved:
    """The bucket as it now is."""

    bucket: TokenBucket
    path: str


@dataclass(frozen=True, slots=True)
class Boosted:
    """The boost that was given, the unit of its amount, and the sort of its limit."""

    boost: Boost
    path: str
    unit: GateUnit = GateUnit.CREDITS
    is_rate_limit: bool = False


@dataclass(frozen=True, slots=True)
class BudgetSaved:
    """The budget as it now is."""

    budget: Budget
    path: str


@dataclass(frozen=True, slots=True)
class BudgetsReplaced:
    """The budgets that an account now has, in the order asked for, and those that were ended."""

    path: str
    budgets: tuple[Budget, ...]
    ended: tuple[Budget, ...]


Accepted = (
    AccountSaved
    | Reviewed
    | Granted
    | ToppedUp
    | Transferred
    | Reserved
    | BeatResult
    | Closed
    | Stopping
    | Resumed
    | Queued
    | Refunded
    | Adjusted
    | Reconciled
    | LostWorkRefunded
    | Swept
    | Explained
    | QuotaSaved
    | QuotasReplaced
    | RateLimitSaved
    | Boosted
    | BudgetSaved
    | BudgetsReplaced
)
Outcome = Accepted | Refused
