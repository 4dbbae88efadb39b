"""Every refusal has its status, its reason and its numbers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.servers.http import Caller, fresh_name, problem


def test_insufficient_credits_names_account_scope_available_and_needed(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A job that cannot be paid for is 402, with the numbers to understand it."""
    admin.made("/v1/credits/issue", {"account": f"{org}/vision", "amount": "0.5"})
    answer = admin.post(
        "/v1/reservations", {"account": f"{org}/vision", "job_id": "j", "gpu_type": gpu_type}
    )
    assert problem(answer) == (402, "insufficient_credits")
    body = answer.json()
    assert body["account"] == f"{org}/vision"
    assert body["scope"] == "project"
    assert body["available"] == "0.5"
    assert body["needed"] == "1.2"


def test_an_unknown_field_is_told_which_there_are(admin: Caller, org: str) -> None:
    """At the top and in lists, the fields of the very thing that has one too many are named."""
    answer = admin.post("/v1/credits/transfer", {"from": org, "to": org, "sum": "5"})
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == "sum"
    told = "sum: is not a field of this; its fields are amount, from, metadata and to."
    assert answer.json()["detail"] == told
    answer = admin.post("/v1/heartbeats", {"beats": [{"used": 5}]})
    assert answer.json()["field"] == "beats[0].used"
    assert answer.json()["detail"].endswith("its fields are reservation_id, seq and used_ms.")


def test_each_reason_has_its_status(admin: Caller, org: str, gpu_type: str) -> None:
    """The rules' refusals come out with the status of their kind."""
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    assert problem(admin.post("/v1/reservations", lease)) == (402, "insufficient_credits")
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    far = "2020-01-01T00:00:00Z"
    expected: list[tuple[str, Any, tuple[int, str]]] = [
        ("/v1/accounts", {"path": org}, (409, "account_exists")),
        ("/v1/accounts", {"path": f"{org}/x/y"}, (422, "parent_unknown")),
        ("/v1/credits/issue", {"account": "nowhere", "amount": "1"}, (404, "account_unknown")),
        (
            "/v1/credits/issue",
            {"account": org, "amount": "1", "expires_at": far},
            (422, "window_ended"),
        ),
        (
            "/v1/credits/transfer",
            {"from": org, "to": org, "amount": "1"},
            (422, "same_account"),
        ),
        (
            "/v1/credits/transfer",
            {"from": org, "to": f"{org}/vision", "amount": "11"},
            (402, "insufficient_credits"),
        ),
        ("/v1/reservations", {**lease, "gpu_type": "none"}, (422, "price_unknown")),
        ("/v1/reservations", {**lease, "payer": f"{org}/vision"}, (422, "payer_invalid")),
        ("/v1/reservations/rsv_1_zzzzz:settle", {}, (404, "reservation_unknown")),
        ("/v1/reservations/nonsense:cancel", {}, (404, "reservation_unknown")),
        ("/v1/topups/top_1_zzzz:confirm", None, (404, "topup_unknown")),
        ("/v1/keys/key_0_zzzzzz:revoke", None, (404, "key_unknown")),
    ]
    for path, body, wanted in expected:
        assert problem(admin.post(path, body)) == wanted, path


def test_a_lease_ends_once(admin: Caller, org: str, gpu_type: str) -> None:
    """What has ended cannot be canceled or started again, and says so."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    lease = admin.made("/v1/reservations", {"account": org, "job_id": "j", "gpu_type": gpu_type})
    path = f"/v1/reservations/{lease['reservation_id']}"
    closed = admin.made(f"{path}:settle", {})
    assert (closed["state"], closed["settled"], closed["released"]) == ("settled", "0", "1.2")
    assert problem(admin.post(f"{path}:cancel")) == (409, "reservation_ended")
    refund = {"reservation_id": lease["reservation_id"], "amount": "1"}
    assert problem(admin.post("/v1/refunds", refund)) == (409, "refund_exceeds")


def test_a_suspended_account_admits_nothing(admin: Caller, org: str, gpu_type: str) -> None:
    """Suspending an org stops admission below it, and resuming lets it go on."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    assert admin.made(f"/v1/accounts/{org}/suspend")["status"] == "suspended"
    lease = {"account": f"{org}/vision/alice", "job_id": "j", "gpu_type": gpu_type}
    assert problem(admin.post("/v1/reservations", lease)) == (409, "account_suspended")
    assert admin.made(f"/v1/accounts/{org}/resume")["status"] == "active"
    assert admin.made("/v1/reservations", lease)["payer"] == org


def test_a_credit_limit_may_be_lowered_below_what_is_used_of_it(
    admin: Caller, gpu_type: str
) -> None:
    """Nothing new is admitted then, and the refusal speaks of the limit, not of credits."""
    org = fresh_name("org")
    admin.made("/v1/accounts", {"path": org, "model": "postpaid", "credit_limit": "10"})
    lease = admin.made("/v1/reservations", {"account": org, "job_id": "j", "gpu_type": gpu_type})
    assert lease["held"] == "1.2"
    answer = admin.call("PATCH", f"/v1/accounts/{org}", {"credit_limit": "1"})
    assert answer.json()["credit_limit"] == "1"
    body = {"account": org, "job_id": "k", "gpu_type": gpu_type}
    refused = admin.post("/v1/reservations", body)
    assert problem(refused) == (402, "insufficient_credits")
    told = refused.json()
    assert f"{org} has used 1.2 of its credit limit of 1, and 1.2 are needed." in told["detail"]
    assert (told["available"], told["needed"]) == ("-1.2", "1.2")
    admin.advance(60)
    beat = {"seq": 1, "used_ms": 60_000}
    drained = admin.made(f"/v1/reservations/{lease['reservation_id']}:extend", beat)
    assert drained["decision"] == "drain"
    prepaid = admin.call("PATCH", f"/v1/accounts/{org}", {"model": "prepaid"})
    assert problem(prepaid) == (409, "limit_in_use")
    admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
    assert admin.made("/v1/reservations", body)["payer"] == org


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("GET", "/v1/nowhere", (404, "not_found")),
        ("GET", "/", (404, "not_found")),
        ("DELETE", "/v1/accounts", (405, "method_not_allowed")),
        ("GET", "/v1/heartbeats", (405, "method_not_allowed")),
        ("PUT", "/v1/reservations/rsv_1_1:settle", (405, "method_not_allowed")),
    ],
)
def test_paths_and_methods_that_do_not_exist_are_problems_too(
    admin: Caller, method: str, path: str, wanted: tuple[int, str]
) -> None:
    """404 and 405 look like every other problem, and 405 says what is allowed."""
    answer = admin.call(method, path)
    assert problem(answer) == wanted
    if wanted[0] == 405:
        assert answer.headers["allow"]


def test_a_request_without_a_live_key_is_401(http: httpx.Client) -> None:
    """No key, a wrong scheme, a made-up key and a malformed one are all told the same."""
    for value in (None, "", "Basic eA==", "Bearer", "Bearer gck_" + "x" * 43, "Bearer ' OR 1=1"):
        headers = {} if value is None else {"authorization": value}
        answer = http.get("/v1/prices", headers=headers)
        assert problem(answer) == (401, "unauthenticated")
        assert "Bearer" in answer.headers["www-authenticate"]


def test_a_write_without_a_key_is_400(admin: Caller, http: httpx.Client) -> None:
    """An idempotency key is required, and must be printable and short."""
    headers = {"authorization": f"Bearer {admin.secret}"}
    body = {"path": fresh_name("org")}
    answer = http.post("/v1/accounts", json=body, headers=headers)
    assert problem(answer) == (400, "idempotency_key_required")
    for key in ("x" * 201, "a b", "é"):
        sent = {
            b"authorization": headers["authorization"].encode(),
            b"idempotency-key": key.encode(),
        }
        answer = http.post("/v1/accounts", json=body, headers=sent)
        assert problem(answer) == (400, "idempotency_key_invalid")


def test_request_ids_are_taken_if_sane(admin: Caller) -> None:
    """A caller's request id comes back; nonsense is replaced."""
    answer = admin.get("/v1/prices", headers={"x-request-id": "trace-1.2:3"})
    assert answer.headers["x-request-id"] == "trace-1.2:3"
    answer = admin.get("/v1/prices", headers={"x-request-id": "no spaces\tor tabs"})
    assert answer.headers["x-request-id"].startswith("req_")


def test_health_needs_no_key(http: httpx.Client) -> None:
    """Anyone may ask whether work is moving."""
    answer = http.get("/healthz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
