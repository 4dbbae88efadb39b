"""A key that is bound to a node acts for leases of that node only; what it tries is audited."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from gpucredits.api.routes import routes
from gpucredits.service.access.permissions import ON_A_NODE
from support.servers.http import Caller, fresh_name, problem
from support.waiting import until

# Every route that a key on a node may call. Each checks the node of what it touches, or touches
# nothing of a node: a new one here needs a test below.
OPEN_ON_A_NODE = {
    "GET /v1/accounts/{account}/idle-guard",
    "GET /v1/clock",
    "GET /v1/keys/self",
    "GET /v1/prices",
    "GET /v1/queue/{queue}",
    "GET /v1/reservations",
    "GET /v1/reservations/{reservation}",
    "POST /v1/heartbeats",
    "POST /v1/queue/{queue}:cancel",
    "POST /v1/reservations",
    "POST /v1/reservations/{reservation}:cancel",
    "POST /v1/reservations/{reservation}:checkpoint",
    "POST /v1/reservations/{reservation}:extend",
    "POST /v1/reservations/{reservation}:settle",
    "POST /v1/reservations/{reservation}:token",
    "POST /v1/reservations:batch",
    "POST /v1/tokens:redeem",
    "POST /v1/usage",
}


@dataclass
class Fleet:
    """A node with a key of its own, and a lease on it, on another node and on none."""

    admin: Caller
    node: Caller
    org: str
    gpu_type: str
    here: str
    there: str
    nowhere: str

    def reserve(self, caller: Caller, **fields: Any) -> Any:
        """Ask for a lease."""
        body = {"account": self.org, "job_id": fresh_name("j"), "gpu_type": self.gpu_type}
        return caller.post("/v1/reservations", {**body, "gpu_count": 1, **fields})

    def refused(self, action: str, resource: str) -> list[Any]:
        """Rows of the audit log about a resource."""
        rows = self.admin.read(f"/v1/audit?action={action}&resource={resource}")["audit"]
        return [row["new"] for row in rows]


@pytest.fixture
def fleet(admin: Caller, org: str, gpu_type: str) -> Fleet:
    """Such a fleet."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1000"})
    body = {"role": "member", "scope": org, "node": "gpu-7"}
    node = Caller(admin.http, admin.made("/v1/keys", body)["secret"])
    made = Fleet(admin, node, org, gpu_type, "", "", "")
    made.here, made.there, made.nowhere = (
        made.reserve(admin, **fields).json()["reservation_id"]
        for fields in ({"node": "gpu-7"}, {"node": "gpu-8"}, {})
    )
    return made


def beat(reservation_id: str, seq: int = 1) -> dict[str, Any]:
    """A report of one lease."""
    return {"reservation_id": reservation_id, "seq": seq, "used_ms": 1}


def test_a_node_reports_its_own_leases_only(fleet: Fleet) -> None:
    """In one report its own lease is renewed; others are not, and the audit log says so once."""
    asked = [fleet.there, fleet.here, fleet.nowhere, "rsv_1_zzzzz"]
    results = fleet.node.made("/v1/heartbeats", {"beats": [beat(each) for each in asked]})
    told = [(each["decision"], each.get("reason", "")) for each in results["results"]]
    assert told == [
        ("stop", "wrong_node"),
        ("continue", ""),
        ("stop", "wrong_node"),
        ("stop", "reservation_unknown"),
    ]
    alone = fleet.node.made("/v1/heartbeats", {"beats": [beat(fleet.there, 2)]})
    assert alone["results"][0]["reason"] == "wrong_node"
    assert fleet.admin.read(f"/v1/reservations/{fleet.there}")["seq"] == 0
    [row] = until(lambda: fleet.refused("node.refuse", fleet.there))
    assert row.pop("count") in (1, 2)  # the second may have come before the row was written
    assert row == {"reason": "wrong_node", "node": "gpu-7", "runs_on": "gpu-8"}
    control = fleet.admin.made("/v1/heartbeats", {"beats": [beat(fleet.there)]})
    assert control["results"][0]["decision"] == "continue"


BODIES = {"extend": {"seq": 1, "used_ms": 1}, "checkpoint": {"checkpoint_ms": 0}}


@pytest.mark.parametrize("act", ["extend", "settle", "cancel", "token", "checkpoint"])
def test_a_node_ends_and_extends_its_own_leases_only(fleet: Fleet, act: str) -> None:
    """Every act on a single lease."""
    body = BODIES.get(act)
    for lease in (fleet.there, fleet.nowhere):
        answer = fleet.node.post(f"/v1/reservations/{lease}:{act}", body)
        assert problem(answer) == (403, "wrong_node")
        assert fleet.admin.read(f"/v1/reservations/{lease}")["state"] == "active"
    assert until(lambda: fleet.refused("node.refuse", fleet.there))
    fleet.node.made(f"/v1/reservations/{fleet.here}:{act}", body)


def test_a_node_sees_its_own_leases_only(fleet: Fleet) -> None:
    """One by one and in lists."""
    assert fleet.node.read(f"/v1/reservations/{fleet.here}")["node"] == "gpu-7"
    assert problem(fleet.node.get(f"/v1/reservations/{fleet.there}")) == (403, "wrong_node")
    listed = fleet.node.read("/v1/reservations")["reservations"]
    assert [each["reservation_id"] for each in listed] == [fleet.here]
    assert problem(fleet.node.get("/v1/reservations?node=gpu-8")) == (403, "wrong_node")
    everything = fleet.admin.read(f"/v1/reservations?account={fleet.org}")["reservations"]
    assert len(everything) == 3


def test_a_node_reserves_for_itself_only(fleet: Fleet) -> None:
    """Alone, in a batch and in the queue; without a node is nobody's node."""
    for fields in ({"node": "gpu-8"}, {}, {"node": "GPU-7"}, {"node": "gpu-8", "wait": True}):
        assert problem(fleet.reserve(fleet.node, **fields)) == (403, "wrong_node")
    assert fleet.reserve(fleet.node, node="gpu-7").status_code == 201
    item = {"account": fleet.org, "gpu_type": fleet.gpu_type, "gpu_count": 1}
    items = [{**item, "job_id": "a", "node": "gpu-7"}, {**item, "job_id": "b", "node": "gpu-8"}]
    answer = fleet.node.post("/v1/reservations:batch", {"items": items})
    assert problem(answer) == (403, "wrong_node")
    assert len(fleet.node.read("/v1/reservations")["reservations"]) == 2


def test_a_node_waits_in_the_queue_for_itself_only(fleet: Fleet) -> None:
    """It asks where its own request stands and takes it back; another node's is none of its own."""
    pool = f"/v1/pools/{fleet.gpu_type}/default"
    assert fleet.admin.call("PATCH", pool, {"capacity": 0}).status_code == 200
    own, other = [
        fleet.reserve(caller, node=node, wait=True).json()["queue_id"]
        for caller, node in ((fleet.node, "gpu-7"), (fleet.admin, "gpu-8"))
    ]
    assert fleet.node.read(f"/v1/queue/{own}")["state"] == "waiting"
    assert problem(fleet.node.get(f"/v1/queue/{other}")) == (403, "wrong_node")
    assert problem(fleet.node.post(f"/v1/queue/{other}:cancel")) == (403, "wrong_node")
    assert problem(fleet.node.get("/v1/queue")) == (403, "forbidden")
    assert problem(fleet.node.post("/v1/queue/que_1_zzzzz:cancel")) == (404, "queue_unknown")
    assert fleet.node.post(f"/v1/queue/{own}:cancel").json()["state"] == "canceled"
    assert fleet.admin.read(f"/v1/queue/{other}")["state"] == "waiting"


def test_a_node_ends_no_gang_that_waits_for_other_nodes_too(fleet: Fleet) -> None:
    """Canceling one member cancels them all, so it is left to callers of every node."""
    pool = f"/v1/pools/{fleet.gpu_type}/default"
    assert fleet.admin.call("PATCH", pool, {"capacity": 0}).status_code == 200
    own, other = [
        fleet.reserve(caller, node=node, wait=True, gang="g", gang_size=2).json()["queue_id"]
        for caller, node in ((fleet.node, "gpu-7"), (fleet.admin, "gpu-8"))
    ]
    assert problem(fleet.node.post(f"/v1/queue/{own}:cancel")) == (403, "wrong_node")
    assert fleet.admin.read(f"/v1/queue/{other}")["state"] == "waiting"
    assert fleet.admin.post(f"/v1/queue/{own}:cancel").json()["state"] == "canceled"
    assert fleet.admin.read(f"/v1/queue/{other}")["state"] == "canceled"


def test_a_node_measures_its_own_leases_only(fleet: Fleet) -> None:
    """Events of other leases, or in the name of other nodes, are not stored."""
    times = {"start_ms": 0, "end_ms": 5}
    events = [
        {"reservation_id": fleet.here, "seq": 1, **times},
        {"reservation_id": fleet.there, "seq": 1, **times},
        {"reservation_id": fleet.here, "seq": 2, "node": "gpu-8", **times},
    ]
    results = fleet.node.made("/v1/usage", {"events": events})["results"]
    assert [each["status"] for each in results] == ["stored", "unknown", "unknown"]
    unknown = {"reservation_id": "rsv_1_zzzzz", "seq": 1, **times}
    fleet.node.made("/v1/usage", {"node": "gpu-8", "events": [{**unknown, "seq": 2}, *events]})
    fleet.node.made("/v1/usage", {"events": [{**unknown, "node": "gpu-8"}, unknown]})
    kept = fleet.admin.read(f"/v1/unmatched-use?account={fleet.org}")["unmatched_use"]
    assert {(each["job_id"], each["node"]) for each in kept} == {
        (fleet.there, "gpu-7"),
        ("rsv_1_zzzzz", "gpu-7"),
    }
    apart = {"account": fleet.org, "job_id": "j", "seq": 1, **times}
    for fields in ({}, {"node": "gpu-8"}):
        answer = fleet.node.post("/v1/usage", {"events": [{**apart, **fields}]})
        assert problem(answer) == (403, "wrong_node")
    fleet.node.made("/v1/usage", {"events": [{**apart, "node": "gpu-7"}]})


def test_a_node_may_do_nothing_else(fleet: Fleet) -> None:
    """Neither balances nor requests, which a free key of the same role may read and make."""
    free = fleet.admin.with_key("member", fleet.org)
    assert free.get(f"/v1/accounts/{fleet.org}/balance").status_code == 200
    answer = fleet.node.get(f"/v1/accounts/{fleet.org}/balance")
    assert problem(answer) == (403, "forbidden")
    assert "gpu-7" in answer.json()["detail"]


def test_a_node_key_says_so_and_admins_are_not_bound(fleet: Fleet) -> None:
    """The key shows its node; only members and agents may have one."""
    assert fleet.node.read("/v1/keys/self")["node"] == "gpu-7"
    for role in ("admin", "operator", "read-only"):
        answer = fleet.admin.post("/v1/keys", {"role": role, "node": "gpu-7"})
        assert problem(answer) == (422, "invalid_request")
    agent = fleet.admin.made("/v1/keys", {"role": "agent", "scope": fleet.org, "node": "gpu-7"})
    caller = Caller(fleet.admin.http, agent["secret"])
    assert problem(fleet.reserve(caller, node="gpu-7")) == (403, "forbidden")
    assert caller.made("/v1/heartbeats", {"beats": [beat(fleet.here)]})["results"][0]["held"]


def test_every_route_that_is_open_on_a_node_is_known() -> None:
    """A new route with one of a node's permissions is looked at before it is open there."""
    found = {f"{row.method} {row.path}" for row in routes() if row.permission in ON_A_NODE}
    assert found == OPEN_ON_A_NODE
    assert all(re.search(r"/v1/", each) for each in found)
