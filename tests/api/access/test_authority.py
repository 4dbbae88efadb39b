"""Bounds from above over HTTP: who set them is shown, and keys below cannot lift them."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, problem

GPUS = {"dimension": "concurrent_gpus", "limit": 4}


@pytest.fixture
def operator(admin: Caller, org: str) -> Caller:
    """The org's own operator."""
    return admin.with_key("operator", org)


@pytest.fixture
def place(org: str) -> str:
    """The address of the org's project."""
    return f"/v1/accounts/{org}/vision"


def refused(answer: Any) -> Any:
    """What a refusal says to a key that stands too low."""
    assert problem(answer) == (403, "limit_set_above")
    return answer.json()


def test_an_operator_cannot_lift_a_quota_of_the_systems_staff(
    admin: Caller, operator: Caller, place: str
) -> None:
    """Ending, raising, replacing and boosting it are 403; a lower quota of its own is not."""
    made = admin.made(f"{place}/quotas", GPUS)
    assert made["set_by_scope"] == "system"
    mine = f"{place}/quotas/{made['quota_id']}"
    told = refused(operator.call("DELETE", mine))
    assert "set at system scope" in told["detail"]
    refused(operator.post(f"{place}/quotas", GPUS | {"limit": 5}))
    boost = {"amount": 1, "ends_at": admin.instant(hours=1)}
    refused(operator.post(f"{place}/boosts", boost | {"target_id": made["quota_id"]}))
    refused(operator.post(f"{place}/boosts", boost | {"dimension": "concurrent_gpus"}))
    refused(operator.call("PUT", f"{place}/quotas", {"quotas": [GPUS | {"limit": 9}]}))
    kept = operator.call("PUT", f"{place}/quotas", {"quotas": []}).json()
    assert [row["quota_id"] for row in kept["quotas"]] == [made["quota_id"]]
    assert kept["ended"] == []
    own = operator.made(f"{place}/quotas", GPUS | {"limit": 2})
    assert own["set_by_scope"] == "org"
    listed = operator.read(f"{place}/quotas")["quotas"]
    assert {(row["limit"], row["set_by_scope"]) for row in listed} == {
        ("4", "system"),
        ("2", "org"),
    }
    overview = operator.read(f"{place}/limits")["limits"]
    assert [row["set_by_scope"] for row in overview if row["kind"] == "quota"] == ["system", "org"]
    raised = operator.made(f"{place}/boosts", boost | {"dimension": "concurrent_gpus"})
    assert (raised["target_id"], raised["set_by_scope"]) == (own["quota_id"], "org")
    assert operator.call("DELETE", f"{place}/quotas/{own['quota_id']}").status_code == 200
    assert admin.call("DELETE", mine).status_code == 200


def test_a_boost_from_below_does_not_outlive_a_takeover(
    admin: Caller, operator: Caller, org: str, gpu_type: str
) -> None:
    """A tenant that raised its limit in advance is held to what the system's staff set later."""
    project = f"{org}/vision"
    admin.made("/v1/credits/issue", {"account": project, "amount": "100"})
    quota = {"dimension": "concurrent_gpus", "limit": 100}
    own = operator.made(f"/v1/accounts/{project}/quotas", quota)["quota_id"]
    boost = {"target_id": own, "amount": "1000", "ends_at": admin.instant(days=3_000)}
    operator.made(f"/v1/accounts/{project}/boosts", boost)
    admin.made(f"/v1/accounts/{project}/quotas", quota | {"limit": 2})
    [shown] = admin.read(f"/v1/accounts/{project}/quotas")["quotas"]
    assert (shown["quota_id"], shown["cap"], shown["boosts"]) == (own, "2", [])
    assert operator.read(f"/v1/accounts/{project}/boosts")["boosts"] == []
    lease = {"account": project, "job_id": "j", "gpu_type": gpu_type, "gpu_count": 3}
    assert problem(admin.post("/v1/reservations", lease)) == (403, "quota_exceeded")
    admin.made("/v1/reservations", lease | {"gpu_count": 2})


def test_a_projects_operator_cannot_lift_what_its_org_set_on_a_user(
    admin: Caller, operator: Caller, org: str, place: str
) -> None:
    """Each scope stands above the next, and the system above all."""
    project = admin.with_key("operator", f"{org}/vision")
    user = f"{place}/alice/quotas"
    made = operator.made(user, GPUS)
    assert made["set_by_scope"] == "org"
    refused(project.call("DELETE", f"{user}/{made['quota_id']}"))
    assert project.made(user, GPUS | {"limit": 3})["set_by_scope"] == "project"
    assert admin.call("DELETE", f"{user}/{made['quota_id']}").status_code == 200


def test_a_rate_limit_from_above_stays(admin: Caller, operator: Caller, place: str) -> None:
    """The one rate limit of an account is the system's until the system ends it."""
    terms = {"capacity": "10", "refill_per_hour": "10"}
    own = operator.call("PUT", f"{place}/rate-limit", terms).json()
    assert own["set_by_scope"] == "org"
    taken = admin.call("PUT", f"{place}/rate-limit", terms | {"capacity": "5"}).json()
    assert (taken["limit_id"], taken["set_by_scope"]) == (own["limit_id"], "system")
    for method, body in (
        ("PUT", terms | {"capacity": "1"}),
        ("PATCH", {"capacity": "1"}),
        ("DELETE", None),
    ):
        assert (
            "set a quota" in refused(operator.call(method, f"{place}/rate-limit", body))["detail"]
        )
    assert operator.read(f"{place}/rate-limit")["capacity"] == "5"
    assert admin.call("DELETE", f"{place}/rate-limit").status_code == 200


def test_an_approval_from_below_raises_nothing_from_above(
    admin: Caller, operator: Caller, org: str, place: str
) -> None:
    """A request about the system's quota stays open when the org's operator approves it."""
    made = admin.made(f"{place}/quotas", GPUS)
    member = admin.with_key("member", f"{org}/vision")
    wanted = {
        "account": f"{org}/vision",
        "kind": "quota",
        "quota_id": made["quota_id"],
        "amount": 2,
        "ends_at": admin.instant(hours=1),
        "reason": "a deadline",
    }
    asked = member.made("/v1/requests", wanted)
    path = f"/v1/requests/{asked['request_id']}"
    refused(operator.post(f"{path}:approve"))
    assert operator.read(path)["state"] == "open"
    approved = admin.made(f"{path}:approve")
    assert approved["state"] == "approved"
    [boost] = operator.read(f"{place}/boosts")["boosts"]
    assert boost["set_by_scope"] == "system"
    refused(operator.call("DELETE", f"{place}/boosts/{boost['boost_id']}"))


def test_request_limits_say_who_set_them(admin: Caller, operator: Caller, org: str) -> None:
    """Only the system's staff sets them; a default was set by nobody."""
    path = f"/v1/accounts/{org}/request-limit"
    assert admin.read(path)["set_by_scope"] is None
    speed = {"refill_per_second": 1_000}
    assert admin.call("PUT", path, speed).json()["set_by_scope"] == "system"
    assert problem(operator.call("DELETE", path)) == (403, "forbidden")


def test_an_operator_cannot_resume_what_the_systems_staff_suspended(
    admin: Caller, operator: Caller, org: str, place: str
) -> None:
    """Nor can it make the suspension its own by suspending again; its own it resumes."""
    assert admin.read(place)["suspended_by_scope"] is None
    assert admin.post(f"{place}/suspend").json()["suspended_by_scope"] == "system"
    told = refused(operator.post(f"{place}/resume"))
    assert f"The suspension of {org}/vision was set at system scope" in told["detail"]
    assert operator.post(f"{place}/suspend").json()["suspended_by_scope"] == "system"
    refused(operator.post(f"{place}/resume"))
    shown = operator.read(place)
    assert (shown["status"], shown["suspended_by_scope"]) == ("suspended", "system")
    assert admin.post(f"{place}/resume").json()["status"] == "active"
    assert operator.post(f"{place}/suspend").json()["suspended_by_scope"] == "org"
    resumed = operator.post(f"{place}/resume").json()
    assert (resumed["status"], resumed["suspended_by_scope"]) == ("active", None)


def test_the_rule_for_unusual_spending_from_above_stays(
    admin: Caller, operator: Caller, org: str
) -> None:
    """What the system's staff set is not switched off below; the default terms are nobody's."""
    path, account = "/v1/anomaly-terms", {"account": f"{org}/vision"}
    assert operator.read(path, params=account)["set_by_scope"] is None
    own = operator.call("PATCH", path, account | {"auto_suspend": True}).json()
    assert (own["auto_suspend"], own["set_by_scope"]) == (True, "org")
    assert operator.call("PATCH", path, account | {"auto_suspend": False}).json() == own | {
        "auto_suspend": False,
        "set_by_scope": None,
    }
    above = admin.call("PUT", path, account | {"floor": "5", "auto_suspend": True}).json()
    assert above["set_by_scope"] == "system"
    for change in ({"auto_suspend": False}, {"floor": "100000"}, {"ratio_percent": 300}, {}):
        told = refused(operator.call("PATCH", path, account | change))
        assert "The rule for unusual spending" in told["detail"]
        assert "set at system scope" in told["detail"]
    refused(operator.call("PUT", path, account))
    assert operator.read(path, params=account) == above
    acts = admin.read("/v1/audit", params={"account": org, "action": "anomaly_terms.set"})["audit"]
    assert [act["new"]["set_by_scope"] for act in acts] == ["system", "user", "org"]
    assert admin.call("PUT", path, account).json()["set_by_scope"] is None
    assert operator.call("PATCH", path, account | {"floor": "7"}).json()["set_by_scope"] == "org"
    assert admin.call("PATCH", path, account | {"floor": "8"}).json()["set_by_scope"] == "system"
