"""Groups of reasons that several routes may give, for their rows in the route table."""

from __future__ import annotations

NO_ACCOUNT = ("account_unknown",)
NO_LIMIT = ("limit_unknown",)
BAD_LIMIT = ("limit_invalid", "zone_unknown")
SET_ABOVE = ("limit_set_above",)
NO_LEASE = ("reservation_unknown",)
GRANTING = (*NO_ACCOUNT, "window_ended", "grants_full")
RESERVING = (
    *NO_ACCOUNT,
    "account_suspended",
    "account_delinquent",
    "price_unknown",
    "payer_invalid",
    "max_amount_too_small",
    "window_too_long",
    "overdraft_too_large",
    "reservation_exists",
    "insufficient_credits",
    "quota_exceeded",
    "rate_limited",
    "fair_share",
)
ASKING = (*NO_ACCOUNT, "limit_unknown", "limit_invalid", "window_ended", "requests_full")
DECIDING = (
    *GRANTING,
    "account_suspended",
    "account_delinquent",
    "same_account",
    "insufficient_credits",
    "request_unknown",
    "request_state",
    "limit_unknown",
    *SET_ABOVE,
    "limit_invalid",
    "zone_unknown",
)
TOPUP_DECISION = ("topup_unknown", "topup_state", "grants_full", "window_ended")
