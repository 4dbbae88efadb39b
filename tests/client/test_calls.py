"""Calls are what the server's route table expects, and wrong ones are never sent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from gpucredits.api.http.call import Route, pattern_of
from gpucredits.api.routes import routes
from gpucredits.client import AsyncClient, Call, Client, Invalid, calls
from gpucredits.client.operations import Listing, Operation, Operations
from gpucredits.wire.scalars import decoder_of, from_wire

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEASE = {"account": "acme", "job_id": "j", "gpu_type": "h100"}
CALLS: dict[str, Call[Any]] = {
    "create_account": calls.create_account("acme", model="postpaid", credit_limit=Decimal("9.5")),
    "update_account": calls.update_account(
        "acme/vision", credit_limit="10", metadata={"team": None, "site": "b"}
    ),
    "update_account wholly": calls.update_account("acme", model="postpaid", replace=True),
    "suspend": calls.suspend("acme/vision/alice"),
    "resume": calls.resume("acme"),
    "account": calls.account("acme/vision"),
    "account_page": calls.account_page(
        under="acme", status="active", metadata={"team": "a"}, limit=5
    ),
    "tree": calls.tree("acme"),
    "balance": calls.balance("acme/vision", tree=True, at=NOON, known_at=NOON),
    "issue": calls.issue("acme", 5, starts_at=NOON, expires_at="2026-04-01T00:00:00Z"),
    "issue_all": calls.issue_all([{"account": "acme", "amount": "1", "expires_at": NOON}]),
    "grant": calls.grant("grt_1_2"),
    "grant_page": calls.grant_page("acme", tree=True, open=True),
    "topup": calls.topup("top_1_2"),
    "transfer_page": calls.transfer_page(
        "acme", tree=True, metadata={"why": "share"}, since=NOON, until=NOON
    ),
    "topup_page": calls.topup_page("acme", status="pending"),
    "create_topup": calls.create_topup("acme", "5", payment_reference="x", status="confirmed"),
    "confirm_topup": calls.confirm_topup("top_1_2"),
    "fail_topup": calls.fail_topup("top_1_2"),
    "reverse_topup": calls.reverse_topup("top_1_2"),
    "transfer": calls.transfer("acme", "acme/vision", "1.25", metadata={"why": "march"}),
    "reserve": calls.reserve("acme", job_id="j", gpu_type="h100", max_amount="3"),
    "reserve_all": calls.reserve_all([LEASE, LEASE], atomic=True),
    "reservation": calls.reservation("rsv_1_2"),
    "reservation_page": calls.reservation_page(account="acme", state="active", metadata={"a": "b"}),
    "heartbeats": calls.heartbeats([("rsv_1_2", 1, 500)], node="n1"),
    "extend": calls.extend("rsv_1_2", seq=1, used_ms=500),
    "settle": calls.settle("rsv_1_2", seq=2, used_ms=700),
    "cancel": calls.cancel("rsv_1_2"),
    "lease_token": calls.lease_token("rsv_1_2"),
    "redeem_token": calls.redeem_token("a.b.c", reservation_id="rsv_1_2", node="n1"),
    "jwks": calls.jwks(),
    "signing_keys": calls.signing_keys(),
    "rotate_signing_key": calls.rotate_signing_key(signs_in_seconds=60),
    "revoke_signing_key": calls.revoke_signing_key("k" * 43),
    "reconciliation_page": calls.reconciliation_page("acme", state="differs", limit=5),
    "reconciler": calls.reconciler(),
    "run_reconciler": calls.run_reconciler(account="acme", at_once=True, again=True, limit=9),
    "reconciliation_policy": calls.reconciliation_policy("acme"),
    "set_reconciliation_policy": calls.set_reconciliation_policy("acme", mode="post"),
    "set_reconciliation_policy wholly": calls.set_reconciliation_policy(
        "acme", alarm_floor="2.5", replace=True
    ),
    "drift_alarm_page": calls.drift_alarm_page("acme", acknowledged=True),
    "acknowledge_drift_alarm": calls.acknowledge_drift_alarm("alm_1_2", note="seen"),
    "unmatched_page": calls.unmatched_page("acme", state="matched"),
    "match_use": calls.match_use("unm_1_2", "rsv_1_2", note="its node says so"),
    "dismiss_use": calls.dismiss_use("unm_1_2", "a test"),
    "report_checkpoint": calls.report_checkpoint("rsv_1_2", 9_000),
    "claim_lost_work": calls.claim_lost_work("rsv_1_2", "preemption", checkpoint_ms=500),
    "lost_work_page": calls.lost_work_page("acme"),
    "lost_work_terms": calls.lost_work_terms("acme"),
    "set_lost_work_terms": calls.set_lost_work_terms("acme", hours_per_job=2),
    "end_reconciliation_policy": calls.end_reconciliation_policy("acme"),
    "end_lost_work_terms": calls.end_lost_work_terms("acme"),
    "set_lost_work_terms wholly": calls.set_lost_work_terms(
        "acme", unreported_hours=1, replace=True
    ),
    "refund": calls.refund("rsv_1_2", "1", note="sorry"),
    "adjust": calls.adjust("rsv_1_2", "1"),
    "set_price": calls.set_price("h100", "120", effective_from=NOON, account="acme"),
    "end_price": calls.end_price("h100", effective_to=NOON, account="acme"),
    "price_page": calls.price_page(gpu_type="h100", effective_by=NOON),
    "entry_page": calls.entry_page(
        account="acme", tree=True, type="settle", since=NOON, until=NOON
    ),
    "whoami": calls.whoami(),
    "create_key": calls.create_key("member", scope="acme", name="ci"),
    "revoke_key": calls.revoke_key("key_0_1"),
    "key_page": calls.key_page(limit=10),
    "key_limit": calls.key_limit("key_0_1"),
    "set_key_limit wholly": calls.set_key_limit("key_0_1", refill_per_second=5, replace=True),
    "set_key_limit": calls.set_key_limit("key_0_1", refill_per_second=5, capacity=9),
    "end_key_limit": calls.end_key_limit("key_0_1"),
    "org_request_limit": calls.org_request_limit("acme"),
    "set_org_request_limit wholly": calls.set_org_request_limit(
        "acme", refill_per_hour=7, replace=True
    ),
    "set_org_request_limit": calls.set_org_request_limit("acme", refill_per_hour=7),
    "end_org_request_limit": calls.end_org_request_limit("acme"),
    "audit_page": calls.audit_page(account="acme", since=NOON),
    "report_usage": calls.report_usage(
        [{"reservation_id": "rsv_1_2", "seq": 1, "start_ms": 0, "end_ms": 5}]
    ),
    "usage_page": calls.usage_page("acme", since=NOON),
    "event_page": calls.event_page(kind="reservation.opened", cursor="12"),
    "event_consumers": calls.event_consumers(),
    "acknowledge_events": calls.acknowledge_events("billing", 12),
    "forget_event_consumer": calls.forget_event_consumer("billing"),
    "dead_letter_page": calls.dead_letter_page(state="waiting"),
    "dead_letter": calls.dead_letter("dlt_0_5"),
    "replay_dead_letter": calls.replay_dead_letter(
        "dlt_0_5", body={"org_id": 1, "events": [{"job_id": "j", "seq": 1, "used_ms": 5}]}
    ),
    "drop_dead_letter": calls.drop_dead_letter("dlt_0_5"),
    "explain": calls.explain("acme", job_id="j", gpu_type="h100", exhaustion="stop"),
    "limits": calls.limits("acme/vision"),
    "rate_limit": calls.rate_limit("acme"),
    "set_rate_limit wholly": calls.set_rate_limit(
        "acme", capacity="5", refill_per_hour=0, replace=True
    ),
    "set_rate_limit": calls.set_rate_limit("acme", capacity="5", refill_per_hour=0),
    "end_rate_limit": calls.end_rate_limit("acme"),
    "quotas": calls.quotas("acme"),
    "set_quota": calls.set_quota("acme", "credits_per_window", "5", calendar="day", zone="UTC"),
    "replace_quotas": calls.replace_quotas("acme", [{"dimension": "concurrent_jobs", "limit": 2}]),
    "end_quota": calls.end_quota("acme/vision", "qta_1_2"),
    "boosts": calls.boosts("acme"),
    "end_boost": calls.end_boost("acme", "bst_1_2"),
    "add_boost": calls.add_boost("acme", "2", dimension="concurrent_gpus", ends_at=NOON),
    "budgets": calls.budgets("acme"),
    "set_budget wholly": calls.set_budget("acme", 5, calendar="month", replace=True),
    "set_budget": calls.set_budget("acme", 5, calendar="month", warn_percent=[80]),
    "replace_budgets": calls.replace_budgets("acme", [{"allowance": "5", "calendar": "week"}]),
    "end_budget": calls.end_budget("acme", "monthly"),
    "period_page": calls.period_page("acme", "monthly", limit=5),
    "enqueue": calls.enqueue("acme", job_id="j", gpu_type="h100", deadline=NOON, priority=3),
    "queued": calls.queued("que_1_2", wait_seconds=5),
    "queue_page": calls.queue_page(account="acme", pool="h100/eu", state="waiting", limit=5),
    "cancel_queued": calls.cancel_queued("que_1_2"),
    "pools": calls.pools(),
    "pool": calls.pool("h100", "eu"),
    "set_pool wholly": calls.set_pool("h100", capacity=8, replace=True),
    "set_pool in part": calls.set_pool("h100", clear=["capacity", "policy.borrowing"]),
    "set_pool": calls.set_pool(
        "h100", capacity=8, resources={"cpu": 64}, policy={"grace_seconds": 5}
    ),
    "remove_pool": calls.remove_pool("h100"),
    "weights": calls.weights("h100"),
    "set_weights": calls.set_weights("h100", weights=[{"account": "acme", "weight": 3}]),
    "change_weights": calls.change_weights("h100", weights=[{"account": "acme"}]),
    "shares": calls.shares("h100"),
    "snapshot": calls.snapshot("h100"),
    "ask": calls.ask("acme", "credits", "50", reason="a paper", ends_at=NOON),
    "request": calls.request("ask_1_2"),
    "request_page": calls.request_page("acme", state="open", kind="quota", limit=5),
    "approve_request": calls.approve_request("ask_1_2", amount="40", note="must do"),
    "decline_request": calls.decline_request("ask_1_2", "not now"),
    "cancel_request": calls.cancel_request("ask_1_2"),
    "statement": calls.statement("stm_1_2"),
    "statement_page": calls.statement_page("acme", limit=5),
    "pay_statement": calls.pay_statement("stm_1_2", "5", payment_reference="x"),
    "idle_guard": calls.idle_guard("acme/vision"),
    "set_idle_guard wholly": calls.set_idle_guard("acme", window_seconds=600, replace=True),
    "set_idle_guard": calls.set_idle_guard("acme", window_seconds=1_800, memory_percent=20),
    "end_idle_guard": calls.end_idle_guard("acme"),
    "anomaly_page": calls.anomaly_page("acme", limit=5),
    "anomaly_terms": calls.anomaly_terms("acme"),
    "set_anomaly_terms wholly": calls.set_anomaly_terms("acme", floor="5", replace=True),
    "set_anomaly_terms": calls.set_anomaly_terms("acme", ratio_percent=300, floor="20"),
    "health": calls.health(),
    "clock": calls.clock(),
    "maintenance": calls.maintenance(limit=5),
    "announce_maintenance": calls.announce_maintenance(1_800, reason="a new kernel"),
    "end_maintenance": calls.end_maintenance(),
    "exposure_page": calls.exposure_page(account="acme"),
    "org_clock_page": calls.org_clock_page(limit=5),
    "repair_clock": calls.repair_clock("acme", reason="drill"),
    "advance_clock": calls.advance_clock(5),
}
TABLE = routes(has_test_clock=True)
# Not for programs that use the client.
NOT_CALLED = {
    ("GET", "/v1/openapi.json"),
    ("GET", "/metrics"),  # text for Prometheus
    ("POST", "/v1/accounts/{account}/budgets"),  # as PATCH does by the budget's own path
}


def route_of(call: Call[Any]) -> Route:
    """The row of the server's table that serves a call."""
    for route in TABLE:
        if route.method == call.method and re.fullmatch(pattern_of(route.path), call.path):
            return route
    raise AssertionError(f"the server has no {call.method} {call.path}")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_what_its_route_expects(name: str) -> None:
    """Path, query, body, key and answer of every call agree with the server's table."""
    call = CALLS[name]
    route = route_of(call)
    msgspec.convert(dict(call.query), route.query, strict=False, dec_hook=from_wire)
    if route.body is None:
        assert call.body is None
    elif call.body is not None or not route.is_body_optional:
        decoder_of(route.body).decode(call.body or b"")
    assert call.is_keyed == route.needs_key
    assert call.is_write == route.is_write
    assert call.answer in {route.answer, *(answer for _, answer in route.other_answers)}


def test_every_method_of_the_clients_is_checked() -> None:
    """The list above leaves no method out."""
    methods = {name for name, value in vars(Operations).items() if isinstance(value, Operation)}
    assert methods == {name.partition(" ")[0] for name in CALLS}


def test_every_route_can_be_called() -> None:
    """Whatever the server offers, the client can ask for."""
    called = {(route.method, route.path) for route in map(route_of, CALLS.values())}
    assert called == {(row.method, row.path) for row in TABLE} - NOT_CALLED


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_methods_keep_their_names_and_documents(kind: type[Client | AsyncClient]) -> None:
    """A bound method looks like the function that describes its call."""
    client: Any = kind("http://127.0.0.1:1", "gck_x")
    assert client.balance.__doc__ == calls.balance.__doc__
    assert inspect.signature(client.issue).parameters.keys() >= {"account", "amount", "key"}
    assert isinstance(vars(Operations)["entries"], Listing)
    assert "page" in (client.entries.__doc__ or "")


def naive() -> object:
    """An instant without its zone."""
    return calls.balance("acme", at=datetime(2026, 1, 1))  # noqa: DTZ001  # what is refused


def inexact() -> object:
    """An amount that is not exact."""
    inexact_amount: Any = 0.1
    return calls.issue("acme", inexact_amount)


WRONG: dict[str, tuple[Callable[[], object], str, str]] = {
    "a path in capitals": (lambda: calls.balance("Acme"), "account", "a-z"),
    "a path with a reserved word": (lambda: calls.tree("acme/balance"), "account", "reserved"),
    "a path in a body": (lambda: calls.issue("a b", "1"), "account", "a-z"),
    "a negative amount": (lambda: calls.issue("acme", "-1"), "amount", "more than 0"),
    "an amount of seven decimals": (lambda: calls.issue("acme", "0.0000001"), "amount", "6"),
    "a float": (inexact, "amount", "exact"),
    "a float in a batch": (
        lambda: calls.issue_all([{"account": "acme", "amount": 0.1}]),
        "items[0].amount",
        "exact",
    ),
    "an instant without a zone": (naive, "at", "time zone"),
    "a past instant that is none": (
        lambda: calls.balance("acme", at="yesterday"),
        "at",
        "RFC 3339",
    ),
    "an instant of a body without a zone": (
        lambda: calls.issue("acme", "1", expires_at=NOON.replace(tzinfo=None)),
        "expires_at",
        "time zone",
    ),
    "a path to filter by in capitals": (
        lambda: calls.entry_page(account="Acme"),
        "account",
        "a-z",
    ),
    "an instant that is none": (
        lambda: calls.issue("acme", "1", expires_at="soon"),
        "expires_at",
        "RFC 3339",
    ),
    "no GPUs": (
        lambda: calls.reserve("acme", job_id="j", gpu_type="h100", gpu_count=0),
        "gpu_count",
        "from 0.001 to 100000",
    ),
    "an unknown field in a batch": (
        lambda: calls.issue_all([{"account": "acme", "amount": "1", "colour": "red"}]),
        "items[0].colour",
        "not a field",
    ),
    "a key with a space": (
        lambda: calls.issue("acme", "1", key="my key"),
        "idempotency key",
        "ASCII",
    ),
    "an empty id": (lambda: calls.cancel(""), "id", "empty"),
    "no address": (lambda: Client("localhost", "k"), "url", "http://"),
    "no key": (lambda: Client("http://127.0.0.1:1", " "), "key", "API key"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_can_never_be_right_is_not_sent(name: str) -> None:
    """Invalid says which field is wrong and what would be right."""
    build, field, word = WRONG[name]
    with pytest.raises(Invalid) as invalid:
        build()
    assert invalid.value.field == field
    assert word in str(invalid.value)
