"""The reconciler over HTTP: passes, policies, alarms, unmatched use, lost work, and who may."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, problem
from support.waiting import until

QUIET_S = 16 * 60


@pytest.fixture
def funded(admin: Caller, org: str) -> str:
    """An org with credits whose differences are posted."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1000"})
    wanted = {"account": org, "mode": "post", "tolerance_ms": 0}
    answer = admin.call("PUT", "/v1/reconciliation-policy", wanted)
    assert answer.status_code == 200, answer.text
    return org


def settled(admin: Caller, account: str, gpu_type: str, used_ms: int = 10_000, **more: Any) -> str:
    """The id of a lease that settled so much use after 100 seconds."""
    lease = {"account": account, "job_id": "train", "gpu_type": gpu_type, "window_seconds": 120}
    lease["node"] = "n1"
    held: str = admin.made("/v1/reservations", lease | more)["reservation_id"]
    admin.advance(100)
    admin.made(f"/v1/reservations/{held}:settle", {"seq": 1, "used_ms": used_ms})
    return held


def agent_of(admin: Caller, scope: str, node: str = "n1", role: str = "agent") -> Caller:
    """The agent of a node, with a key that an admin has made for the node."""
    body = {"role": role, "scope": scope, "node": node}
    return Caller(admin.http, admin.made("/v1/keys", body)["secret"])


def measure(reporter: Caller, end_ms: int, *, seq: int = 1, **names: str) -> str:
    """Report one measurement; what became of it."""
    event = {"seq": seq, "start_ms": 0, "end_ms": end_ms, **names}
    results: list[dict[str, str]] = reporter.made("/v1/usage", {"events": [event]})["results"]
    return results[0]["status"]


def compared(admin: Caller, org: str, lease: str, state: str) -> Any:
    """A lease as it compared, once it is in a state; the server's own pass may be under way."""

    def found() -> Any:
        admin.made("/v1/reconciler:run", {"account": org})
        rows = admin.read("/v1/reconciliations", params={"account": org})["comparisons"]
        of_lease = [row for row in rows if row["reservation_id"] == lease]
        return next((row for row in of_lease if row["state"] == state), None)

    return until(found)


def test_a_lease_is_compared_and_corrected_over_http(
    admin: Caller, funded: str, gpu_type: str
) -> None:
    """After a quiet time the difference is posted at the pinned price, once."""
    lease = settled(admin, funded, gpu_type)
    admin.made("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": "72"})
    assert measure(agent_of(admin, funded), 30_000, reservation_id=lease) == "stored"
    compared(admin, funded, lease, "waiting")
    admin.advance(QUIET_S)
    row = compared(admin, funded, lease, "posted")
    shown = {name: row[name] for name in ("state", "drift", "reconciled", "settled", "cost")}
    assert shown == {
        "state": "posted",
        "drift": "0.2",
        "reconciled": "0.2",
        "settled": "0.1",
        "cost": "0.3",
    }
    assert row["is_attested"]
    kept = admin.read(f"/v1/reservations/{lease}")
    assert kept["adjusted"] == "0.2"
    again = admin.made("/v1/reconciler:run", {"account": funded, "at_once": True, "again": True})
    assert again["posted"] == 0
    told = admin.read("/v1/audit", params={"account": funded, "action": "credits.reconcile"})
    assert [act["new"]["amount"] for act in told["audit"]] == ["0.2"]


def test_a_tenants_word_on_its_own_lease_is_shown_and_never_posted(
    admin: Caller, funded: str, gpu_type: str
) -> None:
    """Keys of members, of staff, and of nodes that the tenant's staff made; seqs are not taken."""
    lease = settled(admin, funded, gpu_type)
    tenant = admin.with_key("admin", funded)
    hostile = [
        tenant.with_key("member", funded),
        tenant.with_key("agent", funded),
        tenant,
        agent_of(tenant, funded),
        agent_of(tenant, funded, role="member"),
        admin.with_key("member", funded),
        admin.with_key("operator", funded),
        admin,
    ]
    for seq, caller in enumerate(hostile, 1):
        assert measure(caller, 1, seq=seq, reservation_id=lease, node="n1") == "stored"
    elsewhere = agent_of(admin, funded, "n2")
    assert measure(elsewhere, 1, reservation_id=lease) == "unknown"  # its key is for n2
    for_any_node = admin.with_key("agent", funded)
    assert measure(for_any_node, 1, reservation_id=lease, node="n2") == "stored"
    admin.advance(QUIET_S)
    row = compared(admin, funded, lease, "differs")
    assert (row["is_attested"], row["reconciled"]) == (False, "0")
    own = agent_of(admin, funded, role="member")  # as an agent that starts jobs has it
    assert measure(own, 30_000, seq=1, reservation_id=lease) == "stored"
    assert measure(own, 30_000, seq=1, reservation_id=lease) == "duplicate"
    admin.advance(QUIET_S)
    row = compared(admin, funded, lease, "posted")
    assert (row["is_attested"], row["reconciled"], row["events"]) == (True, "0.2", 1)
    assert measure(for_any_node, 50_000, seq=9, reservation_id=lease, node="n1") == "stored"
    admin.advance(QUIET_S)
    until(lambda: compared(admin, funded, lease, "posted")["reconciled"] == "0.4")


def test_policies_and_terms_end_and_are_inherited_again(admin: Caller, funded: str) -> None:
    """What an account has of its own goes; the answer is what holds then; the log hears of it."""
    below = f"{funded}/vision"
    for path, own, above in (
        ("/v1/reconciliation-policy", {"mode": "off", "quiet_seconds": 60}, {"mode": "post"}),
        ("/v1/lost-work-terms", {"hours_per_job": 2, "hours_per_account": 3}, {}),
    ):
        assert admin.call("PUT", path, {"account": below, **own}).status_code == 200
        shown = admin.read(path, params={"account": below})
        assert shown["set_for"] == below
        assert own.items() <= shown.items()
        place = f"{path}?account={below}"
        staff = admin.with_key("admin", funded)
        assert problem(staff.call("DELETE", place))[0] == 403
        ended = admin.call("DELETE", place, key=f"end {path}".replace(" ", "-"))
        assert ended.status_code == 200, ended.text
        left = ended.json()
        assert left["set_for"] == (funded if above else None)
        assert above.items() <= left.items()
        assert left == admin.read(path, params={"account": below})
        again = admin.call("DELETE", place)
        assert again.json() == left
        assert problem(admin.call("DELETE", f"{path}?account={funded}/nobody"))[0] == 404
    for action in ("reconcile_policy.end", "loss_terms.end"):
        told = admin.read("/v1/audit", params={"account": funded, "action": action})["audit"]
        assert [(act["resource"], act["new"]) for act in told] == [(below, None)]


def test_a_lease_is_compared_after_the_quiet_time_of_its_policy(
    admin: Caller, funded: str, gpu_type: str
) -> None:
    """Ten seconds where a policy says so, whatever the one above says; bounds are told."""
    change = {"account": f"{funded}/vision", "mode": "report", "quiet_seconds": 10}
    assert admin.call("PUT", "/v1/reconciliation-policy", change).status_code == 200
    change["quiet_seconds"] = 7 * 86_400 + 1
    assert problem(admin.call("PATCH", "/v1/reconciliation-policy", change))[0] == 422
    soon = settled(admin, f"{funded}/vision", gpu_type)
    late = settled(admin, funded, gpu_type)
    agent = agent_of(admin, funded)
    for lease in (soon, late):
        measure(agent, 30_000, reservation_id=lease)
    compared(admin, funded, late, "waiting")
    admin.advance(11)
    compared(admin, funded, soon, "differs")
    compared(admin, funded, late, "waiting")


def test_alarms_are_listed_with_evidence_and_acknowledged_in_scope(
    admin: Caller, funded: str, gpu_type: str
) -> None:
    """Staff of the org sees and acknowledges them; nobody of another org does."""
    change = {"account": funded, "alarm_floor": "0.1", "mode": "report"}
    assert admin.call("PATCH", "/v1/reconciliation-policy", change).status_code == 200
    lease = settled(admin, f"{funded}/vision", gpu_type)
    measure(agent_of(admin, funded), 30_000, reservation_id=lease)
    admin.advance(QUIET_S)
    compared(admin, funded, lease, "differs")
    staff = admin.with_key("operator", funded)

    def of_job() -> Any:
        found = staff.read("/v1/drift-alarms")["drift_alarms"]
        return [row for row in found if row["reservation_id"] == lease]

    [job] = until(of_job)
    assert job["evidence"]["heartbeats"]["used_ms"] == 10_000
    assert job["evidence"]["measured"]["measured_ms"] == 30_000
    assert job["evidence"]["measured"]["is_attested"]
    assert job["evidence"]["ledger"]["settled"] == "0.1"
    path = f"/v1/drift-alarms/{job['alarm_id']}:acknowledge"
    other = admin.made("/v1/accounts", {"path": f"{funded}x"})["path"]
    stranger = admin.with_key("admin", other)
    assert stranger.read("/v1/drift-alarms")["drift_alarms"] == []
    assert problem(stranger.post(path, {})) == (404, "alarm_unknown")
    assert problem(admin.with_key("member", funded).post(path, {}))[0] == 403
    done = staff.made(path, {"note": "a meter was off"})
    assert (done["is_open"], done["note"]) == (False, "a meter was off")
    left = staff.read("/v1/drift-alarms")["drift_alarms"]
    assert lease not in [row["reservation_id"] for row in left]
    health = admin.read("/healthz")
    assert health["status"] == "ok"


def test_unmatched_use_is_worked_through(admin: Caller, funded: str, gpu_type: str) -> None:
    """Use of a lease that does not exist waits in the caller's org, and is matched or dismissed."""
    lease = settled(admin, funded, gpu_type)
    org_number = lease.split("_")[1]
    ghosts = [f"rsv_{org_number}_zz{n}" for n in range(2)]
    agent = admin.with_key("agent", f"{funded}/vision")
    for ghost in ghosts:
        assert measure(agent, 20_000, reservation_id=ghost, node="n1") == "unknown"
    assert measure(agent, 20_000, seq=2, reservation_id="rsv_zzzzzz_1") == "unknown"
    assert measure(agent, 20_000, seq=2, reservation_id="nonsense") == "unknown"
    staff = admin.with_key("operator", funded)

    def waiting() -> Any:
        admin.made("/v1/reconciler:run", {"account": funded})
        rows = {row["job_id"]: row for row in staff.read("/v1/unmatched-use")["unmatched_use"]}
        return rows if len(rows) == 3 else None

    rows = until(waiting)
    assert set(rows) == {*ghosts, "rsv_zzzzzz_1"}
    first, second = (f"/v1/unmatched-use/{rows[ghost]['unmatched_id']}" for ghost in ghosts)
    assert problem(staff.post(f"{first}:match", {"reservation_id": lease}))[0] == 403
    unknown = {"reservation_id": f"rsv_{org_number}_zzz"}
    assert problem(admin.post(f"{first}:match", unknown)) == (404, "reservation_unknown")
    elsewhere = {"reservation_id": "rsv_zz_1"}
    assert problem(admin.post(f"{first}:match", elsewhere)) == (404, "reservation_unknown")
    assert problem(admin.post("/v1/unmatched-use/unm_zz_9:match", unknown))[0] == 404
    matched = admin.made(f"{first}:match", {"reservation_id": lease, "note": "its node"}, key="m1")
    assert (matched["state"], matched["reservation_id"]) == ("matched", lease)
    replay = admin.post(f"{first}:match", {"reservation_id": lease, "note": "its node"}, key="m1")
    assert replay.json() == matched
    assert problem(admin.post(f"{second}:dismiss", {"note": " "}))[0] == 422
    assert admin.made(f"{second}:dismiss", {"note": "a test"})["state"] == "dismissed"
    assert problem(admin.post(f"{second}:dismiss", {"note": "a test"})) == (409, "unmatched_state")
    assert compared(admin, funded, lease, "posted")["reconciled"] == "0.1"


def test_only_the_system_moves_money_by_the_reconciler(admin: Caller, funded: str) -> None:
    """Staff of an org reads policies and terms, and sets none."""
    staff = admin.with_key("admin", funded)
    assert staff.read("/v1/reconciliation-policy", params={"account": funded})["mode"] == "post"
    below = f"{funded}/vision/alice"
    shown = staff.read("/v1/reconciliation-policy", params={"account": below})
    assert (shown["mode"], shown["set_for"]) == ("post", funded)
    for method, path, body in (
        ("PUT", "/v1/reconciliation-policy", {"account": funded, "mode": "off"}),
        ("PATCH", "/v1/lost-work-terms", {"account": funded, "hours_per_job": 9}),
        ("POST", "/v1/reconciler:run", {}),
        ("GET", "/v1/reconciler", None),
    ):
        assert problem(staff.call(method, path, body))[0] == 403
    unknown = {"account": f"{funded}/nobody", "mode": "off"}
    assert problem(admin.call("PUT", "/v1/reconciliation-policy", unknown))[0] == 404
    assert admin.read("/v1/reconciler")["due"] >= 0
    metrics = admin.get("/metrics").text
    assert 'gpucredits_reconciled_leases_total{result="posted"}' in metrics


def test_lost_work_over_http(admin: Caller, funded: str, gpu_type: str) -> None:
    """Off by default; then staff of the system attests that the node failed, once.

    Whoever has an interest in it, a member or the tenant's staff, does not.
    """
    member = admin.with_key("member", funded)
    tenant = admin.with_key("admin", funded)
    lease = {"account": funded, "job_id": "train", "gpu_type": gpu_type, "window_seconds": 60}
    held = admin.made("/v1/reservations", lease | {"node": "n1"})["reservation_id"]
    admin.advance(50)
    admin.made("/v1/heartbeats", {"beats": [{"reservation_id": held, "seq": 1, "used_ms": 50_000}]})
    path = f"/v1/reservations/{held}:checkpoint"
    assert member.made(path, {"checkpoint_ms": 30_000})["checkpoint_ms"] == 30_000
    claim = {"reservation_id": held, "cause": "node_failure"}
    for each in (member, tenant):
        assert problem(each.post("/v1/lost-work", claim)) == (403, "forbidden")
    preempted = claim | {"cause": "preemption"}
    assert problem(member.post("/v1/lost-work", preempted)) == (409, "reservation_active")
    assert problem(admin.post("/v1/lost-work", claim)) == (409, "reservation_active")
    admin.advance(61)
    admin.made("/v1/heartbeats", {"beats": [{"reservation_id": held, "seq": 2, "used_ms": 0}]})
    assert problem(member.post(path, {"checkpoint_ms": 1})) == (409, "reservation_ended")
    assert problem(admin.post("/v1/lost-work", claim)) == (409, "loss_refused")
    terms = {"account": funded, "hours_per_job": 4}
    assert admin.call("PUT", "/v1/lost-work-terms", terms).status_code == 200
    stranger = admin.with_key("member", f"{funded}/vision")
    assert problem(stranger.post("/v1/lost-work", preempted)) == (404, "reservation_unknown")
    assert problem(member.post("/v1/lost-work", preempted)) == (409, "loss_refused")
    tried = admin.post("/v1/lost-work?dry_run=true", claim)
    assert tried.json()["amount"] == "0.2"
    assert member.read("/v1/lost-work")["lost_work"] == []
    done = admin.made("/v1/lost-work", claim, key="lost")
    assert (done["state"], done["lost_ms"], done["amount"]) == ("refunded", 20_000, "0.2")
    assert admin.made("/v1/lost-work", claim, key="lost") == done
    assert problem(admin.post("/v1/lost-work", claim)) == (409, "loss_refunded")
    assert problem(member.post("/v1/lost-work", preempted)) == (409, "loss_refunded")
    assert [row["amount"] for row in member.read("/v1/lost-work")["lost_work"]] == ["0.2"]
    shown = member.read("/v1/lost-work-terms", params={"account": f"{funded}/vision"})
    assert (shown["hours_per_job"], shown["set_for"]) == (4, funded)
