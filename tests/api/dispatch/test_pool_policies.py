"""What policy forbids a tenant, pool or no pool, and which rows of a pool its keys see."""

from __future__ import annotations

from typing import Any

import pytest

from support.scenes.pools import PoolScene
from support.servers.http import Caller, problem


@pytest.fixture
def pool(admin: Caller, gpu_type: str) -> PoolScene:
    """Eight GPUs that take turns."""
    return PoolScene(admin, gpu_type)


@pytest.mark.parametrize("more", [{}, {"wait": True}], ids=["plain", "waiting"])
def test_untouchable_work_is_refused_where_there_is_no_pool_too(
    admin: Caller, org: str, gpu_type: str, more: dict[str, Any]
) -> None:
    """A plain reserve, one in a batch and an explanation are told what a pool would tell them."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
    body = {"account": org, "job_id": "one", "gpu_type": gpu_type, "preemptible": False, **more}
    for role in ("member", "operator", "admin"):
        key = admin.with_key(role, org)
        assert problem(key.post("/v1/reservations", body)) == (403, "forbidden")
        assert problem(key.post("/v1/admissions:check", body)) == (403, "forbidden")
        batch = {"items": [body]}
        assert problem(key.post("/v1/reservations:batch", batch)) == (403, "forbidden")
    assert admin.post("/v1/reservations", body).status_code in (201, 202)


def test_a_key_sees_shares_and_weights_as_far_as_its_project(pool: PoolScene) -> None:
    """A user's key sees its own project's rows, a project's key its own, an org's key its org's."""
    mine, other = pool.org(), pool.org()
    paths = (f"{mine}/a", f"{mine}/a/ann", f"{mine}/a/bob", f"{mine}/b", f"{mine}/b/eve")
    for path in paths:
        pool.admin.made("/v1/accounts", {"path": path})
    pool.weigh(**{mine: 1, other: 2, f"{mine}/a": 1, f"{mine}/b": 3})
    for account in (f"{mine}/a/ann", f"{mine}/a/bob", f"{mine}/b/eve", other):
        pool.take(account, 1)
    project = {f"{mine}/a", f"{mine}/a/ann", f"{mine}/a/bob"}
    whole = {mine, *paths}
    for scope, seen in ((f"{mine}/a/ann", project), (f"{mine}/a", project), (mine, whole)):
        key = pool.admin.with_key("member", scope)
        shares = key.read(f"{pool.place}/shares")
        assert {row["account"] for row in shares["shares"]} == seen
        assert shares["held"] == 4
        weights = key.read(f"{pool.place}/weights")["weights"]
        assert {row["account"] for row in weights} == seen & {mine, f"{mine}/a", f"{mine}/b"}
