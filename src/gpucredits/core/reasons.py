"""Why a command is refused: a closed list in order of precedence.

When several reasons hold at once, the one listed first is given. What lies in another org is not
looked up, so a transfer there is ``cross_org`` whether or not the account exists. A refusal is a
value, never an exception, and carries the numbers a person needs to understand it.
Must not: know HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import assert_never

from gpucredits.core.gate import GateReport


class Kind(Enum):
    """What sort of refusal it is; edges map it to their own codes."""

    NOT_FOUND = "not_found"
    INVALID = "invalid"
    CONFLICT = "conflict"
    FUNDS = "funds"
    LIMIT = "limit"
    THROTTLED = "throttled"


class Reason(StrEnum):
    """Stable words for machines, in order of precedence."""

    ACCOUNT_UNKNOWN = "account_unknown"
    RESERVATION_UNKNOWN = "reservation_unknown"
    TOPUP_UNKNOWN = "topup_unknown"
    LIMIT_UNKNOWN = "limit_unknown"
    REQUEST_UNKNOWN = "request_unknown"
    STATEMENT_UNKNOWN = "statement_unknown"
    UNMATCHED_UNKNOWN = "unmatched_unknown"
    ALARM_UNKNOWN = "alarm_unknown"
    ACCOUNT_EXISTS = "account_exists"
    PARENT_UNKNOWN = "parent_unknown"
    ACCOUNT_SUSPENDED = "account_suspended"
    ACCOUNT_DELINQUENT = "account_delinquent"
    CROSS_ORG = "cross_org"
    SAME_ACCOUNT = "same_account"
    TOPUP_STATE = "topup_state"
    REFERENCE_USED = "reference_used"
    STATEMENT_PAID = "statement_paid"
    REQUEST_STATE = "request_state"
    REQUESTS_FULL = "requests_full"
    WINDOW_ENDED = "window_ended"
    GRANTS_FULL = "grants_full"
    PRICE_UNKNOWN = "price_unknown"
    ZONE_UNKNOWN = "zone_unknown"
    LIMIT_INVALID = "limit_invalid"
    LIMIT_SET_ABOVE = "limit_set_above"
    WINDOW_TOO_LONG = "window_too_long"
    PAYER_INVALID = "payer_invalid"
    FUNDING_INVALID = "funding_invalid"
    OVERDRAFT_TOO_LARGE = "overdraft_too_large"
    MAX_AMOUNT_TOO_SMALL = "max_amount_too_small"
    RESERVATION_EXISTS = "reservation_exists"
    RESERVATION_ENDED = "reservation_ended"
    RESERVATION_STARTED = "reservation_started"
    RESERVATION_ACTIVE = "reservation_active"
    UNMATCHED_STATE = "unmatched_state"
    LOSS_REFUSED = "loss_refused"
    LOSS_REFUNDED = "loss_refunded"
    REFUND_EXCEEDS = "refund_exceeds"
    LIMIT_IN_USE = "limit_in_use"
    INSUFFICIENT_CREDITS = "insufficient_credits"
    QUOTA_EXCEEDED = "quota_exceeded"
    RATE_LIMITED = "rate_limited"
    FAIR_SHARE = "fair_share"


def kind_of(reason: Reason) -> Kind:
    """The sort of refusal, from one exhaustive table."""
    match reason:
        case (
            Reason.ACCOUNT_UNKNOWN
            | Reason.RESERVATION_UNKNOWN
            | Reason.TOPUP_UNKNOWN
            | Reason.LIMIT_UNKNOWN
            | Reason.REQUEST_UNKNOWN
            | Reason.STATEMENT_UNKNOWN
            | Reason.UNMATCHED_UNKNOWN
            | Reason.ALARM_UNKNOWN
        ):
            return Kind.NOT_FOUND
        case (
            Reason.CROSS_ORG
            | Reason.SAME_ACCOUNT
            | Reason.WINDOW_ENDED
            | Reason.PRICE_UNKNOWN
            | Reason.PAYER_INVALID
            | Reason.FUNDING_INVALID
            | Reason.PARENT_UNKNOWN
            | Reason.MAX_AMOUNT_TOO_SMALL
            | Reason.OVERDRAFT_TOO_LARGE
            | Reason.ZONE_UNKNOWN
            | Reason.LIMIT_INVALID
            | Reason.WINDOW_TOO_LONG
        ):
            return Kind.INVALID
        case (
            Reason.ACCOUNT_EXISTS
            | Reason.ACCOUNT_SUSPENDED
            | Reason.GRANTS_FULL
            | Reason.TOPUP_STATE
            | Reason.REFERENCE_USED
            | Reason.STATEMENT_PAID
            | Reason.REQUEST_STATE
            | Reason.REQUESTS_FULL
            | Reason.RESERVATION_EXISTS
            | Reason.RESERVATION_ENDED
            | Reason.RESERVATION_STARTED
            | Reason.RESERVATION_ACTIVE
            | Reason.UNMATCHED_STATE
            | Reason.LOSS_REFUSED
            | Reason.LOSS_REFUNDED
            | Reason.REFUND_EXCEEDS
            | Reason.LIMIT_IN_USE
            | Reason.FAIR_SHARE
        ):
            return Kind.CONFLICT
        case Reason.INSUFFICIENT_CREDITS | Reason.ACCOUNT_DELINQUENT:
            return Kind.FUNDS
        case Reason.QUOTA_EXCEEDED | Reason.LIMIT_SET_ABOVE:
            return Kind.LIMIT
        case Reason.RATE_LIMITED:
            return Kind.THROTTLED
        case _:
            assert_never(reason)


Detail = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that was not carried out, why, and the numbers behind it.

    A refusal by a gate has the reports of every gate, those that pass as well.
    """

    reason: Reason
    message: str
    detail: Detail = field(default_factory=dict)
    reports: tuple[GateReport, ...] = ()


LEASE_UNKNOWN = Refused(Reason.RESERVATION_UNKNOWN, "There is no such reservation.")


def account_unknown(path: str) -> Refused:
    """The refusal for an account that does not exist, or might as well not."""
    return Refused(Reason.ACCOUNT_UNKNOWN, f"There is no account {path}.", {"account": path})
