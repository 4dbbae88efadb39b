"""Handlers of the reconciler: how leases compared, passes on demand, and policies."""

from __future__ import annotations

from typing import Annotated

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.paging import (
    OneAccountQuery,
    TreePageQuery,
    numbered_place,
    page,
)
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import (
    AnyCall,
    account_exists,
    act_of,
    filter_of,
    org_number,
    visible,
)
from gpucredits.core import ids
from gpucredits.core.change import Named
from gpucredits.core.money import format_credits
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reconciliation.passes import (
    ComparedFilter,
    ComparedRow,
    Wanted,
    list_comparisons,
    note_new_use,
    read_counts,
    run_pass,
)
from gpucredits.service.reconciliation.terms import POLICY, Mode, ReconcilePolicy
from gpucredits.wire.change import filled, named_in
from gpucredits.wire.documented import doc
from gpucredits.wire.reconciliation.comparison import (
    COMPARED_STATES,
    ComparedState,
    ComparisonAnswer,
    ComparisonPage,
    ModeName,
    ReconcilePolicyAnswer,
    ReconcilePolicyChange,
    ReconcilePolicyRequest,
    ReconcilerAnswer,
    RunAnswer,
    RunRequest,
)
from gpucredits.wire.scalars import format_instant

MODES: tuple[ModeName, ...] = ("off", "report", "post")
LOOKS_MAX = 20  # at new events, before a pass on demand

route = Routes("reconciliation")


class ComparisonQuery(TreePageQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose compared leases to list, and in which state."""

    state: Annotated[ComparedState | None, doc("Only leases in this state.")] = None


@route(
    "GET /v1/reconciliations",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="reconciliation_page(account)",
)
async def get_reconciliations(call: ApiRequest[None, ComparisonQuery]) -> ComparisonPage:
    """List leases with measured use, and how each compared with its bill."""
    query = call.query
    state = None if query.state is None else COMPARED_STATES.index(query.state)
    which = await filter_of(call, ComparedFilter, state=state)
    rows = await call.services.run(list_comparisons, which)
    rows, following = page(rows, query, lambda row: numbered_place(row.org_id, row.reservation_id))
    return ComparisonPage(comparisons=[to_wire(row) for row in rows], next_cursor=following)


@route("GET /v1/reconciler", Permission.READ_METRICS, client="reconciler()")
async def get_reconciler(call: ApiRequest[None, NoQuery]) -> ReconcilerAnswer:
    """Get how far the reconciler is, and what waits for people."""
    counts = await call.services.run(read_counts)
    return ReconcilerAnswer(
        seen_to=format_instant(counts.seen_to) if counts.seen_to else None,
        waiting=counts.waiting,
        due=counts.due,
        open_alarms=counts.open_alarms,
        unmatched=counts.unmatched,
        dropped=counts.dropped,
        claims=counts.claims,
    )


@route(
    "POST /v1/reconciler:run",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    needs_key=False,
    client="run_reconciler()",
)
async def post_reconciler_run(call: ApiRequest[RunRequest, NoQuery]) -> RunAnswer:
    """Compare leases that are due now, and post what differs where the policy says so.

    The reconciler does the same by itself. A dry run tells what it would post.
    """
    body, org_id = call.body, None
    if body.account is not None:
        org_id = await org_number(call, visible(call, body.account))
        await account_exists(call, org_id, body.account)
    for _ in range(LOOKS_MAX):
        if not await call.services.run(note_new_use):
            break
    wanted = Wanted(
        org_id=org_id,
        scope=str(body.account or ""),
        at_once=body.at_once,
        again=body.again,
        limit=body.limit,
    )
    done = await run_pass(call.services.ledger, wanted, dry_run=call.dry_run)
    return RunAnswer(
        compared=done.compared,
        agreed=done.agreed,
        differed=done.differed,
        posted=done.posted,
        charged=format_credits(done.charged),
        given_back=format_credits(done.given_back),
        alarms=done.alarms,
        is_done=done.is_done,
    )


@route(
    "GET /v1/reconciliation-policy",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="reconciliation_policy(account)",
)
async def get_reconciliation_policy(
    call: ApiRequest[None, OneAccountQuery],
) -> ReconcilePolicyAnswer:
    """Get the policy that governs an account: its own, or that of the nearest account above."""
    account = visible(call, call.query.account)
    org_id = await org_number(call, account)
    await account_exists(call, org_id, account)
    policy, owner = await call.services.run(POLICY.read, org_id, account)
    return policy_to_wire(account, policy, owner)


@route(
    "PUT /v1/reconciliation-policy",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    client="set_reconciliation_policy(account)",
)
async def put_reconciliation_policy(
    call: ApiRequest[ReconcilePolicyRequest, NoQuery],
) -> ReconcilePolicyAnswer:
    """Replace the policy of an account; it governs the accounts below that have none."""
    return await _set(call, call.body, None)


@route(
    "PATCH /v1/reconciliation-policy",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    client="set_reconciliation_policy(account)",
)
async def patch_reconciliation_policy(
    call: ApiRequest[ReconcilePolicyChange, NoQuery],
) -> ReconcilePolicyAnswer:
    """Change some terms of an account's policy."""
    named = frozenset(name.replace("_seconds", "_ms") for name in named_in(call.body))
    return await _set(call, filled(call.body, ReconcilePolicyRequest), named)


@route(
    "DELETE /v1/reconciliation-policy",
    Permission.CORRECT,
    reasons=NO_ACCOUNT,
    client="end_reconciliation_policy(account)",
)
async def delete_reconciliation_policy(
    call: ApiRequest[None, OneAccountQuery],
) -> ReconcilePolicyAnswer:
    """End an account's own policy: that of the nearest account above holds again."""
    account = visible(call, call.query.account)
    org_id = await org_number(call, account)
    (policy, owner), call.replayed = await call.services.run(
        POLICY.end, act_of(call, org_id), account
    )
    return policy_to_wire(account, policy, owner)


async def _set(call: AnyCall, body: ReconcilePolicyRequest, named: Named) -> ReconcilePolicyAnswer:
    policy = ReconcilePolicy(
        Mode(MODES.index(body.mode)),
        body.tolerance_ms,
        body.alarm_percent,
        int(body.alarm_floor),
        body.quiet_seconds * 1_000,
    )
    account = visible(call, body.account)
    org_id = await org_number(call, account)
    act = act_of(call, org_id)
    saved, call.replayed = await call.services.run(POLICY.set, act, account, policy, named)
    return policy_to_wire(account, saved, account)


def to_wire(row: ComparedRow) -> ComparisonAnswer:
    """A compared lease as it is shown."""
    return ComparisonAnswer(
        reservation_id=ids.format_id(ids.RESERVATION, row.org_id, row.reservation_id),
        account=row.account,
        job_id=row.job_id,
        state=COMPARED_STATES[row.state],
        used_ms=row.used_ms,
        measured_ms=row.measured_ms,
        beyond_ms=row.beyond_ms,
        events=row.events,
        settled=format_credits(row.settled),
        cost=format_credits(row.cost),
        drift=format_credits(row.cost - row.settled),
        reconciled=format_credits(row.reconciled),
        ended_at=format_instant(row.ended_at) if row.ended_at else None,
        checked_at=format_instant(row.checked_at) if row.checked_at else None,
        is_attested=row.is_attested,
    )


def policy_to_wire(account: str, policy: ReconcilePolicy, owner: str) -> ReconcilePolicyAnswer:
    """The policy as it is shown."""
    return ReconcilePolicyAnswer(
        account=account,
        mode=MODES[policy.mode],
        tolerance_ms=policy.tolerance_ms,
        alarm_percent=policy.alarm_percent,
        alarm_floor=format_credits(policy.alarm_floor),
        quiet_seconds=policy.quiet_ms // 1_000,
        set_for=owner or None,
    )
