"""Grants that end while jobs run, over HTTP."""

from __future__ import annotations

from typing import Any

from support.servers.http import Caller

NEAR = 25  # credits: the seconds that calls take, at a credit for each


def start(caller: Caller, account: str, gpu_type: str, ends_at: str) -> str:
    """A job at a credit a second, on 200 credits that end soon and 1000 that do not."""
    caller.made("/v1/credits/issue", {"account": account, "amount": "200", "expires_at": ends_at})
    caller.made("/v1/credits/issue", {"account": account, "amount": "1000"})
    body = {"account": account, "job_id": "j", "gpu_type": gpu_type, "gpu_count": 100}
    lease = caller.made("/v1/reservations", {**body, "window_seconds": 300})
    return str(lease["reservation_id"])


def grants_of(caller: Caller, account: str) -> list[Any]:
    """The grants of an account that are open, the one that ends soon first."""
    found: list[Any] = caller.read("/v1/grants", params={"account": account, "open": "true"})[
        "grants"
    ]
    return sorted(found, key=lambda grant: str(grant["expires_at"] is None))


def test_reporting_often_or_once_costs_the_same_grants_the_same(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Two identical jobs across a grant's end: both leave 860, and verify finds nothing."""
    often, once = f"{org}/vision", org
    ends_at = admin.instant(seconds=60)
    leases = {account: start(admin, account, gpu_type, ends_at) for account in (often, once)}
    for seq in range(1, 20):
        admin.advance(10)
        beat = {"reservation_id": leases[often], "seq": seq, "used_ms": seq * 10_000}
        [told] = admin.made("/v1/heartbeats", {"beats": [beat]})["results"]
        assert told["decision"] == "continue"
    [ended, _] = grants_of(admin, once)
    assert ended["state"] == "held_over"
    admin.advance(10)
    for account, lease in leases.items():
        closed = admin.made(f"/v1/reservations/{lease}:settle", {"seq": 99, "used_ms": 200_000})
        assert closed["settled"] == "200"
        [left] = grants_of(admin, account)
        assert abs(float(left["remaining"]) - 860) < NEAR
        assert left["expires_at"] is None


def test_a_job_that_uses_nothing_does_not_keep_expired_credits(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Heartbeats do not carry a lease on, on credits that have ended: it drains and is gone."""
    ends_at = admin.instant(seconds=60)
    admin.made("/v1/credits/issue", {"account": org, "amount": "300", "expires_at": ends_at})
    body = {"account": org, "job_id": "j", "gpu_type": gpu_type, "gpu_count": 100}
    lease = admin.made("/v1/reservations", {**body, "window_seconds": 300})["reservation_id"]
    for seq, wait in enumerate((100, 100), start=1):
        admin.advance(wait)
        beat = {"reservation_id": lease, "seq": seq, "used_ms": 0}
        [told] = admin.made("/v1/heartbeats", {"beats": [beat]})["results"]
        assert (told["decision"], told["reason"]) == ("drain", "insufficient_credits")
    admin.advance(100)
    assert grants_of(admin, org) == []
    balance = admin.read(f"/v1/accounts/{org}/balance")
    assert (balance["available"], balance["reserved"]) == ("0", "0")
