"""Requests for a boost or a budget: approved, they hold for as long as was said, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, fresh_name, problem

WHY = {"reason": "a deadline"}


@pytest.fixture
def member(admin: Caller, org: str) -> Caller:
    """A member of the org's project, which has credits."""
    admin.made("/v1/credits/issue", {"account": f"{org}/vision", "amount": "1000"})
    return admin.with_key("member", f"{org}/vision")


@pytest.fixture
def boss(admin: Caller, org: str) -> Caller:
    """An operator of the whole org."""
    return admin.with_key("operator", org)


def quota_of(caller: Caller, account: str) -> dict[str, Any]:
    """The only quota of an account."""
    [quota] = caller.read(f"/v1/accounts/{account}/quotas")["quotas"]
    found: dict[str, Any] = quota
    return found


def reserve(caller: Caller, account: str, gpu_type: str, gpus: int) -> Any:
    """Ask for GPUs."""
    body = {"account": account, "job_id": fresh_name("j"), "gpu_type": gpu_type, "gpu_count": gpus}
    return caller.post("/v1/reservations", body)


def test_a_boosted_quota_admits_until_the_boost_lapses(
    admin: Caller, boss: Caller, member: Caller, org: str, gpu_type: str
) -> None:
    """The org's own operator approves for a project; by itself it is as before afterwards."""
    account = f"{org}/vision"
    limit = {"dimension": "concurrent_gpus", "limit": 2}
    quota = boss.made(f"/v1/accounts/{account}/quotas", limit)
    assert problem(reserve(member, account, gpu_type, 3)) == (403, "quota_exceeded")
    body = {"account": account, "kind": "quota", "quota_id": quota["quota_id"], "amount": 4, **WHY}
    asked = member.made("/v1/requests", {**body, "ends_at": admin.instant(hours=2)})
    assert (asked["unit"], asked["asked"]["amount"]) == ("GPUs", "4")
    where = f"/v1/requests/{asked['request_id']}"
    assert problem(boss.post(f"{where}:approve", {"amount": "1.5001"})) == (422, "invalid_request")
    terms = {"amount": 2, "ends_at": admin.instant(hours=1)}
    done = boss.made(f"{where}:approve", terms)
    [boost] = boss.read(f"/v1/accounts/{account}/boosts")["boosts"]
    assert boost["boost_id"] == done["result"]
    assert boost["note"] == "a deadline"
    lease = reserve(member, account, gpu_type, 4)
    assert lease.status_code == 201
    assert problem(reserve(member, account, gpu_type, 1)) == (403, "quota_exceeded")
    member.made(f"/v1/reservations/{lease.json()['reservation_id']}:settle", {})
    admin.advance(3_601)
    assert problem(reserve(member, account, gpu_type, 3)) == (403, "quota_exceeded")
    acts = admin.read("/v1/audit", params={"account": account, "action": "boost.add"})["audit"]
    assert [act["actor"] for act in acts] == [done["decided_by"]]


def test_a_boosted_rate_limit_admits_more(
    admin: Caller, boss: Caller, member: Caller, org: str, gpu_type: str
) -> None:
    """Capacity and refill are raised for a while."""
    account = f"{org}/vision"
    bucket = {"capacity": "5", "refill_per_hour": "1"}
    assert boss.call("PUT", f"/v1/accounts/{account}/rate-limit", bucket).status_code == 200
    assert problem(reserve(member, account, gpu_type, 10)) == (429, "rate_limited")
    body = {"account": account, "kind": "rate_limit", "amount": "20", "refill_per_hour": "72000"}
    asked = member.made("/v1/requests", {**body, **WHY, "ends_at": admin.instant(hours=1)})
    assert asked["asked"]["refill_per_hour"] == "72000"
    boss.made(f"/v1/requests/{asked['request_id']}:approve")
    admin.advance(10)
    assert reserve(member, account, gpu_type, 10).status_code == 201


def test_a_bigger_budget_comes_with_the_next_period(
    admin: Caller, boss: Caller, member: Caller, org: str
) -> None:
    """The allowance changes and everything else stays; a budget that is new is monthly."""
    account = f"{org}/vision"
    budget = {"name": "monthly", "allowance": "100", "calendar": "month", "zone": "Asia/Tokyo"}
    admin.made(f"/v1/accounts/{account}/budgets", {**budget, "warn_percent": [80]})
    body = {"account": account, "kind": "budget", "amount": "150", **WHY}
    asked = member.made("/v1/requests", {**body, "budget": "monthly"})
    where = f"/v1/requests/{asked['request_id']}"
    assert problem(boss.post(f"{where}:approve")) == (403, "forbidden")  # it makes credits
    admin.made(f"{where}:approve", {"amount": "140"})
    [changed] = admin.read(f"/v1/accounts/{account}/budgets")["budgets"]
    assert (changed["allowance"], changed["zone"]) == ("140", "Asia/Tokyo")
    assert changed["warn_percent"] == [80]
    fresh = member.made("/v1/requests", {**body, "budget": "travel"})
    admin.made(f"/v1/requests/{fresh['request_id']}:approve")
    budgets = admin.read(f"/v1/accounts/{account}/budgets")["budgets"]
    assert {(each["name"], each["allowance"]) for each in budgets} == {
        ("monthly", "140"),
        ("travel", "150"),
    }
    acts = admin.read("/v1/audit", params={"account": account, "action": "budget.set"})["audit"]
    assert acts


def test_only_limits_of_the_account_itself_can_be_asked_about(
    admin: Caller, boss: Caller, member: Caller, org: str
) -> None:
    """A quota of the org above, of nobody, or a rate limit that is not there is unknown."""
    above = admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_gpus", "limit": 1})
    own = boss.made(
        f"/v1/accounts/{org}/vision/quotas", {"dimension": "concurrent_jobs", "limit": 1}
    )
    body = {"account": f"{org}/vision", "kind": "quota", "amount": 1, **WHY}
    body["ends_at"] = admin.instant(hours=1)
    for quota_id in (above["quota_id"], "qta_zz_zz"):
        answer = member.post("/v1/requests", {**body, "quota_id": quota_id})
        assert problem(answer) == (404, "limit_unknown")
    answer = member.post("/v1/requests", {**body, "quota_id": "quota 1"})
    assert problem(answer) == (422, "invalid_request")
    answer = member.post("/v1/requests", {**body, "quota_id": own["quota_id"], "amount": "0.0005"})
    assert problem(answer) == (422, "limit_invalid")
    answer = member.post("/v1/requests", {**body, "kind": "rate_limit"})
    assert problem(answer) == (404, "limit_unknown")
    assert quota_of(boss, f"{org}/vision")["boosts"] == []


def test_a_limit_that_ended_meanwhile_opens_the_request_again(
    admin: Caller, boss: Caller, member: Caller, org: str
) -> None:
    """The approval is refused with the reason, and can still be declined."""
    account = f"{org}/vision"
    quota = boss.made(
        f"/v1/accounts/{account}/quotas", {"dimension": "concurrent_jobs", "limit": 1}
    )
    body = {"account": account, "kind": "quota", "quota_id": quota["quota_id"], "amount": 1, **WHY}
    asked = member.made("/v1/requests", {**body, "ends_at": admin.instant(hours=1)})
    boss.call("DELETE", f"/v1/accounts/{account}/quotas/{quota['quota_id']}")
    where = f"/v1/requests/{asked['request_id']}"
    assert problem(boss.post(f"{where}:approve")) == (404, "limit_unknown")
    assert boss.made(f"{where}:decline", {"note": "it is gone"})["state"] == "declined"
