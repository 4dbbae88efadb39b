"""Lost work on the wire: checkpoints, claims, and the terms by which claims are paid."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpucredits.core.reconciliation.lost_work import HOURS_MAX, HOURS_PER_ACCOUNT_DEFAULT
from gpucredits.wire.documented import ACCOUNT, JOB_ID, NEXT_CURSOR, NOTE, RESERVATION_ID, doc
from gpucredits.wire.ledger.reservation import UsedMs
from gpucredits.wire.scalars import AccountPath, CreditsText, Note

CauseName = Literal["node_failure", "preemption"]
CAUSES: tuple[CauseName, ...] = ("node_failure", "preemption")
ClaimState = Literal["claimed", "refunded", "refused"]
CLAIM_STATES: tuple[ClaimState, ...] = ("claimed", "refunded", "refused")
Hours = Annotated[int, Meta(ge=0, le=HOURS_MAX)]
WindowHours = Annotated[int, Meta(ge=1, le=HOURS_MAX)]

CHECKPOINT_MS = doc("The time of the last checkpoint, in milliseconds since admission.")
CAUSE = doc("Why the work was lost.")
HOURS_PER_JOB = doc("The most hours refunded to a job in all; 0 refunds nothing.")
WINDOW_HOURS = doc("A claim must come within this many hours after the lease ended.")
HOURS_PER_ACCOUNT = doc(
    "The most hours refunded to all jobs of the account and below in any 30 days."
)
UNREPORTED_HOURS = doc("The most hours refunded to a job without a reported checkpoint.")


class CheckpointRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A job has saved its work."""

    checkpoint_ms: Annotated[UsedMs, CHECKPOINT_MS]


class CheckpointAnswer(Struct, kw_only=True):
    """The last checkpoint of a lease."""

    reservation_id: Annotated[str, RESERVATION_ID]
    checkpoint_ms: Annotated[int, CHECKPOINT_MS]


class LostWorkRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A claim for work that was lost when a lease ended."""

    reservation_id: Annotated[str, RESERVATION_ID]
    cause: Annotated[CauseName, CAUSE]
    checkpoint_ms: Annotated[
        UsedMs | None,
        doc("The claimant's last checkpoint; the later of this and the reported one counts."),
    ] = None
    note: Annotated[Note, NOTE] = field(default_factory=lambda: Note(""))


class LostWorkAnswer(Struct, kw_only=True):
    """A claim, and what was given back for it."""

    reservation_id: Annotated[str, RESERVATION_ID]
    account: Annotated[str, ACCOUNT]
    job_id: Annotated[str, JOB_ID]
    cause: Annotated[CauseName, CAUSE]
    state: Annotated[ClaimState, doc("Whether the refund is posted.")]
    checkpoint_ms: Annotated[int, CHECKPOINT_MS]
    is_reported: Annotated[bool, doc("Whether a checkpoint was reported while the job ran.")]
    lost_ms: Annotated[int, doc("The lost use that was given back.")]
    amount: Annotated[CreditsText, doc("Credits that were given back.")]
    claimed_by: Annotated[str, doc("The key that claimed.")]
    note: Annotated[str, NOTE] = ""


class LostWorkPage(Struct, kw_only=True):
    """Claims of lost work, the newest lease first."""

    lost_work: Annotated[list[LostWorkAnswer], doc("The claims of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class LossTermsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which part of lost work an account and everything below it gets back."""

    account: Annotated[AccountPath, ACCOUNT]
    hours_per_job: Annotated[Hours, HOURS_PER_JOB] = 0
    window_hours: Annotated[WindowHours, WINDOW_HOURS] = 72
    unreported_hours: Annotated[Hours, UNREPORTED_HOURS] = 0
    hours_per_account: Annotated[Hours, HOURS_PER_ACCOUNT] = HOURS_PER_ACCOUNT_DEFAULT


class LossTermsChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of lost work to change; others stay, and null restores the default."""

    account: Annotated[AccountPath, ACCOUNT]
    hours_per_job: Annotated[Hours | UnsetType | None, HOURS_PER_JOB] = UNSET
    window_hours: Annotated[WindowHours | UnsetType | None, WINDOW_HOURS] = UNSET
    unreported_hours: Annotated[Hours | UnsetType | None, UNREPORTED_HOURS] = UNSET
    hours_per_account: Annotated[Hours | UnsetType | None, HOURS_PER_ACCOUNT] = UNSET


class LossTermsAnswer(Struct, kw_only=True):
    """The terms that govern an account, and the account that they were set for."""

    account: Annotated[str, ACCOUNT]
    hours_per_job: Annotated[int, HOURS_PER_JOB]
    window_hours: Annotated[int, WINDOW_HOURS]
    unreported_hours: Annotated[int, UNREPORTED_HOURS]
    hours_per_account: Annotated[int, HOURS_PER_ACCOUNT]
    set_for: Annotated[
        str | None, doc("The account that the terms were set for; null for the default.")
    ] = None
