"""Books on which every power and bound was used, so that verify has something to hold."""

from __future__ import annotations

from typing import Any

from gpucredits.core.account import Status
from gpucredits.core.authority import Authority
from gpucredits.core.bounds import NEVER_US
from gpucredits.core.command import (
    AddBoost,
    CreateAccount,
    EndBoost,
    EndBudget,
    EndQuota,
    EndRateLimit,
    ReplaceBudgets,
    ReplaceQuotas,
    SetBudget,
    SetQuota,
    SetRateLimit,
    UpdateAccount,
)
from gpucredits.core.outcome import Boosted, QuotaSaved, RateLimitSaved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.request import BudgetRequest, RequestKind, RequestState, RequestTerms
from gpucredits.core.request_limit import Holder, RequestLimit
from gpucredits.core.rules.leases.idle_guard import IdleTerms
from gpucredits.jobs.billing import Statements
from gpucredits.service.access.key_acts import create_key, revoke_key
from gpucredits.service.access.permissions import Keyring
from gpucredits.service.access.signing import SigningKeys
from gpucredits.service.billing import anomalies, budget_requests
from gpucredits.service.billing.prices import NewPrice, PriceEnd, add_price, end_price
from gpucredits.service.billing.usage import UsageRow, record_use
from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.limits.idle_guards import change_guard
from gpucredits.service.limits.request_limits import LimitTarget, change_limit
from gpucredits.service.write.acts import Act
from gpucredits.service.write.maintenance import change
from gpucredits.store.billing.anomalies import TermsRow
from gpucredits.store.dispatch.pools import GpuPool, Weight
from gpucredits.store.outages import give_sign
from support.damage.damage import open_books
from support.damage.reconciler_tampering import use_reconciler
from support.scenes.admins import first_admin
from support.scenes.scene import CREDIT, HOUR_US, Scene

DAY_S = 86_400
WHO: dict[str, Any] = {"actor": "tester", "request_id": "r"}
STAFF = Act(org_id=1, actor="key_0_2")


async def use_every_power(stage: Scene) -> None:
    """The books of ``damage``, and keys, pools, limits, requests, statements and reports."""
    await open_books(stage)
    await stage.advance(40 * DAY_S)
    for _ in range(3):
        await Statements(stage.ledger).tick()
    await end_a_price(stage)
    await make_keys(stage)
    await make_signing_keys(stage)
    await make_pools(stage)
    await change_limits(stage)
    await ask_for_more(stage)
    await stage.do(CreateAccount(path="acme/idle"))
    await stage.do(UpdateAccount(path="acme/idle", status=Status.SUSPENDED, by=Authority.ORG))
    terms = TermsRow(ratio_percent=300, floor=CREDIT, auto_suspend=False)
    who, by = Act(org_id=1, **WHO), Authority.SYSTEM
    assert await anomalies.set_terms(stage.pool, who, "acme", terms, by=by)
    for path, guard in (("acme/p", IdleTerms()), ("acme", IdleTerms(window_ms=60_000))):
        assert (await change_guard(stage.pool, who, path, guard, by=by))[0]
    await change_guard(stage.pool, who, "acme/p", None, by=by)  # it is not refused
    await report_use(stage)
    await use_reconciler(stage)
    await be_away(stage)


async def be_away(stage: Scene) -> None:
    """An outage, a planned stop that was ended, and one that is announced."""
    await give_sign(stage.pool, away_us=1, grace_ms=1_000)
    await give_sign(stage.pool, away_us=1, grace_ms=2_000)
    for for_ms in (60_000, 0, 90_000):
        await change(stage.pool, Act(org_id=0, **WHO), for_ms, "a drill")


async def end_a_price(stage: Scene) -> None:
    """Prices of a type that nobody uses: one with an end of its own, and one that was ended."""
    what: dict[str, Any] = {"gpu_type": "l40", "region": "default"}
    later = (await stage.balance()).as_of + HOUR_US
    for effective_to in (later, NEVER_US):
        new = NewPrice(
            **what, credits_per_gpu_hour=CREDIT, effective_from=None, effective_to=effective_to
        )
        await add_price(stage.pool, Act(org_id=0, **WHO), new)
    await end_price(stage.pool, Act(org_id=0, **WHO), PriceEnd(**what, effective_to=None))


async def make_keys(stage: Scene) -> None:
    """A key for each way to tamper with one, and limits on the requests of two holders."""
    keyring = Keyring(stage.pool)
    soon = (await stage.balance()).as_of + 99 * HOUR_US
    maker = await first_admin(stage.pool)
    system: dict[str, Any] = {"maker": maker, "role": "admin", "scope": "", "name": "staff"}
    await create_key(stage.pool, Act(org_id=0, **WHO), **system)
    made = {}
    kinds: dict[str, dict[str, Any]] = {
        "member": {},
        "ending": {"expires_at": soon},
        "revoked": {},
        "bound": {"node": "gpu-7"},
    }
    for name, more in kinds.items():
        tenant: dict[str, Any] = {"role": "member", "scope": "acme/p", "name": name, **more}
        tenant["maker"] = maker
        made[name] = await create_key(stage.pool, Act(org_id=1, **WHO), **tenant)
    gone = made["revoked"].row.key_id
    for _ in range(2):
        await revoke_key(stage.pool, Act(org_id=1, **WHO), keyring, key_id=gone, scope="")
    number = made["member"].row.key_id
    for target in (
        LimitTarget(
            org_id=1, holder=Holder.KEY, number=number, resource=f"key_1_{number}", scope="acme"
        ),
        LimitTarget(org_id=1, holder=Holder.ORG, number=0, resource="acme", scope="acme"),
    ):
        for wanted in (RequestLimit(10, 3_600), None, RequestLimit(20, 7_200)):
            await change_limit(stage.pool, keyring, Act(org_id=1, **WHO), target, wanted=wanted)


async def make_signing_keys(stage: Scene) -> None:
    """A key that signs lease tokens, one that signs next, and one that was revoked."""
    keys = SigningKeys(stage.pool, b"s" * 32)
    for _ in range(3):
        made, _ = await keys.rotate(Act(org_id=0, **WHO), signs_in_us=HOUR_US)
    await keys.revoke(Act(org_id=0, **WHO), made.key_id)


async def make_pools(stage: Scene) -> None:
    """A pool with weights, and one that was removed and had some."""
    pools = GpuPools(stage.pool)
    for gpu_type in ("h100", "b200"):
        for gpus in (8, 16):
            wanted = GpuPool(gpu_type=gpu_type, region="default", milli_gpus=1_000 * gpus)
            await pools.set(Act(org_id=0, **WHO), wanted)
        weights = [Weight("acme/p", 3, may_borrow=False), Weight("acme", 2)]
        await pools.weigh(
            Act(org_id=0, **WHO), (gpu_type, "default"), lambda *_, given=weights: given
        )
    await pools.remove(Act(org_id=0, **WHO), "b200", "default")


async def change_limits(stage: Scene) -> None:
    """Limits that were set, changed, boosted, replaced and ended."""
    jobs: dict[str, Any] = {"account": "acme/p", "dimension": Dimension.CONCURRENT_JOBS}
    window: dict[str, Any] = {"account": "acme/p", "dimension": Dimension.CREDITS_PER_WINDOW}
    now = (await stage.balance()).as_of
    made = await stage.do(SetQuota(**jobs, limit=50, gpu_type="h100"))
    assert isinstance(made, QuotaSaved)
    await stage.do(SetQuota(**jobs, limit=60, gpu_type="h100"))
    number = made.quota.quota_id
    boost = await stage.do(AddBoost(target_id=number, amount=3, ends_at=now + HOUR_US, note="n"))
    assert isinstance(boost, Boosted)
    await stage.do(EndBoost(target_id=number, boost_id=boost.boost.boost_id))
    daily = SetQuota(**window, limit=900 * CREDIT, calendar=Calendar.DAY, zone="Europe/Berlin")
    rolling = SetQuota(**window, limit=900 * CREDIT, rolling_hours=24)
    per_job = SetQuota(account="acme/p", dimension=Dimension.CREDITS_PER_JOB, limit=900 * CREDIT)
    await stage.do(ReplaceQuotas(account="acme/p", quotas=(daily, rolling, per_job)))
    other = await stage.do(SetQuota(account="acme/q", dimension=jobs["dimension"], limit=7))
    assert isinstance(other, QuotaSaved)
    await stage.do(EndQuota(quota_id=other.quota.quota_id))
    limit = SetRateLimit(account="acme/p", capacity=500 * CREDIT, refill_per_hour=5 * CREDIT)
    bucket = await stage.do(limit)
    assert isinstance(bucket, RateLimitSaved)
    target_id = bucket.bucket.bucket_id
    more: dict[str, Any] = {"amount": CREDIT, "refill_per_hour": CREDIT}
    await stage.do(AddBoost(target_id=target_id, ends_at=now + HOUR_US, **more))
    await stage.do(EndRateLimit(account="acme/p"))
    await stage.do(limit)
    every: dict[str, Any] = {"account": "acme/p", "calendar": Calendar.MONTH}
    kept = SetBudget(**every, allowance=CREDIT, name="kept", warn_percent=(50, 90))
    for budgets in ((kept, SetBudget(**every, allowance=CREDIT, name="over")), (kept,)):
        await stage.do(ReplaceBudgets(account="acme/p", budgets=budgets))
    await stage.do(SetBudget(**every, allowance=2 * CREDIT, name="kept"))
    await stage.do(SetBudget(**every, allowance=CREDIT, name="ended"))
    await stage.do(EndBudget(account="acme/p", name="ended"))


async def ask_for_more(stage: Scene) -> None:
    """Requests that are open, approved and declined."""
    usual: dict[str, Any] = {
        "org_id": 1,
        "request_id": 0,
        "account": "acme/p",
        "reason": "why not",
        "asked_by": "key_1_2",
        "asked_at": 0,
        "expires_at": 0,
    }
    asked: dict[str, Any] = {"kind": RequestKind.CREDITS, "amount": 5 * CREDIT}
    made = [
        (await budget_requests.ask(stage.pool, STAFF, BudgetRequest(**usual, **asked)))[0]
        for _ in range(3)
    ]
    _, approved, declined = made
    terms = RequestTerms(amount=4 * CREDIT)
    await budget_requests.approve(
        stage.ledger, STAFF, approved.request_id, terms=terms, note="fine"
    )
    await budget_requests.close(
        stage.pool,
        STAFF,
        declined.request_id,
        state=RequestState.DECLINED,
        note="no",
    )


async def report_use(stage: Scene) -> None:
    """Reports of a lease, twice the same, and of a job without one."""
    lease = (await stage.reserve("acme", job_id="measured", node="n")).reservation.reservation_id
    for seq in (1, 2, 2):
        row = UsageRow(1, "measured", "n", lease, 0, seq, 1_000, {"gpu": seq})
        await record_use(stage.pool, [row], dry_run=False)
    apart = UsageRow(1, "apart", "n", 0, 1, 1, 1_000, {})
    await record_use(stage.pool, [apart], dry_run=False)
