"""Ledger entries on the wire: ordinary debit/credit pairs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from gpucredits.core import ids
from gpucredits.core.entry import PAIRS, Entry, EntryType
from gpucredits.core.money import format_credits
from gpucredits.wire.documented import GRANT_ID, JOB_ID, NEXT_CURSOR, doc
from gpucredits.wire.scalars import CreditsText, InstantText, format_instant

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
    "restore",
    "withdraw",
]


class EntryAnswer(Struct, kw_only=True):
    """One balanced pair; a heartbeat's settlement and renewal share an entry id."""

    entry_id: Annotated[
        str, doc("The id of the entry; without gaps within an org, in commit order.")
    ]
    type: Annotated[EntryTypeName, doc("The kind of movement.")]
    debit_account: Annotated[str, doc("The account that gives the amount, or system: and a name.")]
    debit_bucket: Annotated[
        str, doc("The bucket that gives the amount: available, reserved or spent.")
    ]
    credit_account: Annotated[
        str, doc("The account that receives the amount, or system: and a name.")
    ]
    credit_bucket: Annotated[
        str, doc("The bucket that receives the amount: available, reserved or spent.")
    ]
    amount: Annotated[CreditsText, doc("Credits that moved.")]
    effective_at: Annotated[InstantText, doc("When the entry takes effect.")]
    recorded_at: Annotated[InstantText, doc("When the entry was recorded.")]
    grant_id: Annotated[str | None, GRANT_ID]
    reservation_id: Annotated[str | None, doc("The id of the lease; null if there is none.")]
    job_id: Annotated[str | None, JOB_ID]
    seq: Annotated[
        int | None, doc("The node's report that caused the entry; null if there was none.")
    ]


class EntryPage(Struct, kw_only=True):
    """Entries in the order they were written."""

    entries: Annotated[list[EntryAnswer], doc("The entries of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


ENTRY_TYPES: dict[EntryTypeName, EntryType] = {
    "issue": EntryType.ISSUE,
    "topup": EntryType.TOPUP,
    "transfer": EntryType.TRANSFER,
    "reserve": EntryType.RESERVE,
    "release": EntryType.RELEASE,
    "settle": EntryType.SETTLE,
    "refund": EntryType.REFUND,
    "expire": EntryType.EXPIRE,
    "adjust": EntryType.ADJUST,
    "overrun": EntryType.OVERRUN,
    "collect": EntryType.COLLECT,
    "repay": EntryType.REPAY,
    "reverse": EntryType.REVERSE,
    "restore": EntryType.RESTORE,
    "withdraw": EntryType.WITHDRAW,
}
_NAMES: dict[EntryType, EntryTypeName] = {kind: name for name, kind in ENTRY_TYPES.items()}


def entry_to_wire(
    org_id: int, entry: Entry, *, recorded_at: int, account: str, other: str, job_id: str
) -> list[EntryAnswer]:
    """The pairs of a stored row: first that of its hold, if any, then that of its type."""
    moves = []
    if entry.reserve:
        kind = EntryType.RESERVE if entry.reserve > 0 else EntryType.RELEASE
        moves.append((kind, abs(entry.reserve)))
    if entry.amount:
        moves.append((entry.type, entry.amount))
    lease = entry.reservation_id
    grant = entry.grant_id if entry.grant_id > 0 else entry.other_grant_id
    answers = []
    for kind, amount in moves:
        debit, credit = (_place(bucket, account, other) for bucket in PAIRS[kind])
        answers.append(
            EntryAnswer(
                entry_id=ids.format_id(ids.ENTRY, org_id, entry.entry_id),
                type=_NAMES[kind],
                debit_account=debit[0],
                debit_bucket=debit[1],
                credit_account=credit[0],
                credit_bucket=credit[1],
                amount=format_credits(amount),
                effective_at=format_instant(entry.effective_at),
                recorded_at=format_instant(recorded_at),
                grant_id=ids.format_id(ids.GRANT, org_id, grant) if grant else None,
                reservation_id=ids.format_id(ids.RESERVATION, org_id, lease) if lease else None,
                job_id=job_id or None,
                seq=entry.seq or None,
            )
        )
    return answers


def _place(bucket: str, account: str, other: str) -> tuple[str, str]:
    """(account, bucket) of one side of a pair."""
    if bucket.startswith("system:"):
        return bucket, "available"
    if bucket.startswith("other:"):
        return other, bucket.removeprefix("other:")
    return account, bucket
