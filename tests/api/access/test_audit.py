"""Acts are found by every account that they concern, and by nobody beyond."""

from __future__ import annotations

from support.servers.http import Caller


def acts(caller: Caller, **wanted: str) -> list[str]:
    """What was done, the latest first."""
    listed = caller.read("/v1/audit", params={"limit": "1000"} | wanted)["audit"]
    return [act["action"] for act in listed]


def test_corrections_are_found_by_the_account_whose_job_it_was(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Refund and adjustment: by the user, by the project that pays, and by no other project."""
    project, user, other = f"{org}/vision", f"{org}/vision/alice", f"{org}/audio"
    admin.made("/v1/accounts", {"path": other})
    admin.made("/v1/credits/issue", {"account": project, "amount": "100"})
    asked = {"account": user, "job_id": "train", "gpu_type": gpu_type, "window_seconds": 600}
    lease = admin.made("/v1/reservations", asked)["reservation_id"]
    admin.advance(100)
    admin.made(f"/v1/reservations/{lease}:settle", {"seq": 1, "used_ms": 100_000})
    admin.made("/v1/refunds", {"reservation_id": lease, "amount": "0.2"})
    admin.made("/v1/adjustments", {"reservation_id": lease, "amount": "0.5"})
    corrections = ["credits.adjust", "credits.refund"]
    assert acts(admin, account=user)[:2] == corrections
    assert acts(admin, account=project)[:2] == corrections
    assert acts(admin.with_key("operator", user))[1:3] == corrections
    assert not {*corrections} & {*acts(admin, account=other)}
    assert not {*corrections} & {*acts(admin.with_key("operator", other))}
    [adjusted] = admin.read("/v1/audit", params={"resource": lease, "limit": 1})["audit"]
    assert adjusted["old"] == {
        "account": user,
        "payer": project,
        "settled": "1",
        "adjusted": "0",
        "refunded": "0.2",
    }
    assert adjusted["new"] == {"amount": "0.5"}


def test_who_ended_a_lease_is_recorded_and_shown(admin: Caller, org: str, gpu_type: str) -> None:
    """Settling and canceling name their key, once each; a lapse was nobody's act."""
    project, user = f"{org}/vision", f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": user, "amount": "100"})
    member = admin.with_key("member", user)
    key = member.read("/v1/keys/self")["key_id"]
    asked = {"account": user, "gpu_type": gpu_type, "window_seconds": 60}
    leases = [
        admin.made("/v1/reservations", {**asked, "job_id": job})["reservation_id"]
        for job in ("settled", "canceled", "lapsed")
    ]
    admin.advance(5)
    member.made(f"/v1/reservations/{leases[0]}:settle", {"seq": 1, "used_ms": 4_000})
    member.post(f"/v1/reservations/{leases[0]}:settle", {"seq": 2, "used_ms": 5_000})
    member.made(f"/v1/reservations/{leases[1]}:cancel")
    admin.advance(100)
    member.post(f"/v1/reservations/{leases[2]}:settle", {"seq": 1, "used_ms": 4_000})
    listed = member.read("/v1/reservations", params={"account": user})["reservations"]
    assert {row["reservation_id"]: row["ended_by"] for row in listed} == dict(
        zip(leases, (key, key, None), strict=True)
    )
    assert member.read(f"/v1/reservations/{leases[1]}")["ended_by"] == key
    for caller in (admin, admin.with_key("operator", project)):
        [act] = caller.read("/v1/audit", params={"resource": leases[0]})["audit"]
        assert (act["actor"], act["action"]) == (key, "reservation.settle")
        assert act["resource"] == leases[0]
        assert act["new"] == {"state": "settled", "settled": "0.04", "used_ms": 4_000}
    assert acts(admin, resource=leases[1]) == ["reservation.cancel"]
    assert acts(admin, resource=leases[2]) == []


def test_keys_are_found_by_the_account_they_are_for(admin: Caller, org: str) -> None:
    """Making, limiting and ending a key is an act on its scope, whoever does it."""
    user = f"{org}/vision/alice"
    operator = admin.with_key("operator", f"{org}/vision")
    key = admin.made("/v1/keys", {"role": "member", "scope": user})["key_id"]
    limit = {"capacity": 10, "refill_per_second": 1}
    assert admin.call("PUT", f"/v1/keys/{key}/limit", limit).status_code == 200
    admin.made(f"/v1/keys/{key}:revoke")
    expected = ["key.revoke", "request_limit.set", "key.create"]
    for found in (acts(admin, account=user), acts(operator)):
        assert found[:3] == expected
    made = operator.read("/v1/audit", params={"action": "key.create"})["audit"]
    assert key in [act["resource"] for act in made]
    assert "key.create" not in acts(operator, account=f"{org}/vision/alice", action="x")
    admin.made("/v1/accounts", {"path": f"{org}/vis"})
    assert acts(admin, account=f"{org}/vis") == ["account.create"]  # not what begins alike


def test_transfers_are_found_by_both_sides(admin: Caller, org: str) -> None:
    """Who receives sees what came, and from where if its key sees that; a third sees nothing."""
    project, other = f"{org}/vision", f"{org}/audio"
    admin.made("/v1/accounts", {"path": other})
    admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
    move = {"from": org, "to": project, "amount": "1", "metadata": {"why": "grant"}}
    moved = admin.made("/v1/credits/transfer", move)["transfer_id"]
    narrow = admin.with_key("operator", project)
    for caller, source in ((admin, org), (narrow, "an account above")):
        wanted = {"account": project, "action": "credits.transfer", "metadata": "why=grant"}
        [act] = caller.read("/v1/audit", params=wanted)["audit"]
        assert (act["resource"], act["new"]["to"]) == (source, project)
        assert act["new"]["transfer_id"] == moved
    assert acts(admin, account=project, metadata="why=other") == []
    assert "credits.transfer" not in acts(admin, account=other)


def test_where_approved_credits_came_from_is_told_to_who_sees_it(admin: Caller, org: str) -> None:
    """Acts about a request name the account that gave only to a key that reaches it."""
    project, user = f"{org}/vision", f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
    asked = {"account": user, "kind": "credits", "amount": "3", "reason": "more"}
    request = admin.made("/v1/requests", asked)["request_id"]
    staff = admin.with_key("operator", org)
    staff.made(f"/v1/requests/{request}:approve", {"take_from": org})
    narrow = admin.with_key("operator", project)
    for caller, giver in ((staff, org), (narrow, "an account above")):
        wanted = {"account": user, "action": "request.approve"}
        [act] = caller.read("/v1/audit", params=wanted)["audit"]
        assert (act["resource"], act["new"]["taken_from"]) == (user, giver)


def test_giving_up_a_turn_is_found_by_its_account(admin: Caller, org: str, gpu_type: str) -> None:
    """Who canceled a request that waited is found by the account that waited."""
    user = f"{org}/vision/alice"
    asked = {"account": user, "job_id": "train", "gpu_type": gpu_type, "wait": True}
    queued = admin.post("/v1/reservations", asked)
    assert queued.status_code == 202, queued.text
    admin.made(f"/v1/queue/{queued.json()['queue_id']}:cancel")
    assert acts(admin, account=user)[0] == "queue.cancel"


def test_moving_the_test_clock_is_an_act_of_the_system(admin: Caller, org: str) -> None:
    """It is recorded once for each move, with the offset before and after, for system keys."""
    moves = {"action": "clock.advance"}
    before = len(acts(admin, **moves))
    admin.advance(0)
    dry = {"advance_seconds": 9}
    admin.made("/v1/test/clock", dry, params={"dry_run": "true"})
    assert len(acts(admin, **moves)) == before
    admin.advance(7)
    [act, *_] = admin.read("/v1/audit", params=moves)["audit"]
    assert len(acts(admin, **moves)) == before + 1
    assert act["resource"] == "clock"
    assert act["actor"] == "key_0_1"
    assert act["new"]["offset_us"] - act["old"]["offset_us"] == 7_000_000
    assert acts(admin.with_key("admin", org), **moves) == []


def test_a_price_is_named_by_its_id_and_its_start_is_an_instant(
    admin: Caller, gpu_type: str
) -> None:
    """The act of setting a price is written in the words of the API."""
    start = "2040-01-02T03:04:05.5Z"
    asked = {"gpu_type": gpu_type, "credits_per_gpu_hour": "7", "effective_from": start}
    price = admin.made("/v1/prices", asked)["price_id"]
    [act] = admin.read("/v1/audit", params={"resource": price, "limit": 1})["audit"]
    assert (act["action"], act["resource"]) == ("price.set", price)
    assert act["new"]["effective_from"] == "2040-01-02T03:04:05.500000Z"
