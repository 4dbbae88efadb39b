"""Outcomes: what a command that was carried out answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core.account import Account
from gpucredits.core.grant import Grant
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Decision, Reservation, ReservationState
from gpucredits.core.topup import TopUpRow


@dataclass(frozen=True, slots=True)
class AccountSaved:
    """The account as it now is."""

    account: Account


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


@dataclass(slots=True)  # not frozen: made tens of thousands of times a second
class Beaten:
    """The answer to a heartbeat: what was charged so far, and whether to go on."""

    decision: Decision
    settled: int
    held: int
    expires_in_ms: int
    state: ReservationState
    reason: str = ""
    duplicate: bool = False
    flagged: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """A reservation that has ended, and what its end released."""

    reservation_id: int
    state: ReservationState
    settled: int
    released: int
    used_ms: int


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
class Swept:
    """How many entries the clock had made due."""

    entries: int


Accepted = (
    AccountSaved
    | Granted
    | ToppedUp
    | Transferred
    | Reserved
    | Beaten
    | Closed
    | Refunded
    | Adjusted
    | Swept
)
Outcome = Accepted | Refused
