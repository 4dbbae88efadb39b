"""The reconciler on the wire: comparisons, policies, alarms of drift, and use without a lease."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpucredits.core.reconciliation.comparison import (
    ALARM_FLOOR_DEFAULT,
    ALARM_PERCENT_DEFAULT,
    QUIET_MS_DEFAULT,
    QUIET_MS_MAX,
    TOLERANCE_MS_DEFAULT,
)
from gpucredits.wire.documented import (
    ACCOUNT,
    JOB_ID,
    NEXT_CURSOR,
    NODE,
    NOTE,
    RESERVATION_ID,
    SETTLED,
    STATE,
    USED_MS,
    doc,
)
from gpucredits.wire.scalars import AccountPath, Credits, CreditsText, InstantText, Note

ModeName = Literal["off", "report", "post"]
ComparedState = Literal["waiting", "agrees", "differs", "posted", "unmeasured", "final"]
UnmatchedState = Literal["open", "matched", "dismissed"]
COMPARED_STATES: tuple[ComparedState, ...] = (
    "waiting",
    "agrees",
    "differs",
    "posted",
    "unmeasured",
    "final",
)
UNMATCHED_STATES: tuple[UnmatchedState, ...] = ("open", "matched", "dismissed")
Tolerance = Annotated[int, Meta(ge=0, le=3_600_000)]
DriftPercent = Annotated[int, Meta(ge=0, le=100)]
QuietSeconds = Annotated[int, Meta(ge=0, le=QUIET_MS_MAX // 1_000)]

MEASURED_MS = doc("The time in which nodes measured use inside the lease.")
BEYOND_MS = doc("The time in which nodes measured use after the lease had ended.")
COST = doc("The price of the measured use, at the lease's pinned price.")
DRIFT = doc("The price of the measured use, less what was settled.")
RECONCILED = doc("Credits that the reconciler charged in addition; negative if given back.")
MODE = doc("off, report (compare and raise alarms), or post (correct the bill as well).")
TOLERANCE_MS = doc("Differences of measured time up to this are not drift.")
ALARM_PERCENT = doc("An alarm needs drift of at least this percentage of the bill.")
QUIET_SECONDS = doc("An ended lease is compared after this time without a new event.")
IS_ATTESTED = doc(
    "Whether the lease's own node measured it; other measurements are shown and never posted."
)
ALARM_FLOOR = doc("An alarm needs drift of at least this many credits.")


class ComparisonAnswer(Struct, kw_only=True):
    """A lease beside its measured use, as it was last compared."""

    reservation_id: Annotated[str, RESERVATION_ID]
    account: Annotated[str, ACCOUNT]
    job_id: Annotated[str, JOB_ID]
    state: Annotated[
        ComparedState,
        doc(
            "waiting, agrees, differs (reported only), posted, unmeasured, or final (lost work was"
            " given back, and nothing more is)."
        ),
    ]
    used_ms: Annotated[int, USED_MS]
    measured_ms: Annotated[int, MEASURED_MS]
    beyond_ms: Annotated[int, BEYOND_MS]
    events: Annotated[int, doc("The number of stored measurements.")]
    settled: Annotated[CreditsText, SETTLED]
    cost: Annotated[CreditsText, COST]
    drift: Annotated[CreditsText, DRIFT]
    reconciled: Annotated[CreditsText, RECONCILED]
    ended_at: Annotated[InstantText | None, doc("When the lease ended; null before.")]
    checked_at: Annotated[InstantText | None, doc("When it was compared; null before.")]
    is_attested: Annotated[bool, IS_ATTESTED]


class ComparisonPage(Struct, kw_only=True):
    """Compared leases, the newest first."""

    comparisons: Annotated[list[ComparisonAnswer], doc("The compared leases of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class ReconcilerAnswer(Struct, kw_only=True):
    """The reconciler's progress, and what waits for people."""

    seen_to: Annotated[
        InstantText | None,
        doc("The reconciler has looked at events stored until this instant; null at first."),
    ]
    waiting: Annotated[int, doc("Leases with new measurements that are not compared yet.")]
    due: Annotated[int, doc("Waiting leases that have ended and are quiet.")]
    open_alarms: Annotated[int, doc("Alarms that nobody has acknowledged.")]
    unmatched: Annotated[int, doc("Rows of unmatched use that wait for a decision.")]
    dropped: Annotated[
        int, doc("Events without a lease that were dropped: their orgs had no room for them.")
    ]
    claims: Annotated[int, doc("Claims of lost work whose refund is not posted yet.")]


class RunRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which leases to compare now."""

    account: Annotated[
        AccountPath | None, doc("Only leases of this account and of those below it.")
    ] = None
    at_once: Annotated[bool, doc("Do not wait until an ended lease is quiet.")] = False
    again: Annotated[bool, doc("Also leases that differed and were not posted.")] = False
    limit: Annotated[Annotated[int, Meta(ge=1, le=1_000)], doc("The most leases to compare.")] = 200


class RunAnswer(Struct, kw_only=True):
    """The counts and sums of a pass."""

    compared: Annotated[int, doc("Leases that were compared.")]
    agreed: Annotated[int, doc("Leases whose bill agrees with the measured use.")]
    differed: Annotated[int, doc("Leases that differ and were only reported.")]
    posted: Annotated[int, doc("Leases whose bill was corrected.")]
    charged: Annotated[CreditsText, doc("Credits charged in addition.")]
    given_back: Annotated[CreditsText, doc("Credits given back.")]
    alarms: Annotated[int, doc("Alarms that were raised.")]
    is_done: Annotated[bool, doc("Whether no further lease is due.")]


class ReconcilePolicyRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the reconciler does for an account and everything below it."""

    account: Annotated[AccountPath, ACCOUNT]
    mode: Annotated[ModeName, MODE] = "report"
    tolerance_ms: Annotated[Tolerance, TOLERANCE_MS] = TOLERANCE_MS_DEFAULT
    alarm_percent: Annotated[DriftPercent, ALARM_PERCENT] = ALARM_PERCENT_DEFAULT
    alarm_floor: Annotated[Credits, ALARM_FLOOR] = field(
        default_factory=lambda: Credits(ALARM_FLOOR_DEFAULT)
    )
    quiet_seconds: Annotated[QuietSeconds, QUIET_SECONDS] = QUIET_MS_DEFAULT // 1_000


class ReconcilePolicyChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of a policy to change; others stay, and null restores the default."""

    account: Annotated[AccountPath, ACCOUNT]
    mode: Annotated[ModeName | UnsetType | None, MODE] = UNSET
    tolerance_ms: Annotated[Tolerance | UnsetType | None, TOLERANCE_MS] = UNSET
    alarm_percent: Annotated[DriftPercent | UnsetType | None, ALARM_PERCENT] = UNSET
    alarm_floor: Annotated[Credits | UnsetType | None, ALARM_FLOOR] = UNSET
    quiet_seconds: Annotated[QuietSeconds | UnsetType | None, QUIET_SECONDS] = UNSET


class ReconcilePolicyAnswer(Struct, kw_only=True):
    """The policy that governs an account, and the account that it was set for."""

    account: Annotated[str, ACCOUNT]
    mode: Annotated[ModeName, MODE]
    tolerance_ms: Annotated[int, TOLERANCE_MS]
    alarm_percent: Annotated[int, ALARM_PERCENT]
    alarm_floor: Annotated[CreditsText, ALARM_FLOOR]
    quiet_seconds: Annotated[int, QUIET_SECONDS]
    set_for: Annotated[
        str | None, doc("The account that the policy was set for; null for the default.")
    ] = None


class NodeEvidence(Struct, kw_only=True):
    """What one node measured."""

    node: Annotated[str, NODE]
    measured_ms: Annotated[int, doc("The time in which the node measured use.")]
    events: Annotated[int, doc("The number of its measurements.")]


class HeartbeatEvidence(Struct, kw_only=True, omit_defaults=True):
    """What heartbeats reported."""

    used_ms: Annotated[int, USED_MS]
    seq: Annotated[int, doc("The last heartbeat that was accepted.")] = 0
    leases: Annotated[int, doc("The number of leases that drifted on the day.")] = 0


class MeasuredEvidence(Struct, kw_only=True, omit_defaults=True):
    """What nodes measured."""

    measured_ms: Annotated[int, MEASURED_MS]
    cost: Annotated[CreditsText, COST]
    beyond_ms: Annotated[int, BEYOND_MS] = 0
    events: Annotated[int, doc("The number of measurements.")] = 0
    is_attested: Annotated[bool, IS_ATTESTED] = False
    nodes: Annotated[list[NodeEvidence], doc("The measurements by node, 20 nodes at most.")] = []


class LedgerEvidence(Struct, kw_only=True, omit_defaults=True):
    """What the ledger charged."""

    settled: Annotated[CreditsText, SETTLED]
    reconciled: Annotated[CreditsText, RECONCILED]
    adjusted: Annotated[CreditsText, doc("Credits charged later, on top of what was settled.")] = ""
    refunded: Annotated[CreditsText, doc("Credits given back later.")] = ""
    price: Annotated[CreditsText, doc("The pinned price, in credits per GPU-hour.")] = ""


class DriftEvidence(Struct, kw_only=True):
    """Three records of the same use, side by side."""

    heartbeats: Annotated[HeartbeatEvidence, doc("What heartbeats reported.")]
    measured: Annotated[MeasuredEvidence, doc("What nodes measured.")]
    ledger: Annotated[LedgerEvidence, doc("What the ledger charged.")]


class DriftAlarmAnswer(Struct, kw_only=True):
    """Drift of one lease, or of an account's leases that ended on one day, with its evidence."""

    alarm_id: Annotated[str, doc("The id of the alarm.")]
    account: Annotated[str, ACCOUNT]
    reservation_id: Annotated[str | None, doc("The lease; null if it is about an account's day.")]
    job_id: Annotated[str | None, JOB_ID]
    starts_at: Annotated[InstantText, doc("The start of the lease or of the day.")]
    drift: Annotated[CreditsText, DRIFT]
    settled: Annotated[CreditsText, SETTLED]
    sentence: Annotated[str, doc("The drift in words.")]
    evidence: Annotated[DriftEvidence, doc("The three records.")]
    raised_at: Annotated[InstantText, doc("When the alarm was raised.")]
    is_open: Annotated[bool, doc("Whether the alarm is not acknowledged.")]
    acknowledged_by: Annotated[
        str | None, doc("The key that acknowledged the alarm; null before.")
    ] = None
    acknowledged_at: Annotated[
        InstantText | None, doc("When the alarm was acknowledged; null before.")
    ] = None
    note: Annotated[str, NOTE] = ""


class DriftAlarmPage(Struct, kw_only=True):
    """Alarms of drift, the newest first."""

    drift_alarms: Annotated[list[DriftAlarmAnswer], doc("The alarms of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class AcknowledgeRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Say that somebody has looked at an alarm."""

    note: Annotated[Note, NOTE] = field(default_factory=lambda: Note(""))


class UnmatchedAnswer(Struct, kw_only=True):
    """Measured use of a job on a node that belongs to no lease, and what became of it."""

    unmatched_id: Annotated[str, doc("The id of the unmatched use.")]
    account: Annotated[str | None, doc("The account that the events name; null if none.")]
    job_id: Annotated[str, doc("The job, or the id of a lease that does not exist.")]
    node: Annotated[str, NODE]
    state: Annotated[UnmatchedState, STATE]
    reservation_id: Annotated[
        str | None, doc("The lease that the use was matched to; null if none.")
    ]
    events: Annotated[int, doc("The number of measurements.")]
    used_ms: Annotated[int, doc("The time of all measurements, added up.")]
    first_at: Annotated[InstantText, doc("When the first measurement was stored.")]
    last_at: Annotated[InstantText, doc("When the last measurement was stored.")]
    decided_by: Annotated[
        str | None, doc("The key that decided; null if the server did or nobody has.")
    ] = None
    note: Annotated[str, NOTE] = ""


class UnmatchedPage(Struct, kw_only=True):
    """Unmatched use, the newest first."""

    unmatched_use: Annotated[list[UnmatchedAnswer], doc("The unmatched use of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class MatchRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The lease that measured use belongs to."""

    reservation_id: Annotated[str, RESERVATION_ID]
    note: Annotated[Note, NOTE] = field(default_factory=lambda: Note(""))


class DismissRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Why measured use belongs to no lease."""

    note: Annotated[Note, NOTE]
