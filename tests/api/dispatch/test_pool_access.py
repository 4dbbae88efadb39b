"""What pools show to whom, what they refuse, and decisions that can be checked by anybody."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpucredits.api.dispatch.pools import merged_weights
from gpucredits.api.http.errors import ProblemError
from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import dump_decisions, load
from gpucredits.store.dispatch.pools import GpuPool, Weight
from gpucredits.wire.dispatch.pool import WEIGHTS_MAX, WeightChange
from gpucredits.wire.scalars import AccountPath
from support.scenes.pools import PoolScene
from support.servers.http import Caller, fresh_name, problem
from support.waiting import until


@pytest.fixture
def pool(admin: Caller, gpu_type: str) -> PoolScene:
    """Eight GPUs that take turns."""
    return PoolScene(admin, gpu_type)


def test_a_tenant_sees_itself_and_the_totals(pool: PoolScene) -> None:
    """Shares, weights, refusals and places never name another org."""
    mine, other = pool.org(), pool.org()
    pool.weigh(**{mine: 1, other: 2})
    member = pool.admin.with_key("member", mine)
    pool.take(other, 8)
    theirs = pool.wait(other, 1)
    queued = pool.wait(mine, 1, by=member)
    until(lambda: pool.state(queued["queue_id"])["reason"])
    shares = member.read(f"{pool.place}/shares")
    assert [row["account"] for row in shares["shares"]] == [mine]
    assert (shares["held"], shares["waiting"], shares["tenants"]) == (8, 2, 2)
    weights = member.read(f"{pool.place}/weights")
    assert [row["account"] for row in weights["weights"]] == [mine]
    listed = member.get("/v1/queue")
    assert [row["queue_id"] for row in listed.json()["queue"]] == [queued["queue_id"]]
    refused = pool.ask(mine, 8, by=member)
    seen = [listed, refused, member.get(f"/v1/queue/{queued['queue_id']}")]
    for answer in seen:
        assert other not in answer.text
        assert theirs["queue_id"] not in answer.text
    assert {row["account"] for row in pool.admin.read(f"{pool.place}/shares")["shares"]} == {
        mine,
        other,
    }


def test_what_others_wait_for_does_not_exist(pool: PoolScene) -> None:
    """Another org's request is 404 to read and to cancel; so is another project's."""
    mine, other = pool.org(), pool.org()
    for project in ("a", "b"):
        pool.admin.made("/v1/accounts", {"path": f"{mine}/{project}"})
    pool.take(other, 8)
    theirs = pool.wait(other, 1)["queue_id"]
    sibling = pool.wait(f"{mine}/b", 1)["queue_id"]
    member = pool.admin.with_key("member", f"{mine}/a")
    for queue_id in (theirs, sibling, "que_0_0", "que_zzzzzz_1", "nonsense", "que_1"):
        assert problem(member.get(f"/v1/queue/{queue_id}")) == (404, "queue_unknown")
        assert problem(member.post(f"/v1/queue/{queue_id}:cancel")) == (404, "queue_unknown")
    assert pool.state(theirs)["state"] == "waiting"
    assert problem(member.get(f"/v1/queue?account={other}")) == (404, "account_unknown")
    assert member.read("/v1/queue")["queue"] == []


@pytest.mark.parametrize("role", ["admin", "operator", "member", "agent", "read-only"])
def test_only_the_systems_staff_runs_pools(pool: PoolScene, role: str) -> None:
    """A tenant's key, whatever its role, sets no pool and sees no snapshot."""
    key = pool.admin.with_key(role, pool.org())
    body = {"capacity": 1_000}
    assert problem(key.call("PUT", pool.place, body)) == (403, "forbidden")
    assert problem(key.call("DELETE", pool.place)) == (403, "forbidden")
    weights: dict[str, Any] = {"weights": []}
    assert problem(key.call("PUT", f"{pool.place}/weights", weights)) == (403, "forbidden")
    assert problem(key.get(f"{pool.place}/snapshot")) == (403, "forbidden")


def test_a_tenant_cannot_make_its_work_untouchable(pool: PoolScene) -> None:
    """Whoever borrows can be asked to leave: only the system's staff may say otherwise."""
    org = pool.org()
    member = pool.admin.with_key("admin", org)
    assert problem(pool.ask(org, 1, preemptible=False, by=member)) == (403, "forbidden")
    lease = pool.take(org, 8, preemptible=False)
    queued = pool.wait(pool.org(), 2)
    assert pool.until_told(queued["queue_id"], reason="capacity")["position"] == 1
    pool.settle(lease)


def test_a_dumped_snapshot_replays_to_the_same_decision(pool: PoolScene) -> None:
    """What the server decided, anybody decides from its dump, to the letter."""
    hog, meek = pool.org(), pool.org()
    assert problem(pool.admin.get(f"{pool.place}/snapshot")) == (404, "not_found")
    pool.take(hog, 8, priority=3, expected_seconds=100)
    queued = pool.wait(meek, 4)
    pool.wait(hog, 2)
    pool.until_told(queued["queue_id"], reason="making_room")
    kept = pool.admin.read(f"{pool.place}/snapshot")
    decision = dump_decisions(decide(load(kept["snapshot"])))
    assert json.loads(json.dumps(decision)) == kept["decision"]
    assert kept["snapshot"]["running"][0]["priority"] == 3
    changed = json.loads(json.dumps(kept["snapshot"]))
    changed["capacity"]["gpu"] = 100
    assert json.loads(json.dumps(dump_decisions(decide(load(changed))))) != kept["decision"]


@pytest.mark.parametrize(
    "body",
    [
        {"capacity": -1},
        {"capacity": "8 GPUs"},
        {"capacity": 8.0005},
        {"capacity": 10**18},
        {"capacity": None, "resources": {"cpu": 8}},
        {"capacity": 8, "resources": {"disk": 1}},
        {"capacity": 8, "policy": {"grace_seconds": -1}},
        {"capacity": 8, "policy": {"priority_scope": "world"}},
        {"capacity": 8, "policy": {"unknown": True}},
        {"capacity": 8, "unknown": True},
        [],
    ],
)
def test_a_pool_that_makes_no_sense_is_refused(pool: PoolScene, body: Any) -> None:
    """Bad settings change nothing."""
    before = pool.admin.read(pool.place)
    assert problem(pool.admin.call("PUT", pool.place, body)) == (422, "invalid_request")
    assert pool.admin.read(pool.place) == before


@pytest.mark.parametrize(
    "weights",
    [
        [{"account": "a", "weight": -1}],
        [{"account": "a", "weight": 1_000_001}],
        [{"account": "A b", "weight": 1}],
        [{"account": "a/b/c/d", "weight": 1}],
        [{"account": "a", "weight": 1}, {"account": "a", "weight": 2}],
        [{"weight": 1}],
    ],
)
def test_weights_that_make_no_sense_are_refused(pool: PoolScene, weights: Any) -> None:
    """Bad weights replace nothing."""
    org = pool.org()
    pool.weigh(**{org: 5})
    answer = pool.admin.call("PUT", f"{pool.place}/weights", {"weights": weights})
    assert problem(answer) == (422, "invalid_request")
    rows = pool.admin.read(f"{pool.place}/weights")["weights"]
    assert rows == [{"account": org, "weight": 5, "may_borrow": True}]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_weights_are_for_accounts_that_exist(pool: PoolScene, query: str) -> None:
    """A weight for nobody is refused, whether the org or what is below it is unknown."""
    org = pool.org()
    pool.weigh(**{org: 5})
    for nobody in (fresh_name("nobody"), f"{org}/nobody"):
        rows = [{"account": org, "weight": 2}, {"account": nobody, "weight": 3}]
        answer = pool.admin.call("PUT", f"{pool.place}/weights{query}", {"weights": rows})
        assert problem(answer) == (404, "account_unknown")
        assert answer.json()["account"] == nobody
    kept = pool.admin.read(f"{pool.place}/weights")["weights"]
    assert kept == [{"account": org, "weight": 5, "may_borrow": True}]


@pytest.mark.parametrize(
    "more",
    [
        {"priority": 1_001},
        {"priority": -1_001},
        {"gang_size": 2},
        {"gang": "g"},
        {"gang": "g", "gang_size": 0},
        {"gang": "g", "gang_size": 2, "allow_partial": True},
        {"gang": "g\0", "gang_size": 2},
        {"expected_seconds": 0},
        {"expected_seconds": 2**60},
        {"resources": {"cpu": -1}},
        {"resources": {"memory": 2**60}},
        {"deadline": "tomorrow", "wait": True},
        {"deadline": "2030-01-01T00:00:00Z"},
        {"wait": "yes"},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(pool: PoolScene, more: Any) -> None:
    """Hostile fields are refused at the edge, pool or no pool, and nobody waits."""
    org = pool.org()
    assert problem(pool.ask(org, 1, **more)) == (422, "invalid_request")
    assert problem(pool.ask(org, 1, region="nowhere", **more)) == (422, "invalid_request")
    assert pool.admin.read(f"/v1/queue?account={org}")["queue"] == []


def test_more_than_the_pool_has_does_not_wait(pool: PoolScene) -> None:
    """It is told so at once, and holds up nobody."""
    org = pool.org()
    answer = pool.ask(org, 9, wait=True)
    assert problem(answer) == (409, "fair_share")
    assert answer.json()["detail"] == (
        "It needs 9 GPUs, and the whole pool has 8. "
        "It never clears by waiting: ask for less, or have the pool's capacity raised."
    )
    pool.settle(pool.take(org, 8))


def test_some_weights_are_changed_and_the_others_kept(pool: PoolScene) -> None:
    """What is not named stays, a field left out too; who is new begins as the pool lets all."""
    one, two = pool.org(), pool.org()
    where, key = f"{pool.place}/weights", f"change-{pool.gpu_type}"
    rows = [{"account": one, "weight": 5, "may_borrow": False}]
    pool.admin.call("PUT", where, {"weights": rows})
    change = {"weights": [{"account": two, "weight": 3}]}
    first = pool.admin.call("PATCH", where, change, key=key)
    both = sorted([(one, 5, False), (two, 3, True)])
    assert weights_of(first.json()) == both
    changed = pool.admin.call("PATCH", where, {"weights": [{"account": one, "weight": 6}]})
    assert weights_of(changed.json()) == sorted([(one, 6, False), (two, 3, True)])
    lent = {"weights": [{"account": one, "may_borrow": True}]}
    rehearsed = pool.admin.call("PATCH", f"{where}?dry_run=true", lent)
    assert weights_of(rehearsed.json()) == sorted([(one, 6, True), (two, 3, True)])
    assert weights_of(pool.admin.read(where)) == sorted([(one, 6, False), (two, 3, True)])
    again = pool.admin.call("PATCH", where, change, key=key)
    assert (again.headers["idempotency-replayed"], again.json()) == ("true", first.json())
    pool.set(8, borrowing=False)
    third = pool.org()
    kept = pool.admin.call("PATCH", where, {"weights": [{"account": third, "weight": 2}]})
    assert (third, 2, False) in weights_of(kept.json())
    member = pool.admin.with_key("operator", one)
    assert problem(member.call("PATCH", where, change)) == (403, "forbidden")
    twice = {"weights": [{"account": one}, {"account": one}]}
    assert problem(pool.admin.call("PATCH", where, twice)) == (422, "invalid_request")
    assert problem(pool.admin.call("PATCH", where, {"weights": []})) == (422, "invalid_request")
    nobody = {"weights": [{"account": f"{one}/nobody", "weight": 2}]}
    assert problem(pool.admin.call("PATCH", where, nobody)) == (404, "account_unknown")


def test_a_change_of_weights_keeps_to_their_number() -> None:
    """A pool has so many weights at most, however they came."""
    pool = GpuPool(gpu_type="h100", region="default")
    before = [Weight(f"o{number}", 2) for number in range(WEIGHTS_MAX)]
    known = WeightChange(account=AccountPath("o7"), weight=3)
    assert len(merged_weights(pool, before, [known])) == WEIGHTS_MAX
    with pytest.raises(ProblemError, match="at most"):
        merged_weights(pool, before, [WeightChange(account=AccountPath("new"), weight=3)])


def test_no_change_of_weights_is_lost_to_another(pool: PoolScene) -> None:
    """Many at once change a weight each: all are there in the end."""
    orgs = [pool.org() for _ in range(8)]

    def change(place: int) -> int:
        body = {"weights": [{"account": orgs[place], "weight": place + 2}]}
        return pool.admin.call("PATCH", f"{pool.place}/weights", body).status_code

    with ThreadPoolExecutor(len(orgs)) as crowd:
        assert set(crowd.map(change, range(len(orgs)))) == {200}
    shown = weights_of(pool.admin.read(f"{pool.place}/weights"))
    assert shown == sorted((org, place + 2, True) for place, org in enumerate(orgs))


def weights_of(answer: Any) -> list[tuple[str, int, bool]]:
    """The weights of a pool as they are shown."""
    return [(row["account"], row["weight"], row["may_borrow"]) for row in answer["weights"]]


@pytest.mark.parametrize("resources", [{}, {"cpu": 64}])
def test_a_pool_of_nothing_is_drained(pool: PoolScene, resources: dict[str, int]) -> None:
    """What runs runs on and nobody gets in, partly or by waiting; it is refilled by a capacity."""
    holder, comer = pool.org(), pool.org()
    lease = pool.take(holder, 3)
    body = {"capacity": 0, "resources": resources}
    shown = pool.admin.call("PUT", pool.place, body)
    assert (shown.status_code, shown.json()["capacity"]) == (200, 0)
    queued = pool.wait(comer, 1)
    drained = "The pool is drained: nobody new gets in until it has GPUs again."
    told = [queued[name] for name in ("position", "waits_for", "reason", "sentence")]
    assert told == [None, "capacity", "drained", drained]
    for more in ({}, {"allow_partial": True}):
        refused = pool.ask(comer, 2, **more)
        assert problem(refused) == (409, "fair_share")
        assert refused.json()["detail"] == drained
    beat = {"seq": 1, "used_ms": 0}
    assert pool.admin.made(f"/v1/reservations/{lease}:extend", beat)["decision"] == "continue"
    shares = pool.admin.read(f"{pool.place}/shares")
    assert [shares[name] for name in ("capacity", "held", "free", "waiting")] == [0, 3, 0, 1]
    rows = {row["account"]: row for row in shares["shares"]}
    assert (rows[holder]["held"], rows[holder]["target"]) == (3, "0.00")
    kept = pool.admin.read(f"{pool.place}/snapshot")
    decision = dump_decisions(decide(load(kept["snapshot"])))
    assert json.loads(json.dumps(decision)) == kept["decision"]
    pool.settle(lease)
    assert pool.held() == 0
    assert pool.state(queued["queue_id"])["state"] == "waiting"
    pool.set(1)
    pool.until_state(queued["queue_id"], "admitted")


def test_several_resources_gate_together(pool: PoolScene) -> None:
    """Memory that is taken keeps a job out although GPUs are free."""
    body = {"capacity": 8, "resources": {"cpu": 64, "memory": 100}}
    assert pool.admin.call("PUT", pool.place, body).status_code == 200
    org = pool.org()
    pool.take(org, 1, resources={"memory": 80})
    answer = pool.ask(org, 1, resources={"memory": 30, "cpu": 1})
    assert problem(answer) == (409, "fair_share")
    assert answer.json()["detail"] == "It needs 30 memory, and 20 are free."
    numbers = answer.json()["numbers"]  # of 8 GPUs: 80 of 100 of the memory are 6.4, 30 are 2.4
    assert [numbers[name] for name in ("limit", "current", "requested")] == ["8", "6.4", "2.4"]
    pool.take(org, 1, resources={"memory": 20})


def test_an_org_that_may_not_borrow_keeps_to_its_part(pool: PoolScene) -> None:
    """With borrowing off, half of the pool stays empty for the other org of equal weight."""
    one, two = pool.org(), pool.org()
    pool.set(8, borrowing=False)
    pool.take(two, 1)
    pool.take(one, 4)
    answer = pool.ask(one, 1)
    assert problem(answer) == (409, "fair_share")
    assert "may not borrow" in answer.json()["detail"]


def test_a_batch_takes_its_turns_item_by_item(pool: PoolScene, gpu_type: str) -> None:
    """Of items that stand alone some are admitted, some wait, some are turned away."""
    org = pool.org()
    pool.admin.made("/v1/prices", {"gpu_type": f"{gpu_type}-free", "credits_per_gpu_hour": "36"})
    items = [
        {"account": org, "job_id": "a", "gpu_type": gpu_type, "gpu_count": 8},
        {"account": org, "job_id": "b", "gpu_type": f"{gpu_type}-free", "gpu_count": 8},
    ]
    first = pool.admin.made("/v1/reservations:batch", {"items": items}, key=f"batch-{org}")
    assert [each["status"] for each in first["results"]] == [201, 201]
    again = pool.admin.post("/v1/reservations:batch", {"items": items}, key=f"batch-{org}")
    assert again.json() == first
    assert again.headers["idempotency-replayed"] == "true"
    late = [{**items[0], "job_id": "c"}, {**items[0], "job_id": "d", "wait": True}]
    second = pool.admin.made("/v1/reservations:batch", {"items": late})
    assert [each["status"] for each in second["results"]] == [409, 202]
    assert second["results"][0]["problem"]["reason"] == "fair_share"
    mixed = {"items": [items[0], {**items[0], "account": f"{org}/x"}], "atomic": True}
    pool.admin.made("/v1/accounts", {"path": f"{org}/x"})
    assert problem(pool.admin.post("/v1/reservations:batch", mixed)) == (422, "invalid_request")


def test_setting_a_pool_is_an_act_with_a_key(pool: PoolScene) -> None:
    """It is done once for each key, recorded with what was before, and dry runs leave nothing."""
    body = {"capacity": 9}
    for _ in range(2):
        answer = pool.admin.call("PUT", pool.place, body, key=f"set-{pool.gpu_type}")
        assert answer.json()["capacity"] == 9
    assert answer.headers["idempotency-replayed"] == "true"
    dry = pool.admin.call("PUT", f"{pool.place}?dry_run=true", {"capacity": 99})
    assert dry.json()["capacity"] == 99
    assert pool.admin.read(pool.place)["capacity"] == 9
    acts = [
        row
        for row in pool.admin.read("/v1/audit?limit=50")["audit"]
        if row["resource"] == f"pool:{pool.gpu_type}/default"
    ]
    assert [row["action"] for row in acts] == ["pool.set", "pool.set"]
    assert (acts[0]["old"]["milli_gpus"], acts[0]["new"]["milli_gpus"]) == (8_000, 9_000)
    assert pool.admin.call("DELETE", pool.place).status_code == 200
    assert problem(pool.admin.get(pool.place)) == (404, "pool_unknown")
    assert problem(pool.admin.call("DELETE", pool.place)) == (404, "pool_unknown")


def test_a_repeat_is_told_what_its_own_act_did(pool: PoolScene) -> None:
    """Others have set the weights and taken the pool away since; the retry is told as at first."""
    where, key = f"{pool.place}/weights", f"weigh-{pool.gpu_type}"
    one, two = pool.org(), pool.org()
    body = {"weights": [{"account": one, "weight": 5}]}
    first = pool.admin.call("PUT", where, body, key=key)
    assert first.status_code == 200
    pool.weigh(**{one: 7, two: 1})
    again = pool.admin.call("PUT", where, body, key=key)
    assert pool.admin.call("DELETE", pool.place).status_code == 200
    at_last = pool.admin.call("PUT", where, body, key=key)
    for answer in (again, at_last):
        assert (answer.status_code, answer.content) == (first.status_code, first.content)
        assert answer.headers["idempotency-replayed"] == "true"


def test_a_pool_that_goes_lets_those_in_who_waited(pool: PoolScene) -> None:
    """Without a pool there is nothing to wait for but credits."""
    org = pool.org()
    pool.take(org, 8)
    queued = pool.wait(org, 8)
    assert pool.admin.call("DELETE", pool.place).status_code == 200
    pool.until_state(queued["queue_id"], "admitted")
    pool.take(org, 8)
