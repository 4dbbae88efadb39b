"""A job has one reservation on a node, however it is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.scenes.pools import PoolScene
from support.servers.http import Caller, problem


@pytest.fixture
def job(admin: Caller, org: str, gpu_type: str) -> dict[str, Any]:
    """What a job asks for on its node."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1000"})
    return {"account": f"{org}/vision/alice", "job_id": "j", "gpu_type": gpu_type, "node": "n1"}


@pytest.mark.parametrize("gated", [False, True], ids=["without limits", "with a quota on jobs"])
def test_the_second_is_refused_by_whatever_road(
    admin: Caller, org: str, job: dict[str, Any], gated: bool
) -> None:
    """Reserve, dry run, explanation and both sorts of batch say the same, and name the first."""
    if gated:
        quota = {"dimension": "concurrent_jobs", "limit": 100}
        admin.made(f"/v1/accounts/{org}/quotas", quota)
    first = admin.made("/v1/reservations", job)["reservation_id"]
    told = (
        admin.post("/v1/reservations", job),
        admin.post("/v1/reservations", job, params={"dry_run": "true"}),
    )
    for answer in told:
        assert problem(answer) == (409, "reservation_exists")
        assert answer.json()["numbers"]["reservation_id"] == first
        assert first in answer.json()["detail"]
    explained = admin.made("/v1/admissions:check", job)
    assert (explained["admitted"], explained["status"]) == (False, 409)
    assert explained["reason"] == "reservation_exists"
    assert explained["detail"] == answer.json()["detail"]
    fresh, same = {**job, "node": "n2"}, job
    body = {"items": [fresh, same, fresh]}
    atomic = {**body, "atomic": True}
    assert problem(admin.post("/v1/reservations:batch", atomic)) == (409, "reservation_exists")
    results = admin.made("/v1/reservations:batch", body)["results"]
    assert [result["status"] for result in results] == [201, 409, 409]
    wide = [{**job, "node": f"m{number}"} for number in range(4)]
    assert admin.post("/v1/reservations:batch", {"items": wide, "atomic": True}).status_code == 200
    admin.made(f"/v1/reservations/{first}:cancel")
    admin.made("/v1/reservations", job)


def test_of_many_at_once_one_is_let_in(admin: Caller, job: dict[str, Any]) -> None:
    """Whoever comes first has the node; the others are told who."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: admin.post("/v1/reservations", job), range(16)))
    made = [each.json()["reservation_id"] for each in answers if each.status_code == 201]
    assert len(made) == 1
    refused = [each for each in answers if each.status_code != 201]
    assert {problem(each) for each in refused} == {(409, "reservation_exists")}
    assert {each.json()["numbers"]["reservation_id"] for each in refused} == {*made}


def test_a_lapsed_one_hides_no_live_one(admin: Caller, org: str, job: dict[str, Any]) -> None:
    """One that lapsed at another payer's cost is in nobody's way, and hides nobody."""
    project = f"{org}/vision"
    admin.made("/v1/credits/issue", {"account": project, "amount": "10"})
    admin.made("/v1/reservations", {**job, "payer": project})
    admin.advance(121)
    second = admin.made("/v1/reservations", {**job, "payer": org, "window_seconds": 600})
    answer = admin.post("/v1/reservations", {**job, "payer": org})
    assert problem(answer) == (409, "reservation_exists")
    assert answer.json()["numbers"]["reservation_id"] == second["reservation_id"]


def test_whoever_waited_is_refused_at_its_turn(admin: Caller, gpu_type: str) -> None:
    """The queue lets a job onto a node only where it has no lease by then."""
    pool = PoolScene(admin, gpu_type, capacity=4)
    org = pool.org()
    first = pool.take(org, 1, job_id="j", node="n1")
    waited = pool.wait(org, 1, job_id="j", node="n1")
    assert waited["state"] == "refused"
    assert first in waited["sentence"]
