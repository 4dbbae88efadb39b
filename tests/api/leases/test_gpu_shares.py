"""Shares of a GPU through HTTP: leased, limited, queued and charged to the micro-credit."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, fresh_name

PRICE = "1.000001"


def funded(admin: Caller) -> tuple[str, str]:
    """A new org with credits, and a new GPU type with a price."""
    org, gpu_type = fresh_name("org"), fresh_name("mig-1g.5gb")
    admin.made("/v1/accounts", {"path": org})
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.made("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": PRICE})
    return org, gpu_type


def asked(org: str, gpu_type: str, gpus: Any, **more: Any) -> dict[str, Any]:
    """A reserve of so many GPUs."""
    return {
        "account": org,
        "job_id": fresh_name("j"),
        "gpu_type": gpu_type,
        "gpu_count": gpus,
    } | more


@pytest.mark.parametrize(
    ("written", "shown", "rate"),
    [
        (0.46, 0.46, "0.46000046"),
        ("0.5", 0.5, "0.5000005"),
        ("2", 2, "2.000002"),
        (1.25, 1.25, "1.25000125"),
    ],
)
def test_a_share_is_leased_at_its_exact_rate(
    admin: Caller, written: Any, shown: float, rate: str
) -> None:
    """A number and a text are the same; the answer has a number and the rate with nine decimals."""
    org, gpu_type = funded(admin)
    lease = admin.made("/v1/reservations", asked(org, gpu_type, written))
    assert (lease["gpu_count"], lease["rate_per_hour"]) == (shown, rate)
    assert isinstance(lease["gpu_count"], int | float)


@pytest.mark.parametrize(
    "written", [0, -1, 0.4601, "0.4601", "NaN", "1e3", "½", 1e9, "100000.001", True, None, [], ""]
)
def test_what_is_no_number_of_gpus_is_refused_and_changes_nothing(
    admin: Caller, written: Any
) -> None:
    """The answer names the field and says what would be right; nothing is held."""
    org, gpu_type = funded(admin)
    answer = admin.post("/v1/reservations", asked(org, gpu_type, written))
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["field"] == "gpu_count"
    balance = admin.get(f"/v1/accounts/{org}/balance").json()
    assert (balance["available"], balance["reserved"]) == ("100", "0")


def test_a_quota_counts_shares(admin: Caller) -> None:
    """Two halves fit under one GPU; a thousandth more does not, and the numbers say so."""
    org, gpu_type = funded(admin)
    quota = {"dimension": "concurrent_gpus", "limit": "1", "gpu_type": gpu_type}
    admin.made(f"/v1/accounts/{org}/quotas", quota)
    for _ in range(2):
        admin.made("/v1/reservations", asked(org, gpu_type, "0.5"))
    refused = admin.post("/v1/reservations", asked(org, gpu_type, "0.001")).json()
    assert refused["reason"] == "quota_exceeded"
    assert "has taken 1 of 1 GPU," in refused["detail"]
    assert "0.001 more are needed" in refused["detail"]
    finer = admin.post(f"/v1/accounts/{org}/quotas", quota | {"limit": "0.0001"})
    assert "at most 3 digits after the point" in finer.json()["detail"]


def test_a_pool_shares_gpus_by_thousandths(admin: Caller) -> None:
    """A pool of 1.5 GPUs has room for 0.75 twice, and says how much is free."""
    org, gpu_type = funded(admin)
    place = f"/v1/pools/{gpu_type}/default"
    assert admin.call("PUT", place, {"capacity": 1.5}).status_code == 200
    for _ in range(2):
        admin.made("/v1/reservations", asked(org, gpu_type, "0.75"))
    refused = admin.post("/v1/reservations", asked(org, gpu_type, "0.25")).json()
    assert "It needs 0.25 GPUs, and 0 are free." in refused["detail"]
    shares = admin.get(f"{place}/shares").json()
    assert (shares["capacity"], shares["held"], shares["free"]) == (1.5, 1.5, 0)
