"""Who may charge whom over HTTP, and that no key is told of accounts outside its scope."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from gpucredits.api.routes import routes
from support.servers.http import Caller, problem

ABOVE = "an account above"
SECRETS = ("7919.271828", "104729.314159")  # what the org and the project were given
SECRET = re.compile(r"\.(?:271828|314159)(?![\dZ])")  # and what is left of it; ids have no point


def lease_of(account: str, gpu_type: str, **fields: Any) -> dict[str, Any]:
    """One GPU for a minute, 0.6 credits."""
    usual = {"account": account, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 60}
    return {**usual, **fields}


def test_a_user_with_few_credits_is_admitted_on_the_project(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """2 credits of their own do not stand in the way of the project's 1,080."""
    user = f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": f"{org}/vision", "amount": "1080"})
    admin.made("/v1/credits/issue", {"account": user, "amount": "2"})
    member = admin.with_key("member", user)
    large = member.made("/v1/reservations", lease_of(user, gpu_type, gpu_count=8))
    assert large["payer"] == ABOVE
    assert admin.read(f"/v1/reservations/{large['reservation_id']}")["payer"] == f"{org}/vision"
    assert member.made("/v1/reservations", lease_of(user, gpu_type, job_id="k"))["payer"] == user


def test_a_project_whose_grants_ended_does_not_spend_the_orgs(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """Its first grant made it spend its own, for good; an operator above sets it back."""
    project = f"{org}/vision"
    admin.made("/v1/credits/issue", {"account": org, "amount": "500"})
    assert admin.read(f"/v1/accounts/{project}")["funding"] == "shared"
    soon = {"account": project, "amount": "5", "expires_at": admin.instant(seconds=60)}
    admin.made("/v1/credits/issue", soon)
    admin.advance(61)
    assert admin.read(f"/v1/accounts/{project}")["funding"] == "own"
    lease = lease_of(f"{project}/alice", gpu_type)
    assert problem(admin.post("/v1/reservations", lease)) == (402, "insufficient_credits")
    change = {"funding": "shared"}
    for role, scope in (("operator", project), ("member", org)):
        caller = admin.with_key(role, scope)
        refused = caller.call("PATCH", f"/v1/accounts/{project}", change)
        assert problem(refused) == (403, "forbidden")
    staff = admin.with_key("operator", org)
    changed = staff.call("PATCH", f"/v1/accounts/{project}", change)
    assert changed.json()["funding"] == "shared"
    assert staff.made("/v1/reservations", lease)["payer"] == org
    refused = staff.call("PATCH", f"/v1/accounts/{org}", change)
    assert problem(refused) in ((403, "forbidden"), (422, "funding_invalid"))
    refused = admin.call("PATCH", f"/v1/accounts/{org}", change)
    assert problem(refused) == (422, "funding_invalid")


@pytest.mark.parametrize("path", ["/v1/reservations", "/v1/admissions:check"])
def test_a_users_key_does_not_name_the_org_past_its_project(
    admin: Caller, org: str, gpu_type: str, path: str
) -> None:
    """The project has an allocation of its own: payer_invalid; also for a request that waits."""
    for account in (org, f"{org}/vision"):
        admin.made("/v1/credits/issue", {"account": account, "amount": "5"})
    user = f"{org}/vision/alice"
    member = admin.with_key("member", user)
    answer = member.post(path, lease_of(user, gpu_type, payer=org)).json()
    assert (answer["status"], answer["reason"]) == (422, "payer_invalid")
    assert org not in answer["detail"].replace(user, "")
    staff = admin.with_key("member", org)
    lease = staff.made("/v1/reservations", lease_of(user, gpu_type, payer=org))
    assert lease["payer"] == org
    waiting = lease_of(user, gpu_type, payer=org, wait=True, job_id="w")
    queued = member.post("/v1/reservations", waiting)
    if queued.status_code == 202:
        where = f"/v1/queue/{queued.json()['queue_id']}"
        ended = member.read(where, params={"wait_seconds": 20})
        assert ended["state"] == "refused"
        assert org not in ended["sentence"].replace(user, "")
    else:
        assert problem(queued) == (422, "payer_invalid")


def test_a_request_that_waits_is_told_why_without_a_name(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A suspension above, and a payer that the chain has lost since, are not a lack of room."""
    user = f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": org, "amount": "5"})
    admin.call("PUT", f"/v1/pools/{gpu_type}/default", {"capacity": 1})
    member = admin.with_key("member", user)
    running = member.made("/v1/reservations", lease_of(user, gpu_type))["reservation_id"]
    waiting = lease_of(user, gpu_type, payer=org, wait=True, job_id="w")
    where = f"/v1/queue/{member.post('/v1/reservations', waiting).json()['queue_id']}"
    admin.made(f"/v1/accounts/{org}/suspend")
    held = lease_of(user, gpu_type, wait=True, job_id="x")
    told = member.post("/v1/reservations", held).json()
    assert told["sentence"] == f"It waits for suspension: {ABOVE} is suspended."
    member.post(f"/v1/queue/{told['queue_id']}:cancel")
    admin.made(f"/v1/accounts/{org}/resume")
    admin.made("/v1/credits/issue", {"account": f"{org}/vision", "amount": "5"})
    admin.post(f"/v1/reservations/{running}:cancel")
    admin.advance(3_600)  # beyond the time at which what was held is looked at again
    ended = member.read(where, params={"wait_seconds": 60})
    assert ended["state"] == "refused"
    assert ended["sentence"] == f"It was refused: {ABOVE} does not allow it."


def test_a_receipt_shows_who_paid_how_much(admin: Caller, org: str, gpu_type: str) -> None:
    """A lease that moved up says so, account by account, as far as the key sees them."""
    user = f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": org, "amount": "500"})
    admin.made("/v1/credits/issue", {"account": user, "amount": "0.6"})
    member = admin.with_key("member", user)
    lease = member.made("/v1/reservations", lease_of(user, gpu_type))
    where = f"/v1/reservations/{lease['reservation_id']}"
    for seq in (1, 2):
        admin.advance(20)
        beat = {"seq": seq, "used_ms": 20_000 * seq}
        assert member.made(f"{where}:extend", beat)["decision"] == "continue"
    seen = admin.read(where)
    shares = [{"account": user, "paid": "0.2"}, {"account": org, "paid": "0.2"}]
    assert (seen["payer"], seen["payers"]) == (org, shares)
    shares[1]["account"] = ABOVE
    seen = member.read(where)
    assert (seen["payer"], seen["payers"]) == (ABOVE, shares)
    balance = admin.read(f"/v1/accounts/{user}/balance")
    assert (balance["funding"], balance["spendable"]) == ("shared", "0.4")
    through = balance["spendable_through"]
    assert [each["account"] for each in through] == [f"{org}/vision", org]
    assert through[1]["spendable"] == "499.2"
    hidden = [{"account": ABOVE, "spendable": None}] * 2
    assert member.read(f"/v1/accounts/{user}/balance")["spendable_through"] == hidden


def test_an_explanation_says_who_would_pay_and_why(admin: Caller, org: str, gpu_type: str) -> None:
    """Each account that may pay as far as the key sees it, and no grant of the others."""
    user = f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": org, "amount": SECRETS[0]})
    lease = lease_of(user, gpu_type)
    told = admin.made("/v1/admissions:check", lease)
    assert [(each["account"], each["can_pay"]) for each in told["funders"]] == [
        (user, False),
        (f"{org}/vision", False),
        (org, True),
    ]
    assert (told["payer"], len(told["grants"])) == (org, 1)
    told = admin.with_key("member", user).made("/v1/admissions:check", lease)
    assert (told["admitted"], told["payer"], told["grants"]) == (True, ABOVE, [])
    assert [(each["account"], each["can_pay"]) for each in told["funders"]] == [
        (user, False),
        (ABOVE, None),
        (ABOVE, None),
    ]


def test_numbers_of_gates_above_are_not_told(admin: Caller, org: str, gpu_type: str) -> None:
    """Neither limit nor use of an account above, but when it clears; a replay is narrowed too."""
    user = f"{org}/vision/alice"
    admin.made("/v1/credits/issue", {"account": org, "amount": SECRETS[0]})
    window = {"dimension": "credits_per_window", "limit": "0.25", "calendar": "day"}
    admin.made(f"/v1/accounts/{org}/quotas", window)
    lease = lease_of(user, gpu_type)
    member = admin.with_key("member", user)
    whole = admin.post("/v1/reservations", lease, key=f"gate-{org}").json()
    refused = member.post("/v1/reservations", lease).json()
    for told in (
        refused,
        member.made("/v1/reservations:batch", {"items": [lease]})["results"][0]["problem"],
    ):
        assert (told["reason"], told["account"]) == ("quota_exceeded", ABOVE)
        assert told["numbers"].keys().isdisjoint({"limit", "current", "available"})
        quota = next(gate for gate in told["gates"] if gate["gate"] == "quota")
        assert (quota["account"], quota["limit"], quota["current"]) == (ABOVE, None, None)
        assert "0.25" not in str(told)
    assert whole["account"] == org
    assert refused.get("clears_at") == whole.get("clears_at")


def test_what_is_out_of_sight_is_told_in_the_callers_words(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A mistyped account is named as it was asked for, there or not; a bound says how much."""
    user = f"{org}/vision/alice"
    member = admin.with_key("member", user)
    for path in (org, f"{org}/vision", f"{org}/visoin", "nobody"):
        for answer in (
            member.get(f"/v1/accounts/{path}"),
            member.post("/v1/reservations", lease_of(path, gpu_type)),
        ):
            assert problem(answer) == (404, "account_unknown")
            assert answer.json()["detail"] == f"There is no account {path}."
    admin.call("PATCH", f"/v1/accounts/{org}", {"window_max_seconds": 45})
    refused = member.post("/v1/reservations", lease_of(user, gpu_type)).json()
    assert (refused["reason"], refused["numbers"]["set_by"]) == ("window_too_long", ABOVE)
    assert "an account above allows at most 45" in refused["detail"]


SET_ABOVE = {"/v1/reconciliation-policy": {"mode": "post"}, "/v1/lost-work-terms": {}}
SKIPPED = {"/v1/openapi.json", "/v1/audit"}  # of nobody; for staff only, below


def reads_of(org: str, lease: str) -> list[str]:
    """Every path that can be read, with what a user of the org could put into it."""
    user = f"{org}/vision/alice"
    given = {"account": user, "reservation": lease}
    paths = []
    for route in routes():
        if route.method == "GET" and route.path not in SKIPPED:
            path = re.sub(r"\{(\w+)\}", lambda found: given.get(found[1], "x_1_1"), route.path)
            paths.append(path)
    return paths


def leaks(answer: httpx.Response, org: str, grants: list[str]) -> list[str]:
    """What of an answer a user of the org must not see."""
    text = re.sub(rf"{org}/vision/alice\b", "", answer.text)
    named = re.findall(rf"(?<![\w/-]){org}(?:/vision)?(?![\w/-])", text)
    return [*named, *SECRET.findall(text), *(each for each in grants if f'"{each}"' in text)]


@pytest.mark.parametrize("role", ["member", "operator", "read-only", "agent"])
def test_no_answer_names_an_account_outside_the_scope(
    admin: Caller, org: str, gpu_type: str, role: str
) -> None:
    """Every read, and every refusal of a reserve, with a user's key: no path, balance or grant."""
    user, project = f"{org}/vision/alice", f"{org}/vision"
    grants = [
        admin.made("/v1/credits/issue", {"account": account, "amount": amount})["grant_id"]
        for account, amount in zip((org, project), SECRETS, strict=True)
    ]
    admin.made("/v1/credits/transfer", {"from": project, "to": user, "amount": "1"})
    admin.made("/v1/prices", {"gpu_type": gpu_type, "credits_per_gpu_hour": "30", "account": org})
    quota = {"dimension": "concurrent_gpus", "limit": 4}
    admin.made(f"/v1/accounts/{org}/quotas", quota)
    admin.call("PUT", f"/v1/accounts/{project}/rate-limit", {"capacity": 3, "refill_per_hour": 1})
    admin.made(f"/v1/accounts/{org}/budgets", {"allowance": "17", "calendar": "month"})
    for path, terms in SET_ABOVE.items():
        assert admin.call("PUT", path, {"account": org, **terms}).status_code == 200
    lease = admin.made("/v1/reservations", lease_of(user, gpu_type, gpu_count=4))
    assert lease["payer"] == project
    caller = admin.with_key(role, user)
    for path in reads_of(org, lease["reservation_id"]):
        assert leaks(caller.get(path), org, grants) == [], path
        for query in ("account", "under"):
            answer = caller.get(path, params={query: user})
            assert leaks(answer, org, grants) == [], (path, query)
    if role == "operator":
        assert leaks(caller.get("/v1/audit"), org, grants) == []
    wanted = [
        lease_of(user, gpu_type, gpu_count=8),
        lease_of(user, gpu_type, gpu_count=1_000),
        lease_of(user, gpu_type, payer=org),
        lease_of(user, gpu_type, payer=project, gpu_count=1_000_000),
        lease_of(user, gpu_type, overdraft="5"),
        lease_of(user, gpu_type, gpu_count=8, wait=True, job_id="w"),
    ]
    for body in wanted:
        for path in ("/v1/reservations", "/v1/admissions:check"):
            answer = caller.post(path, body)
            assert leaks(answer, org, grants) == [], (path, body, answer.text)
        batch = caller.post("/v1/reservations:batch", {"items": [body]})
        assert leaks(batch, org, grants) == [], body
    assert leaks(caller.get("/v1/queue"), org, grants) == []
    admin.made(f"/v1/accounts/{org}/suspend")
    answer = caller.post("/v1/reservations", wanted[0])
    assert leaks(answer, org, grants) == [], answer.text
