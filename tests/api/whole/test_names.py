"""Names of GPU types and regions over HTTP: one spelling, and slashes wherever a type stands."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from gpucredits.client import Client
from support.servers.http import Caller, RunningServer, fresh_name, problem


@pytest.fixture
def slashed(admin: Caller) -> str:
    """A type with a slash, which costs 36 credits an hour."""
    name = f"nvidia.com/{fresh_name('h')}"
    admin.made("/v1/prices", {"gpu_type": name, "credits_per_gpu_hour": "36"})
    return name


def reserve(caller: Caller, account: str, gpu_type: str, **more: Any) -> Any:
    """Admit a job."""
    body = {"account": account, "job_id": fresh_name("job"), "gpu_type": gpu_type, **more}
    return caller.made("/v1/reservations", body)


def test_capitals_and_spaces_make_no_other_type(admin: Caller, org: str, gpu_type: str) -> None:
    """A price, a quota, a lease and a filter that are written differently are about one type."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    shouted = f" {gpu_type.upper()} "
    quota = {"dimension": "concurrent_gpus", "limit": 1, "gpu_type": shouted}
    assert admin.made(f"/v1/accounts/{org}/quotas", quota)["gpu_type"] == gpu_type
    lease = reserve(admin, org, shouted, region=" DEFAULT ")
    assert (lease["gpu_type"], lease["region"]) == (gpu_type, "default")
    full = {"account": org, "job_id": "other", "gpu_type": gpu_type}
    assert problem(admin.post("/v1/reservations", full)) == (403, "quota_exceeded")
    prices = admin.read("/v1/prices", params={"gpu_type": shouted, "region": "Default"})["prices"]
    assert [row["gpu_type"] for row in prices] == [gpu_type]
    place = f"/v1/pools/{gpu_type.upper()}/Default"
    assert admin.call("PUT", place, {"capacity": 4}).json()["gpu_type"] == gpu_type
    assert admin.read(f"/v1/pools/{gpu_type}/default/shares")["held"] == 1


def test_spaces_around_a_name_make_no_other_payment_job_or_node(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A reference that was copied with a space is the same payment, and is not counted twice."""
    payment = {"account": org, "amount": "10", "payment_reference": "INV-7"}
    admin.made("/v1/topups", payment)
    again = admin.post("/v1/topups", {**payment, "payment_reference": " INV-7 "})
    assert problem(again) == (409, "reference_used")
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    lease = {"account": org, "job_id": "train", "gpu_type": gpu_type, "node": "n1"}
    admin.made("/v1/reservations", lease)
    second = admin.post("/v1/reservations", {**lease, "job_id": "train ", "node": " n1"})
    assert problem(second) == (409, "reservation_exists")
    blank = admin.post("/v1/reservations", {**lease, "job_id": "  "})
    assert problem(blank) == (422, "invalid_request")


@pytest.mark.parametrize("safe", ["", "/"], ids=["percent-encoded", "as it is"])
def test_a_type_with_a_slash_works_in_every_path_of_pools(
    admin: Caller, org: str, slashed: str, safe: str
) -> None:
    """A pool of such a type is set, weighed, shown, taken turns in and removed."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    place = f"/v1/pools/{quote(slashed, safe=safe)}/eu"
    made = admin.call("PUT", place, {"capacity": 2})
    assert (made.json()["gpu_type"], made.json()["region"]) == (slashed, "eu")
    weights = {"weights": [{"account": org, "weight": 3}]}
    assert admin.call("PUT", f"{place}/weights", weights).json()["weights"][0]["weight"] == 3
    price = {"gpu_type": slashed, "region": "eu", "credits_per_gpu_hour": "36"}
    admin.made("/v1/prices", price)
    reserve(admin, org, slashed, region="eu", gpu_count=2)
    body = {"account": org, "job_id": "late", "gpu_type": slashed, "region": "eu", "wait": True}
    waits = admin.post("/v1/reservations", body)
    assert waits.status_code == 202, waits.text
    assert admin.read(f"{place}/shares")["held"] == 2
    for pool in (f"{slashed}/eu", f"{slashed.upper()}/EU"):
        rows = admin.read("/v1/queue", params={"pool": pool, "state": "waiting"})["queue"]
        assert [row["job_id"] for row in rows] == ["late"]
    apart = admin.read("/v1/queue", params={"pool": slashed, "region": "eu"})["queue"]
    assert {row["gpu_type"] for row in apart} == {slashed}
    assert problem(admin.get("/v1/queue", params={"region": "eu"})) == (422, "invalid_request")
    assert admin.call("DELETE", place).status_code == 200
    assert problem(admin.get(place)) == (404, "pool_unknown")


def test_a_type_with_a_slash_works_in_prices_quotas_and_the_client(
    admin: Caller, server: RunningServer, org: str, slashed: str
) -> None:
    """Filters find it, a quota counts it, and the client reaches its pool."""
    rows = admin.read("/v1/prices", params={"gpu_type": slashed})["prices"]
    assert [row["gpu_type"] for row in rows] == [slashed]
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    quota = {"dimension": "concurrent_gpus", "limit": 1, "gpu_type": slashed}
    admin.made(f"/v1/accounts/{org}/quotas", quota)
    reserve(admin, org, slashed)
    full = {"account": org, "job_id": "other", "gpu_type": slashed}
    assert problem(admin.post("/v1/reservations", full)) == (403, "quota_exceeded")
    with Client(server.url, admin.secret) as client:
        client.set_pool(slashed.upper(), capacity=4)
        assert client.pool(slashed).capacity == 4
        assert client.shares(slashed).held == 1
        assert slashed in [each.gpu_type for each in client.pools().pools]
        client.remove_pool(slashed)


def test_a_name_that_is_none_is_refused_by_its_field(admin: Caller) -> None:
    """Too many slashes, and words that follow pools in addresses, are 422."""
    price = {"gpu_type": "a/b/c", "credits_per_gpu_hour": "1"}
    assert problem(admin.post("/v1/prices", price)) == (422, "invalid_request")
    price = {"gpu_type": "a", "region": "weights", "credits_per_gpu_hour": "1"}
    assert problem(admin.post("/v1/prices", price)) == (422, "invalid_request")
    assert problem(admin.get("/v1/pools/h100/Weights")) == (422, "invalid_request")
