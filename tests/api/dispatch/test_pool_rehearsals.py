"""A pool's answers before and after the fact: explain, dry run and reserve say the same."""

from __future__ import annotations

from typing import Any

import pytest

from support.scenes.pools import PoolScene
from support.servers.http import Caller


@pytest.fixture
def pool(admin: Caller, gpu_type: str) -> PoolScene:
    """Eight GPUs that take turns; each holds 1.2 credits for its first window."""
    return PoolScene(admin, gpu_type)


def three_answers(pool: PoolScene, account: str, gpus: int, **more: Any) -> list[dict[str, Any]]:
    """What an explanation, a dry run and the reserve itself say, in the same words."""
    body = {"account": account, "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": gpus, **more}
    told = pool.admin.made("/v1/admissions:check", body)
    rows: list[dict[str, Any]] = [{**told, "gates": _gates(told)}]
    for path in ("/v1/reservations?dry_run=true", "/v1/reservations"):
        answer = pool.admin.post(path, body)
        said = answer.json()
        rows.append({"status": answer.status_code, "reason": None, "gates": None, **said})
        if answer.status_code != 201:
            rows[-1]["gates"] = _gates(said)
    return rows


def _gates(answer: dict[str, Any]) -> list[tuple[str, str, bool, str]]:
    return [
        (each["gate"], each["account"], each["passes"], each["sentence"])
        for each in answer["gates"]
    ]


def test_a_full_pool_and_no_credits(pool: PoolScene) -> None:
    """All three name credits first, and carry what every gate says."""
    pool.take(pool.org(), 8)
    answers = three_answers(pool, pool.org("0.5"), 1)
    assert [each["status"] for each in answers] == [402] * 3
    assert {each["reason"] for each in answers} == {"insufficient_credits"}
    assert len({each["detail"] for each in answers}) == 1
    assert answers[0]["gates"] == answers[1]["gates"] == answers[2]["gates"]
    assert answers[0]["gates"][0][0] == "budget"
    assert {gate for gate, *_ in answers[0]["gates"]} == {"budget", "fair_share"}


def test_a_full_pool_and_credits_enough(pool: PoolScene) -> None:
    """All three name fair share, and say that the budget passes."""
    pool.take(pool.org(), 8)
    answers = three_answers(pool, pool.org(), 1)
    assert [(each["status"], each["reason"]) for each in answers] == [(409, "fair_share")] * 3
    assert answers[0]["gates"] == answers[1]["gates"] == answers[2]["gates"]
    assert answers[2]["gates"][0][:3] == ("budget", answers[2]["gates"][0][1], True)


def test_partial_of_what_is_free(pool: PoolScene) -> None:
    """One GPU is free and eight were asked for: one it is, and one is held."""
    org = pool.org()
    pool.take(pool.org(), 7)
    answers = three_answers(pool, org, 8, allow_partial=True)
    assert [each["status"] for each in answers] == [201] * 3
    assert {(each["gpu_count"], each["held"]) for each in answers} == {(1, "1.2")}
    sentences = [text for gate, _, _, text in answers[0]["gates"] if gate == "fair_share"]
    assert any(text.startswith("1 GPU is free in ") for text in sentences)


@pytest.mark.parametrize("has_pool", [True, False])
def test_partial_of_what_can_be_paid_for(pool: PoolScene, *, has_pool: bool) -> None:
    """Credits for two of eight: two it is, with a pool and without."""
    if not has_pool:
        pool.set(None)
    answers = three_answers(pool, pool.org("2.5"), 8, allow_partial=True)
    assert [each["status"] for each in answers] == [201] * 3
    assert {(each["gpu_count"], each["held"]) for each in answers} == {(2, "2.4")}


def test_partial_in_a_full_pool_is_the_pools_fault(pool: PoolScene) -> None:
    """Credits for two would do, if there were room for any."""
    pool.take(pool.org(), 8)
    answers = three_answers(pool, pool.org("2.5"), 8, allow_partial=True)
    assert [(each["status"], each["reason"]) for each in answers] == [(409, "fair_share")] * 3


def test_a_gang_is_rehearsed_whole(pool: PoolScene) -> None:
    """Three times three GPUs of eight: each would fit, all do not."""
    org = pool.org()
    item = {"account": org, "job_id": "g", "gpu_type": pool.gpu_type, "gpu_count": 3}

    def batch(number: int, path: str) -> int:
        items = [{**item, "node": f"n{place}"} for place in range(number)]
        body = {"items": items, "atomic": True}
        return pool.admin.post(f"/v1/reservations:batch{path}", body).status_code

    for path in ("?dry_run=true", ""):
        assert batch(3, path) == 409
    assert batch(2, "?dry_run=true") == 200
    assert pool.held() == 0


def test_each_scope_is_told_its_share_and_what_it_holds(pool: PoolScene) -> None:
    """Of eight GPUs two orgs have four each; the project's and the user's parts are told too."""
    org = pool.org()
    for path in (f"{org}/nlp", f"{org}/nlp/ann"):
        pool.admin.made("/v1/accounts", {"path": path})
    pool.take(pool.org(), 7)
    pool.take(org, 1)
    for answer in three_answers(pool, f"{org}/nlp/ann", 5):
        assert (answer["status"], answer["reason"]) == (409, "fair_share")
    body = {"account": f"{org}/nlp/ann", "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": 5}
    gates = pool.admin.made("/v1/admissions:check", body)["gates"]
    assert [
        (each["scope"], each["account"], each["limit"], each["current"], each["requested"])
        for each in gates
        if each["gate"] == "fair_share"
    ] == [
        ("org", org, "4", "1", "5"),
        ("project", f"{org}/nlp", "3", "0", "5"),
        ("user", f"{org}/nlp/ann", "3", "0", "5"),
    ]


def test_a_refusal_tells_the_shares_of_an_explanation(pool: PoolScene) -> None:
    """Who holds nothing of a full pool has a share all the same: four of eight, and not none."""
    org = pool.org()
    pool.admin.made("/v1/accounts", {"path": f"{org}/nlp"})
    pool.take(pool.org(), 8)
    body = {"account": f"{org}/nlp", "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": 5}
    told = [
        pool.admin.made("/v1/admissions:check", body)["gates"],
        pool.admin.post("/v1/reservations", body).json()["gates"],
    ]
    shares = [
        [
            (each["account"], each["limit"], each["current"], each["requested"])
            for each in gates
            if each["gate"] == "fair_share"
        ]
        for gates in told
    ]
    assert shares[0] == shares[1] == [(org, "4", "0", "5"), (f"{org}/nlp", "4", "0", "5")]
