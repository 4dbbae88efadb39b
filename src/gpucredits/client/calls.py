"""Every call of the client. Written by tools/operations.py; not by hand.

The route table of the server and the shapes of the wire say what is here. A call has the fields of
its request as parameters.
"""

# ruff: noqa: A002, PLC0414, PLR0913  # the names and fields of the wire; every call is here

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict, Unpack

from gpucredits.client.adapters import advance_clock as advance_clock
from gpucredits.client.adapters import heartbeats as heartbeats
from gpucredits.client.adapters import report_usage as report_usage
from gpucredits.client.call import Call, Number, When, change, question, read, write
from gpucredits.wire.access.keys import (
    AuditPage,
    KeyAnswer,
    KeyPage,
    KeyRequest,
    NewKeyAnswer,
    RoleName,
)
from gpucredits.wire.access.tokens import (
    JwkSet,
    RedeemAnswer,
    RedeemRequest,
    RotateRequest,
    SigningKeyAnswer,
    SigningKeyList,
    TokenAnswer,
)
from gpucredits.wire.billing.anomaly import (
    AnomalyPage,
    AnomalyTermsAnswer,
    AnomalyTermsChange,
    AnomalyTermsRequest,
)
from gpucredits.wire.billing.price import (
    NewPriceAnswer,
    PriceAnswer,
    PriceEndRequest,
    PricePage,
    PriceRequest,
)
from gpucredits.wire.billing.request import (
    ApproveRequest,
    AskRequest,
    DeclineRequest,
    RequestAnswer,
    RequestKindName,
    RequestPage,
    RequestStateName,
)
from gpucredits.wire.billing.statement import (
    PaymentAnswer,
    PaymentRequest,
    StatementAnswer,
    StatementPage,
)
from gpucredits.wire.billing.usage import (
    GroupingName,
    IdleGuardAnswer,
    IdleGuardChange,
    IdleGuardRequest,
    UsagePage,
)
from gpucredits.wire.dispatch.pool import (
    PoolAnswer,
    PoolChange,
    PoolList,
    PoolRequest,
    SharesAnswer,
    SnapshotAnswer,
    WeightsAnswer,
    WeightsChange,
    WeightsRequest,
)
from gpucredits.wire.dispatch.queue import QueueAnswer, QueuePage, QueueStateName
from gpucredits.wire.ledger.account import (
    AccountAnswer,
    AccountChange,
    AccountPage,
    AccountRequest,
    AccountTerms,
    BalanceAnswer,
    FundingName,
    ModelName,
    StatusAnswer,
    StatusName,
    TreeAnswer,
)
from gpucredits.wire.ledger.clock import ClockRepairAnswer, ClockRepairRequest, OrgClockPage
from gpucredits.wire.ledger.closing import ClosedAnswer, SettleRequest
from gpucredits.wire.ledger.correction import CorrectionAnswer, CorrectionRequest
from gpucredits.wire.ledger.credit import (
    GrantAnswer,
    GrantPage,
    IssueBatch,
    IssueRequest,
    IssueResults,
    TopUpAnswer,
    TopUpPage,
    TopUpRequest,
    TopUpStatusName,
    TransferAnswer,
    TransferPage,
    TransferRequest,
)
from gpucredits.wire.ledger.entry import EntryPage, EntryTypeName
from gpucredits.wire.ledger.heartbeat import BeatAnswer, ExtendRequest
from gpucredits.wire.ledger.reservation import (
    ExhaustionName,
    ReservationAnswer,
    ReservationPage,
    ReserveBatch,
    ReserveRequest,
    ReserveResults,
    StateName,
)
from gpucredits.wire.limits.admission import AdmissionAnswer
from gpucredits.wire.limits.boost import BoostAnswer, BoostRequest, BoostsAnswer, TargetName
from gpucredits.wire.limits.budget import (
    NAME_DEFAULT,
    BudgetBody,
    BudgetChange,
    BudgetsAnswer,
    BudgetsRequest,
    BudgetsTerms,
    BudgetTerms,
    PeriodsAnswer,
    RolloverName,
)
from gpucredits.wire.limits.limits import LimitsAnswer
from gpucredits.wire.limits.quota import (
    CalendarName,
    DimensionName,
    QuotaRequest,
    QuotasAnswer,
    QuotasRequest,
    QuotasTerms,
    QuotaTerms,
)
from gpucredits.wire.limits.rate_limit import (
    RateLimitAnswer,
    RateLimitChange,
    RateLimitRequest,
    RateLimitTerms,
)
from gpucredits.wire.metering.dead_letter import (
    DeadLetterAnswer,
    DeadLetterPage,
    LetterStateName,
    ReplayRequest,
)
from gpucredits.wire.metering.event import (
    EventConsumerAnswer,
    EventConsumerPage,
    EventConsumerRequest,
    EventPage,
)
from gpucredits.wire.outages.exposure import ExposurePage
from gpucredits.wire.outages.maintenance import MaintenanceAnswer, MaintenanceRequest
from gpucredits.wire.reconciliation.comparison import (
    AcknowledgeRequest,
    ComparisonPage,
    DismissRequest,
    DriftAlarmAnswer,
    DriftAlarmPage,
    MatchRequest,
    ModeName,
    ReconcilePolicyAnswer,
    ReconcilePolicyChange,
    ReconcilePolicyRequest,
    ReconcilerAnswer,
    RunAnswer,
    RunRequest,
    UnmatchedAnswer,
    UnmatchedPage,
)
from gpucredits.wire.reconciliation.lost_work import (
    CauseName,
    CheckpointAnswer,
    CheckpointRequest,
    LossTermsAnswer,
    LossTermsChange,
    LossTermsRequest,
    LostWorkAnswer,
    LostWorkPage,
    LostWorkRequest,
)
from gpucredits.wire.request_limit import (
    RequestLimitAnswer,
    RequestLimitChange,
    RequestLimitRequest,
)
from gpucredits.wire.system import HealthAnswer, TimeAnswer


class ReserveFields(TypedDict, total=False):
    """What may be said of a job that wants a lease."""

    job_id: Required[str]
    gpu_type: Required[str]
    gpu_count: Number | None
    region: str | None
    node: str | None
    window_seconds: int | None
    escrow_windows: int | None
    max_amount: Number | None
    payer: str | None
    exhaustion: ExhaustionName | None
    grace_seconds: int | None
    overdraft: Number | None
    metadata: Mapping[str, str] | None
    allow_partial: bool | None
    priority: int | None
    expected_seconds: int | None
    preemptible: bool | None
    resources: Mapping[str, int] | None
    token: bool | None


class EnqueueFields(ReserveFields, total=False):
    """What may be said of a job that waits: until when, and with whom it starts."""

    deadline: When | None
    gang: str | None
    gang_size: int | None


def usage_page(
    account: str,
    *,
    since: When | None = None,
    until: When | None = None,
    by: GroupingName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[UsagePage]:
    """List what an account and everything below it paid for.

    ``paid`` has the spending in groups, ``leases`` the leases beside what nodes measured.
    ``total`` is the spending from ``since`` until ``until``, whatever the page shows.
    """
    return read("/v1/accounts/{account}/usage", UsagePage, locals())


def reserve(
    account: str, *, key: str | None = None, dry_run: bool = False, **fields: Unpack[ReserveFields]
) -> Call[ReservationAnswer]:
    """Ask for a lease: GPUs of one type for a job on one node.

    The first window's credits are held. ``exhaustion`` says what becomes of the job when the lease
    can no longer be renewed in full. With ``wait`` (``enqueue`` in the client) the request waits
    for capacity, credits or quota.
    """
    return write("/v1/reservations", ReservationAnswer, locals(), shape=ReserveRequest)


def enqueue(
    account: str, *, key: str | None = None, **fields: Unpack[EnqueueFields]
) -> Call[QueueAnswer]:
    """Ask for a lease, and wait for capacity, credits or quota if need be."""
    return write("/v1/reservations", QueueAnswer, {**locals(), "wait": True}, shape=ReserveRequest)


def reserve_all(
    items: Sequence[Mapping[str, Any]],
    *,
    atomic: bool | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[ReserveResults]:
    """Ask for many leases, each on its own or all or nothing.

    Each item has the fields of a single reserve. ``atomic``: all or nothing.
    """
    return write("/v1/reservations:batch", ReserveResults, locals(), shape=ReserveBatch)


def extend(
    reservation_id: str, *, seq: int, used_ms: int, dry_run: bool = False
) -> Call[BeatAnswer]:
    """Send a heartbeat for one lease: settle what was used and renew.

    The seq makes the heartbeat safe to repeat.
    """
    return write(
        "/v1/reservations/{reservation_id}:extend",
        BeatAnswer,
        locals(),
        shape=ExtendRequest,
        is_keyed=False,
    )


def settle(
    reservation_id: str,
    *,
    seq: int | None = None,
    used_ms: int | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[ClosedAnswer]:
    """End a job: settle what was used, release the rest.

    Without ``used_ms`` the last accepted use stands.
    """
    return write(
        "/v1/reservations/{reservation_id}:settle", ClosedAnswer, locals(), shape=SettleRequest
    )


def cancel(
    reservation_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[ClosedAnswer]:
    """Release the hold of a job that never started."""
    return write("/v1/reservations/{reservation_id}:cancel", ClosedAnswer, locals())


def refund(
    reservation_id: str,
    amount: Number,
    *,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[CorrectionAnswer]:
    """Give settled credits back to the grants that paid."""
    return write("/v1/refunds", CorrectionAnswer, locals(), shape=CorrectionRequest)


def adjust(
    reservation_id: str,
    amount: Number,
    *,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[CorrectionAnswer]:
    """Charge more for a lease than was settled."""
    return write("/v1/adjustments", CorrectionAnswer, locals(), shape=CorrectionRequest)


def issue(
    account: str,
    amount: Number,
    *,
    starts_at: When | None = None,
    expires_at: When | None = None,
    priority: int | None = None,
    source: Literal["allowance", "promo"] | None = None,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[GrantAnswer]:
    """Grant credits to an account.

    The credits are valid on [starts_at, expires_at).
    """
    return write("/v1/credits/issue", GrantAnswer, locals(), shape=IssueRequest)


def issue_all(
    items: Sequence[Mapping[str, Any]],
    *,
    atomic: bool | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[IssueResults]:
    """Make many grants, each on its own or all or nothing.

    Each item has the fields of a single issue. ``atomic``: all or nothing.
    """
    return write("/v1/credits/issue:batch", IssueResults, locals(), shape=IssueBatch)


def create_topup(
    account: str,
    amount: Number,
    *,
    payment_reference: str,
    status: Literal["pending", "confirmed"] | None = None,
    expires_at: When | None = None,
    priority: int | None = None,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[TopUpAnswer]:
    """Record a payment.

    Only a confirmed payment makes a grant. Keys that may decide about top-ups may record the
    payment as confirmed at once.
    """
    return write("/v1/topups", TopUpAnswer, locals(), shape=TopUpRequest)


def confirm_topup(
    topup_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[TopUpAnswer]:
    """Confirm that a payment arrived, and grant the credits."""
    return write("/v1/topups/{topup_id}:confirm", TopUpAnswer, locals())


def fail_topup(
    topup_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[TopUpAnswer]:
    """Record that a payment will not arrive."""
    return write("/v1/topups/{topup_id}:fail", TopUpAnswer, locals())


def reverse_topup(
    topup_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[TopUpAnswer]:
    """Record that a payment was taken back.

    Credits that were already spent become debt.
    """
    return write("/v1/topups/{topup_id}:reverse", TopUpAnswer, locals())


def transfer(
    source: str,
    target: str,
    amount: Number,
    *,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[TransferAnswer]:
    """Move credits that are not held between two accounts of one org."""
    return write("/v1/credits/transfer", TransferAnswer, locals(), shape=TransferRequest)


def set_price(
    gpu_type: str,
    credits_per_gpu_hour: Number,
    *,
    region: str | None = None,
    effective_from: When | None = None,
    effective_to: When | None = None,
    account: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[NewPriceAnswer]:
    """Add a version of a list price, or of the discount of an account.

    A discount holds for the account and everything below it. A version with ``effective_to`` ends
    at that instant, and the earlier version holds again.
    """
    return write("/v1/prices", NewPriceAnswer, locals(), shape=PriceRequest)


def end_price(
    gpu_type: str,
    *,
    region: str | None = None,
    effective_to: When | None = None,
    account: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PriceAnswer]:
    """End a list price, or the discount of an account.

    The price ends now or at ``effective_to``. Leases that were admitted before keep their price.
    """
    return write("/v1/prices:end", PriceAnswer, locals(), shape=PriceEndRequest)


def price_page(
    *,
    gpu_type: str | None = None,
    region: str | None = None,
    account: str | None = None,
    effective_by: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[PricePage]:
    """List prices and discounts, the newest version first.

    A key sees list prices, and the discounts of its scope and of the accounts above.
    """
    return read("/v1/prices", PricePage, locals())


def ask(
    account: str,
    kind: RequestKindName,
    amount: Number,
    *,
    reason: str,
    ends_at: When | None = None,
    quota_id: str | None = None,
    refill_per_hour: Number | None = None,
    budget: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestAnswer]:
    """Ask for more credits, for a boost of a limit, or for a bigger budget."""
    return write("/v1/requests", RequestAnswer, locals(), shape=AskRequest)


def request_page(
    account: str | None = None,
    *,
    state: RequestStateName | None = None,
    kind: RequestKindName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[RequestPage]:
    """List budget requests, the latest first.

    ``account`` means the account and everything below it; without it, the scope of the key.
    """
    return read("/v1/requests", RequestPage, locals())


def request(request_id: str) -> Call[RequestAnswer]:
    """Get one budget request."""
    return read("/v1/requests/{request_id}", RequestAnswer, locals())


def approve_request(
    request_id: str,
    *,
    amount: Number | None = None,
    refill_per_hour: Number | None = None,
    ends_at: When | None = None,
    take_from: str | None = None,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestAnswer]:
    """Approve a budget request and carry it out.

    Numbers that are given replace those that were asked for.
    """
    return write("/v1/requests/{request_id}:approve", RequestAnswer, locals(), shape=ApproveRequest)


def decline_request(
    request_id: str, note: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestAnswer]:
    """Decline a budget request, and say why."""
    return write("/v1/requests/{request_id}:decline", RequestAnswer, locals(), shape=DeclineRequest)


def cancel_request(
    request_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestAnswer]:
    """Cancel a budget request that the same key made."""
    return write("/v1/requests/{request_id}:cancel", RequestAnswer, locals())


def statement_page(
    account: str | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[StatementPage]:
    """List statements, the latest first."""
    return read("/v1/statements", StatementPage, locals())


def statement(statement_id: str) -> Call[StatementAnswer]:
    """Get one statement."""
    return read("/v1/statements/{statement_id}", StatementAnswer, locals())


def pay_statement(
    statement_id: str,
    amount: Number,
    *,
    payment_reference: str,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PaymentAnswer]:
    """Record a payment for a statement.

    The payment repays what is owed. The account is resumed once nothing is overdue.
    """
    return write("/v1/statements/{statement_id}:pay", PaymentAnswer, locals(), shape=PaymentRequest)


def anomaly_page(
    account: str | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[AnomalyPage]:
    """List hours of unusual spending, the latest first.

    ``account`` means the account and everything below it; without it, the scope of the key.
    """
    return read("/v1/anomalies", AnomalyPage, locals())


def anomaly_terms(account: str) -> Call[AnomalyTermsAnswer]:
    """Get when an hour's spending of an account is unusual, and whether that suspends it."""
    return read("/v1/anomaly-terms", AnomalyTermsAnswer, locals())


def set_anomaly_terms(
    account: str,
    *,
    ratio_percent: int | None = None,
    floor: Number | None = None,
    auto_suspend: bool | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AnomalyTermsAnswer]:
    """Change some of the terms by which an account's spending is unusual.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/anomaly-terms",
        AnomalyTermsAnswer,
        locals(),
        change=AnomalyTermsChange,
        whole=AnomalyTermsRequest,
    )


def reconciliation_page(
    account: str | None = None,
    *,
    state: Literal["waiting", "agrees", "differs", "posted", "unmeasured", "final"] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[ComparisonPage]:
    """List leases with measured use, and how each compared with its bill."""
    return read("/v1/reconciliations", ComparisonPage, locals())


def reconciler() -> Call[ReconcilerAnswer]:
    """Get how far the reconciler is, and what waits for people."""
    return read("/v1/reconciler", ReconcilerAnswer, locals())


def run_reconciler(
    *,
    account: str | None = None,
    at_once: bool | None = None,
    again: bool | None = None,
    limit: int | None = None,
    dry_run: bool = False,
) -> Call[RunAnswer]:
    """Compare leases that are due now, and post what differs where the policy says so.

    The reconciler does the same by itself. A dry run tells what it would post.
    """
    return write("/v1/reconciler:run", RunAnswer, locals(), shape=RunRequest, is_keyed=False)


def reconciliation_policy(account: str) -> Call[ReconcilePolicyAnswer]:
    """Get the policy that governs an account: its own, or that of the nearest account above."""
    return read("/v1/reconciliation-policy", ReconcilePolicyAnswer, locals())


def set_reconciliation_policy(
    account: str,
    *,
    mode: ModeName | None = None,
    tolerance_ms: int | None = None,
    alarm_percent: int | None = None,
    alarm_floor: Number | None = None,
    quiet_seconds: int | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[ReconcilePolicyAnswer]:
    """Change some terms of an account's policy.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/reconciliation-policy",
        ReconcilePolicyAnswer,
        locals(),
        change=ReconcilePolicyChange,
        whole=ReconcilePolicyRequest,
    )


def end_reconciliation_policy(
    account: str, *, key: str | None = None, dry_run: bool = False
) -> Call[ReconcilePolicyAnswer]:
    """End an account's own policy: that of the nearest account above holds again."""
    return write("/v1/reconciliation-policy", ReconcilePolicyAnswer, locals(), method="DELETE")


def drift_alarm_page(
    account: str | None = None,
    *,
    acknowledged: bool | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[DriftAlarmPage]:
    """List alarms of drift with their evidence, the newest first."""
    return read("/v1/drift-alarms", DriftAlarmPage, locals())


def acknowledge_drift_alarm(
    alarm_id: str, *, note: str | None = None, key: str | None = None, dry_run: bool = False
) -> Call[DriftAlarmAnswer]:
    """Record that somebody has looked at an alarm."""
    return write(
        "/v1/drift-alarms/{alarm_id}:acknowledge",
        DriftAlarmAnswer,
        locals(),
        shape=AcknowledgeRequest,
    )


def unmatched_page(
    account: str | None = None,
    *,
    state: Literal["open", "matched", "dismissed"] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[UnmatchedPage]:
    """List measured use that names no lease, or one that does not exist, the newest first.

    Use of a lease that does not exist names no account: keys of its org and of the system see it.
    """
    return read("/v1/unmatched-use", UnmatchedPage, locals())


def match_use(
    unmatched_id: str,
    reservation_id: str,
    *,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[UnmatchedAnswer]:
    """Say which lease measured use belongs to; the lease is compared in the next pass."""
    return write(
        "/v1/unmatched-use/{unmatched_id}:match", UnmatchedAnswer, locals(), shape=MatchRequest
    )


def dismiss_use(
    unmatched_id: str, note: str, *, key: str | None = None, dry_run: bool = False
) -> Call[UnmatchedAnswer]:
    """Say that measured use belongs to no lease, and why."""
    return write(
        "/v1/unmatched-use/{unmatched_id}:dismiss", UnmatchedAnswer, locals(), shape=DismissRequest
    )


def report_checkpoint(
    reservation_id: str, checkpoint_ms: int, *, dry_run: bool = False
) -> Call[CheckpointAnswer]:
    """Report that a running job has saved its work; the latest checkpoint counts."""
    return write(
        "/v1/reservations/{reservation_id}:checkpoint",
        CheckpointAnswer,
        locals(),
        shape=CheckpointRequest,
        is_keyed=False,
    )


def claim_lost_work(
    reservation_id: str,
    cause: CauseName,
    *,
    checkpoint_ms: int | None = None,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[LostWorkAnswer]:
    """Claim the work that a lease lost when its node failed or it was preempted.

    The use after the last checkpoint goes back to the grants that paid, within the account's
    terms. The server knows preemptions. Only staff of the system attests that a node failed.
    """
    return write("/v1/lost-work", LostWorkAnswer, locals(), shape=LostWorkRequest)


def lost_work_page(
    account: str | None = None, *, cursor: str | None = None, limit: int | None = None
) -> Call[LostWorkPage]:
    """List claims of lost work, the newest lease first."""
    return read("/v1/lost-work", LostWorkPage, locals())


def lost_work_terms(account: str) -> Call[LossTermsAnswer]:
    """Get the terms of lost work that govern an account."""
    return read("/v1/lost-work-terms", LossTermsAnswer, locals())


def set_lost_work_terms(
    account: str,
    *,
    hours_per_job: int | None = None,
    window_hours: int | None = None,
    unreported_hours: int | None = None,
    hours_per_account: int | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[LossTermsAnswer]:
    """Change some of the terms of an account.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/lost-work-terms",
        LossTermsAnswer,
        locals(),
        change=LossTermsChange,
        whole=LossTermsRequest,
    )


def end_lost_work_terms(
    account: str, *, key: str | None = None, dry_run: bool = False
) -> Call[LossTermsAnswer]:
    """End an account's own terms: those of the nearest account above hold again."""
    return write("/v1/lost-work-terms", LossTermsAnswer, locals(), method="DELETE")


def explain(account: str, **fields: Unpack[ReserveFields]) -> Call[AdmissionAnswer]:
    """Ask whether a reserve would be admitted now, and what each gate says.

    The check takes the same steps as a reserve and stores nothing.
    """
    return question("/v1/admissions:check", AdmissionAnswer, locals(), shape=ReserveRequest)


def limits(account: str) -> Call[LimitsAnswer]:
    """List every limit that a job of an account meets: cap, used, left, resets at.

    The org's limits come first, the request limit of the key last.
    """
    return read("/v1/accounts/{account}/limits", LimitsAnswer, locals())


def quotas(account: str) -> Call[QuotasAnswer]:
    """List the quotas of an account, with what is used and left."""
    return read("/v1/accounts/{account}/quotas", QuotasAnswer, locals())


def set_quota(
    account: str,
    dimension: DimensionName,
    limit: Number,
    *,
    gpu_type: str | None = None,
    calendar: CalendarName | None = None,
    zone: str | None = None,
    rolling_hours: int | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[QuotaTerms]:
    """Set one quota of an account.

    A quota that is the same in everything but the limit gets the new limit.
    """
    return write("/v1/accounts/{account}/quotas", QuotaTerms, locals(), shape=QuotaRequest)


def replace_quotas(
    account: str,
    quotas: Sequence[Mapping[str, Any]],
    *,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[QuotasTerms]:
    """Replace all quotas of an account at once.

    Each item has the fields of a single quota.
    """
    return write(
        "/v1/accounts/{account}/quotas", QuotasTerms, locals(), shape=QuotasRequest, method="PUT"
    )


def end_quota(
    account: str, quota_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[QuotaTerms]:
    """End a quota."""
    return write("/v1/accounts/{account}/quotas/{quota_id}", QuotaTerms, locals(), method="DELETE")


def rate_limit(account: str) -> Call[RateLimitAnswer]:
    """Get an account's rate limit, with what can be authorised now."""
    return read("/v1/accounts/{account}/rate-limit", RateLimitAnswer, locals())


def set_rate_limit(
    account: str,
    *,
    capacity: Number | None = None,
    refill_per_hour: Number | None = None,
    replace: bool = False,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RateLimitTerms]:
    """Change some terms of an account's rate limit.

    An account authorises at most ``capacity`` credits at once, and ``refill_per_hour`` more each
    hour.

    Terms that are not given stay as they are; ``replace`` replaces all terms.
    """
    return change(
        "/v1/accounts/{account}/rate-limit",
        RateLimitTerms,
        locals(),
        change=RateLimitChange,
        whole=RateLimitRequest,
    )


def end_rate_limit(
    account: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RateLimitTerms]:
    """End an account's rate limit."""
    return write("/v1/accounts/{account}/rate-limit", RateLimitTerms, locals(), method="DELETE")


def boosts(account: str) -> Call[BoostsAnswer]:
    """List the boosts of an account's limits that have not ended."""
    return read("/v1/accounts/{account}/boosts", BoostsAnswer, locals())


def add_boost(
    account: str,
    amount: Number | None = None,
    *,
    ends_at: When,
    refill_per_hour: Number | None = None,
    starts_at: When | None = None,
    target_id: str | None = None,
    dimension: TargetName | None = None,
    gpu_type: str | None = None,
    calendar: CalendarName | None = None,
    zone: str | None = None,
    rolling_hours: int | None = None,
    note: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[BoostAnswer]:
    """Raise a limit of an account until ``ends_at``.

    ``target_id`` names the limit, or ``dimension`` with the other terms that the limit was set
    with.
    """
    return write("/v1/accounts/{account}/boosts", BoostAnswer, locals(), shape=BoostRequest)


def end_boost(
    account: str, boost_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[BoostAnswer]:
    """End a boost now."""
    return write("/v1/accounts/{account}/boosts/{boost_id}", BoostAnswer, locals(), method="DELETE")


def budgets(account: str) -> Call[BudgetsAnswer]:
    """List the budgets of an account and their open periods."""
    return read("/v1/accounts/{account}/budgets", BudgetsAnswer, locals())


def period_page(
    account: str, name: str = NAME_DEFAULT, *, cursor: str | None = None, limit: int | None = None
) -> Call[PeriodsAnswer]:
    """List the periods of a budget, the latest first."""
    return read("/v1/accounts/{account}/budgets/{name}/periods", PeriodsAnswer, locals())


def set_budget(
    account: str,
    allowance: Number | None = None,
    *,
    name: str | None = None,
    calendar: CalendarName | None = None,
    zone: str | None = None,
    starts_at: When | None = None,
    ends_at: When | None = None,
    rollover: RolloverName | None = None,
    rollover_cap: Number | None = None,
    rollover_seconds: int | None = None,
    priority: int | None = None,
    warn_percent: Sequence[int] | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[BudgetTerms]:
    """Make a budget, or change some terms of it from the next period on.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/accounts/{account}/budgets/{name}",
        BudgetTerms,
        locals(),
        change=BudgetChange,
        whole=BudgetBody,
    )


def replace_budgets(
    account: str,
    budgets: Sequence[Mapping[str, Any]],
    *,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[BudgetsTerms]:
    """Replace all budgets of an account at once.

    Each item has the fields of a single budget.
    """
    return write(
        "/v1/accounts/{account}/budgets", BudgetsTerms, locals(), shape=BudgetsRequest, method="PUT"
    )


def end_budget(
    account: str, name: str = NAME_DEFAULT, *, key: str | None = None, dry_run: bool = False
) -> Call[BudgetTerms]:
    """End a budget: the open period runs to its end, and no other begins."""
    return write("/v1/accounts/{account}/budgets/{name}", BudgetTerms, locals(), method="DELETE")


def idle_guard(account: str) -> Call[IdleGuardAnswer]:
    """Get the idle guard in force for an account: its own, or that of the nearest account above.

    Agents of nodes ask for it.
    """
    return read("/v1/accounts/{account}/idle-guard", IdleGuardAnswer, locals())


def set_idle_guard(
    account: str,
    *,
    window_seconds: int | None = None,
    utilization_percent: int | None = None,
    memory_percent: int | None = None,
    startup_seconds: int | None = None,
    warning_seconds: int | None = None,
    grace_seconds: int | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[IdleGuardAnswer]:
    """Change some terms of an account's idle guard; others stay as the guard in force has them.

    An account that inherited its guard then has one of its own.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/accounts/{account}/idle-guard",
        IdleGuardAnswer,
        locals(),
        change=IdleGuardChange,
        whole=IdleGuardRequest,
    )


def end_idle_guard(
    account: str, *, key: str | None = None, dry_run: bool = False
) -> Call[IdleGuardAnswer]:
    """End an account's own idle guard: that of the nearest account above holds again."""
    return write("/v1/accounts/{account}/idle-guard", IdleGuardAnswer, locals(), method="DELETE")


def pools() -> Call[PoolList]:
    """List every pool with its capacity and its terms of sharing."""
    return read("/v1/pools", PoolList, locals())


def pool(gpu_type: str, region: str = "default") -> Call[PoolAnswer]:
    """Get one pool."""
    return read("/v1/pools/{gpu_type}/{region}", PoolAnswer, locals())


def set_pool(
    gpu_type: str,
    region: str = "default",
    *,
    capacity: Number | None = None,
    resources: Mapping[str, int] | None = None,
    policy: Mapping[str, Any] | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[PoolAnswer]:
    """Make a pool, or change some terms of it.

    Reserves into a pool with a capacity take turns; a pool without a capacity does not gate.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/pools/{gpu_type}/{region}", PoolAnswer, locals(), change=PoolChange, whole=PoolRequest
    )


def remove_pool(
    gpu_type: str, region: str = "default", *, key: str | None = None, dry_run: bool = False
) -> Call[PoolAnswer]:
    """Remove a pool.

    Requests that wait in the pool no longer wait for capacity.
    """
    return write("/v1/pools/{gpu_type}/{region}", PoolAnswer, locals(), method="DELETE")


def weights(gpu_type: str, region: str = "default") -> Call[WeightsAnswer]:
    """List the weights of a pool that the key may see.

    A key for an org or a project sees the weights of its own org or project.
    """
    return read("/v1/pools/{gpu_type}/{region}/weights", WeightsAnswer, locals())


def set_weights(
    gpu_type: str,
    region: str = "default",
    *,
    weights: Sequence[Mapping[str, Any]],
    key: str | None = None,
    dry_run: bool = False,
) -> Call[WeightsAnswer]:
    """Replace all weights of a pool.

    Each item has ``account``, ``weight`` and ``may_borrow``.
    """
    return write(
        "/v1/pools/{gpu_type}/{region}/weights",
        WeightsAnswer,
        locals(),
        shape=WeightsRequest,
        method="PUT",
    )


def change_weights(
    gpu_type: str,
    region: str = "default",
    *,
    weights: Sequence[Mapping[str, Any]],
    key: str | None = None,
    dry_run: bool = False,
) -> Call[WeightsAnswer]:
    """Change some weights of a pool.

    Accounts and fields that are left out stay as they are.
    """
    return write(
        "/v1/pools/{gpu_type}/{region}/weights",
        WeightsAnswer,
        locals(),
        shape=WeightsChange,
        method="PATCH",
    )


def shares(gpu_type: str, region: str = "default") -> Call[SharesAnswer]:
    """List how much of a pool each tenant may hold, holds, borrows and waits for.

    A key sees other tenants only in the totals.
    """
    return read("/v1/pools/{gpu_type}/{region}/shares", SharesAnswer, locals())


def snapshot(gpu_type: str, region: str = "default") -> Call[SnapshotAnswer]:
    """Get the last decision about a pool, with its snapshot.

    The decision can be replayed from the snapshot.
    """
    return read("/v1/pools/{gpu_type}/{region}/snapshot", SnapshotAnswer, locals())


def queue_page(
    *,
    account: str | None = None,
    pool: str | None = None,
    region: str | None = None,
    state: QueueStateName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[QueuePage]:
    """List requests that wait or waited in a queue, the latest first.

    ``pool`` is such as h100 or h100/eu. With a ``region``, ``pool`` is the GPU type alone.
    """
    return read("/v1/queue", QueuePage, locals())


def queued(queue_id: str, *, wait_seconds: int | None = None) -> Call[QueueAnswer]:
    """Get one queued request, at once or when it no longer waits.

    The answer comes within ``wait_seconds``.
    """
    return read("/v1/queue/{queue_id}", QueueAnswer, locals())


def cancel_queued(
    queue_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[QueueAnswer]:
    """Cancel a queued request.

    A member of a gang takes the whole gang with it, so a caller of one node cancels no member.
    """
    return write("/v1/queue/{queue_id}:cancel", QueueAnswer, locals())


def create_key(
    role: RoleName,
    *,
    scope: str | None = None,
    name: str | None = None,
    expires_at: When | None = None,
    node: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[NewKeyAnswer]:
    """Make an API key within the caller's own scope, which ends no later than the caller's key.

    Only this answer shows the secret. A key with a ``node`` acts for leases of that node only, and
    has no other permission but to read prices and the clock. Without a ``scope`` the key gets the
    caller's scope, and without an ``expires_at`` the end of the caller's key.
    """
    return write("/v1/keys", NewKeyAnswer, locals(), shape=KeyRequest)


def key_page(*, cursor: str | None = None, limit: int | None = None) -> Call[KeyPage]:
    """List the API keys within the caller's scope, without their secrets."""
    return read("/v1/keys", KeyPage, locals())


def whoami() -> Call[KeyAnswer]:
    """Get the API key of this request: its name, role, scope and node.

    The node is that of the key, or of the certificate that the request came over.
    """
    return read("/v1/keys/self", KeyAnswer, locals())


def revoke_key(key_id: str, *, key: str | None = None, dry_run: bool = False) -> Call[KeyAnswer]:
    """Revoke an API key for good.

    A key may revoke itself.
    """
    return write("/v1/keys/{key_id}:revoke", KeyAnswer, locals())


def audit_page(
    *,
    account: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    resource: str | None = None,
    metadata: Mapping[str, str] | None = None,
    since: When | None = None,
    until: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[AuditPage]:
    """List administrative acts within the caller's scope, the latest first."""
    return read("/v1/audit", AuditPage, locals())


def jwks() -> Call[JwkSet]:
    """Get the public keys of lease tokens, as a JSON Web Key Set.

    No API key is needed. Readers may keep the set for five minutes.
    """
    return read("/v1/jwks", JwkSet, locals())


def lease_token(reservation_id: str) -> Call[TokenAnswer]:
    """Get a signed token for a live lease; the token expires at the lease's present end.

    Ask again after a heartbeat for a token that lasts longer. A token is a JWT; anybody can check
    it with the keys of ``GET /v1/jwks``.
    """
    return question("/v1/reservations/{reservation_id}:token", TokenAnswer, locals())


def redeem_token(
    token: str,
    *,
    reservation_id: str | None = None,
    node: str | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RedeemAnswer]:
    """Redeem a lease token before its job starts.

    A lease starts one job, so one of its tokens can be redeemed, once. The token must be for the
    named lease and node, and for the caller's own node if the caller has one. Its lease must be
    live.
    """
    return write("/v1/tokens:redeem", RedeemAnswer, locals(), shape=RedeemRequest)


def rotate_signing_key(
    *, signs_in_seconds: int | None = None, key: str | None = None, dry_run: bool = False
) -> Call[SigningKeyAnswer]:
    """Make the key that signs lease tokens next.

    The key is published at once, and signs after ``signs_in_seconds``. Tokens of earlier keys stay
    valid until they expire.
    """
    return write("/v1/signing-keys:rotate", SigningKeyAnswer, locals(), shape=RotateRequest)


def signing_keys() -> Call[SigningKeyList]:
    """List the keys that sign or signed lease tokens, the latest first."""
    return read("/v1/signing-keys", SigningKeyList, locals())


def revoke_signing_key(
    signing_key_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[SigningKeyList]:
    """Revoke a stolen signing key at once: all of its tokens become invalid.

    If it is the key that signs now, the next token is signed with a new key.
    """
    return write("/v1/signing-keys/{signing_key_id}:revoke", SigningKeyList, locals())


def key_limit(key_id: str) -> Call[RequestLimitAnswer]:
    """Get the request limit in force for a key.

    A key without a limit of its own has the server's default.
    """
    return read("/v1/keys/{key_id}/limit", RequestLimitAnswer, locals())


def set_key_limit(
    key_id: str,
    *,
    refill_per_second: int | None = None,
    refill_per_hour: int | None = None,
    capacity: int | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestLimitAnswer]:
    """Change some terms of a key's request limit.

    Other terms stay as the limit in force has them.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/keys/{key_id}/limit",
        RequestLimitAnswer,
        locals(),
        change=RequestLimitChange,
        whole=RequestLimitRequest,
    )


def end_key_limit(
    key_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestLimitAnswer]:
    """End a key's own request limit: the server's default holds again."""
    return write("/v1/keys/{key_id}/limit", RequestLimitAnswer, locals(), method="DELETE")


def org_request_limit(org: str) -> Call[RequestLimitAnswer]:
    """Get the limit on the requests of all keys of an org together."""
    return read("/v1/accounts/{org}/request-limit", RequestLimitAnswer, locals())


def set_org_request_limit(
    org: str,
    *,
    refill_per_second: int | None = None,
    refill_per_hour: int | None = None,
    capacity: int | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[RequestLimitAnswer]:
    """Change some terms of the limit on all keys of an org together.

    Other terms stay as the limit in force has them.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/accounts/{org}/request-limit",
        RequestLimitAnswer,
        locals(),
        change=RequestLimitChange,
        whole=RequestLimitRequest,
    )


def end_org_request_limit(
    org: str, *, key: str | None = None, dry_run: bool = False
) -> Call[RequestLimitAnswer]:
    """End an org's own request limit: the server's default holds again."""
    return write("/v1/accounts/{org}/request-limit", RequestLimitAnswer, locals(), method="DELETE")


def event_page(
    *, kind: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[EventPage]:
    """List events in the order of delivery.

    Start without a cursor. At the end, use ``position`` as the cursor of a later call. A key of an
    org sees the events of its org.
    """
    return read("/v1/events", EventPage, locals())


def event_consumers() -> Call[EventConsumerPage]:
    """List the readers of events and how far behind each is."""
    return read("/v1/event-consumers", EventConsumerPage, locals())


def acknowledge_events(
    consumer: str, position: int, *, key: str | None = None, dry_run: bool = False
) -> Call[EventConsumerAnswer]:
    """Record how far a reader has come; later events are kept for it.

    The first call makes the reader. A lower position than before is accepted.
    """
    return write(
        "/v1/event-consumers/{consumer}:acknowledge",
        EventConsumerAnswer,
        locals(),
        shape=EventConsumerRequest,
    )


def forget_event_consumer(
    consumer: str, *, key: str | None = None, dry_run: bool = False
) -> Call[EventConsumerAnswer]:
    """Forget a reader, so that no events are kept for it."""
    return write("/v1/event-consumers/{consumer}", EventConsumerAnswer, locals(), method="DELETE")


def dead_letter_page(
    *, state: LetterStateName | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[DeadLetterPage]:
    """List messages of the bus that could not be used, the latest first."""
    return read("/v1/dead-letters", DeadLetterPage, locals())


def dead_letter(letter_id: str) -> Call[DeadLetterAnswer]:
    """Get a dead letter with its message."""
    return read("/v1/dead-letters/{letter_id}", DeadLetterAnswer, locals())


def replay_dead_letter(
    letter_id: str,
    *,
    body: Mapping[str, Any] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[DeadLetterAnswer]:
    """Use the message of a dead letter, as it is or mended.

    Events that were stored before are not stored again.
    """
    return write(
        "/v1/dead-letters/{letter_id}:replay", DeadLetterAnswer, locals(), shape=ReplayRequest
    )


def drop_dead_letter(
    letter_id: str, *, key: str | None = None, dry_run: bool = False
) -> Call[DeadLetterAnswer]:
    """Drop a dead letter; its message stays readable."""
    return write("/v1/dead-letters/{letter_id}:drop", DeadLetterAnswer, locals())


def grant_page(
    account: str | None = None,
    *,
    tree: bool | None = None,
    open: bool | None = None,
    metadata: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[GrantPage]:
    """List the grants of an account or its tree, the oldest first.

    ``open``: only grants that have not ended and have something left.
    """
    return read("/v1/grants", GrantPage, locals())


def grant(grant_id: str) -> Call[GrantAnswer]:
    """Get one grant and what remains of it."""
    return read("/v1/grants/{grant_id}", GrantAnswer, locals())


def topup_page(
    account: str | None = None,
    *,
    tree: bool | None = None,
    status: TopUpStatusName | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[TopUpPage]:
    """List the top-ups of an account or its tree, the latest first."""
    return read("/v1/topups", TopUpPage, locals())


def topup(topup_id: str) -> Call[TopUpAnswer]:
    """Get one top-up."""
    return read("/v1/topups/{topup_id}", TopUpAnswer, locals())


def transfer_page(
    account: str | None = None,
    *,
    tree: bool | None = None,
    metadata: Mapping[str, str] | None = None,
    since: When | None = None,
    until: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[TransferPage]:
    """List transfers to and from an account or its tree, the latest first."""
    return read("/v1/transfers", TransferPage, locals())


def entry_page(
    *,
    account: str | None = None,
    tree: bool | None = None,
    job_id: str | None = None,
    reservation_id: str | None = None,
    type: EntryTypeName | None = None,
    since: When | None = None,
    until: When | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[EntryPage]:
    """List the ledger as debit/credit pairs, the latest first.

    ``since`` and ``until`` compare the time an entry takes effect. ``limit`` counts stored rows.
    """
    return read("/v1/entries", EntryPage, locals())


def reservation_page(
    *,
    account: str | None = None,
    tree: bool | None = None,
    job_id: str | None = None,
    node: str | None = None,
    state: StateName | None = None,
    metadata: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[ReservationPage]:
    """List the leases of an account's jobs, the latest first."""
    return read("/v1/reservations", ReservationPage, locals())


def reservation(reservation_id: str) -> Call[ReservationAnswer]:
    """Get one lease and what it has cost so far."""
    return read("/v1/reservations/{reservation_id}", ReservationAnswer, locals())


def exposure_page(
    *, account: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[ExposurePage]:
    """Get the most that live leases could still cost without another answer of the server.

    The total, and the exposure of each account that pays for leases.
    """
    return read("/v1/exposure", ExposurePage, locals())


def org_clock_page(*, cursor: str | None = None, limit: int | None = None) -> Call[OrgClockPage]:
    """List orgs whose clock is ahead of the database's and needs a repair, by path."""
    return read("/v1/clock/orgs", OrgClockPage, locals())


def repair_clock(
    org: str, *, reason: str, key: str | None = None, dry_run: bool = False
) -> Call[ClockRepairAnswer]:
    """Bring an org's clock back to the present, with everything that was stamped later."""
    return write("/v1/clock/repairs", ClockRepairAnswer, locals(), shape=ClockRepairRequest)


def announce_maintenance(
    for_seconds: int, *, reason: str | None = None, key: str | None = None, dry_run: bool = False
) -> Call[MaintenanceAnswer]:
    """Announce a planned stop: reports extend leases to its end, as far as payers can fund it.

    A new announcement ends the one before.
    """
    return write("/v1/maintenance", MaintenanceAnswer, locals(), shape=MaintenanceRequest)


def end_maintenance(*, key: str | None = None, dry_run: bool = False) -> Call[MaintenanceAnswer]:
    """End a maintenance early: later reports renew leases for their usual time again."""
    return write("/v1/maintenance:end", MaintenanceAnswer, locals())


def maintenance(*, cursor: str | None = None, limit: int | None = None) -> Call[MaintenanceAnswer]:
    """Get the announced maintenance, and the leases that cannot be extended to its end."""
    return read("/v1/maintenance", MaintenanceAnswer, locals())


def create_account(
    path: str,
    *,
    model: ModelName | None = None,
    credit_limit: Number | None = None,
    metadata: Mapping[str, str] | None = None,
    funding: FundingName | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AccountAnswer]:
    """Open an account such as ``acme``, ``acme/vision`` or ``acme/vision/alice``.

    The account above must exist; an org has none above.
    """
    return write("/v1/accounts", AccountAnswer, locals(), shape=AccountRequest)


def update_account(
    path: str,
    *,
    model: ModelName | None = None,
    credit_limit: Number | None = None,
    overdraft_limit: Number | None = None,
    window_max_seconds: int | None = None,
    metadata: Mapping[str, str | None] | None = None,
    funding: FundingName | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AccountAnswer]:
    """Change some terms and labels of an account.

    A label that is null is removed.

    Terms that are not given stay as they are; ``replace`` replaces all terms. ``clear`` names
    terms that go back to their defaults.
    """
    return change(
        "/v1/accounts/{path}", AccountAnswer, locals(), change=AccountChange, whole=AccountTerms
    )


def suspend(path: str, *, key: str | None = None, dry_run: bool = False) -> Call[StatusAnswer]:
    """Suspend an account: admit nothing more below it, and drain what runs."""
    return write("/v1/accounts/{path}/suspend", StatusAnswer, locals())


def resume(path: str, *, key: str | None = None, dry_run: bool = False) -> Call[StatusAnswer]:
    """Lift an operator's suspension of an account.

    The ``note`` says what else keeps the account from admitting work.
    """
    return write("/v1/accounts/{path}/resume", StatusAnswer, locals())


def account(path: str) -> Call[AccountAnswer]:
    """Get one account and its terms."""
    return read("/v1/accounts/{path}", AccountAnswer, locals())


def account_page(
    *,
    under: str | None = None,
    model: ModelName | None = None,
    status: StatusName | None = None,
    metadata: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[AccountPage]:
    """List accounts in order of path: all that the key sees, or one and those below it."""
    return read("/v1/accounts", AccountPage, locals())


def balance(
    path: str, *, tree: bool | None = None, at: When | None = None, known_at: When | None = None
) -> Call[BalanceAnswer]:
    """Get the balance of an account or its tree, now or ``at`` a past instant.

    ``known_at`` answers with what was recorded by that instant.
    """
    return read("/v1/accounts/{path}/balance", BalanceAnswer, locals())


def tree(path: str) -> Call[TreeAnswer]:
    """Get an account and everything below it, with balances."""
    return read("/v1/accounts/{path}/tree", TreeAnswer, locals())


def health() -> Call[HealthAnswer]:
    """Check whether work is moving.

    The status is 503 when work is not moving.
    """
    return read("/healthz", HealthAnswer, locals())


def clock() -> Call[TimeAnswer]:
    """Get the time on the server, whose clock decides."""
    return read("/v1/clock", TimeAnswer, locals())
