"""Ledger entries on the wire: ordinary debit/credit pairs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpucredits.wire.scalars import CreditsText, InstantText

EntryTypeName = Literal[
    "issue",
    "topup",
    "transfer",
    "reserve",
    "release",
    "settle",
    "refund",
    "expire",
    "adjust",
    "overrun",
    "collect",
    "repay",
    "reverse",
]


class EntryAnswer(Struct, kw_only=True):
    """One balanced pair; a heartbeat's settlement and renewal share an entry id."""

    entry_id: str
    type: EntryTypeName
    debit_account: str
    debit_bucket: str
    credit_account: str
    credit_bucket: str
    amount: CreditsText
    effective_at: InstantText
    recorded_at: InstantText
    grant_id: str | None
    reservation_id: str | None
    job_id: str | None
    seq: int | None


class EntryPage(Struct, kw_only=True):
    """Entries in the order they were written."""

    entries: list[EntryAnswer]
    next_cursor: str | None = None
