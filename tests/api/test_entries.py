"""Listing the ledger by type: pairs are what is asked for, however they are stored."""

from __future__ import annotations

from support.http import Caller


def test_renewals_are_reserve_pairs(admin: Caller, org: str, gpu_type: str) -> None:
    """A heartbeat's renewal is found as a reserve and its settlement as a settle, each alone."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = admin.made(
        "/v1/reservations", {"account": org, "job_id": "j", "gpu_type": gpu_type, "gpu_count": 4}
    )["reservation_id"]
    admin.made(f"/v1/reservations/{lease}:extend", {"seq": 1, "used_ms": 1_500})
    for kind, count in (("reserve", 2), ("settle", 1), ("release", 0), ("issue", 1)):
        listed = admin.read(f"/v1/entries?account={org}&type={kind}")["entries"]
        assert [entry["type"] for entry in listed] == [kind] * count
