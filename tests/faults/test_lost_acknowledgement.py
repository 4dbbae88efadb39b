"""Every kind of write is done, and its reply is lost on the way."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gpucredits.api.routes import routes
from gpucredits.client import Ambiguous, Call, Client, Refused, Retry
from gpucredits.client import accounts as account_calls
from gpucredits.client import anomalies as anomaly_calls
from gpucredits.client import boosts as boost_calls
from gpucredits.client import budgets as budget_calls
from gpucredits.client import credit as credit_calls
from gpucredits.client import keys as key_calls
from gpucredits.client import limits as limit_calls
from gpucredits.client import pools as pool_calls
from gpucredits.client import prices as price_calls
from gpucredits.client import queue as queue_calls
from gpucredits.client import quotas as quota_calls
from gpucredits.client import request_limits as request_limit_calls
from gpucredits.client import requests as request_calls
from gpucredits.client import reservations as lease_calls
from gpucredits.client import statements as statement_calls
from gpucredits.client import system as system_calls
from gpucredits.client import usage as usage_calls
from gpucredits.client.call import account_path, body_of, write
from gpucredits.wire.budget import BudgetSetting, BudgetTerms
from support.digest import digest
from support.extent import Extent, Teller
from support.faulty_proxy import Fault, FaultyProxy
from support.http import RunningServer
from support.months import seconds_to_the_next_month
from support.orgs import CREDITS_PER_GPU_HOUR, GPU_TYPE, new_org
from support.postgres import sql
from support.repeats import is_same_answer
from support.waiting import until

pytestmark = pytest.mark.faults

ONE_TRY = Retry(attempts_max=1, attempt_timeout_s=10.0)


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


Making = Callable[[Stage], Call[Any]]
ITEM = {"gpu_type": GPU_TYPE, "job_id": "wide", "window_seconds": 60}
WRITES: dict[str, Making] = {
    "POST /v1/heartbeats": lambda on: lease_calls.heartbeats([(on.lease(), 1, 9_000)]),
    "POST /v1/usage": lambda on: usage_calls.report_usage(
        [{"reservation_id": on.used_lease(), "seq": 1, "start_ms": 0, "end_ms": 9_000}], node="n"
    ),
    "POST /v1/reservations": lambda on: lease_calls.reserve(
        on.org, job_id="j", gpu_type=GPU_TYPE, window_seconds=60
    ),
    "POST /v1/reservations:batch": lambda on: lease_calls.reserve_all(
        [{**ITEM, "account": on.org, "node": node} for node in ("a", "b")], atomic=True
    ),
    "POST /v1/reservations/{reservation}:extend": lambda on: lease_calls.extend(
        on.lease(), seq=1, used_ms=9_000
    ),
    "POST /v1/reservations/{reservation}:settle": lambda on: lease_calls.settle(on.used_lease()),
    "POST /v1/reservations/{reservation}:cancel": lambda on: lease_calls.cancel(on.lease()),
    "POST /v1/refunds": lambda on: lease_calls.refund(on.used_lease(), "2"),
    "POST /v1/adjustments": lambda on: lease_calls.adjust(on.used_lease(), "2"),
    "POST /v1/credits/issue": lambda on: credit_calls.issue(on.org, "3"),
    "POST /v1/credits/issue:batch": lambda on: credit_calls.issue_all(
        [{"account": on.org, "amount": "3"}, {"account": on.org, "amount": "4"}]
    ),
    "POST /v1/credits/transfer": lambda on: credit_calls.transfer(on.org, f"{on.org}/a", "3"),
    "POST /v1/topups": lambda on: credit_calls.create_topup(
        on.org, "5", payment_reference=secrets.token_hex(8), status="confirmed"
    ),
    "POST /v1/topups/{topup}:confirm": lambda on: credit_calls.confirm_topup(on.topup()),
    "POST /v1/topups/{topup}:fail": lambda on: credit_calls.fail_topup(on.topup()),
    "POST /v1/topups/{topup}:reverse": lambda on: credit_calls.reverse_topup(
        on.topup(is_confirmed=True)
    ),
    "POST /v1/prices": lambda on: price_calls.set_price("a100", "60", account=on.org),
    "POST /v1/prices:end": lambda on: price_calls.end_price(
        on.client.set_price("b200", "60", account=on.org).gpu_type, account=on.org
    ),
    "PUT /v1/accounts/{account}/rate-limit": lambda on: limit_calls.set_rate_limit(
        on.org, capacity="50", refill_per_hour="5", replace=True
    ),
    "PATCH /v1/accounts/{account}/rate-limit": lambda on: limit_calls.set_rate_limit(
        limited(on), capacity="60"
    ),
    "DELETE /v1/accounts/{account}/rate-limit": lambda on: limit_calls.end_rate_limit(limited(on)),
    "POST /v1/accounts/{account}/quotas": lambda on: quota_calls.set_quota(
        on.org, "concurrent_jobs", 4
    ),
    "PUT /v1/accounts/{account}/quotas": lambda on: quota_calls.replace_quotas(
        on.org, [{"dimension": "concurrent_jobs", "limit": 4}]
    ),
    "DELETE /v1/accounts/{account}/quotas/{quota}": lambda on: quota_calls.end_quota(
        on.org, on.client.set_quota(on.org, "concurrent_jobs", 4).quota_id
    ),
    "POST /v1/accounts/{account}/boosts": lambda on: boost_calls.add_boost(
        limited(on), "5", dimension="rate_limit", ends_at="2100-01-01T00:00:00Z"
    ),
    "DELETE /v1/accounts/{account}/boosts/{boost}": lambda on: boost_calls.end_boost(
        on.org, boosted(on)
    ),
    "POST /v1/accounts/{account}/budgets": lambda on: write(
        account_path(on.org, "/budgets"),
        BudgetTerms,
        body=body_of(BudgetSetting, allowance="4", calendar="month"),
    ),
    "PATCH /v1/accounts/{account}/budgets/{budget}": lambda on: budget_calls.set_budget(
        on.org, "4", calendar="month"
    ),
    "PUT /v1/accounts/{account}/budgets/{budget}": lambda on: budget_calls.set_budget(
        on.org, "4", calendar="month", replace=True
    ),
    "PUT /v1/accounts/{account}/budgets": lambda on: budget_calls.replace_budgets(
        on.org, [{"allowance": "4", "calendar": "month"}]
    ),
    "DELETE /v1/accounts/{account}/budgets/{budget}": lambda on: budget_calls.end_budget(
        on.org, on.client.set_budget(on.org, "4", calendar="month").name
    ),
    "POST /v1/requests": lambda on: request_calls.ask(on.org, "credits", "5", reason="a paper"),
    "POST /v1/requests/{request}:cancel": lambda on: request_calls.cancel_request(
        on.client.ask(on.org, "credits", "5", reason="a paper").request_id
    ),
    "POST /v1/requests/{request}:approve": lambda on: request_calls.approve_request(on.asked()),
    "POST /v1/requests/{request}:decline": lambda on: request_calls.decline_request(
        on.asked(), "not this month"
    ),
    "POST /v1/statements/{statement}:pay": lambda on: statement_calls.pay_statement(
        on.statement(), "7", payment_reference=secrets.token_hex(8)
    ),
    "POST /v1/queue/{queue}:cancel": lambda on: queue_calls.cancel_queued(on.queued()),
    "PUT /v1/pools/{gpu_type}/{region}": lambda on: pool_calls.set_pool(
        on.org, capacity=2, replace=True
    ),
    "PATCH /v1/pools/{gpu_type}/{region}": lambda on: pool_calls.set_pool(on.org, capacity=2),
    "DELETE /v1/pools/{gpu_type}/{region}": lambda on: pool_calls.remove_pool(on.pool()),
    "PUT /v1/pools/{gpu_type}/{region}/weights": lambda on: pool_calls.set_weights(
        on.pool(), weights=[{"account": on.org, "weight": 3}]
    ),
    "PATCH /v1/pools/{gpu_type}/{region}/weights": lambda on: pool_calls.change_weights(
        on.pool(), weights=[{"account": on.org, "weight": 5}]
    ),
    "PUT /v1/anomaly-terms": lambda on: anomaly_calls.set_anomaly_terms(
        on.org, ratio_percent=300, replace=True
    ),
    "PATCH /v1/anomaly-terms": lambda on: anomaly_calls.set_anomaly_terms(
        on.org, ratio_percent=300
    ),
    "PUT /v1/accounts/{account}/request-limit": lambda on: (
        request_limit_calls.set_org_request_limit(on.org, refill_per_hour=3_600_000, replace=True)
    ),
    "PATCH /v1/accounts/{account}/request-limit": lambda on: (
        request_limit_calls.set_org_request_limit(on.org, refill_per_hour=3_600_000)
    ),
    "DELETE /v1/accounts/{account}/request-limit": lambda on: (
        request_limit_calls.end_org_request_limit(paced(on))
    ),
    "PUT /v1/keys/{key}/limit": lambda on: request_limit_calls.set_key_limit(
        paced_key(on), refill_per_second=6, replace=True
    ),
    "PATCH /v1/keys/{key}/limit": lambda on: request_limit_calls.set_key_limit(
        paced_key(on), capacity=6
    ),
    "DELETE /v1/keys/{key}/limit": lambda on: request_limit_calls.end_key_limit(paced_key(on)),
    "POST /v1/keys": lambda on: key_calls.create_key("read-only", scope=on.org),
    "POST /v1/keys/{key}:revoke": lambda on: key_calls.revoke_key(
        on.client.create_key("read-only", scope=on.org).key_id
    ),
    "POST /v1/clock/repairs": lambda on: system_calls.repair_clock(on.ahead(), reason="drill"),
    "POST /v1/accounts": lambda on: account_calls.create_account(f"{on.org}/new"),
    "POST /v1/accounts/{account}/suspend": lambda on: account_calls.suspend(on.org),
    "POST /v1/accounts/{account}/resume": lambda on: account_calls.resume(suspended(on)),
    "PUT /v1/accounts/{account}": lambda on: account_calls.update_account(
        on.org, metadata={"team": "x"}, replace=True
    ),
    "PATCH /v1/accounts/{account}": lambda on: account_calls.update_account(
        on.org, metadata={"team": "x"}
    ),
}
# With a new key these are new requests, and nothing in the request itself says otherwise.
# Not a reserve: a job has one lease on a node, and one without, whatever the key.
DOUBLED_BY_A_NEW_KEY = (
    "POST /v1/refunds",
    "POST /v1/adjustments",
    "POST /v1/credits/issue",
    "POST /v1/credits/issue:batch",
    "POST /v1/credits/transfer",
    "POST /v1/accounts/{account}/boosts",
    "POST /v1/keys",
)


def suspended(on: Stage) -> str:
    """The org, suspended."""
    on.client.suspend(on.org)
    return on.org


def paced(on: Stage) -> str:
    """The org, with a limit on its requests."""
    on.client.set_org_request_limit(on.org, refill_per_hour=3_600_000)
    return on.org


def paced_key(on: Stage) -> str:
    """A key of the org with a limit of its own."""
    key_id = on.client.create_key("read-only", scope=on.org).key_id
    on.client.set_key_limit(key_id, refill_per_second=5)
    return key_id


def limited(on: Stage) -> str:
    """The org, with a rate limit."""
    on.client.set_rate_limit(on.org, capacity="50", refill_per_hour="5")
    return on.org


def boosted(on: Stage) -> str:
    """A boost of the org's rate limit."""
    return on.client.add_boost(
        limited(on), "5", dimension="rate_limit", ends_at="2100-01-01T00:00:00Z"
    ).boost_id


def keyed(call: Call[Any]) -> Call[Any]:
    """The call with a key of its own, if it is one that takes a key."""
    return replace(call, key=f"lost-{secrets.token_hex(8)}") if call.is_keyed else call


@pytest.fixture
def impatient(server: RunningServer, proxy: FaultyProxy) -> Iterator[Client]:
    """A client behind the proxy that asks once."""
    with Client(proxy.url, server.admin_secret, retry=ONE_TRY) as client:
        yield client


Staging = Callable[[], Stage]


@pytest.fixture
def staged(direct: Client, server: RunningServer, database_of_server: str) -> Staging:
    """Make a funded org with a project."""

    def stage() -> Stage:
        org = new_org(direct)
        direct.create_account(f"{org}/a")
        direct.issue(org, "1000")
        return Stage(direct, org, lambda secret: Client(server.url, secret), database_of_server)

    return stage


def lose_the_reply(impatient: Client, proxy: FaultyProxy, call: Call[Any]) -> bytes:
    """Have a call carried out and its reply swallowed; the reply that the proxy saw."""
    proxy.plan.append(Fault.SWALLOW_REPLY)
    with pytest.raises(Ambiguous):
        impatient.fetch(call)
    return proxy.lost[-1]


def test_every_write_of_the_api_is_among_the_scenarios() -> None:
    """A write that is added to the API and not to this scenario is noticed."""
    writes = {f"{route.method} {route.path}" for route in routes() if route.is_write}
    assert WRITES.keys() == writes


def test_a_lost_reply_is_repeated_and_has_one_effect(
    impatient: Client,
    proxy: FaultyProxy,
    direct: Client,
    staged: Staging,
    database_of_server: str,
    extent: Extent,
    tell: Teller,
) -> None:
    """Each write, its reply swallowed, is sent again twice with its key: same bytes, one effect."""
    swallowed = equal = 0
    for _ in range(max(1, extent.cycles // 8)):
        for name, make in WRITES.items():
            on = staged()
            call = keyed(make(on))
            before = digest(database_of_server, on.org)
            first = lose_the_reply(impatient, proxy, call)
            done = digest(database_of_server, on.org)
            assert done != before, name
            for _ in range(2):
                again = direct.fetch(call).body
                equal += is_same_answer(call, first, again)
                assert is_same_answer(call, first, again), (name, first, again)
            assert digest(database_of_server, on.org) == done, name
            swallowed += 1
    figures = f"{len(WRITES)} kinds of write, equal answers {equal} of {2 * swallowed}, doubled 0"
    tell("lost acknowledgement", figures, replies_swallowed=swallowed)


def test_a_new_key_after_a_lost_reply_does_it_twice(
    impatient: Client,
    proxy: FaultyProxy,
    direct: Client,
    staged: Staging,
    database_of_server: str,
    tell: Teller,
) -> None:
    """Control: the same comparison sees a second effect when the retry has another key."""
    doubled = 0
    for name in DOUBLED_BY_A_NEW_KEY:
        on = staged()
        call = keyed(WRITES[name](on))
        lose_the_reply(impatient, proxy, call)
        done = digest(database_of_server, on.org)
        try:
            direct.fetch(keyed(call))
        except Refused:
            continue
        doubled += digest(database_of_server, on.org) != done
    figures = f"of {len(DOUBLED_BY_A_NEW_KEY)} kinds"
    is_seen = doubled == len(DOUBLED_BY_A_NEW_KEY)
    tell("lost acknowledgement, control: a new key", figures, holds=is_seen, doubled=doubled)
    assert is_seen
