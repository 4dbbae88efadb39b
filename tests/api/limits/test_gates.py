"""Every gate at every scope: refused, explained, and explained as it is then refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from support.rows import rows_of
from support.servers.http import Caller, problem

SCOPES = {"org": "", "project": "/vision", "user": "/vision/alice"}
Bound = Callable[[Caller, str, str], None]  # sets a limit that two GPUs for 100 s are over


def quota(**terms: Any) -> Bound:
    """Sets a quota."""

    def bind(admin: Caller, account: str, gpu_type: str) -> None:
        named = {name: gpu_type if text == "GPU" else text for name, text in terms.items()}
        admin.made(f"/v1/accounts/{account}/quotas", named)

    return bind


def rate_limit(admin: Caller, account: str, gpu_type: str) -> None:
    """Lets one and a half credits be drawn at once."""
    del gpu_type
    terms = {"capacity": "3", "refill_per_hour": "3.6"}
    assert admin.call("PUT", f"/v1/accounts/{account}/rate-limit", terms).status_code == 200


WINDOW = {"dimension": "credits_per_window", "limit": "3"}
BOUNDS: dict[str, tuple[str, int, Bound]] = {
    "concurrent GPUs": ("quota", 403, quota(dimension="concurrent_gpus", limit=3)),
    "GPUs of one type": ("quota", 403, quota(dimension="concurrent_gpus", limit=3, gpu_type="GPU")),
    "concurrent jobs": ("quota", 403, quota(dimension="concurrent_jobs", limit=1)),
    "credits per day": ("quota", 403, quota(**WINDOW, calendar="day", zone="America/New_York")),
    "credits in 5 hours": ("quota", 403, quota(**WINDOW, rolling_hours=5)),
    "rate limit": ("rate_limit", 429, rate_limit),
}


def lease_of(org: str, gpu_type: str, **more: Any) -> dict[str, Any]:
    """Two GPUs for a hundred seconds ahead: two credits."""
    usual = {"account": f"{org}/vision/alice", "job_id": "first", "gpu_type": gpu_type}
    return usual | {"gpu_count": 2, "window_seconds": 100} | more


def explain(caller: Caller, lease: dict[str, Any]) -> Any:
    """What a reserve would be told."""
    answer = caller.post("/v1/admissions:check", lease)
    assert answer.status_code == 200, answer.text
    return answer.json()


def steady(gates: list[Any]) -> list[Any]:
    """Gates without what a rate limit's refill changes from one moment to the next."""
    shown = []
    for gate in gates:
        dropped = {"current", "sentence"} if gate["gate"] == "rate_limit" else set()
        shown.append({name: value for name, value in gate.items() if name not in dropped})
    return shown


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_a_gate_is_explained_as_it_then_refuses(
    admin: Caller, org: str, gpu_type: str, scope: str, name: str
) -> None:
    """The first job passes, the second is over the limit: said before, and the same when asked."""
    gate, status, bind = BOUNDS[name]
    account = f"{org}{SCOPES[scope]}"
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    bind(admin, account, gpu_type)
    first = lease_of(org, gpu_type)
    told = explain(admin, first)
    assert told["admitted"], told
    assert (told["status"], told["payer"], told["held"], told["price"]) == (201, org, "2", "36")
    assert [(lot["kind"], lot["amount"]) for lot in told["grants"]] == [("grant", "2")]
    assert [(each["gate"], each["scope"]) for each in told["gates"]] == [
        ("budget", "org"),
        (gate, scope),
    ]
    lease = admin.made("/v1/reservations", first)
    assert (lease["held"], lease["payer"]) == (told["held"], told["payer"])
    second = lease_of(org, gpu_type, job_id="second")
    told = explain(admin, second)
    answer = admin.post("/v1/reservations", second)
    body = answer.json()
    reason = "rate_limited" if gate == "rate_limit" else "quota_exceeded"
    assert problem(answer) == (status, reason)
    assert (told["admitted"], told["status"], told["reason"]) == (False, status, reason)
    assert (body["account"], body["scope"]) == (account, scope)
    assert steady(body["gates"]) == steady(told["gates"])
    said = next(each for each in body["gates"] if not each["passes"])
    assert (said["gate"], said["scope"], said["account"]) == (gate, scope, account)
    assert Decimal(said["current"]) + Decimal(said["requested"]) > Decimal(said["limit"])
    assert body["detail"] == said["sentence"]
    assert account in body["detail"]
    assert body.get("clears_at") == said["clears_at"]
    for text in (said["limit"], said["requested"]):
        assert text in body["detail"]
    admin.made(f"/v1/reservations/{lease['reservation_id']}:settle")
    assert explain(admin, second)["admitted"] or name.startswith("credits")


def test_a_cap_for_each_job_cuts_the_hold(admin: Caller, org: str, gpu_type: str) -> None:
    """A quota on credits per job admits the job with a lease that ends where its cap does."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "credits_per_job", "limit": "1"})
    told = explain(admin, lease_of(org, gpu_type))
    assert (told["admitted"], told["held"], told["expires_in_ms"]) == (True, "1", 50_000)
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "credits_per_job", "limit": "0"})
    refused = admin.post("/v1/reservations", lease_of(org, gpu_type))
    assert problem(refused) == (403, "quota_exceeded")
    assert "never clears" in refused.json()["detail"]


def test_every_gate_speaks_in_every_refusal(admin: Caller, org: str, gpu_type: str) -> None:
    """Without credits the budget is named, and what all other gates say at all scopes is there."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1"})
    for tail in SCOPES.values():
        admin.made(f"/v1/accounts/{org}{tail}/quotas", {"dimension": "concurrent_gpus", "limit": 1})
        rate_limit(admin, f"{org}{tail}", gpu_type)
    answer = admin.post("/v1/reservations", lease_of(org, gpu_type))
    assert problem(answer) == (402, "insufficient_credits")
    assert [(each["gate"], each["scope"], each["passes"]) for each in answer.json()["gates"]] == [
        ("budget", "org", False),
        *(("quota", scope, False) for scope in SCOPES),
        *(("rate_limit", scope, True) for scope in SCOPES),
    ]
    assert all(each["sentence"].endswith(".") for each in answer.json()["gates"])


def test_a_job_that_nobody_pays_for_hears_all_gates_too(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A 402 where nobody has credits carries every gate, and so does one for a transfer."""
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_gpus", "limit": 1})
    lease = lease_of(org, gpu_type)
    answer = admin.post("/v1/reservations", lease)
    assert problem(answer) == (402, "insufficient_credits")
    assert [each["gate"] for each in answer.json()["gates"]] == ["budget", "quota"]
    told = explain(admin, lease)
    assert (told["admitted"], told["reason"], told["payer"]) == (
        False,
        "insufficient_credits",
        f"{org}/vision/alice",
    )
    assert told["gates"] == answer.json()["gates"]
    transfer = {"from": org, "to": f"{org}/vision", "amount": "5"}
    answer = admin.post("/v1/credits/transfer", transfer)
    assert problem(answer) == (402, "insufficient_credits")
    assert [each["requested"] for each in answer.json()["gates"]] == ["5"]


def test_what_never_gets_to_the_gates_is_explained_too(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A suspended account, a type without a price and an unknown payer are told as they are."""
    lease = lease_of(org, gpu_type)
    told = explain(admin, {**lease, "gpu_type": "abacus"})
    assert (told["admitted"], told["status"], told["reason"]) == (False, 422, "price_unknown")
    assert "abacus" in told["detail"]
    told = explain(admin, {**lease, "payer": f"{org}/vision"})
    assert told["reason"] == "insufficient_credits"
    admin.made(f"/v1/accounts/{org}/vision/suspend")
    told = explain(admin, lease)
    assert (told["status"], told["reason"], told["gates"]) == (409, "account_suspended", [])
    missing = admin.post("/v1/admissions:check", {**lease, "account": f"{org}/nobody"})
    assert problem(missing) == (404, "account_unknown")


def test_an_explanation_leaves_nothing_behind(
    admin: Caller, database_of_server: str, http: httpx.Client, org: str, gpu_type: str
) -> None:
    """Explaining needs no key and changes no row of any table, whatever it says."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "3"})
    for tail in SCOPES.values():
        for kind in ({"calendar": "day"}, {"rolling_hours": 3}):
            admin.made(f"/v1/accounts/{org}{tail}/quotas", {**WINDOW, **kind})
        rate_limit(admin, f"{org}{tail}", gpu_type)
    held = admin.made("/v1/reservations", lease_of(org, gpu_type, window_seconds=60))
    admin.advance(20)
    beat = {"seq": 1, "used_ms": 20_000}
    admin.made(f"/v1/reservations/{held['reservation_id']}:extend", beat)
    before = rows_of(database_of_server, org)
    headers = {"authorization": f"Bearer {admin.secret}"}
    for count in (1, 50):
        body = lease_of(org, gpu_type, gpu_count=count, node="n2")
        answer = http.post("/v1/admissions:check", json=body, headers=headers)
        assert answer.json()["admitted"] is (count < 50), answer.text
    explain(admin, lease_of(org, "abacus"))
    assert rows_of(database_of_server, org) == before


def test_members_may_explain_and_agents_may_not(admin: Caller, org: str, gpu_type: str) -> None:
    """Whoever may read an account may ask what its jobs would be told."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "3"})
    lease = lease_of(org, gpu_type)
    for role in ("member", "read-only"):
        caller = admin.with_key(role, f"{org}/vision/alice")
        assert explain(caller, lease)["admitted"]
        above = caller.post("/v1/admissions:check", {**lease, "account": f"{org}/vision"})
        assert problem(above) == (404, "account_unknown")
    agent = admin.with_key("agent", org)
    assert problem(agent.post("/v1/admissions:check", lease)) == (403, "forbidden")


def test_too_fast_is_429_and_its_key_is_not_used_up(admin: Caller, org: str, gpu_type: str) -> None:
    """Retry-After says when; the same key is then admitted, once, and remembered from then on."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    terms = {"capacity": "3", "refill_per_hour": "36"}
    admin.call("PUT", f"/v1/accounts/{org}/rate-limit", terms)
    began = time.monotonic()
    admin.made("/v1/reservations", lease_of(org, gpu_type))
    second = lease_of(org, gpu_type, job_id="second")
    for _ in range(2):
        answer = admin.post("/v1/reservations", second, key="patient")
        assert problem(answer) == (429, "rate_limited")
        assert "idempotency-replayed" not in answer.headers
    wait = int(answer.headers["retry-after"])
    passed_s = time.monotonic() - began
    assert 100 - passed_s <= wait <= 101  # a credit at 36 an hour takes 100 seconds
    body = answer.json()
    assert body["clears_at"] == body["gates"][-1]["clears_at"]
    assert body["numbers"]["clears_at"] == body["clears_at"]
    admin.advance(wait)
    first = admin.post("/v1/reservations", second, key="patient")
    assert first.status_code == 201
    again = admin.post("/v1/reservations", second, key="patient")
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"


def test_what_is_too_large_for_its_bucket_has_no_retry(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A request over the capacity never passes: no Retry-After, and the sentence says so."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    rate_limit(admin, f"{org}/vision", gpu_type)
    answer = admin.post("/v1/reservations", lease_of(org, gpu_type, gpu_count=8))
    assert problem(answer) == (429, "rate_limited")
    assert "retry-after" not in answer.headers
    assert "never clears" in answer.json()["detail"]


def test_a_refusal_by_quota_is_remembered(admin: Caller, org: str, gpu_type: str) -> None:
    """403 was decided: its key gets the same answer, numbers and all, when the limit is gone."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_gpus", "limit": 1})
    lease = lease_of(org, gpu_type)
    refused = admin.post("/v1/reservations", lease, key="no")
    assert problem(refused) == (403, "quota_exceeded")
    admin.call("PUT", f"/v1/accounts/{org}/quotas", {"quotas": []})
    again = admin.post("/v1/reservations", lease, key="no")
    assert (again.status_code, again.json()["gates"]) == (403, refused.json()["gates"])
    assert again.headers["idempotency-replayed"] == "true"
    assert admin.post("/v1/reservations", lease, key="yes").status_code == 201


def test_batches_say_for_each_item_what_the_gates_say(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Items stand alone with their own gates; all or nothing is refused with those of the first."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_gpus", "limit": 3})
    items = [lease_of(org, gpu_type, job_id=job) for job in ("a", "b")]
    whole = admin.post("/v1/reservations:batch", {"items": items, "atomic": True})
    assert problem(whole) == (403, "quota_exceeded")
    assert whole.json()["gates"][1]["current"] == "2"
    results = admin.made("/v1/reservations:batch", {"items": items})["results"]
    assert [result["status"] for result in results] == [201, 403]
    assert results[1]["problem"]["gates"][1]["limit"] == "3"


def test_a_window_begins_anew(admin: Caller, org: str, gpu_type: str) -> None:
    """A day's quota that is used up refuses until the zone's midnight, and admits after it."""
    zone = {**WINDOW, "calendar": "day", "zone": "Asia/Kathmandu"}
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made(f"/v1/accounts/{org}/vision/quotas", zone)
    lease = admin.made("/v1/reservations", lease_of(org, gpu_type))["reservation_id"]
    admin.advance(90)
    admin.made(f"/v1/reservations/{lease}:settle", {"seq": 1, "used_ms": 90_000})
    more = lease_of(org, gpu_type, job_id="more")
    refused = admin.post("/v1/reservations", more)
    assert problem(refused) == (403, "quota_exceeded")
    [quota_now] = admin.read(f"/v1/accounts/{org}/vision/quotas")["quotas"]
    assert refused.json()["clears_at"] == quota_now["resets_at"]
    assert quota_now["resets_at"].endswith("T18:15:00Z")
    admin.advance(86_400)
    [quota_now] = admin.read(f"/v1/accounts/{org}/vision/quotas")["quotas"]
    assert (quota_now["used"], quota_now["left"]) == ("0", "3")
    assert explain(admin, more)["admitted"]
    assert admin.post("/v1/reservations", more).status_code == 201


def test_a_boost_opens_a_gate_for_a_while(admin: Caller, org: str, gpu_type: str) -> None:
    """What a boost admits is told to drain once the boost has lapsed."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_gpus", "limit": 1})
    lease = lease_of(org, gpu_type)
    assert not explain(admin, lease)["admitted"]
    boost = {"dimension": "concurrent_gpus", "amount": 1, "ends_at": admin.instant(minutes=1)}
    admin.made(f"/v1/accounts/{org}/boosts", boost)
    held = admin.made("/v1/reservations", lease)["reservation_id"]
    admin.advance(30)
    beat = {"seq": 1, "used_ms": 30_000}
    assert admin.made(f"/v1/reservations/{held}:extend", beat)["decision"] == "continue"
    admin.advance(40)
    beat = {"seq": 2, "used_ms": 70_000}
    told = admin.made(f"/v1/reservations/{held}:extend", beat)
    assert (told["decision"], told["reason"]) == ("drain", "quota_exceeded")
    assert 0 < told["deadline_in_ms"] <= 60_000


def test_a_bucket_that_takes_ages_has_no_instant(admin: Caller, org: str, gpu_type: str) -> None:
    """Tokens that would come after the last instant that can be written are told as not coming."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    terms = {"capacity": "1000000000", "refill_per_hour": "0.000001"}
    path = f"/v1/accounts/{org}/rate-limit"
    admin.call("PUT", path, terms)
    lease = admin.made("/v1/reservations", lease_of(org, gpu_type))["reservation_id"]
    assert admin.read(path)["full_at"] is not None
    admin.call("PUT", path, {**terms, "capacity": "0.000001"})  # what no longer fits is gone
    admin.call("PUT", path, terms)
    assert admin.read(path)["full_at"] is None
    large = lease_of(org, gpu_type, job_id="large", gpu_count=10_000)
    admin.made("/v1/credits/issue", {"account": org, "amount": "900000000"})
    refused = admin.post("/v1/reservations", large)
    assert problem(refused) == (429, "rate_limited")
    assert "retry-after" not in refused.headers
    admin.advance(50)
    beats = [{"reservation_id": lease, "seq": 1, "used_ms": 50_000}]
    told = admin.made("/v1/heartbeats", {"beats": beats})["results"][0]
    assert (told["decision"], "clears_in_ms" in told) == ("throttle", True)
    assert 0 < told["clears_in_ms"] < 10**15
