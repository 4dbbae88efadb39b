"""Pools and their queue over HTTP: who is let in, who waits, what they are told."""

from __future__ import annotations

import pytest

from support.engines.postgres import sql
from support.scenes.pools import PoolScene
from support.servers.http import Caller, problem
from support.waiting import until


@pytest.fixture
def pool(admin: Caller, gpu_type: str) -> PoolScene:
    """Eight GPUs that take turns."""
    return PoolScene(admin, gpu_type)


def test_a_plain_reserve_is_let_in_while_there_is_room(pool: PoolScene) -> None:
    """Up to the capacity reserves are admitted at once; beyond it the answer has the numbers."""
    org = pool.org()
    pool.take(org, 5)
    pool.take(org, 3)
    answer = pool.ask(org, 1)
    assert problem(answer) == (409, "fair_share")
    body = answer.json()
    assert body["detail"] == "It needs 1 GPU, and 0 are free."
    assert {**body["numbers"], "name": ""} == {
        "account": org,
        "scope": "org",
        "gate": "fair_share",
        "name": "",
        "limit": "8",
        "current": "8",
        "requested": "1",
        "position": 1,
        "waiting": 0,
    }
    assert pool.held() == 8


def test_a_request_waits_and_is_admitted_when_a_lease_ends(pool: PoolScene) -> None:
    """With wait the answer is 202; long polls return when its turn has come."""
    org = pool.org()
    lease = pool.take(org, 8)
    queued = pool.wait(org, 2)
    assert (queued["state"], queued["position"], queued["waits_for"]) == ("waiting", 1, "capacity")
    assert queued["sentence"] == "Number 1 in the queue: it needs 2 GPUs, and 0 are free."
    pool.settle(lease)
    shown = pool.admin.read(f"/v1/queue/{queued['queue_id']}?wait_seconds=20")
    assert shown["state"] == "admitted"
    reservation = pool.admin.read(f"/v1/reservations/{shown['reservation_id']}")
    assert (reservation["state"], reservation["gpu_count"]) == ("active", 2)


def test_who_finds_room_is_admitted_in_the_same_request(pool: PoolScene) -> None:
    """A request that waits need not wait when there is room."""
    queued = pool.wait(pool.org(), 2)
    assert pool.until_state(queued["queue_id"], "admitted")["reservation_id"]


def test_preemption_from_end_to_end(pool: PoolScene) -> None:
    """Hog borrows all; meek comes; hog's heartbeat says drain with a deadline; meek gets in."""
    hog, meek = pool.org(), pool.org()
    older, younger = pool.take(hog, 4), pool.take(hog, 4)
    queued = pool.wait(meek, 2)
    shown = pool.until_told(queued["queue_id"], reason="making_room")
    assert "is being stopped to make room" in shown["sentence"]
    assert hog not in shown["sentence"]
    assert shown["estimate"] is not None
    beats = [{"reservation_id": lease, "seq": 1, "used_ms": 100} for lease in (older, younger)]
    kept, told = pool.admin.made("/v1/heartbeats", {"beats": beats})["results"]
    assert kept["decision"] == "continue"
    assert (told["decision"], told["reason"]) == ("drain", "preempted")
    assert 20_000 < told["expires_in_ms"] <= 30_000
    assert pool.admin.read(f"/v1/reservations/{younger}")["stops_at"] is not None
    assert pool.admin.read(f"/v1/reservations/{older}")["stops_at"] is None
    again = [{"reservation_id": younger, "seq": 2, "used_ms": 200}]
    [later] = pool.admin.made("/v1/heartbeats", {"beats": again})["results"]
    assert later["expires_in_ms"] <= told["expires_in_ms"]
    assert pool.state(queued["queue_id"])["state"] == "waiting"
    pool.settle(younger)
    pool.until_state(queued["queue_id"], "admitted")
    assert pool.held() == 6


def test_what_is_preempted_goes_by_its_deadline_without_a_word(pool: PoolScene) -> None:
    """A silent node's lease lapses when the grace is over, however long its window is."""
    hog, meek = pool.org(), pool.org()
    lease = pool.take(hog, 8, window_seconds=600)
    queued = pool.wait(meek, 4)
    pool.until_told(queued["queue_id"], reason="making_room")
    until(lambda: pool.admin.read(f"/v1/reservations/{lease}")["stops_at"])
    pool.admin.advance(31)
    assert pool.admin.read(f"/v1/reservations/{lease}")["state"] == "expired"
    pool.until_state(queued["queue_id"], "admitted")


def test_work_goes_on_when_who_it_makes_room_for_leaves(pool: PoolScene) -> None:
    """The request is canceled: the job hears continue, and has its whole lease again."""
    hog, meek = pool.org(), pool.org()
    lease = pool.take(hog, 8, window_seconds=600)
    queued = pool.wait(meek, 4)
    pool.until_told(queued["queue_id"], reason="making_room")
    path = f"/v1/reservations/{lease}"
    stopping = until(lambda: (shown := pool.admin.read(path))["stops_at"] and shown)
    pool.admin.made(f"/v1/queue/{queued['queue_id']}:cancel")
    until(lambda: pool.admin.read(path)["stops_at"] is None)
    resumed = pool.admin.read(path)
    assert resumed["expires_at"] > stopping["expires_at"]
    pool.admin.advance(60)
    beat = {"beats": [{"reservation_id": lease, "seq": 1, "used_ms": 100}]}
    [told] = pool.admin.made("/v1/heartbeats", beat)["results"]
    assert (told["decision"], told["expires_in_ms"]) == ("continue", 600_000)


def test_who_does_not_wait_stops_nobody(pool: PoolScene) -> None:
    """A reserve without wait is turned away, and nobody's work is stopped for it."""
    hog, meek = pool.org(), pool.org()
    lease = pool.take(hog, 8)
    answer = pool.ask(meek, 4)
    assert problem(answer) == (409, "fair_share")
    assert answer.json()["detail"].startswith("It needs 4 GPUs, and 0 are free.")
    assert "stopped" not in answer.text
    beat = {"beats": [{"reservation_id": lease, "seq": 1, "used_ms": 100}]}
    [told] = pool.admin.made("/v1/heartbeats", beat)["results"]
    assert told["decision"] == "continue"


def test_nobody_slips_past_those_with_a_better_claim(pool: PoolScene) -> None:
    """Free GPUs that the head of the queue is about to use are not for who comes later."""
    hog, meek = pool.org(), pool.org()
    pool.set(8, preemption=False)
    pool.take(hog, 6, expected_seconds=600)
    queued = pool.wait(meek, 7)
    assert queued["position"] == 1
    assert queued["estimate"] is not None
    answer = pool.ask(hog, 2, expected_seconds=3_600)
    assert problem(answer) == (409, "fair_share")
    assert queued["queue_id"] not in answer.text
    assert "would delay another request" in answer.json()["detail"]


def test_backfill_lets_the_short_overtake(pool: PoolScene) -> None:
    """What ends before the head can start runs on the GPUs that would lie idle."""
    hog, meek = pool.org(), pool.org()
    pool.set(8, preemption=False)
    pool.take(hog, 6, expected_seconds=600)
    head = pool.wait(meek, 4)
    pool.take(hog, 2, expected_seconds=300)
    assert pool.state(head["queue_id"])["state"] == "waiting"
    pool.set(8, preemption=False, backfill=False)
    answer = pool.ask(hog, 1, expected_seconds=1)
    assert problem(answer) == (409, "fair_share")


def test_a_gang_starts_whole_or_not_at_all(pool: PoolScene) -> None:
    """An atomic batch that does not fit is refused whole; with room all of it starts."""
    org = pool.org()

    def items(number: int, **more: object) -> dict[str, object]:
        item = {"account": org, "job_id": "gang", "gpu_type": pool.gpu_type, "gpu_count": 3}
        nodes = (f"n{place}" for place in range(number))
        return {"items": [{**item, "node": node, **more} for node in nodes], "atomic": True}

    answer = pool.admin.post("/v1/reservations:batch", items(3))
    assert problem(answer) == (409, "fair_share")
    assert pool.held() == 0
    done = pool.admin.made("/v1/reservations:batch", items(2), key="gang-of-two")
    assert [each["status"] for each in done["results"]] == [201, 201]
    assert pool.held() == 6
    again = pool.admin.post("/v1/reservations:batch", items(2), key="gang-of-two")
    assert again.json() == done
    assert again.headers["idempotency-replayed"] == "true"
    waiting = pool.admin.made("/v1/reservations:batch", items(2, wait=True, job_id="next"))[
        "results"
    ]
    assert [each["status"] for each in waiting] == [202, 202]
    ids = [each["queue"]["queue_id"] for each in waiting]
    assert {pool.state(each)["state"] for each in ids} == {"waiting"}
    pool.settle(done["results"][0]["reservation"]["reservation_id"])
    assert {pool.state(each)["state"] for each in ids} == {"waiting"}
    pool.settle(done["results"][1]["reservation"]["reservation_id"])
    for each in ids:
        pool.until_state(each, "admitted")
    assert pool.held() == 6


def test_members_of_a_gang_may_come_one_by_one(pool: PoolScene) -> None:
    """Nobody of a gang starts before all are there."""
    org = pool.org()
    first = pool.wait(org, 2, gang="ring", gang_size=2)
    assert (first["reason"], first["waits_for"]) == ("gang_incomplete", "gang")
    assert first["sentence"] == "1 of the 2 members of its gang is here."
    second = pool.wait(org, 2, gang="ring", gang_size=2)
    for each in (first, second):
        pool.until_state(each["queue_id"], "admitted")


def test_a_gang_that_cannot_pay_starts_nobody(pool: PoolScene) -> None:
    """All or nothing is true of the credits as well."""
    org = pool.org("2")  # each member holds 1.2
    item = {"account": org, "job_id": "gang", "gpu_type": pool.gpu_type}
    items = [{**item, "node": node} for node in ("n1", "n2")]
    answer = pool.admin.post("/v1/reservations:batch", {"items": items, "atomic": True})
    assert problem(answer) == (402, "insufficient_credits")
    assert pool.admin.read(f"/v1/accounts/{org}/balance")["reserved"] == "0"


def test_waiting_for_credits_ends_with_a_top_up(pool: PoolScene) -> None:
    """A request that is refused for credits waits on, says so, and starts when they come."""
    org = pool.org("0.5")
    queued = pool.wait(org, 1)
    shown = pool.until_told(queued["queue_id"], waits_for="credits")
    assert shown["sentence"].startswith(f"It waits for credits: {org} has 0.5 credits available")
    lease = pool.take(pool.org(), 8)  # who cannot pay holds up nobody
    pool.settle(lease)
    pool.admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
    pool.until_state(queued["queue_id"], "admitted")


def test_one_may_wait_for_credits_where_there_is_no_pool(admin: Caller, gpu_type: str) -> None:
    """Waiting is for credits too, in a pool without capacity and where there is no pool."""
    scene = PoolScene(admin, gpu_type, capacity=None)
    for remove in (False, True):
        if remove:
            assert admin.call("DELETE", scene.place).status_code == 200
        org = scene.org("0.5")
        queued = scene.wait(org, 1)
        scene.until_told(queued["queue_id"], waits_for="credits")
        admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
        scene.until_state(queued["queue_id"], "admitted")


def test_a_request_can_be_canceled_while_it_waits(pool: PoolScene) -> None:
    """Cancelling ends the wait once; what was admitted is no longer the queue's."""
    org = pool.org()
    lease = pool.take(org, 8)
    queued = pool.wait(org, 2)
    path = f"/v1/queue/{queued['queue_id']}:cancel"
    assert pool.admin.made(path, key="cancel-it")["state"] == "canceled"
    assert pool.admin.post(path, key="cancel-it").headers["idempotency-replayed"] == "true"
    assert pool.admin.made(path)["state"] == "canceled"
    pool.settle(lease)
    admitted = pool.wait(org, 2)
    pool.until_state(admitted["queue_id"], "admitted")
    assert pool.state(queued["queue_id"])["state"] == "canceled"
    answer = pool.admin.post(f"/v1/queue/{admitted['queue_id']}:cancel")
    assert problem(answer) == (409, "queue_ended")
    assert "cancel or settle its reservation" in answer.json()["detail"]


def test_a_long_poll_ends_in_time_without_news(pool: PoolScene) -> None:
    """It answers with what is known when the time is up."""
    org = pool.org()
    pool.take(org, 8)
    queued = pool.wait(org, 2)
    shown = pool.admin.read(f"/v1/queue/{queued['queue_id']}?wait_seconds=1")
    assert shown["state"] == "waiting"
    answer = pool.admin.get(f"/v1/queue/{queued['queue_id']}?wait_seconds=61")
    assert problem(answer) == (422, "invalid_request")


def test_a_request_expires_at_its_deadline(pool: PoolScene) -> None:
    """Whoever waited until the deadline in vain is told so, and no longer in the way."""
    org = pool.org()
    pool.take(org, 8, window_seconds=600)
    queued = pool.wait(org, 2, deadline=pool.admin.instant(seconds=60))
    assert queued["deadline"] is not None
    pool.admin.advance(61)
    shown = pool.until_state(queued["queue_id"], "expired")
    assert shown["sentence"] == "Its turn did not come before its deadline."


def test_allow_partial_takes_what_is_left(pool: PoolScene) -> None:
    """Fewer GPUs are better than none, of capacity and of credits."""
    org = pool.org()
    pool.take(org, 5)
    answer = pool.ask(org, 6, allow_partial=True)
    assert answer.status_code == 201, answer.text
    assert answer.json()["gpu_count"] == 3
    assert problem(pool.ask(org, 6, allow_partial=True)) == (409, "fair_share")
    pool.set(20)
    poor = pool.org("5")  # a GPU holds 1.2
    answer = pool.ask(poor, 6, allow_partial=True)
    assert answer.status_code == 201, answer.text
    assert answer.json()["gpu_count"] == 4


def test_a_key_returns_the_request_as_it_now_stands(pool: PoolScene) -> None:
    """The same key and request never queue twice; the same key with another is refused."""
    org = pool.org()
    lease = pool.take(org, 8)
    first = pool.wait(org, 2, job_id="j", key=f"wait-{org}")
    again = pool.ask(org, 2, job_id="j", wait=True, key=f"wait-{org}")
    assert again.status_code == 202
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["queue_id"] == first["queue_id"]
    other = pool.ask(org, 3, job_id="j", wait=True, key=f"wait-{org}")
    assert problem(other) == (409, "idempotency_key_reused")
    pool.settle(lease)
    pool.until_state(first["queue_id"], "admitted")
    after = pool.ask(org, 2, job_id="j", wait=True, key=f"wait-{org}").json()
    assert (after["state"], after["queue_id"]) == ("admitted", first["queue_id"])
    assert pool.held() == 2


def test_a_plain_key_gives_the_same_lease_again(pool: PoolScene) -> None:
    """A reserve that is repeated has one effect, also after the pool has lost its capacity."""
    org = pool.org()
    first = pool.ask(org, 2, job_id="j", key=f"plain-{org}")
    again = pool.ask(org, 2, job_id="j", key=f"plain-{org}")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    full = pool.ask(org, 7, job_id="k", key=f"full-{org}")
    pool.set(None)
    assert pool.ask(org, 2, job_id="j", key=f"plain-{org}").json() == first.json()
    refused = pool.ask(org, 7, job_id="k", key=f"full-{org}")
    assert problem(refused) == problem(full) == (409, "fair_share")
    ungated = pool.ask(org, 9, job_id="l", key=f"later-{org}")
    pool.set(8)
    assert pool.ask(org, 9, job_id="l", key=f"later-{org}").json() == ungated.json()


def test_a_dry_run_says_what_would_happen_and_leaves_nothing(pool: PoolScene) -> None:
    """It is decided on the real pool, and nobody waits or holds anything afterwards."""
    org = pool.org()
    body = {"account": org, "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": 8}
    answer = pool.admin.post("/v1/reservations?dry_run=true", body)
    assert answer.status_code == 201, answer.text
    assert pool.held() == 0
    assert pool.admin.read(f"/v1/queue?account={org}")["queue"] == []
    pool.take(org, 1)
    answer = pool.admin.post("/v1/reservations?dry_run=true", body)
    assert problem(answer) == (409, "fair_share")


def test_weights_divide_the_pool(pool: PoolScene) -> None:
    """Three to one, and the shares say so."""
    big, small = pool.org(), pool.org()
    pool.weigh(**{big: 3, small: 1})
    lease = pool.take(small, 8)
    queued = [pool.wait(org, 1)["queue_id"] for org in (big, small) for _ in range(8)]
    shares = {row["account"]: row for row in pool.admin.read(f"{pool.place}/shares")["shares"]}
    assert (shares[big]["target"], shares[small]["target"]) == ("6.00", "2.00")
    assert (shares[small]["held"], shares[small]["borrowed"]) == (8, "6.00")
    assert (shares[big]["waiting"], shares[big]["waiting_gpus"]) == (8, 8)
    pool.settle(lease)

    def let_in() -> list[str]:
        states = [pool.state(each) for each in queued]
        accounts = [each["account"] for each in states if each["state"] == "admitted"]
        return accounts if len(accounts) == 8 else []

    admitted = until(let_in)
    assert (admitted.count(big), admitted.count(small)) == (6, 2)


def test_past_use_is_remembered_and_counts(pool: PoolScene, database_of_server: str) -> None:
    """Of two who hold nothing, the one that used less goes first."""
    pool.set(8, half_life_seconds=3_600, usage_order="first", preemption=False)
    busy, idle, other = pool.org(), pool.org(), pool.org()
    lease = pool.take(busy, 8, window_seconds=600)
    pool.admin.advance(300)
    beat = {"beats": [{"reservation_id": lease, "seq": 1, "used_ms": 0}]}
    pool.admin.made("/v1/heartbeats", beat)
    pool.admin.advance(300)
    query = "SELECT floor(sum(usage) / 1000)::bigint FROM pool_usage WHERE path = $1"
    used = until(lambda: sql(database_of_server, query, busy))
    assert 4_000 < used < 5_000  # 8 GPUs for ten minutes are 4,800 GPU-seconds, fading
    pool.settle(lease)
    until(lambda: pool.held() == 0)
    blocker = pool.take(other, 8, window_seconds=600)
    first, second = pool.wait(busy, 8), pool.wait(idle, 8)
    pool.until_told(second["queue_id"], position=1)
    pool.until_told(first["queue_id"], position=2)
    pool.settle(blocker)
    pool.until_state(second["queue_id"], "admitted")
    assert pool.state(first["queue_id"])["state"] == "waiting"


def test_an_explanation_asks_the_pool_too(pool: PoolScene) -> None:
    """The check says what the pool says, first that it passes and then that it does not."""
    org = pool.org()
    body = {"account": org, "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": 3}

    def gate() -> dict[str, object]:
        answer = pool.admin.made("/v1/admissions:check", body)
        [row] = [each for each in answer["gates"] if each["gate"] == "fair_share"]
        return {"admitted": answer["admitted"], **row}

    free = gate()
    assert (free["admitted"], free["passes"], free["limit"]) == (True, True, "3")  # all it wants
    pool.take(org, 6)
    full = gate()
    assert (full["admitted"], full["passes"], full["current"]) == (False, False, "6")
    assert full["sentence"] == "It needs 3 GPUs, and 2 are free."
