"""Books on which every power and bound was used, and what a superuser could do to them unseen.

Each tampering is one act of a database superuser with triggers off, by the rule that must name it.
"""

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
from gpucredits.core.request import Ask, RequestKind, RequestState, Terms
from gpucredits.core.request_limit import Holder, RequestLimit
from gpucredits.jobs.statements import Statements
from gpucredits.service import anomalies, requests
from gpucredits.service.acts import Act
from gpucredits.service.key_acts import Caller, create_key, revoke_key
from gpucredits.service.keys import Keyring
from gpucredits.service.pools import GpuPools
from gpucredits.service.prices import NewPrice, PriceEnd, add_price, end_price
from gpucredits.service.request_limits import Target, change_limit
from gpucredits.service.requests import Asker
from gpucredits.service.usage import UsageRow, record_use
from gpucredits.store.anomalies import TermsRow
from gpucredits.store.pools import GpuPool, Weight
from support.damage import open_books
from support.scene import CREDIT, HOUR_US, Scene

DAY_S = 86_400
WHO: dict[str, Any] = {"actor": "tester", "request_id": "r"}
STAFF = Asker("key_0_2")
ROGUE_KEY = (
    "INSERT INTO api_keys (org_id, hash, name, role, scope, created_at)"
    " VALUES (0, sha256('evil'), 'evil', 'admin', '', 0)"
)
ROGUE_LIMIT = "INSERT INTO request_limits VALUES (1, 1, 99, 1000000, 3600000000, 0)"
MORE = "amount = amount * 2"
BODY = "RETURNS trigger LANGUAGE plpgsql AS E'BEGIN RETURN NEW\\073 END'"  # 073: the semicolon
TAMPERINGS: dict[str, tuple[str, ...]] = {
    "account_acts": (
        "UPDATE accounts SET status = 0, suspended_by = 0 WHERE path = 'acme/idle'",
        "UPDATE accounts SET suspended_by = 2 WHERE path = 'acme/idle'",
    ),
    "key_acts": (
        ROGUE_KEY,
        "UPDATE api_keys SET role = 'admin' WHERE name = 'member'",
        "UPDATE api_keys SET scope = '', org_id = 0 WHERE name = 'member'",
        "UPDATE api_keys SET scope = 'acme' WHERE name = 'member'",
        "UPDATE api_keys SET revoked_at = 0 WHERE name = 'revoked'",
        "UPDATE api_keys SET revoked_at = 1 WHERE name = 'member'",
        "UPDATE api_keys SET hash = sha256('evil') WHERE name = 'member'",
        f"UPDATE api_keys SET expires_at = {NEVER_US} WHERE name = 'ending'",
        "UPDATE api_keys SET name = 'trusted' WHERE name = 'member'",
        "DELETE FROM api_keys WHERE name = 'revoked'",
    ),
    "quota_acts": (
        f"UPDATE quotas SET {MORE} WHERE dimension = 1",
        f"UPDATE quotas SET {MORE} WHERE dimension = 3",
        "UPDATE quotas SET ended_at = 1 WHERE ended_at = 0",
        "UPDATE quotas SET ended_at = 0 WHERE ended_at > 0",
        "UPDATE quotas SET gpu_type = 'b200' WHERE dimension = 1",
        "UPDATE quotas SET calendar = 2 WHERE calendar = 0",
        "UPDATE quotas SET zone = 'Asia/Tokyo' WHERE dimension = 3",
        "UPDATE quotas SET account_id = 3 WHERE dimension = 1 AND ended_at = 0",
        "UPDATE quotas SET set_by = 3 - set_by WHERE ended_at = 0",
        "DELETE FROM quotas WHERE ended_at = 0",
    ),
    "rate_limit_acts": (
        "UPDATE token_buckets SET capacity = capacity * 2 WHERE ended_at = 0",
        "UPDATE token_buckets SET refill_per_hour = refill_per_hour + 1 WHERE ended_at = 0",
        "UPDATE token_buckets SET ended_at = 1 WHERE ended_at = 0",
        "DELETE FROM token_buckets WHERE ended_at = 0",
    ),
    "boost_acts": (
        f"UPDATE boosts SET {MORE}",
        "UPDATE boosts SET ends_at = ends_at + 86400000000",
        "UPDATE boosts SET starts_at = 0",
        "UPDATE boosts SET refill_per_hour = refill_per_hour + 1",
        "UPDATE boosts SET target_id = (SELECT max(quota_id) FROM quotas)",
        (
            "INSERT INTO boosts SELECT org_id, boost_id + 1000, account_id, target_id, 1000, 0,"
            " starts_at, ends_at, note, created_at, set_by FROM boosts LIMIT 1"
        ),
    ),
    "budget_acts": (
        "UPDATE budgets SET allowance = allowance * 2 WHERE name = 'm'",
        f"UPDATE budgets SET ends_at = {NEVER_US} WHERE ends_at < {NEVER_US}",
        "UPDATE budgets SET rollover = 1 WHERE name = 'm'",
        "UPDATE budgets SET priority = 0 WHERE name = 'm'",
    ),
    "pool_acts": (
        "UPDATE pools SET gpus = gpus * 2 WHERE pool_id > 0",
        "UPDATE pools SET gpus = 8 WHERE pool_id = 0",
        "UPDATE pools SET grace_ms = 0 WHERE pool_id > 0",
        "UPDATE pools SET preemption = NOT preemption WHERE pool_id > 0",
        "UPDATE pools SET min_runtime_ms = min_runtime_ms * 2 WHERE pool_id > 0",
        "UPDATE pools SET borrowing = NOT borrowing WHERE pool_id > 0",
        "UPDATE pools SET region = 'elsewhere' WHERE pool_id > 0",
        "DELETE FROM pools WHERE pool_id > 0",
    ),
    "weight_acts": (
        "UPDATE pool_weights SET weight = weight * 2",
        "UPDATE pool_weights SET may_borrow = NOT may_borrow",
        "UPDATE pool_weights SET path = 'acme/q' WHERE path = 'acme/p'",
        "DELETE FROM pool_weights WHERE path = 'acme'",
        (
            "INSERT INTO pool_weights (pool_id, path, weight, may_borrow)"
            " SELECT pool_id, 'acme/q', 9, true FROM pools WHERE gpu_type = 'h100'"
        ),
    ),
    "request_limit_acts": (
        "UPDATE request_limits SET capacity = capacity * 2 WHERE holder = 1",
        "UPDATE request_limits SET refill_per_hour = refill_per_hour * 2 WHERE holder = 2",
        "DELETE FROM request_limits WHERE holder = 2",
        ROGUE_LIMIT,
    ),
    "request_acts": (
        "UPDATE requests SET state = 1, decided_by = 'key_0_2' WHERE state = 0",
        "UPDATE requests SET state = 2 WHERE state = 3",
        "UPDATE requests SET state = 0 WHERE state = 2",
        f"UPDATE requests SET {MORE} WHERE state = 0",
        "UPDATE requests SET given_amount = given_amount * 2 WHERE state = 2",
        "UPDATE requests SET account = 'acme/q' WHERE state = 0",
        "UPDATE requests SET expires_at = expires_at + 1 WHERE state = 0",
        "UPDATE requests SET decided_by = 'key_0_9' WHERE state = 2",
        "UPDATE requests SET decided_from = 3 WHERE state = 2",
        "UPDATE requests SET attempt = attempt + 1 WHERE state = 2",
        "DELETE FROM requests WHERE state = 3",
    ),
    "anomaly_term_acts": (
        "UPDATE anomaly_terms SET ratio_percent = 100000",
        "UPDATE anomaly_terms SET floor = floor * 2",
        "UPDATE anomaly_terms SET auto_suspend = NOT auto_suspend",
        "DELETE FROM anomaly_terms",
        "INSERT INTO anomaly_terms VALUES (1, 3, 200, 0, true)",
    ),
    "standing_acts": (
        "UPDATE accounts SET delinquent = NOT delinquent WHERE path = 'acme'",
        "UPDATE accounts SET delinquent = NOT delinquent WHERE path = 'acme/q'",
    ),
    "statement_acts": (
        "UPDATE statements SET amount = amount + 1",
        f"UPDATE statements SET due_at = {NEVER_US}",
        "DELETE FROM statements",
    ),
    "lease_acts": (
        "UPDATE audit_log SET resource = 'rsv_1_999' WHERE action = 'reservation.cancel'",
        "DELETE FROM audit_log WHERE action = 'reservation.settle'",
        "UPDATE reservations SET state = 2 WHERE state = 1",
        "UPDATE reservations SET state = 1 WHERE state = 3",
    ),
    "price_acts": (
        "DELETE FROM prices WHERE is_end",
        f"UPDATE prices SET effective_to = {NEVER_US} WHERE effective_to < {NEVER_US}",
        (
            "INSERT INTO prices SELECT org_id, price_id + 1000, gpu_type, region, 1,"
            " effective_from, account, created_at FROM prices WHERE NOT is_end LIMIT 1"
        ),
    ),
    "org_clocks": ("UPDATE orgs SET clock = clock + 8640000000000 WHERE path = 'acme'",),
    "clock_repairs": ("INSERT INTO clock_repairs VALUES (1, 5, 10, 1, 1)",),
    "clock_offset": (
        "UPDATE clock SET offset_us = offset_us + 86400000000",
        "UPDATE clock SET offset_us = 0",
    ),
    "usage": (
        "UPDATE usage_events SET used_ms = used_ms * 2",
        "UPDATE usage_events SET reservation_id = 999 WHERE reservation_id <> 0",
        "DELETE FROM usage_events WHERE seq = 1",
        "INSERT INTO usage_events VALUES (1, 'job', 'n', 99, 0, 1, false, 1000, 1)",
    ),
    "insert_only": ("ALTER TABLE usage_events DISABLE TRIGGER usage_events_summed",),
    "functions": (
        f"CREATE OR REPLACE FUNCTION refuse_change() {BODY}",
        f"CREATE OR REPLACE FUNCTION chain_audit() {BODY}",
        (
            "CREATE OR REPLACE FUNCTION ledger_now() RETURNS bigint LANGUAGE sql VOLATILE"
            " AS 'SELECT 0::bigint'"
        ),
    ),
}


async def use_every_power(stage: Scene) -> None:
    """The books of ``damage``, and keys, pools, limits, requests, statements and reports."""
    await open_books(stage)
    await stage.advance(40 * DAY_S)
    for _ in range(3):
        await Statements(stage.ledger).tick()
    await end_a_price(stage)
    await make_keys(stage)
    await make_pools(stage)
    await change_limits(stage)
    await ask_for_more(stage)
    await stage.do(CreateAccount(path="acme/idle"))
    await stage.do(UpdateAccount(path="acme/idle", status=Status.SUSPENDED, by=Authority.ORG))
    terms = TermsRow(ratio_percent=300, floor=CREDIT, auto_suspend=False)
    assert await anomalies.set_terms(stage.pool, Act(org_id=1), "acme", terms, **WHO)
    await report_use(stage)


async def end_a_price(stage: Scene) -> None:
    """Prices of a type that nobody uses: one with an end of its own, and one that was ended."""
    what: dict[str, Any] = {"gpu_type": "l40", "region": "default"}
    later = (await stage.balance()).as_of + HOUR_US
    for effective_to in (later, NEVER_US):
        new = NewPrice(
            **what, credits_per_gpu_hour=CREDIT, effective_from=None, effective_to=effective_to
        )
        await add_price(stage.pool, Act(org_id=0), new, **WHO)
    await end_price(stage.pool, Act(org_id=0), PriceEnd(**what, effective_to=None), **WHO)


async def make_keys(stage: Scene) -> None:
    """A key for each way to tamper with one, and limits on the requests of two holders."""
    caller, keyring = Caller(**WHO), Keyring(stage.pool)
    soon = (await stage.balance()).as_of + 99 * HOUR_US
    system: dict[str, Any] = {"role": "admin", "scope": "", "name": "staff"}
    await create_key(stage.pool, Act(org_id=0), caller, **system)
    made = {}
    for name, more in (("member", {}), ("ending", {"expires_at": soon}), ("revoked", {})):
        tenant: dict[str, Any] = {"role": "member", "scope": "acme/p", "name": name, **more}
        made[name] = await create_key(stage.pool, Act(org_id=1), caller, **tenant)
    gone = made["revoked"].row.key_id
    for _ in range(2):
        await revoke_key(stage.pool, Act(org_id=1), caller, keyring, key_id=gone, scope="")
    number = made["member"].row.key_id
    for target in (
        Target(
            org_id=1, holder=Holder.KEY, number=number, resource=f"key_1_{number}", scope="acme"
        ),
        Target(org_id=1, holder=Holder.ORG, number=0, resource="acme", scope="acme"),
    ):
        for wanted in (RequestLimit(10, 3_600), None, RequestLimit(20, 7_200)):
            await change_limit(stage.pool, keyring, Act(org_id=1), caller, target, wanted=wanted)


async def make_pools(stage: Scene) -> None:
    """A pool with weights, and one that was removed and had some."""
    pools = GpuPools(stage.pool)
    for gpu_type in ("h100", "b200"):
        for gpus in (8, 16):
            wanted = GpuPool(gpu_type=gpu_type, region="default", gpus=gpus)
            await pools.set(Act(org_id=0), wanted, **WHO)
        weights = [Weight("acme/p", 3, may_borrow=False), Weight("acme", 2)]
        await pools.weigh(
            Act(org_id=0), (gpu_type, "default"), lambda *_, given=weights: given, **WHO
        )
    await pools.remove(Act(org_id=0), "b200", "default", **WHO)


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
        (await requests.ask(stage.pool, Act(org_id=1), STAFF, Ask(**usual, **asked)))[0]
        for _ in range(3)
    ]
    _, approved, declined = made
    terms = Terms(amount=4 * CREDIT)
    await requests.approve(
        stage.ledger, Act(org_id=1), STAFF, approved.request_id, terms=terms, note="fine"
    )
    await requests.close(
        stage.pool,
        Act(org_id=1),
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
