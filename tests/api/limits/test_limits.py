"""Quotas, rate limits, boosts and the overview: set, shown, replaced, ended."""

from __future__ import annotations

from typing import Any

import pytest

from support.rows import rows_of
from support.servers.http import Caller, problem

GPUS = {"dimension": "concurrent_gpus", "limit": 4}
DAILY = {"dimension": "credits_per_window", "limit": "10", "calendar": "day", "zone": "Asia/Tokyo"}
BUCKET = {"capacity": "5", "refill_per_hour": "36"}


def quotas_of(caller: Caller, account: str) -> list[Any]:
    """The quotas of an account as they stand."""
    quotas: list[Any] = caller.read(f"/v1/accounts/{account}/quotas")["quotas"]
    return quotas


def run(caller: Caller, account: str, gpu_type: str, **more: Any) -> Any:
    """A lease that is admitted."""
    body = {"account": account, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 100}
    return caller.made("/v1/reservations", body | more)


def test_a_quota_is_set_shown_changed_and_ended(admin: Caller, org: str, gpu_type: str) -> None:
    """A quota counts what runs already, gets a new limit by being set again, and ends."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    run(admin, f"{org}/vision/alice", gpu_type, gpu_count=3)
    path = f"/v1/accounts/{org}/quotas"
    first = admin.made(path, GPUS)
    assert (first["limit"], first["unit"], first["gpu_type"]) == ("4", "GPUs", None)
    [quota] = quotas_of(admin, org)
    assert (quota["used"], quota["held"], quota["left"]) == ("3", "0", "1")
    again = admin.made(path, {**GPUS, "limit": 8})
    assert (again["quota_id"], again["limit"]) == (first["quota_id"], "8")
    narrow = admin.made(path, {**GPUS, "gpu_type": gpu_type})
    assert narrow["quota_id"] != first["quota_id"]
    ended = admin.call("DELETE", f"{path}/{first['quota_id']}").json()
    assert ended["ended_at"]
    assert [each["quota_id"] for each in quotas_of(admin, org)] == [narrow["quota_id"]]
    gone = admin.call("DELETE", f"{path}/{first['quota_id']}")
    assert problem(gone) == (404, "limit_unknown")


def test_a_window_says_what_is_used_held_and_left(admin: Caller, org: str, gpu_type: str) -> None:
    """A new window counts what was spent in it before it was set, and says when it begins anew."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    lease = run(admin, org, gpu_type)["reservation_id"]
    admin.advance(50)
    admin.made(f"/v1/reservations/{lease}:extend", {"seq": 1, "used_ms": 50_000})
    admin.made(f"/v1/accounts/{org}/quotas", {**DAILY, "zone": "UTC", "rolling_hours": None})
    rolling = {"dimension": "credits_per_window", "limit": "10", "rolling_hours": 24}
    admin.made(f"/v1/accounts/{org}/quotas", rolling)
    daily, moving = quotas_of(admin, org)
    assert (daily["used"], daily["held"], daily["left"]) == ("0.5", "1", "8.5")
    assert daily["resets_at"].endswith("T00:00:00Z")
    assert (moving["used"], moving["held"], moving["resets_at"]) == ("0.5", "1", None)


def test_replacing_quotas_is_one_act(admin: Caller, org: str) -> None:
    """PUT keeps what stays, ends what is not there, sets what is new, once for each key."""
    path = f"/v1/accounts/{org}/quotas"
    kept = admin.made(path, GPUS)
    admin.made(path, {"dimension": "concurrent_jobs", "limit": 2})
    body = {"quotas": [{**GPUS, "limit": 6}, DAILY]}
    answer = admin.call("PUT", path, body, key="all-of-them")
    assert [each["limit"] for each in answer.json()["quotas"]] == ["6", "10"]
    assert answer.json()["quotas"][0]["quota_id"] == kept["quota_id"]
    assert len(answer.json()["ended"]) == 1
    later = admin.made(path, {"dimension": "credits_per_job", "limit": 2})
    again = admin.call("PUT", path, body, key="all-of-them")
    assert again.json() == answer.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert later["quota_id"] in [each["quota_id"] for each in quotas_of(admin, org)]
    assert admin.call("PUT", path, {"quotas": []}).json()["quotas"] == []
    assert quotas_of(admin, org) == []


def test_a_replacement_that_is_wrong_changes_nothing(
    admin: Caller, database_of_server: str, org: str
) -> None:
    """One bad quota in the list, and none of it is done; the rows stay byte for byte."""
    path = f"/v1/accounts/{org}/quotas"
    admin.made(path, GPUS)
    tables = ("quotas", "slots", "meters", "audit_log")
    before = rows_of(database_of_server, org)
    for wrong in (
        [DAILY, {**DAILY, "zone": "Mars/Olympus"}],
        [DAILY, DAILY],
        [DAILY, {"dimension": "credits_per_window", "limit": 1}],
    ):
        answer = admin.call("PUT", path, {"quotas": wrong})
        assert answer.status_code == 422, answer.text
    after = rows_of(database_of_server, org)
    assert [after[table] for table in tables] == [before[table] for table in tables]


def test_a_rate_limit_is_set_shown_and_ended(admin: Caller, org: str, gpu_type: str) -> None:
    """The bucket starts full, a hold draws from it, and it says when it will be full again."""
    path = f"/v1/accounts/{org}/rate-limit"
    assert problem(admin.get(path)) == (404, "limit_unknown")
    admin.made("/v1/credits/issue", {"account": org, "amount": "100"})
    admin.call("PUT", path, BUCKET)
    full = admin.read(path)
    assert (full["level"], full["full_at"], full["boosts"]) == ("5", None, [])
    run(admin, f"{org}/vision", gpu_type)
    drawn = admin.read(path)
    assert float(drawn["level"]) < 4.5
    assert drawn["full_at"] > drawn["as_of"]
    assert admin.call("DELETE", path).json()["ended_at"]
    assert problem(admin.get(path)) == (404, "limit_unknown")
    assert problem(admin.call("DELETE", path)) == (404, "limit_unknown")


def test_a_boost_raises_a_limit_and_lapses(admin: Caller, org: str) -> None:
    """A boost is found by what it raises, shows in the cap, and ends early or by itself."""
    account = f"{org}/vision"
    quota = admin.made(f"/v1/accounts/{account}/quotas", GPUS)
    admin.call("PUT", f"/v1/accounts/{account}/rate-limit", BUCKET)
    path = f"/v1/accounts/{account}/boosts"
    ends = admin.instant(hours=1)
    body = {"dimension": "concurrent_gpus", "amount": 3, "ends_at": ends, "note": "deadline"}
    boost = admin.made(path, body)
    assert (boost["target_id"], boost["amount"], boost["unit"]) == (quota["quota_id"], "3", "GPUs")
    faster = {"dimension": "rate_limit", "amount": "1", "refill_per_hour": "4", "ends_at": ends}
    assert admin.made(path, faster)["refill_per_hour"] == "4"
    assert [each["note"] for each in admin.read(path)["boosts"]] == ["deadline", ""]
    [shown] = quotas_of(admin, account)
    assert (shown["limit"], shown["cap"], len(shown["boosts"])) == ("4", "7", 1)
    limit = admin.read(f"/v1/accounts/{account}/rate-limit")
    assert (limit["capacity"], limit["cap"], limit["refill"]) == ("5", "6", "40")
    where = f"{path}/{boost['boost_id']}"
    own = admin.with_key("operator", account)
    assert problem(own.call("DELETE", where)) == (403, "forbidden")
    other = f"/v1/accounts/{org}/boosts/{boost['boost_id']}"
    assert problem(admin.call("DELETE", other)) == (404, "limit_unknown")
    ended = admin.call("DELETE", where).json()
    assert (ended["boost_id"], ended["ends_at"] < boost["ends_at"]) == (boost["boost_id"], True)
    assert [each["unit"] for each in admin.read(path)["boosts"]] == ["credits"]
    assert quotas_of(admin, account)[0]["cap"] == "4"
    assert problem(admin.call("DELETE", where)) == (404, "limit_unknown")
    acts = admin.read("/v1/audit", params={"account": account, "action": "boost.end"})["audit"]
    assert [(act["old"]["ends_at"], act["new"]["ends_at"]) for act in acts] == [
        (boost["ends_at"], ended["ends_at"])
    ]
    admin.advance(3_601)
    assert admin.read(path)["boosts"] == []
    assert admin.read(f"/v1/accounts/{account}/rate-limit")["cap"] == "5"


def test_a_boost_is_for_a_limit_of_the_account(admin: Caller, org: str) -> None:
    """The id of another account's quota is the id of none; an answered key stays answered."""
    quota = admin.made(f"/v1/accounts/{org}/quotas", GPUS)["quota_id"]
    admin.made(f"/v1/accounts/{org}/vision/quotas", GPUS)
    ends = admin.instant(hours=1)
    path = f"/v1/accounts/{org}/vision"
    body = {"target_id": quota, "amount": 1, "ends_at": ends}
    assert problem(admin.post(f"{path}/boosts", body)) == (404, "limit_unknown")
    assert problem(admin.call("DELETE", f"{path}/quotas/{quota}")) == (404, "limit_unknown")
    mine = {"dimension": "concurrent_gpus", "amount": 1, "ends_at": ends}
    first = admin.made(f"{path}/boosts", mine, key="boost-once")
    admin.call("PUT", f"{path}/quotas", {"quotas": []})
    assert admin.made(f"{path}/boosts", mine, key="boost-once") == first
    assert problem(admin.post(f"{path}/boosts", mine)) == (404, "limit_unknown")


def test_the_overview_has_every_limit_of_every_scope(admin: Caller, org: str) -> None:
    """A job's limits, the org's first; numbers of accounts above are for keys that see them."""
    user = f"{org}/vision/alice"
    admin.call("PATCH", f"/v1/accounts/{org}", {"model": "postpaid", "credit_limit": "50"})
    admin.made(f"/v1/accounts/{org}/budgets", {"allowance": "20", "calendar": "month"})
    admin.made(f"/v1/accounts/{org}/quotas", GPUS)
    admin.call("PUT", f"/v1/accounts/{org}/vision/rate-limit", BUCKET)
    admin.made(f"/v1/accounts/{user}/quotas", DAILY)
    limits = admin.with_key("member", org).read(f"/v1/accounts/{user}/limits")["limits"]
    assert [(each["kind"], each["scope"], each["cap"]) for each in limits] == [
        ("credit_limit", "org", "50"),
        ("budget", "org", "20"),
        ("quota", "org", "4"),
        ("rate_limit", "project", "5"),
        ("quota", "user", "10"),
    ]
    assert [each["left"] for each in limits] == ["50", "20", "4", "5", "10"]
    assert all(limits[place]["resets_at"] for place in (1, 4))
    member = admin.with_key("member", user)
    seen = member.read(f"/v1/accounts/{user}/limits")["limits"]
    assert [(each["account"], each["cap"], each["left"]) for each in seen] == [
        *[("an account above", None, None)] * 4,
        (user, "10", "10"),
    ]
    assert [each["kind"] for each in seen] == [each["kind"] for each in limits]
    assert seen[1]["resets_at"] == limits[1]["resets_at"]
    assert problem(member.get(f"/v1/accounts/{org}/limits")) == (404, "account_unknown")


HUGE = "9" * 13
WRONG: dict[str, tuple[str, Any]] = {
    "an unknown dimension": ("quotas", {**GPUS, "dimension": "petaflops"}),
    "a negative limit": ("quotas", {**GPUS, "limit": -1}),
    "a limit with four decimals": ("quotas", {**GPUS, "limit": "1.5001"}),
    "a huge limit": ("quotas", {**GPUS, "limit": HUGE}),
    "not a number": ("quotas", {**GPUS, "limit": "NaN"}),
    "infinity": ("quotas", {**GPUS, "limit": "Infinity"}),
    "an unknown zone": ("quotas", {**DAILY, "zone": "Europe/Atlantis"}),
    "a path for a zone": ("quotas", {**DAILY, "zone": "../../etc/passwd"}),
    "a folder for a zone": ("quotas", {**DAILY, "zone": "Europe"}),
    "a zone without a calendar": ("quotas", {**GPUS, "zone": "UTC"}),
    "two windows": ("quotas", {**DAILY, "rolling_hours": 5}),
    "no window": ("quotas", {"dimension": "credits_per_window", "limit": 1}),
    "a window for GPUs": ("quotas", {**GPUS, "calendar": "day"}),
    "too many rolling hours": (
        "quotas",
        {"dimension": "credits_per_window", "limit": 1, "rolling_hours": 745},
    ),
    "a type that hides text": ("quotas", {**GPUS, "gpu_type": "h100\u202e"}),
    "no amount to boost by": ("boosts", {"dimension": "rate_limit"}),
    "a boost of nothing": ("boosts", {"amount": 1}),
    "a boost of two things": ("boosts", {"dimension": "rate_limit", "target_id": "x", "amount": 1}),
    "a boost of a part of a thousandth": (
        "boosts",
        {"dimension": "concurrent_gpus", "amount": "0.0005"},
    ),
    "a refill for a quota": (
        "boosts",
        {"dimension": "concurrent_gpus", "amount": 1, "refill_per_hour": 1},
    ),
    "a boost that is over": (
        "boosts",
        {"dimension": "concurrent_gpus", "amount": 1, "ends_at": "1999-01-01T00:00:00Z"},
    ),
    "a budget's bad name": ("budgets", {"allowance": 1, "calendar": "day", "name": "a/b"}),
    "no allowance": ("budgets", {"allowance": 0, "calendar": "day"}),
    "a budget without an end": ("budgets", {"allowance": 1}),
    "a cap without capped": ("budgets", {"allowance": 1, "calendar": "day", "rollover_cap": 1}),
    "a warning beyond all": ("budgets", {"allowance": 1, "calendar": "day", "warn_percent": [101]}),
    "an unknown zone of a budget": (
        "budgets",
        {"allowance": 1, "calendar": "day", "zone": "Mars/Olympus"},
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(admin: Caller, org: str, case: str) -> None:
    """Nonsense is refused with 422 and a sentence on what would be right, never with a 5xx."""
    admin.made(f"/v1/accounts/{org}/quotas", GPUS)
    what, body = WRONG[case]
    if what == "boosts":
        body = {"ends_at": "2100-01-01T00:00:00Z", **body}
    answer = admin.post(f"/v1/accounts/{org}/{what}", body)
    status, reason = problem(answer)
    assert status == 422
    assert reason in ("invalid_request", "limit_invalid", "zone_unknown", "window_ended")
    assert len(answer.json()["detail"]) > 20


def test_numbers_that_are_not_numbers_are_no_limits(admin: Caller, org: str) -> None:
    """A bare NaN or an endless number in the body is not JSON, or not exact, and is said so."""
    for text in ("NaN", "1e400", "-0.0000001", '"1e3"', "true", "null", '"٣"'):
        body = f'{{"capacity": {text}, "refill_per_hour": 1}}'
        answer = admin.call("PUT", f"/v1/accounts/{org}/rate-limit", content=body)
        assert answer.status_code in (400, 422), (text, answer.text)


def test_there_is_a_most_of_everything(admin: Caller, org: str) -> None:
    """Nobody fills the books with quotas or boosts: the bound is said."""
    path = f"/v1/accounts/{org}/vision"
    many = [{**GPUS, "gpu_type": f"type-{number}"} for number in range(101)]
    assert admin.call("PUT", f"{path}/quotas", {"quotas": many}).status_code == 422
    assert admin.call("PUT", f"{path}/quotas", {"quotas": many[:100]}).status_code == 200
    answer = admin.post(f"{path}/quotas", many[100])
    assert problem(answer) == (422, "limit_invalid")
    assert "100" in answer.json()["detail"]


def test_changes_of_limits_are_written_down(admin: Caller, org: str) -> None:
    """The audit log has who changed which limit, from what to what."""
    path = f"/v1/accounts/{org}/vision"
    quota = admin.made(f"{path}/quotas", GPUS)["quota_id"]
    admin.made(f"{path}/quotas", {**GPUS, "limit": 9})
    admin.call("PUT", f"{path}/rate-limit", BUCKET)
    boost = {"dimension": "rate_limit", "amount": 1, "ends_at": admin.instant(hours=1)}
    admin.made(f"{path}/boosts", boost)
    admin.call("DELETE", f"{path}/rate-limit")
    admin.call("DELETE", f"{path}/quotas/{quota}")
    admin.made(f"{path}/budgets", {"allowance": 3, "calendar": "day"})
    admin.call("DELETE", f"{path}/budgets/default")
    admin.call("PUT", f"{path}/quotas", {"quotas": [GPUS]})
    admin.call("PUT", f"{path}/budgets", {"budgets": []})
    acts = admin.read("/v1/audit", params={"resource": f"{org}/vision"})["audit"]
    assert [act["action"] for act in reversed(acts)] == [
        "account.create",
        *("quota.set", "quota.set", "rate_limit.set", "boost.add", "rate_limit.end"),
        *("quota.end", "budget.set", "account.funding", "budget.end"),
        *("quota.replace", "budget.replace"),
    ]
    changed = acts[-3]
    assert (changed["old"]["limit"], changed["new"]["limit"]) == ("4", "9")
    assert acts[0]["actor"].startswith("key_")
