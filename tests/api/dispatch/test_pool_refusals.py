"""Requests that would wait for what can never be are refused at once, and leave nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from support.scenes.pools import PoolScene
from support.servers.http import Caller, fresh_name, problem


@pytest.fixture
def pool(admin: Caller, gpu_type: str) -> PoolScene:
    """Eight GPUs that take turns."""
    return PoolScene(admin, gpu_type)


def test_what_can_never_be_does_not_wait(pool: PoolScene) -> None:
    """Each is refused at once with its reason, nothing is queued, and its key remembers that."""
    org = pool.org()
    past = pool.admin.instant()
    pool.admin.advance(1)
    wishes: list[tuple[tuple[int, str], dict[str, Any]]] = [
        ((422, "price_unknown"), {"gpu_type": fresh_name("none-")}),
        ((422, "invalid_request"), {"deadline": past}),
        ((409, "fair_share"), {"gpu_count": 9}),
        ((404, "account_unknown"), {"account": f"{org}/nobody"}),
        ((422, "payer_invalid"), {"payer": pool.org()}),
        ((422, "max_amount_too_small"), {"max_amount": "0.000001"}),
        ((422, "overdraft_too_large"), {"overdraft": "5"}),
    ]
    for number, (told, more) in enumerate(wishes):
        key = fresh_name("key-")
        asked = {"gpu_type": pool.gpu_type, "job_id": f"j{number}", "account": org, **more}
        first = pool.admin.post("/v1/reservations", {**asked, "wait": True}, key=key)
        assert problem(first) == told, more
        again = pool.admin.post("/v1/reservations", {**asked, "wait": True}, key=key)
        assert problem(again) == told
    assert "the whole pool has 8" in pool.ask(org, 9, wait=True).json()["detail"]
    assert "deadline" in pool.ask(org, 1, wait=True, deadline=past).json()["detail"]
    assert pool.admin.read(f"/v1/queue?account={org}")["queue"] == []


def test_larger_than_the_pool_is_told_before_no_credits(pool: PoolScene) -> None:
    """Credits may come and GPUs may not; what every gate says is told all the same."""
    poor = pool.org(credits_given="0.01")
    plain, waits = pool.ask(poor, 9), pool.ask(poor, 9, wait=True)
    assert problem(plain) == (402, "insufficient_credits")
    assert problem(waits) == (409, "fair_share")
    assert {gate["gate"] for gate in waits.json()["gates"]} == {"budget", "fair_share"}


def never(answer: Any, gate: str = "fair_share") -> set[str | None]:
    """Why waiting never opens a gate, at every scope of it that is closed."""
    rows = [row for row in answer["gates"] if row["gate"] == gate and not row["passes"]]
    assert rows
    return {row["never_because"] for row in rows}


def test_larger_than_the_pool_never_clears(pool: PoolScene) -> None:
    """Every answer to such a request says so and what to do; a full pool has room one day."""
    org = pool.org()
    job = {"account": org, "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": 9}
    explained = pool.admin.post("/v1/admissions:check", job)
    for answer in (explained, pool.ask(org, 9), pool.ask(org, 9, wait=True)):
        told = answer.json()
        assert "It never clears by waiting: ask for less" in told["detail"]
        assert never(told) == {"the pool has 8 GPUs"}
    pool.take(org, 1)
    assert never(pool.ask(org, 8).json()) == {None}


def test_a_request_that_alone_is_over_a_limit_never_clears(pool: PoolScene) -> None:
    """Whoever sees the limit is told so; a key below it does not learn how high it is."""
    org = pool.org()
    pool.admin.made("/v1/accounts", {"path": f"{org}/p"})
    quota = {"dimension": "concurrent_gpus", "limit": 3}
    pool.admin.made(f"/v1/accounts/{org}/quotas", quota)
    told = pool.ask(f"{org}/p", 4).json()
    assert never(told, "quota") == {"the request alone is over the limit"}
    below = pool.admin.with_key("operator", f"{org}/p")
    assert never(pool.ask(f"{org}/p", 4, by=below).json(), "quota") == {None}


def test_a_quota_that_never_allows_it_is_told_at_once(pool: PoolScene) -> None:
    """A request that alone is over a limit does not wait; one that takes fewer does."""
    org = pool.org()
    quota = {"dimension": "concurrent_gpus", "limit": 3}
    pool.admin.made(f"/v1/accounts/{org}/quotas", quota)
    assert problem(pool.ask(org, 4, wait=True)) == (403, "quota_exceeded")
    queued = pool.wait(org, 4, allow_partial=True)
    assert pool.until_state(queued["queue_id"], "admitted")["admitted_gpus"] == 3


def test_a_request_waits_for_a_boost_that_is_to_come(pool: PoolScene) -> None:
    """What is over a quota today is in the queue for the day on which the quota is raised."""
    org = pool.org()
    quota = {"dimension": "concurrent_gpus", "limit": 3}
    number = pool.admin.made(f"/v1/accounts/{org}/quotas", quota)["quota_id"]
    starts, ends = pool.admin.instant(hours=1), pool.admin.instant(hours=2)
    boost = {"target_id": number, "amount": "2", "starts_at": starts, "ends_at": ends}
    pool.admin.made(f"/v1/accounts/{org}/boosts", boost)
    assert problem(pool.ask(org, 6, wait=True)) == (403, "quota_exceeded")
    queued = pool.wait(org, 5)
    told = pool.admin.read(f"/v1/queue/{queued['queue_id']}")
    assert (told["state"], told["waits_for"]) == ("waiting", "quota")
    assert "never" not in told["sentence"]
    pool.admin.advance(3_600)
    pool.until_state(queued["queue_id"], "admitted")


def test_a_gang_that_is_larger_than_the_pool_does_not_wait(pool: PoolScene) -> None:
    """A batch that is all or nothing is measured as a whole."""
    org = pool.org()
    items = [
        {"account": org, "job_id": "gang", "node": f"n{number}", "gpu_type": pool.gpu_type}
        | {"gpu_count": 5, "wait": True}
        for number in range(2)
    ]
    answer = pool.admin.post("/v1/reservations:batch", {"items": items, "atomic": True})
    assert problem(answer) == (409, "fair_share")
    assert "needs 10 GPUs, and the whole pool has 8" in answer.json()["detail"]
    assert pool.admin.read(f"/v1/queue?account={org}")["queue"] == []


def test_a_request_that_waits_is_repeated_after_its_deadline(pool: PoolScene) -> None:
    """The same key tells what became of the request, not that its deadline has passed."""
    hog, meek = pool.org(), pool.org()
    pool.set(8, preemption=False)
    pool.take(hog, 8)
    key, soon = fresh_name("key-"), pool.admin.instant(seconds=60)
    asked = {"wait": True, "deadline": soon, "key": key, "job_id": "late"}
    first = pool.ask(meek, 4, **asked)
    assert first.status_code == 202
    pool.admin.advance(61)
    again = pool.ask(meek, 4, **asked)
    assert (again.status_code, again.json()["state"]) == (202, "expired")
    assert again.json()["queue_id"] == first.json()["queue_id"]
