"""Passes of the reconciler: each compares ended, quiet leases with their measured use.

A pass claims leases that are due, compares each, and posts the difference through the ledger where
the policy of its account says so. The key of a post is derived from the lease and the state that
was compared, and the rule itself finds no difference a second time. So a second pass and a second
server post nothing, and a server that dies between two steps leaves nothing half done.

Owns: the order of the steps.
Must not: compare (core does), or speak SQL (store does).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpucredits.core import ids
from gpucredits.core.bounds import DAY_US
from gpucredits.core.outcome import Reconciled
from gpucredits.core.reconciliation.commands import Reconcile
from gpucredits.core.reconciliation.comparison import (
    Mode,
    ReconcilePolicy,
    clipped,
    condensed,
    is_noise,
    union,
)
from gpucredits.core.reservation import elapsed_ms
from gpucredits.service.reconciliation.drift_alarms import judge_day, judge_job
from gpucredits.service.reconciliation.examining import Examined, examine
from gpucredits.service.write.ledger import Ledger, Request
from gpucredits.store.access.audit import SYSTEM
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.connections import session
from gpucredits.store.reconciliation import (
    comparisons,
    unmatched_use,
)
from gpucredits.store.reconciliation.comparisons import (
    AGREES,
    COMPARED,
    DIFFERS,
    FINAL,
    POSTED,
    UNMEASURED,
    WAITING,
    ComparedFilter,
    ComparedRow,
    ReconcilerCounts,
    Verdict,
    Wanted,
)

__all__ = [
    "ComparedFilter",
    "ComparedRow",
    "PassResult",
    "ReconcilerCounts",
    "ReconcilerState",
    "Wanted",
    "list_comparisons",
    "note_new_use",
    "read_counts",
    "run_pass",
]

AT_ONCE = 20  # leases that are read, posted and kept together


@dataclass(slots=True)
class ReconcilerState:
    """The reconciler's state on one server, for health and metrics."""

    counts: ReconcilerCounts | None = None
    compared_total: int = 0
    posted_total: int = 0
    checked_at: int = 0


@dataclass(slots=True, kw_only=True)
class PassResult:
    """The counts and sums of one pass; amounts are micro-credits."""

    compared: int = 0
    agreed: int = 0
    differed: int = 0
    posted: int = 0
    charged: int = 0
    given_back: int = 0
    alarms: int = 0
    is_done: bool = True


@dataclass(slots=True)
class _Days:
    """Accounts and days that a pass has touched, each with the policy of the account."""

    seen: dict[tuple[int, int, int], tuple[str, ReconcilePolicy]] = field(default_factory=dict)


async def note_new_use(pool: Pool) -> bool:
    """Make leases with new events due; True if there are more events to look at."""
    async with session(pool) as db, db.transaction():
        place = await comparisons.next_events(db)
        if place is None:
            return False
        since, until, has_more = place
        await unmatched_use.touch(db, since, until)
        await comparisons.note_events(db, since, until)
    return has_more


async def run_pass(ledger: Ledger, wanted: Wanted, *, dry_run: bool = False) -> PassResult:
    """Compare some leases that are due; correct bills where the account's policy says so."""
    result = PassResult()
    days = _Days()
    async with session(ledger.pool) as db:
        claimed = await comparisons.claim(db, wanted)
    result.is_done = len(claimed) < wanted.limit
    for start in range(0, len(claimed), AT_ONCE):
        examined = await examine(ledger.pool, claimed[start : start + AT_ONCE])
        await settle_differences(ledger, examined, result, days, dry_run=dry_run)
    for (org_id, account_id, day), (account, policy) in days.seen.items():
        if not dry_run:
            result.alarms += await judge_day(ledger.pool, org_id, account_id, account, day, policy)
    return result


async def settle_differences(
    ledger: Ledger, examined: Sequence[Examined], result: PassResult, days: _Days, *, dry_run: bool
) -> None:
    """Post the differences of leases with a policy that posts, and store the comparisons.

    Posts run side by side, so that the ledger writes many in one batch. A failed post is left to a
    later pass; its error is raised after the other results are stored.
    """
    posting = [each for each in examined if verdict(each) == POSTED]
    outcomes = await asyncio.gather(
        *(post(ledger, each, dry_run=dry_run) for each in posting), return_exceptions=True
    )
    posted = {each.due: outcome for each, outcome in zip(posting, outcomes, strict=True)}
    failed = {due: each for due, each in posted.items() if isinstance(each, BaseException)}
    done: list[tuple[Examined, Verdict]] = []
    for this in examined:
        amount = posted.get(this.due, 0)
        if not isinstance(amount, BaseException):
            done.append((this, counted_in(this, amount, result)))
    if not dry_run:
        await keep(ledger.pool, done, result, days)
    for error in failed.values():
        raise error


def counted_in(this: Examined, posted: int, result: PassResult) -> Verdict:
    """Count a lease in the result of the pass; returns the lease's row."""
    state = verdict(this)
    result.compared += 1
    result.posted += posted != 0
    result.charged += max(posted, 0)
    result.given_back += max(-posted, 0)
    result.agreed += state == AGREES
    result.differed += state == DIFFERS
    return Verdict(
        due=this.due,
        state=state,
        ended_at=this.lease.ended_at,
        events=this.events,
        is_attested=this.is_attested,
        found=replace(this.found, reconciled=this.found.reconciled + posted),
    )


async def keep(
    pool: Pool, done: Sequence[tuple[Examined, Verdict]], result: PassResult, days: _Days
) -> None:
    """Store comparisons, raise alarms, and note the days that need another look."""
    async with session(pool) as db, db.transaction():
        await comparisons.save(db, [row for _, row in done])
        for this, row in done:
            if row.state in (DIFFERS, POSTED, FINAL):
                result.alarms += await judge_job(db, this, row.found)
    for this, row in done:
        if row.state in (AGREES, DIFFERS, POSTED, FINAL):
            day = this.lease.ended_at - this.lease.ended_at % DAY_US
            key = (this.due.org_id, this.lease.account_id, day)
            days.seen[key] = (this.lease.account, this.policy)


def verdict(this: Examined) -> int:
    """The state for a lease's row: what is to become of the lease.

    After a refund of lost work, missing use is still charged, but nothing more is given back.
    """
    found, policy = this.found, this.policy
    if policy.mode is Mode.OFF:
        return WAITING
    if not this.events:
        return UNMEASURED  # heartbeats are all there is: nothing contradicts the bill
    if this.lease.lost_ms and found.rest <= 0:
        return FINAL
    if not found.rest or (is_noise(found, policy) and not found.reconciled):
        return POSTED if found.reconciled else AGREES
    return POSTED if policy.mode is Mode.POST and this.is_attested else DIFFERS


async def post(ledger: Ledger, this: Examined, *, dry_run: bool) -> int:
    """Post a difference through the ledger; the amount, negative if it was given back."""
    lease = this.lease
    whole = union(span for node in this.nodes for span in node.spans)
    spans = condensed(clipped(whole, elapsed_ms(lease, lease.ended_at)))
    text = ids.format_id(ids.RESERVATION, this.due.org_id, lease.reservation_id)
    digest = hashlib.sha256(repr(spans).encode()).digest()
    compared = f"{lease.used_ms} {lease.reconciled} {digest.hex()[:16]}"
    request = Request(
        Reconcile(reservation_id=lease.reservation_id, spans=spans),
        f"reconcile {text} {compared}",  # no caller's key has a space in it
        digest,
        SYSTEM,
        text,
    )
    outcome = await ledger.submit(this.due.org_id, request, dry_run=dry_run)
    return outcome.amount if isinstance(outcome, Reconciled) else 0


async def list_comparisons(pool: Pool, which: ComparedFilter) -> list[ComparedRow]:
    """Compared leases, the newest first."""
    async with session(pool) as db:
        return await COMPARED.page(db, which, state=which.state)


async def read_counts(pool: Pool) -> ReconcilerCounts:
    """How far the reconciler is, and what waits for people."""
    async with session(pool) as db:
        return await comparisons.read_counts(db)
