"""Planned stops and exposure over HTTP: answers, scopes, replays and the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.servers.http import Caller, problem


@pytest.fixture
def job(admin: Caller, org: str, gpu_type: str) -> dict[str, Any]:
    """A job of the org itself, which has 20 credits; its GPU costs some of them each second."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "20"})
    return {"account": org, "job_id": "j", "gpu_type": gpu_type}


@pytest.fixture
def no_stop(admin: Caller) -> Iterator[None]:
    """Nothing is announced before or after the test: other tests announce on this server too."""
    admin.made("/v1/maintenance:end")
    yield
    admin.made("/v1/maintenance:end")


def exposure(caller: Caller, account: str) -> dict[str, Any]:
    """The exposure of an account and all below it."""
    found: dict[str, Any] = caller.get(f"/v1/exposure?account={account}").json()
    return found


def test_exposure_follows_the_leases(admin: Caller, org: str, job: dict[str, Any]) -> None:
    """Holds, escrow and their total, until the lease is settled."""
    assert exposure(admin, org)["exposures"] == []
    lease = admin.made("/v1/reservations", {**job, "escrow_windows": 3, "window_seconds": 10})
    [row] = exposure(admin, org)["exposures"]
    assert (row["account"], row["leases"], row["held"]) == (org, 1, lease["held"])
    assert float(row["escrow"]) == pytest.approx(float(lease["held"]) * 3 / 4)
    assert row["total"] == exposure(admin, org)["total"]["total"] == lease["held"]
    admin.made(f"/v1/reservations/{lease['reservation_id']}:settle", {})
    assert exposure(admin, org)["total"]["total"] == "0"


def test_exposure_is_seen_within_the_scope_of_a_key(
    admin: Caller, org: str, job: dict[str, Any]
) -> None:
    """A key of another org, or of a project, sees nothing of the org's own credits."""
    admin.made("/v1/reservations", job)
    member = admin.with_key("member", f"{org}/vision")
    assert problem(member.get(f"/v1/exposure?account={org}")) == (404, "account_unknown")
    assert member.get("/v1/exposure").json()["total"]["leases"] == 0
    assert problem(admin.get("/v1/exposure?account=nobody-here")) == (404, "account_unknown")


@pytest.mark.usefixtures("no_stop")
def test_a_planned_stop_is_announced_extends_and_ends(
    admin: Caller, org: str, job: dict[str, Any]
) -> None:
    """One key announces once; the next report extends as far as the payer can fund; all audited."""
    lease = admin.made("/v1/reservations", job)
    asked = {"for_seconds": 3_600, "reason": "a drill"}
    dry = admin.call("POST", "/v1/maintenance?dry_run=true", asked).json()
    assert (dry["state"], admin.get("/v1/maintenance").json()["state"]) == ("announced", "none")
    said = admin.made("/v1/maintenance", asked)
    assert (said["state"], said["reason"], said["waiting"] > 0) == ("announced", "a drill", True)
    beat = {"seq": 1, "used_ms": 0}
    beaten = admin.made(f"/v1/reservations/{lease['reservation_id']}:extend", beat)
    assert beaten["decision"] == "continue"
    assert beaten["held"] == "20", "as far as the payer can fund it"
    assert beaten["expires_in_ms"] > 120_000
    shown = admin.get("/v1/maintenance?limit=1000").json()
    [short] = [each for each in shown["leases"] if each["payer"] == org]
    assert short["reservation_id"] == lease["reservation_id"]
    assert float(short["missing"]) > 0
    ended = admin.made("/v1/maintenance:end")
    assert (ended["state"], ended["until"]) == ("none", None)
    acts = admin.get("/v1/audit?limit=10").json()["audit"]
    assert {"maintenance.announce", "maintenance.end"} <= {each["action"] for each in acts}


@pytest.mark.parametrize("seconds", [0, 59, 86_401, -1, "long"])
def test_a_stop_of_no_sensible_length_is_refused(admin: Caller, seconds: Any) -> None:
    """From a minute to a day."""
    answer = admin.post("/v1/maintenance", {"for_seconds": seconds})
    assert answer.status_code == 422


def test_only_staff_of_the_system_announces_stops(admin: Caller, org: str) -> None:
    """An org's administrator cannot hold credits of others."""
    theirs = admin.with_key("admin", org)
    for answer in (
        theirs.post("/v1/maintenance", {"for_seconds": 60}),
        theirs.post("/v1/maintenance:end", {}),
        theirs.get("/v1/maintenance"),
    ):
        assert problem(answer) == (403, "forbidden")
