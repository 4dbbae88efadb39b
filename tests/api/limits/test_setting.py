"""Setting: PATCH changes what is named, null takes back to the default, and PUT replaces."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import Struct

from gpucredits.api.routes import routes
from gpucredits.wire import request_limit
from gpucredits.wire.billing import anomaly, usage
from gpucredits.wire.dispatch import pool
from gpucredits.wire.ledger import account
from gpucredits.wire.limits import budget, rate_limit
from gpucredits.wire.reconciliation import comparison, lost_work
from support.servers.http import Caller, fresh_name, problem

BUDGET = {
    "allowance": "10",
    "calendar": "week",
    "zone": "Asia/Tokyo",
    "ends_at": "2090-01-01T00:00:00Z",
    "rollover": "capped",
    "rollover_cap": "3",
    "rollover_seconds": 60,
    "priority": 5,
    "warn_percent": [50, 80],
}
POOL = {
    "capacity": 8,
    "resources": {"cpu": 64, "memory": 100},
    "policy": {
        "preemption": False,
        "grace_seconds": 5,
        "min_runtime_seconds": 6,
        "preemptions_max": 7,
        "backfill": False,
        "backfill_depth": 9,
        "hold_after_seconds": 10,
        "priority_scope": "org",
        "usage_order": "ties",
        "half_life_seconds": 11,
        "borrowing": False,
        "window_max_seconds": 12,
    },
}
SHAPES: list[tuple[type[Struct], type[Struct]]] = [
    (account.AccountChange, account.AccountTerms),
    (anomaly.AnomalyTermsChange, anomaly.AnomalyTermsRequest),
    (budget.BudgetChange, budget.BudgetBody),
    (comparison.ReconcilePolicyChange, comparison.ReconcilePolicyRequest),
    (lost_work.LossTermsChange, lost_work.LossTermsRequest),
    (pool.PoolChange, pool.PoolRequest),
    (pool.PolicyChange, pool.PoolPolicy),
    (pool.ResourcesChange, pool.PoolResources),
    (rate_limit.RateLimitChange, rate_limit.RateLimitRequest),
    (request_limit.RequestLimitChange, request_limit.RequestLimitRequest),
    (usage.IdleGuardChange, usage.IdleGuardRequest),
]


def change(caller: Caller, path: str, body: Any, method: str = "PATCH", **options: Any) -> Any:
    """What something is after a change, or a replacement."""
    answer = caller.call(method, path, body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_whatever_can_be_replaced_can_be_changed() -> None:
    """Each PUT of one thing has a PATCH beside it; those of all quotas or budgets have none."""
    by_path: dict[str, set[str]] = {}
    for route in routes():
        by_path.setdefault(route.path, set()).add(route.method)
    alone = {
        path for path, methods in by_path.items() if "PUT" in methods and "PATCH" not in methods
    }
    assert alone == {f"/v1/accounts/{{account}}/{name}" for name in ("budgets", "quotas")}


@pytest.mark.parametrize(("part", "whole"), SHAPES, ids=lambda shape: shape.__name__)
def test_a_change_can_name_whatever_a_replacement_has(
    part: type[Struct], whole: type[Struct]
) -> None:
    """No field is added to the one shape and forgotten in the other."""
    assert part.__struct_fields__ == whole.__struct_fields__


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("allowance", "11", None),
        ("calendar", "day", None),
        ("zone", "UTC", "UTC"),
        ("ends_at", "2091-01-01T00:00:00Z", None),
        ("rollover_cap", "4", None),
        ("rollover_seconds", 61, None),
        ("priority", 6, 100),
        ("warn_percent", [60], []),
    ],
)
def test_a_budget_keeps_what_is_not_named(
    admin: Caller, org: str, name: str, value: Any, default: Any
) -> None:
    """Each term alone, by its name and in the list's own POST; null is the default."""
    path = f"/v1/accounts/{org}/budgets/monthly"
    before = change(admin, path, BUDGET, "PUT")
    assert {each: before[each] for each in BUDGET} == BUDGET
    assert change(admin, path, {name: value}) == {**before, name: value}
    again = {"name": "monthly", "allowance": "10", name: value}
    assert admin.made(f"/v1/accounts/{org}/budgets", again) == {**before, name: value}
    if name in ("zone", "ends_at", "rollover_seconds", "priority", "warn_percent"):
        assert change(admin, path, {name: None}) == {**before, name: default}
    replaced = change(admin, path, {"allowance": "1", "calendar": "month"}, "PUT")
    assert (replaced["priority"], replaced["rollover"], replaced["ends_at"]) == (100, "none", None)


def test_terms_of_a_budget_that_go_together_go_together(admin: Caller, org: str) -> None:
    """A rollover that is taken away takes its cap along; what contradicts itself is refused."""
    path = f"/v1/accounts/{org}/budgets/monthly"
    assert problem(admin.call("PATCH", path, {"priority": 1})) == (422, "limit_invalid")
    change(admin, path, BUDGET)
    gone = change(admin, path, {"rollover": None})
    assert (gone["rollover"], gone["rollover_cap"], gone["rollover_seconds"]) == (
        "none",
        None,
        None,
    )
    for body in (
        {"rollover_cap": "5"},
        {"rollover_seconds": 5},
        {"calendar": None, "zone": "Asia/Tokyo"},
    ):
        assert problem(admin.call("PATCH", path, body)) == (422, "limit_invalid")
    assert problem(admin.call("PATCH", path, {"allowance": None})) == (422, "invalid_request")
    assert problem(admin.call("PATCH", path, {"name": "other"})) == (422, "invalid_request")


def test_a_pool_keeps_what_is_not_named(admin: Caller) -> None:
    """Capacity, other resources and each part of the policy; null is the default, PUT replaces."""
    path = f"/v1/pools/{fresh_name('gpu')}/default"
    fresh = change(admin, path, {"capacity": 4})
    assert fresh["policy"]["borrowing"] is True
    before = change(admin, path, POOL, "PUT")

    def after(body: Any, method: str = "PATCH") -> Any:
        shown = change(admin, path, body, method)
        return {name: shown[name] for name in POOL}

    assert after({"capacity": 9}) == {**POOL, "capacity": 9}
    assert after({"capacity": 8, "policy": {"grace_seconds": 55}}) == {
        **POOL,
        "policy": {**POOL["policy"], "grace_seconds": 55},  # type: ignore[dict-item]
    }
    assert after({"policy": {"grace_seconds": 5}, "resources": {"memory": 7}}) == {
        **POOL,
        "resources": {"cpu": 64, "memory": 7},
    }
    assert after({"resources": {"memory": 100}})["policy"] == before["policy"]
    assert after({"policy": {"borrowing": None}})["policy"] == {
        **POOL["policy"],  # type: ignore[dict-item]
        "borrowing": True,
    }
    assert problem(admin.call("PATCH", path, {"capacity": None})) == (422, "invalid_request")
    assert after({"resources": {"cpu": None}})["resources"] == {"memory": 100}
    cleared = after({"capacity": None, "resources": None, "policy": None})
    assert cleared == {**after({}, "PUT"), "capacity": None}
    assert cleared["policy"] == fresh["policy"]


def test_labels_are_merged(admin: Caller, org: str) -> None:
    """PATCH changes the labels that are given and removes those that are null; PUT replaces."""
    path = f"/v1/accounts/{org}"
    change(
        admin, path, {"model": "postpaid", "credit_limit": "5", "metadata": {"a": "1", "b": "2"}}
    )
    merged = change(admin, path, {"metadata": {"b": None, "c": "3", "nowhere": None}})
    assert merged["metadata"] == {"a": "1", "c": "3"}
    assert (merged["model"], merged["credit_limit"]) == ("postpaid", "5")
    assert change(admin, path, {"credit_limit": None})["credit_limit"] == "0"
    staff = admin.with_key("operator", org)
    assert change(staff, path, {"metadata": None})["metadata"] == {}
    many = {f"l{number}": "" for number in range(20)}
    assert len(change(staff, path, {"metadata": many})["metadata"]) == 20
    refused = staff.call("PATCH", path, {"metadata": {"one": "more"}})
    assert problem(refused) == (422, "limit_invalid")
    assert problem(staff.call("PUT", path, {})) == (403, "forbidden")
    assert problem(staff.call("PATCH", path, {"credit_limit": None})) == (403, "forbidden")
    replaced = change(admin, path, {"metadata": {"d": "4"}}, "PUT")
    assert (replaced["model"], replaced["metadata"]) == ("prepaid", {"d": "4"})


def test_limits_and_terms_keep_what_is_not_named(admin: Caller, org: str) -> None:
    """A rate limit, request limits of a key and of an org, and terms of unusual spending."""
    path = f"/v1/accounts/{org}/rate-limit"
    assert problem(admin.call("PATCH", path, {"capacity": "5"})) == (422, "limit_invalid")
    change(admin, path, {"capacity": "5", "refill_per_hour": "6"}, "PUT")
    assert change(admin, path, {"capacity": "7"})["refill_per_hour"] == "6"
    assert change(admin, path, {"refill_per_hour": "8"})["capacity"] == "7"
    key = admin.made("/v1/keys", {"role": "agent", "scope": org})["key_id"]
    for limit in (f"/v1/keys/{key}/limit", f"/v1/accounts/{org}/request-limit"):
        none = admin.call("PATCH", limit, {"capacity": 9})
        assert (problem(none), none.json()["field"]) == (
            (422, "invalid_request"),
            "refill_per_second",
        )
        assert change(admin, limit, {"refill_per_second": 50})["limit"]["capacity"] == 200
        assert change(admin, limit, {"capacity": 9})["limit"]["refill_per_hour"] == 180_000
        assert change(admin, limit, {"refill_per_hour": 360_000})["limit"]["capacity"] == 9
        assert change(admin, limit, {"capacity": None})["limit"]["capacity"] == 400
        both = {"refill_per_hour": 1, "refill_per_second": 1}
        assert problem(admin.call("PATCH", limit, both)) == (422, "invalid_request")
    terms, at = "/v1/anomaly-terms", {"account": org}
    change(admin, terms, {**at, "ratio_percent": 300, "floor": "7", "auto_suspend": True}, "PUT")
    changed = change(admin, terms, {**at, "floor": "8"})
    meant = {"ratio_percent": 300, "floor": "8", "auto_suspend": True, "set_by_scope": "system"}
    assert changed == {**at, **meant}
    assert change(admin, terms, {**at, "floor": None, "auto_suspend": False})["floor"] == "100"
    assert change(admin, terms, at, "PUT")["ratio_percent"] == 400


def test_changes_at_once_lose_nothing(admin: Caller, org: str) -> None:
    """What is not named stays as it is stored when the change is made, not as a caller read it."""
    names = [f"label{number}" for number in range(16)]
    path = f"/v1/pools/{fresh_name('gpu')}/default"
    change(admin, path, {"capacity": 1})
    changes: list[tuple[str, Any]] = [
        (f"/v1/accounts/{org}", {"metadata": {name: "x"}}) for name in names
    ]
    parts = {
        "grace_seconds": 1,
        "min_runtime_seconds": 2,
        "preemptions_max": 3,
        "backfill_depth": 4,
    }
    changes += [(path, {"policy": {name: value}}) for name, value in parts.items()]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda each: change(admin, *each), changes))
    assert admin.read(f"/v1/accounts/{org}")["metadata"] == dict.fromkeys(names, "x")
    policy = admin.read(path)["policy"]
    assert {name: policy[name] for name in parts} == parts


def test_a_change_is_repeated_and_rehearsed_like_any_write(admin: Caller, org: str) -> None:
    """The same key has the same answer; null and nothing are two requests; a dry run keeps all."""
    path = f"/v1/accounts/{org}/budgets/monthly"
    before = change(admin, path, BUDGET)
    rehearsed = change(admin, path, {"priority": 9}, params={"dry_run": "true"})
    assert rehearsed == {**before, "priority": 9}
    first = change(admin, path, {"priority": None}, key="priority")
    assert first == {**before, "priority": 100}
    change(admin, path, {"priority": 7})
    assert change(admin, path, {"priority": None}, key="priority") == first
    other = admin.call("PATCH", path, {}, key="priority")
    assert problem(other) == (409, "idempotency_key_reused")
    assert change(admin, path, {}) == {**before, "priority": 7}
