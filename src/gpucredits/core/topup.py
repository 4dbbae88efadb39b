"""Top-ups: payments on their way to becoming grants."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from gpucredits.core import bounds


class TopUpStatus(IntEnum):
    """Only a confirmed top-up has made a grant."""

    PENDING = 0
    CONFIRMED = 1
    FAILED = 2
    REVERSED = 3


@dataclass(slots=True)
class TopUpRow:
    """One payment and the grant it made, if any."""

    topup_id: int
    account_id: int
    amount: int
    payment_reference: str
    status: TopUpStatus = TopUpStatus.PENDING
    grant_id: int = 0
    expires_at: int = bounds.NEVER_US
    priority: int = bounds.PRIORITY_DEFAULT
    created_at: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
