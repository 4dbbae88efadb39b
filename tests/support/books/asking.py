"""Short words for what tests of the rules ask for: a job of alice's, and limits on its rate."""

from __future__ import annotations

from typing import Any

from gpucredits.core.account import Funding
from gpucredits.core.command import Reserve, SetRateLimit, UpdateAccount
from gpucredits.core.limits import tokens
from gpucredits.core.outcome import AccountSaved, RateLimitSaved
from support.books.ledger import Ledger

ALICE = "acme/vision/alice"
SLOW = 3_600 * 1_000  # a thousand micro-credits a second; an h100 spends ten thousand


def ask(account: str = ALICE, **fields: Any) -> Reserve:
    """A request of alice for one h100 unless told."""
    given = {"job_id": "job", "gpu_type": "h100", "milli_gpus": 1_000, **fields}
    return Reserve(account=account, **given)


def alone(ledger: Ledger, account: str = ALICE) -> None:
    """Let an account spend its own credits only."""
    ledger.accept(UpdateAccount(path=account, funding=Funding.OWN), AccountSaved)


def limit(ledger: Ledger, account: str, capacity: int, refill: int = SLOW) -> int:
    """Set a rate limit; its bucket's id."""
    command = SetRateLimit(account=account, capacity=capacity, refill_per_hour=refill)
    return ledger.accept(command, RateLimitSaved).bucket.bucket_id


def left(ledger: Ledger, account: str = "acme") -> int:
    """Tokens that an account has now."""
    book = ledger.stored
    return tokens(book.limits.buckets[book.paths[account].account_id], ledger.now)
