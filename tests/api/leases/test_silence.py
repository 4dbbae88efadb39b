"""A silent node over HTTP: bounds on leases, suspensions that need no answer, use reported late."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, problem


@pytest.fixture
def job(admin: Caller, org: str, gpu_type: str) -> dict[str, Any]:
    """A job of alice's; her org has 1,000 credits."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1000"})
    return {"account": f"{org}/vision/alice", "job_id": "j", "gpu_type": gpu_type}


def reserve(admin: Caller, job: dict[str, Any], **more: Any) -> str:
    """A lease; its id."""
    lease: str = admin.made("/v1/reservations", {**job, **more})["reservation_id"]
    return lease


def test_a_window_of_a_day_is_refused(admin: Caller, job: dict[str, Any]) -> None:
    """The server's bound is 600 seconds unless told otherwise, escrow windows included."""
    for more in ({"window_seconds": 86_400}, {"window_seconds": 301, "escrow_windows": 1}):
        answer = admin.post("/v1/reservations", {**job, **more})
        assert problem(answer) == (422, "window_too_long")
        assert answer.json()["numbers"]["window_max_seconds"] == 600
        assert "the server" in answer.json()["detail"]
    assert admin.made("/v1/reservations", {**job, "window_seconds": 600})["window_seconds"] == 600


def test_accounts_and_pools_bound_leases_more_closely(
    admin: Caller, org: str, job: dict[str, Any]
) -> None:
    """A bound set later is met at the next renewal; the refusal names where it is set."""
    lease = reserve(admin, job, window_seconds=500)
    changed = admin.call("PATCH", f"/v1/accounts/{org}/vision", {"window_max_seconds": 300})
    assert changed.json()["window_max_seconds"] == 300
    answer = admin.post("/v1/reservations", {**job, "node": "n1", "window_seconds": 301})
    assert problem(answer) == (422, "window_too_long")
    assert answer.json()["numbers"]["set_by"] == f"the account {org}/vision"
    beaten = admin.made(f"/v1/reservations/{lease}:extend", {"seq": 1, "used_ms": 0})
    assert beaten["expires_in_ms"] == 300_000
    place = f"/v1/pools/{job['gpu_type']}/default"
    pool = admin.call("PUT", place, {"policy": {"window_max_seconds": 60}}).json()
    assert pool["policy"]["window_max_seconds"] == 60
    answer = admin.post("/v1/reservations", {**job, "node": "n1", "window_seconds": 61})
    assert answer.json()["numbers"]["set_by"] == f"the pool {job['gpu_type']}/default"
    beaten = admin.made(f"/v1/reservations/{lease}:extend", {"seq": 2, "used_ms": 0})
    assert beaten["expires_in_ms"] == 60_000
    assert admin.get(f"/v1/reservations/{lease}").json()["window_seconds"] == 60
    assert admin.made("/v1/reservations", {**job, "node": "n1"})["window_seconds"] == 60
    admin.call("PATCH", f"/v1/accounts/{org}/vision", {"window_max_seconds": 0})


@pytest.mark.parametrize("gated", [False, True], ids=["without limits", "with a quota"])
def test_a_suspension_ends_silent_leases(
    admin: Caller, org: str, job: dict[str, Any], gated: bool
) -> None:
    """Without a word from its node a lease ends after its grace; one without a grace at once."""
    if gated:
        admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_gpus", "limit": 2})
    held = [
        reserve(admin, job, node=f"n{grace}", window_seconds=600, grace_seconds=grace)
        for grace in (0, 30)
    ]
    admin.made(f"/v1/accounts/{org}/suspend")
    states = [admin.get(f"/v1/reservations/{each}").json() for each in held]
    assert [each["state"] for each in states] == ["expired", "active"]
    assert states[1]["expires_in_ms"] <= 30_000
    assert admin.get(f"/v1/accounts/{org}/balance").json()["reserved"] == "6"
    beaten = admin.made(f"/v1/reservations/{held[1]}:extend", {"seq": 1, "used_ms": 0})
    assert (beaten["decision"], beaten["reason"]) == ("drain", "account_suspended")
    admin.made(f"/v1/accounts/{org}/resume")
    beaten = admin.made(f"/v1/reservations/{held[1]}:extend", {"seq": 2, "used_ms": 0})
    assert (beaten["decision"], beaten["expires_in_ms"]) == ("continue", 600_000)


@pytest.mark.parametrize("gated", [False, True], ids=["without limits", "with a quota"])
def test_use_that_is_reported_an_hour_later_is_charged(
    admin: Caller, org: str, job: dict[str, Any], gated: bool
) -> None:
    """Up to the lapse, once; the settle of a launcher that obeyed says so."""
    if gated:
        window = {"dimension": "credits_per_window", "limit": "100", "calendar": "day"}
        admin.made(f"/v1/accounts/{org}/quotas", window)
    lease, other = (reserve(admin, job, node=node) for node in ("n1", "n2"))
    admin.advance(3_600)
    beaten = admin.made(f"/v1/reservations/{lease}:extend", {"seq": 1, "used_ms": 100_000})
    assert (beaten["decision"], beaten["settled"]) == ("stop", "1")
    for _ in range(2):
        closed = admin.made(f"/v1/reservations/{other}:settle", {"seq": 1, "used_ms": 3_000_000})
        assert (closed["flagged"], closed["settled"], closed["state"]) == (
            "lapsed",
            "1.2",
            "expired",
        )
    assert admin.get(f"/v1/accounts/{org}/balance").json()["spent"] == "2.2"
    if gated:
        [quota] = admin.get(f"/v1/accounts/{org}/limits").json()["limits"]
        assert quota["used"] == "2.2"


def test_a_report_charges_no_more_than_was_authorised(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A balance of 40, and a report after a pause that would cost 80.52."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "40"})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, "gpu_count": 100}
    lease = reserve(admin, body, window_seconds=20)
    for seq in range(1, 9):
        admin.advance(11)
        admin.made(f"/v1/reservations/{lease}:extend", {"seq": seq, "used_ms": 0})
    beaten = admin.made(f"/v1/reservations/{lease}:extend", {"seq": 9, "used_ms": 80_520})
    assert (beaten["settled"], beaten["flagged"]) == ("40", "used_ms_beyond_authorised")
    balance = admin.get(f"/v1/accounts/{org}/balance").json()
    assert (balance["spent"], balance["available"], balance["overrun"]) == ("40", "0", "0")


def test_one_name_is_one_job_on_one_place(admin: Caller, org: str, job: dict[str, Any]) -> None:
    """Two jobs at once are two leases, however many ask under their names without a node."""
    admin.made(f"/v1/accounts/{org}/quotas", {"dimension": "concurrent_jobs", "limit": 2})
    first = reserve(admin, job)
    for _ in range(10):
        answer = admin.post("/v1/reservations", job)
        assert problem(answer) == (409, "reservation_exists")
        assert answer.json()["numbers"]["reservation_id"] == first
    reserve(admin, job, job_id="k")
    assert problem(admin.post("/v1/reservations", {**job, "job_id": "l"}))[1] == "quota_exceeded"


def test_a_bound_of_an_account_above_is_told_without_its_name(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A user's key learns how long a lease may last, and not which account says so."""
    answer = admin.call("PATCH", f"/v1/accounts/{org}", {"window_max_seconds": 60})
    assert answer.status_code == 200, answer.text
    user = admin.with_key("member", f"{org}/vision/alice")
    asked = {"account": f"{org}/vision/alice", "job_id": "j", "gpu_type": gpu_type}
    refused = user.post("/v1/reservations", {**asked, "window_seconds": 120})
    assert problem(refused) == (422, "window_too_long")
    assert refused.json()["numbers"]["window_max_seconds"] == 60
    assert refused.json()["numbers"]["set_by"] == "an account above"
    assert f"{org} " not in refused.json()["detail"]
