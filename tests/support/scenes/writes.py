"""Every kind of write of the API, on a stage that has what the write needs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from gpucredits.client import Call, Client, calls
from gpucredits.client.call import write
from gpucredits.core import ids
from gpucredits.wire.limits.budget import BudgetSetting, BudgetTerms
from support.engines.postgres import sql
from support.months import seconds_to_the_next_month
from support.scenes.orgs import CREDITS_PER_GPU_HOUR, GPU_TYPE
from support.waiting import until


@dataclass(frozen=True, slots=True)
class Stage:
    """A fresh org with credits, and what a write may need to exist before it."""

    client: Client
    org: str
    client_of: Callable[[str], AbstractContextManager[Client]]  # by its secret
    dsn: str

    def lease(self) -> str:
        """A running lease, ten seconds old."""
        lease = self.client.reserve(self.org, job_id="j", gpu_type=GPU_TYPE, window_seconds=60)
        self.client.advance_clock(10)
        return lease.reservation_id

    def used_lease(self) -> str:
        """A lease of which ten seconds were settled."""
        lease_id = self.lease()
        self.client.heartbeats([(lease_id, 1, 10_000)])
        return lease_id

    def topup(self, *, is_confirmed: bool = False) -> str:
        """A payment."""
        answer = self.client.create_topup(
            self.org,
            "5",
            payment_reference=secrets.token_hex(8),
            status="confirmed" if is_confirmed else "pending",
        )
        return answer.topup_id

    def asked(self) -> str:
        """What another key has asked for, for whoever keeps the first one to decide."""
        other = self.client.create_key("operator", scope=self.org)
        with self.client_of(other.secret or "") as asker:
            return asker.ask(self.org, "credits", "5", reason="a paper").request_id

    def statement(self) -> str:
        """What the org, which pays later, owes for a month that has just been closed."""
        self.client.update_account(self.org, model="postpaid", credit_limit="100000")
        lease = self.client.reserve(
            self.org, job_id="j", gpu_type=GPU_TYPE, gpu_count=200, window_seconds=60
        )
        self.client.advance_clock(10)
        self.client.settle(lease.reservation_id, seq=1, used_ms=10_000)
        self.client.advance_clock(seconds_to_the_next_month(self.client))
        [closed] = until(lambda: list(self.client.statements(self.org)))
        return closed.statement_id

    def ahead(self) -> str:
        """The org, whose clock stands a minute ahead of the database's."""
        moved = "UPDATE orgs SET clock = ledger_now() + 60000000 WHERE path = $1"
        sql(self.dsn, moved, self.org)
        return self.org

    def pool(self) -> str:
        """A pool of one GPU; the type of that GPU has the org's name."""
        self.client.set_pool(self.org, capacity=1)
        return self.org

    def queued(self) -> str:
        """A request that waits, because its pool is drained."""
        gpu_type = self.org
        self.client.set_pool(gpu_type, capacity=0)
        self.client.set_price(gpu_type, CREDITS_PER_GPU_HOUR, account=self.org)
        waiting = self.client.enqueue(self.org, job_id="j", gpu_type=gpu_type, gpu_count=1)
        return waiting.queue_id

    def letter(self) -> str:
        """A dead letter."""
        number = sql(
            self.dsn,
            "INSERT INTO dead_letters (topic, partition, position, received_at, reason, detail,"
            " body) VALUES ('usage', 0, 1, 0, 'unreadable', $1, '') RETURNING letter_id",
            self.org,
        )
        return ids.format_id(ids.DEAD_LETTER, 0, number)

    def message(self) -> dict[str, Any]:
        """A message of measured use of a lease."""
        lease = self.lease()
        org_id, _ = ids.parse_id(ids.RESERVATION, lease)
        event = {"job_id": "j", "reservation_id": lease, "seq": 1, "used_ms": 5}
        return {"org_id": org_id, "events": [event]}

    def differing(self) -> str:
        """The org, with an ended lease that was measured at a tenth of its bill."""
        self.client.set_reconciliation_policy(
            self.org, mode="report", alarm_percent=0, alarm_floor="0.000001"
        )
        lease = self.used_lease()
        measured = {"reservation_id": lease, "seq": 1, "start_ms": 0, "end_ms": 1_000}
        self.client.report_usage([measured], node="n")
        self.client.settle(lease)
        return self.org

    def alarm(self) -> str:
        """An alarm of drift."""
        self.client.run_reconciler(account=self.differing(), at_once=True)
        return next(iter(self.client.drift_alarms(self.org))).alarm_id

    def unmatched(self) -> str:
        """Use of a lease that there is not."""
        org_id, _ = ids.parse_id(ids.RESERVATION, self.lease())
        gone = ids.format_id(ids.RESERVATION, org_id, 10**9)
        measured = {"reservation_id": gone, "seq": 1, "start_ms": 0, "end_ms": 1_000}
        self.client.report_usage([measured], node="n")
        [row] = until(lambda: list(self.client.unmatched_use(account=self.org)))
        return row.unmatched_id

    def lost(self) -> str:
        """A lease that lapsed in silence, of an org that is given lost work back."""
        self.client.set_lost_work_terms(self.org, hours_per_job=2, unreported_hours=1)
        lease = self.client.reserve(
            self.org, job_id="j", gpu_type=GPU_TYPE, window_seconds=60, node="gpu-7"
        ).reservation_id
        self.client.advance_clock(10)
        self.client.heartbeats([(lease, 1, 10_000)])
        self.client.advance_clock(600)
        return lease

    def token(self) -> str:
        """A token of a running lease."""
        return self.client.lease_token(self.lease()).token

    def reader(self) -> str:
        """A reader of events."""
        return self.client.acknowledge_events(self.org, 0).consumer


Making = Callable[[Stage], Call[Any]]
ITEM = {"gpu_type": GPU_TYPE, "job_id": "wide", "window_seconds": 60}


def planned_stop(on: Stage) -> Call[Any]:
    """End a stop that was announced."""
    on.client.announce_maintenance(60, reason=on.org)
    return calls.end_maintenance()


WRITES: dict[str, Making] = {
    "POST /v1/heartbeats": lambda on: calls.heartbeats([(on.lease(), 1, 9_000)]),
    "POST /v1/usage": lambda on: calls.report_usage(
        [{"reservation_id": on.used_lease(), "seq": 1, "start_ms": 0, "end_ms": 9_000}], node="n"
    ),
    "POST /v1/reservations": lambda on: calls.reserve(
        on.org, job_id="j", gpu_type=GPU_TYPE, window_seconds=60
    ),
    "POST /v1/reservations:batch": lambda on: calls.reserve_all(
        [{**ITEM, "account": on.org, "node": node} for node in ("a", "b")], atomic=True
    ),
    "POST /v1/reservations/{reservation}:extend": lambda on: calls.extend(
        on.lease(), seq=1, used_ms=9_000
    ),
    "POST /v1/reservations/{reservation}:settle": lambda on: calls.settle(on.used_lease()),
    "POST /v1/reservations/{reservation}:cancel": lambda on: calls.cancel(on.lease()),
    "POST /v1/refunds": lambda on: calls.refund(on.used_lease(), "2"),
    "POST /v1/adjustments": lambda on: calls.adjust(on.used_lease(), "2"),
    "POST /v1/credits/issue": lambda on: calls.issue(on.org, "3"),
    "POST /v1/credits/issue:batch": lambda on: calls.issue_all(
        [{"account": on.org, "amount": "3"}, {"account": on.org, "amount": "4"}]
    ),
    "POST /v1/credits/transfer": lambda on: calls.transfer(on.org, f"{on.org}/a", "3"),
    "POST /v1/topups": lambda on: calls.create_topup(
        on.org, "5", payment_reference=secrets.token_hex(8), status="confirmed"
    ),
    "POST /v1/topups/{topup}:confirm": lambda on: calls.confirm_topup(on.topup()),
    "POST /v1/topups/{topup}:fail": lambda on: calls.fail_topup(on.topup()),
    "POST /v1/topups/{topup}:reverse": lambda on: calls.reverse_topup(on.topup(is_confirmed=True)),
    "POST /v1/prices": lambda on: calls.set_price("a100", "60", account=on.org),
    "POST /v1/prices:end": lambda on: calls.end_price(
        on.client.set_price("b200", "60", account=on.org).gpu_type, account=on.org
    ),
    "PUT /v1/accounts/{account}/rate-limit": lambda on: calls.set_rate_limit(
        on.org, capacity="50", refill_per_hour="5", replace=True
    ),
    "PATCH /v1/accounts/{account}/rate-limit": lambda on: calls.set_rate_limit(
        limited(on), capacity="60"
    ),
    "DELETE /v1/accounts/{account}/rate-limit": lambda on: calls.end_rate_limit(limited(on)),
    "POST /v1/accounts/{account}/quotas": lambda on: calls.set_quota(on.org, "concurrent_jobs", 4),
    "PUT /v1/accounts/{account}/quotas": lambda on: calls.replace_quotas(
        on.org, [{"dimension": "concurrent_jobs", "limit": 4}]
    ),
    "DELETE /v1/accounts/{account}/quotas/{quota}": lambda on: calls.end_quota(
        on.org, on.client.set_quota(on.org, "concurrent_jobs", 4).quota_id
    ),
    "POST /v1/accounts/{account}/boosts": lambda on: calls.add_boost(
        limited(on), "5", dimension="rate_limit", ends_at="2100-01-01T00:00:00Z"
    ),
    "DELETE /v1/accounts/{account}/boosts/{boost}": lambda on: calls.end_boost(on.org, boosted(on)),
    "POST /v1/accounts/{account}/budgets": lambda on: write(
        "/v1/accounts/{account}/budgets",
        BudgetTerms,
        {"account": on.org, "allowance": "4", "calendar": "month"},
        shape=BudgetSetting,
    ),
    "PATCH /v1/accounts/{account}/budgets/{budget}": lambda on: calls.set_budget(
        on.org, "4", calendar="month"
    ),
    "PUT /v1/accounts/{account}/budgets/{budget}": lambda on: calls.set_budget(
        on.org, "4", calendar="month", replace=True
    ),
    "PUT /v1/accounts/{account}/budgets": lambda on: calls.replace_budgets(
        on.org, [{"allowance": "4", "calendar": "month"}]
    ),
    "DELETE /v1/accounts/{account}/budgets/{budget}": lambda on: calls.end_budget(
        on.org, on.client.set_budget(on.org, "4", calendar="month").name
    ),
    "POST /v1/requests": lambda on: calls.ask(on.org, "credits", "5", reason="a paper"),
    "POST /v1/requests/{request}:cancel": lambda on: calls.cancel_request(
        on.client.ask(on.org, "credits", "5", reason="a paper").request_id
    ),
    "POST /v1/requests/{request}:approve": lambda on: calls.approve_request(on.asked()),
    "POST /v1/requests/{request}:decline": lambda on: calls.decline_request(
        on.asked(), "not this month"
    ),
    "POST /v1/statements/{statement}:pay": lambda on: calls.pay_statement(
        on.statement(), "7", payment_reference=secrets.token_hex(8)
    ),
    "POST /v1/queue/{queue}:cancel": lambda on: calls.cancel_queued(on.queued()),
    "PUT /v1/pools/{gpu_type}/{region}": lambda on: calls.set_pool(
        on.org, capacity=2, replace=True
    ),
    "PATCH /v1/pools/{gpu_type}/{region}": lambda on: calls.set_pool(on.org, capacity=2),
    "DELETE /v1/pools/{gpu_type}/{region}": lambda on: calls.remove_pool(on.pool()),
    "PUT /v1/pools/{gpu_type}/{region}/weights": lambda on: calls.set_weights(
        on.pool(), weights=[{"account": on.org, "weight": 3}]
    ),
    "PATCH /v1/pools/{gpu_type}/{region}/weights": lambda on: calls.change_weights(
        on.pool(), weights=[{"account": on.org, "weight": 5}]
    ),
    "PUT /v1/accounts/{account}/idle-guard": lambda on: calls.set_idle_guard(
        on.org, window_seconds=600, replace=True
    ),
    "PATCH /v1/accounts/{account}/idle-guard": lambda on: calls.set_idle_guard(
        on.org, window_seconds=900
    ),
    "DELETE /v1/accounts/{account}/idle-guard": lambda on: calls.end_idle_guard(on.org),
    "PUT /v1/anomaly-terms": lambda on: calls.set_anomaly_terms(
        on.org, ratio_percent=300, replace=True
    ),
    "PATCH /v1/anomaly-terms": lambda on: calls.set_anomaly_terms(on.org, ratio_percent=300),
    "PUT /v1/accounts/{account}/request-limit": lambda on: calls.set_org_request_limit(
        on.org, refill_per_hour=3_600_000, replace=True
    ),
    "PATCH /v1/accounts/{account}/request-limit": lambda on: calls.set_org_request_limit(
        on.org, refill_per_hour=3_600_000
    ),
    "DELETE /v1/accounts/{account}/request-limit": lambda on: calls.end_org_request_limit(
        paced(on)
    ),
    "PUT /v1/keys/{key}/limit": lambda on: calls.set_key_limit(
        paced_key(on), refill_per_second=6, replace=True
    ),
    "PATCH /v1/keys/{key}/limit": lambda on: calls.set_key_limit(paced_key(on), capacity=6),
    "DELETE /v1/keys/{key}/limit": lambda on: calls.end_key_limit(paced_key(on)),
    "POST /v1/keys": lambda on: calls.create_key("read-only", scope=on.org),
    "POST /v1/keys/{key}:revoke": lambda on: calls.revoke_key(
        on.client.create_key("read-only", scope=on.org).key_id
    ),
    "POST /v1/event-consumers/{consumer}:acknowledge": lambda on: calls.acknowledge_events(
        on.org, 0
    ),
    "DELETE /v1/event-consumers/{consumer}": lambda on: calls.forget_event_consumer(on.reader()),
    "POST /v1/dead-letters/{letter}:replay": lambda on: calls.replay_dead_letter(
        on.letter(), body=on.message()
    ),
    "POST /v1/dead-letters/{letter}:drop": lambda on: calls.drop_dead_letter(on.letter()),
    "PUT /v1/reconciliation-policy": lambda on: calls.set_reconciliation_policy(
        on.org, mode="post", replace=True
    ),
    "PATCH /v1/reconciliation-policy": lambda on: calls.set_reconciliation_policy(
        on.org, mode="post"
    ),
    "DELETE /v1/reconciliation-policy": lambda on: calls.end_reconciliation_policy(on.differing()),
    "POST /v1/reconciler:run": lambda on: calls.run_reconciler(
        account=on.differing(), at_once=True
    ),
    "POST /v1/drift-alarms/{alarm}:acknowledge": lambda on: calls.acknowledge_drift_alarm(
        on.alarm()
    ),
    "POST /v1/unmatched-use/{unmatched}:match": lambda on: calls.match_use(
        on.unmatched(), lease_of(on), note="its node says so"
    ),
    "POST /v1/unmatched-use/{unmatched}:dismiss": lambda on: calls.dismiss_use(
        on.unmatched(), "a test"
    ),
    "POST /v1/reservations/{reservation}:checkpoint": lambda on: calls.report_checkpoint(
        on.used_lease(), 5_000
    ),
    "POST /v1/lost-work": lambda on: calls.claim_lost_work(on.lost(), "node_failure"),
    "PUT /v1/lost-work-terms": lambda on: calls.set_lost_work_terms(
        on.org, hours_per_job=2, replace=True
    ),
    "PATCH /v1/lost-work-terms": lambda on: calls.set_lost_work_terms(on.org, hours_per_job=2),
    "DELETE /v1/lost-work-terms": lambda on: calls.end_lost_work_terms(
        on.client.set_lost_work_terms(on.org, hours_per_job=2).account
    ),
    "POST /v1/maintenance": lambda on: calls.announce_maintenance(60, reason=on.org),
    "POST /v1/maintenance:end": planned_stop,
    "POST /v1/signing-keys:rotate": lambda on: calls.rotate_signing_key(signs_in_seconds=0),
    "POST /v1/signing-keys/{signing_key}:revoke": lambda on: calls.revoke_signing_key(
        on.client.rotate_signing_key(signs_in_seconds=0).key_id
    ),
    "POST /v1/tokens:redeem": lambda on: calls.redeem_token(on.token()),
    "POST /v1/clock/repairs": lambda on: calls.repair_clock(on.ahead(), reason="drill"),
    "POST /v1/accounts": lambda on: calls.create_account(f"{on.org}/new"),
    "POST /v1/accounts/{account}/suspend": lambda on: calls.suspend(on.org),
    "POST /v1/accounts/{account}/resume": lambda on: calls.resume(suspended(on)),
    "PUT /v1/accounts/{account}": lambda on: calls.update_account(
        on.org, metadata={"team": "x"}, replace=True
    ),
    "PATCH /v1/accounts/{account}": lambda on: calls.update_account(on.org, metadata={"team": "x"}),
}
# With a new key these are new requests, and nothing in the request itself says otherwise.
# Not a reserve: a job has one lease on a node, and one without, whatever the key.


def limited(on: Stage) -> str:
    """The org, with a rate limit."""
    on.client.set_rate_limit(on.org, capacity="50", refill_per_hour="5")
    return on.org


def boosted(on: Stage) -> str:
    """A boost of the org's rate limit."""
    return on.client.add_boost(
        limited(on), "5", dimension="rate_limit", ends_at="2100-01-01T00:00:00Z"
    ).boost_id


def paced(on: Stage) -> str:
    """The org, with a limit on its requests."""
    on.client.set_org_request_limit(on.org, refill_per_hour=3_600_000)
    return on.org


def paced_key(on: Stage) -> str:
    """A key of the org with a limit of its own."""
    key_id = on.client.create_key("read-only", scope=on.org).key_id
    on.client.set_key_limit(key_id, refill_per_second=5)
    return key_id


def lease_of(on: Stage) -> str:
    """The lease of the org that runs."""
    return next(iter(on.client.reservations(account=on.org))).reservation_id


def suspended(on: Stage) -> str:
    """The org, suspended."""
    on.client.suspend(on.org)
    return on.org
