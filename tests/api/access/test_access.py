"""Who may do what, and what does not exist for whom."""

from __future__ import annotations

from typing import Any

import pytest

from gpucredits.api.http.call import Route
from gpucredits.api.routes import routes
from gpucredits.core.request_limit import Defaults
from gpucredits.service.access.permissions import SYSTEM_ONLY, Permission, Role, may, principal_of
from gpucredits.store.access.keys import KeyRow, LiveKey
from support.servers.http import Caller, RunningServer, fresh_name, problem
from support.waiting import until

# Written out apart from the code: the promise that the table in service.access must keep.
PROMISED: dict[str, str] = {
    "read": "admin operator member read-only",
    "read_leases": "admin operator member agent read-only",
    "read_queued": "admin operator member read-only",
    "read_prices": "admin operator member agent read-only",
    "read_clock": "admin operator member agent read-only",
    "read_self": "admin operator member agent read-only",
    "read_audit": "admin operator",
    "read_pools": "admin operator member read-only",
    "read_snapshot": "admin operator",
    "set_pool": "admin operator",
    "keep_running": "admin operator",
    "create_account": "admin operator",
    "create_org": "admin operator",
    "suspend": "admin operator",
    "set_terms": "admin operator",
    "set_policy": "admin operator",
    "set_price": "admin operator",
    "issue": "admin operator",
    "record_topup": "admin operator",
    "decide_topup": "admin operator",
    "transfer": "admin operator",
    "reserve": "admin operator member",
    "beat": "admin operator member agent",
    "close_lease": "admin operator member agent",
    "ask": "admin operator member",
    "decide_request": "admin operator",
    "correct": "admin operator",
    "manage_keys": "admin",
    "move_clock": "admin",
    "repair_clock": "admin operator",
    "run_maintenance": "admin operator",
    "read_metrics": "admin operator read-only",
    "limit_requests": "admin operator",
    "read_events": "admin operator read-only",
    "keep_events": "admin operator",
    "read_dead_letters": "admin operator",
    "decide_dead_letter": "admin operator",
    "sign_tokens": "admin",
}
ROUTES = [route for route in routes(has_test_clock=True) if route.permission is not None]


def named(route: Route) -> str:
    """A short id for a parametrised test."""
    return f"{route.method} {route.path}"


def principal(role: Role, scope: str) -> Any:
    """A key's owner, without a database."""
    row = KeyRow(1 if scope else 0, 1, "", role.value, scope, 0, 0, 0)
    return principal_of(LiveKey(row), Defaults())


def test_the_table_keeps_its_promise() -> None:
    """Each permission belongs to exactly the roles that are promised, at both widths of scope."""
    assert {permission.value for permission in Permission} == set(PROMISED)
    for permission in Permission:
        for role in Role:
            is_promised = role.value in PROMISED[permission.value].split()
            assert may(principal(role, ""), permission) is is_promised
            within = is_promised and permission not in SYSTEM_ONLY
            assert may(principal(role, "acme"), permission) is within


@pytest.fixture(scope="module")
def callers(admin: Caller) -> dict[tuple[str, str], Caller]:
    """A key of each role, for the system and for a project of an org."""
    org = fresh_name("org")
    for path in (org, f"{org}/p"):
        admin.made("/v1/accounts", {"path": path})
    return {
        (role.value, width): admin.with_key(role.value, scope)
        for role in Role
        for width, scope in (("system", None), ("project", f"{org}/p"))
    }


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_every_route_lets_in_whom_the_table_lets_in(
    callers: dict[tuple[str, str], Caller], route: Route
) -> None:
    """Over HTTP, each role at each width is refused with 403 exactly where the table says so."""
    path = route.path.replace("{account}", "acme/x")
    names = ("reservation", "topup", "key", "quota", "budget", "request", "statement", "queue")
    for name in (*names, "gpu_type", "region"):
        path = path.replace(f"{{{name}}}", "none")
    assert route.permission is not None
    for (role, width), caller in callers.items():
        answer = caller.call(route.method, path, {} if route.body is not None else None)
        is_let_in = role in PROMISED[route.permission.value].split()
        if width == "project" and route.permission in SYSTEM_ONLY:
            is_let_in = False
        if is_let_in:
            assert answer.status_code != 403 or "staff" in answer.json()["detail"]
            assert answer.status_code < 500
        else:
            assert problem(answer) == (403, "forbidden")


@pytest.fixture
def tenants(admin: Caller, gpu_type: str) -> tuple[str, str, dict[str, Any]]:
    """Two orgs with the same things, and what the second one has."""
    names = (fresh_name("org"), fresh_name("org"))
    things: dict[str, Any] = {}
    for name in names:
        for path in (name, f"{name}/p", f"{name}/p/u"):
            admin.made("/v1/accounts", {"path": path})
        admin.made("/v1/credits/issue", {"account": name, "amount": "100"})
        lease = {"account": f"{name}/p/u", "job_id": f"job-of-{name}", "gpu_type": gpu_type}
        things = {
            "lease": admin.made("/v1/reservations", lease)["reservation_id"],
            "topup": admin.made(
                "/v1/topups", {"account": name, "amount": "1", "payment_reference": "r"}
            )["topup_id"],
            "key": admin.made("/v1/keys", {"role": "member", "scope": name})["key_id"],
        }
    discount = {"gpu_type": gpu_type, "credits_per_gpu_hour": "1", "account": names[1]}
    admin.made("/v1/prices", discount)
    return names[0], names[1], things


def test_another_org_does_not_exist(
    admin: Caller, tenants: tuple[str, str, dict[str, Any]]
) -> None:
    """To a key of one org, what another org has and what nobody has look the same."""
    mine, theirs, things = tenants
    caller = admin.with_key("admin", mine)
    nowhere = fresh_name("org")
    gone = "rsv_zz_zz"
    for path_theirs, path_nowhere in (
        (f"/v1/accounts/{theirs}/limits", f"/v1/accounts/{nowhere}/limits"),
        (f"/v1/accounts/{theirs}/p/quotas", f"/v1/accounts/{nowhere}/p/quotas"),
        (f"/v1/prices?account={theirs}", f"/v1/prices?account={nowhere}"),
        (f"/v1/audit?account={theirs}", f"/v1/audit?account={nowhere}"),
        (f"/v1/accounts/{theirs}", f"/v1/accounts/{nowhere}"),
        (f"/v1/accounts/{theirs}/balance", f"/v1/accounts/{nowhere}/balance"),
        (f"/v1/accounts/{theirs}/p/tree", f"/v1/accounts/{nowhere}/p/tree"),
        (f"/v1/accounts/{theirs}/usage", f"/v1/accounts/{nowhere}/usage"),
        (f"/v1/accounts?under={theirs}", f"/v1/accounts?under={nowhere}"),
        (f"/v1/entries?account={theirs}", f"/v1/entries?account={nowhere}"),
        (f"/v1/grants?account={theirs}", f"/v1/grants?account={nowhere}"),
        (f"/v1/topups?account={theirs}", f"/v1/topups?account={nowhere}"),
        (f"/v1/reservations?account={theirs}", f"/v1/reservations?account={nowhere}"),
        (f"/v1/reservations/{things['lease']}", f"/v1/reservations/{gone}"),
        (f"/v1/topups/{things['topup']}", "/v1/topups/top_zz_zz"),
        (f"/v1/accounts/{theirs}/rate-limit", f"/v1/accounts/{nowhere}/rate-limit"),
        (f"/v1/accounts/{theirs}/boosts", f"/v1/accounts/{nowhere}/boosts"),
        (f"/v1/accounts/{theirs}/budgets", f"/v1/accounts/{nowhere}/budgets"),
    ):
        assert_alike(caller.get(path_theirs), caller.get(path_nowhere), theirs, nowhere)
    verbs: list[tuple[str, Any]] = [
        ("settle", {}),
        ("cancel", None),
        ("extend", {"seq": 1, "used_ms": 1}),
    ]
    for verb, body in verbs:
        there = caller.post(f"/v1/reservations/{things['lease']}:{verb}", body)
        nothing = caller.post(f"/v1/reservations/{gone}:{verb}", body)
        assert_alike(there, nothing, things["lease"], gone)
    writes: list[tuple[str, dict[str, Any], str]] = [
        ("/v1/accounts", {"path": f"{theirs}/new"}, "path"),
        ("/v1/credits/transfer", {"from": theirs, "to": mine, "amount": "1"}, "from"),
        ("/v1/credits/transfer", {"from": mine, "to": theirs, "amount": "1"}, "to"),
        ("/v1/reservations", {"account": theirs, "job_id": "j", "gpu_type": "g"}, "account"),
        ("/v1/admissions:check", {"account": theirs, "job_id": "j", "gpu_type": "g"}, "account"),
        ("/v1/keys", {"role": "admin", "scope": theirs}, "scope"),
        (
            "/v1/topups",
            {"account": theirs, "amount": "1", "payment_reference": "r"},
            "account",
        ),
    ]
    for path, asked, field in writes:
        other = str(asked[field]).replace(theirs, nowhere)
        there, nothing = caller.post(path, asked), caller.post(path, {**asked, field: other})
        assert_alike(there, nothing, theirs, nowhere)
    there = caller.post(f"/v1/keys/{things['key']}:revoke")
    assert_alike(there, caller.post("/v1/keys/key_zz_zz:revoke"), things["key"], "key_zz_zz")


def assert_alike(there: Any, nothing: Any, name: str, other: str) -> None:
    """Both answers are 404 and differ in nothing but the name that was asked for."""
    assert there.status_code == nothing.status_code == 404
    bodies = [answer.json() for answer in (there, nothing)]
    for body in bodies:
        del body["request_id"]
    assert str(bodies[0]).replace(name, "N") == str(bodies[1]).replace(other, "N")


def test_batches_do_not_leak_other_orgs(
    admin: Caller, tenants: tuple[str, str, dict[str, Any]]
) -> None:
    """A beat or a measurement for another org's lease is answered like one for none."""
    mine, _, things = tenants
    agent = admin.with_key("agent", mine)
    ids = [things["lease"], "rsv_zz_zz", "nonsense"]
    beats = [{"reservation_id": each, "seq": 1, "used_ms": 1} for each in ids]
    results = agent.made("/v1/heartbeats", {"beats": beats})["results"]
    assert [result.pop("reservation_id") for result in results] == ids
    assert results[0] == results[1] == results[2]
    assert results[0]["decision"] == "stop"
    events = [{"reservation_id": each, "seq": 1, "start_ms": 0, "end_ms": 1} for each in ids]
    answer = agent.made("/v1/usage", {"events": events})
    assert [result["status"] for result in answer["results"]] == ["unknown"] * 3
    assert admin.made("/v1/usage", {"events": events[:1]})["stored"] == 1


def test_lists_show_only_what_the_scope_reaches(
    admin: Caller, tenants: tuple[str, str, dict[str, Any]]
) -> None:
    """Keys, audit and prices of another org never appear in a page."""
    mine, theirs, things = tenants
    caller = admin.with_key("admin", mine)
    assert {key["scope"] for key in caller.read("/v1/keys")["keys"]} == {mine}
    for page in (
        "keys audit prices accounts entries grants topups reservations "
        f"entries?job_id=job-of-{theirs} reservations?job_id=job-of-{theirs} "
        f"entries?reservation_id={things['lease']}"
    ).split():
        answer = caller.get(f"/v1/{page}{'&' if '?' in page else '?'}limit=1000")
        assert answer.status_code == 200
        assert theirs not in answer.text
    for page in ("accounts", "entries", "grants", "topups", "reservations"):
        assert mine in caller.get(f"/v1/{page}").text
    assert theirs in admin.get("/v1/audit?limit=1000").text


def test_a_narrow_key_reaches_only_its_subtree(
    admin: Caller, tenants: tuple[str, str, dict[str, Any]], gpu_type: str
) -> None:
    """Within an org, a key for a project sees neither its siblings nor the org above."""
    mine, _, _ = tenants
    admin.made("/v1/accounts", {"path": f"{mine}/q"})
    lease = {"job_id": "j", "gpu_type": gpu_type}
    other = admin.made("/v1/reservations", {"account": mine, **lease})["reservation_id"]
    member = admin.with_key("member", f"{mine}/p")
    for account in (mine, f"{mine}/q", f"{mine}/pp"):
        answer = member.post("/v1/reservations", {"account": account, **lease})
        assert problem(answer) == (404, "account_unknown")
    own = member.made("/v1/reservations", {"account": f"{mine}/p/u", **lease})
    assert own["payer"] == "an account above"
    assert problem(member.post(f"/v1/reservations/{other}:settle", {})) == (
        404,
        "reservation_unknown",
    )
    beats = [
        {"reservation_id": each, "seq": 1, "used_ms": 1} for each in (own["reservation_id"], other)
    ]
    results = member.made("/v1/heartbeats", {"beats": beats})["results"]
    assert [result["decision"] for result in results] == ["continue", "stop"]


def test_tenants_cannot_make_credits_for_themselves(admin: Caller, org: str) -> None:
    """An org's own admin may neither issue, confirm a payment, set a price nor give credit."""
    caller = admin.with_key("admin", org)
    topup = {"account": org, "amount": "5", "payment_reference": "r"}
    pending = caller.made("/v1/topups", topup)
    assert pending["status"] == "pending"
    for path, body in (
        ("/v1/credits/issue", {"account": org, "amount": "1"}),
        ("/v1/topups", {**topup, "status": "confirmed"}),
        (f"/v1/topups/{pending['topup_id']}:confirm", None),
        ("/v1/prices", {"gpu_type": "x", "credits_per_gpu_hour": "0", "account": org}),
        ("/v1/accounts", {"path": f"{org}/p2", "model": "postpaid", "credit_limit": "5"}),
        ("/v1/accounts", {"path": f"{org}/p2", "credit_limit": "5"}),
        (f"/v1/accounts/{org}/vision/budgets", {"allowance": "5", "calendar": "day"}),
    ):
        assert problem(caller.post(path, body)) == (403, "forbidden")
    budgets = f"/v1/accounts/{org}/vision/budgets"
    budget = {"budgets": [{"allowance": "5", "calendar": "day"}]}
    assert problem(caller.call("PUT", budgets, budget)) == (403, "forbidden")
    assert problem(caller.call("DELETE", f"{budgets}/default")) == (403, "forbidden")
    assert admin.made(f"/v1/topups/{pending['topup_id']}:confirm")["status"] == "confirmed"


def test_nobody_lifts_a_bound_that_was_set_from_above(admin: Caller, org: str) -> None:
    """An org's admin may bound what is below, and not undo what the system decided about it."""
    caller = admin.with_key("admin", org)
    admin.made(f"/v1/accounts/{org}/suspend")
    assert problem(caller.post(f"/v1/accounts/{org}/resume")) == (403, "forbidden")
    gpus = {"dimension": "concurrent_gpus", "limit": 1_000}
    admin.made(f"/v1/accounts/{org}/quotas", gpus)
    quota = admin.read(f"/v1/accounts/{org}/quotas")["quotas"][0]["quota_id"]
    admin.call("PUT", f"/v1/accounts/{org}/rate-limit", {"capacity": 1, "refill_per_hour": 1})
    boost = {"dimension": "concurrent_gpus", "amount": 1, "ends_at": "2100-01-01T00:00:00Z"}
    bounds: list[tuple[str, str, Any]] = [
        ("POST", "quotas", gpus),
        ("PUT", "quotas", {"quotas": [gpus]}),
        ("PUT", "rate-limit", {"capacity": 5, "refill_per_hour": 1}),
        ("POST", "boosts", boost),
    ]
    for method, what, body in (
        *bounds,
        ("DELETE", f"quotas/{quota}", None),
        ("DELETE", "rate-limit", None),
    ):
        own = caller.call(method, f"/v1/accounts/{org}/{what}", body)
        assert problem(own) == (403, "forbidden")
    for method, what, body in bounds:
        below = caller.call(method, f"/v1/accounts/{org}/vision/{what}", body)
        assert below.status_code in (200, 201), below.text
    assert caller.made(f"/v1/accounts/{org}/vision/suspend")["status"] == "suspended"


def test_a_revoked_key_is_dead_at_once(admin: Caller, org: str) -> None:
    """Revoking shows in the list, works once, and the next request is 401."""
    made = admin.made("/v1/keys", {"role": "read-only", "scope": org, "name": "ci"})
    caller = Caller(admin.http, made["secret"])
    caller.read("/v1/prices")
    revoked = admin.made(f"/v1/keys/{made['key_id']}:revoke")
    assert revoked["revoked_at"]
    assert problem(caller.get("/v1/prices")) == (401, "unauthenticated")
    again = admin.made(f"/v1/keys/{made['key_id']}:revoke")
    assert again["revoked_at"] == revoked["revoked_at"]
    acts = admin.read("/v1/audit", params={"account": org, "action": "key.revoke"})["audit"]
    assert len(acts) == 2


def test_secrets_are_nowhere_at_rest(admin: Caller, server: RunningServer, org: str) -> None:
    """A secret is shown when it is made, and never otherwise."""
    body = {"role": "member", "scope": org}
    first = admin.made("/v1/keys", body, key="make-a-key")
    assert first["secret"] not in admin.get("/v1/keys?limit=1000").text
    assert first["secret"] not in admin.get("/v1/audit?limit=1000").text
    until(lambda: "/v1/keys" in (server.data_dir / "server.log").read_text())
    assert first["secret"] not in (server.data_dir / "server.log").read_text()


def test_the_admin_key_is_for_its_owner_only(server: RunningServer) -> None:
    """The file of the first key can be read by nobody else."""
    assert (server.data_dir / "admin.key").stat().st_mode & 0o777 == 0o600


def test_acts_are_written_down(admin: Caller, org: str) -> None:
    """Each administrative act leaves who, what, to what, before, after and in which call."""
    account = f"{org}/vision"
    answer = admin.call(
        "PATCH",
        f"/v1/accounts/{account}",
        {"model": "postpaid", "credit_limit": "5"},
        headers={"x-request-id": "call-1"},
    )
    assert answer.status_code == 200
    acts = admin.read("/v1/audit", params={"resource": account})["audit"]
    assert [act["action"] for act in acts] == ["account.update", "account.create"]
    assert acts[0]["request_id"] == "call-1"
    assert acts[0]["actor"].startswith("key_")
    assert (acts[0]["old"]["model"], acts[0]["new"]["model"]) == ("prepaid", "postpaid")
    assert (acts[0]["old"]["credit_limit"], acts[0]["new"]["credit_limit"]) == ("0", "5")


def test_a_refused_act_is_not_written_down(admin: Caller, org: str) -> None:
    """What did not happen is no act, and a retry is none either."""
    issue = {"account": org, "amount": "1"}
    admin.made("/v1/credits/issue", issue, key="once")
    admin.made("/v1/credits/issue", issue, key="once")
    admin.post("/v1/accounts", {"path": org})
    acts = admin.read("/v1/audit", params={"account": org})["audit"]
    assert sorted(act["action"] for act in acts) == ["account.create"] * 3 + ["credits.issue"]


def test_acts_name_keys_by_the_ids_that_lists_show(admin: Caller, org: str) -> None:
    """Whoever reads the audit log finds the key that acted, and the key that was acted upon."""
    made = admin.made("/v1/keys", {"role": "operator", "scope": org})
    acting = Caller(admin.http, made["secret"])
    acting.made(f"/v1/accounts/{org}/vision/suspend")
    acts = admin.read("/v1/audit", params={"actor": made["key_id"]})["audit"]
    assert [act["resource"] for act in acts] == [f"{org}/vision"]
    acts = admin.read("/v1/audit", params={"resource": made["key_id"]})["audit"]
    assert [(act["action"], act["actor"]) for act in acts] == [("key.create", "key_0_1")]
