"""Budgets over HTTP: issued by the clock, rolled over, changed, replaced, ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from support.servers.http import Caller, problem

MONTH_S = 31 * 86_400


def budget_of(caller: Caller, account: str, name: str = "default") -> Any:
    """A budget of an account as it stands."""
    budgets = caller.read(f"/v1/accounts/{account}/budgets")["budgets"]
    return next(budget for budget in budgets if budget["name"] == name)


def available(caller: Caller, account: str) -> str:
    """What an account has now."""
    return str(caller.read(f"/v1/accounts/{account}/balance")["available"])


def spend(caller: Caller, account: str, gpu_type: str, seconds: int) -> None:
    """Use a hundredth of a credit for each second."""
    body = {"account": account, "job_id": "j", "gpu_type": gpu_type, "window_seconds": 600}
    lease = caller.made("/v1/reservations", body)["reservation_id"]
    caller.advance(seconds)
    end = {"seq": 1, "used_ms": seconds * 1_000}
    caller.made(f"/v1/reservations/{lease}:settle", end)


def test_the_allowance_is_there_at_the_start_of_every_period(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """A new period is issued when the clock gets there, and what was left of the old is gone."""
    path = f"/v1/accounts/{org}/budgets"
    made = admin.made(path, {"allowance": "50", "calendar": "day", "warn_percent": [90, 80, 80]})
    assert (made["name"], made["zone"], made["warn_percent"]) == ("default", "UTC", [80, 90])
    assert available(admin, org) == "50"
    spend(admin, f"{org}/vision", gpu_type, 600)
    period = budget_of(admin, org)["period"]
    assert (period["issued"], period["used"], period["left"]) == ("50", "6", "44")
    assert period["ends_at"] == made["next_at"]
    admin.advance(86_400)
    assert available(admin, org) == "50"
    following = budget_of(admin, org)["period"]
    assert (following["starts_at"], following["used"]) == (period["ends_at"], "0")
    assert following["grant_id"] != period["grant_id"]
    pages = admin.read(f"{path}/default/periods", params={"limit": "1"})
    assert pages["periods"] == [following]
    older = admin.read(f"{path}/default/periods", params={"cursor": pages["next_cursor"]})
    assert (older["periods"][0]["used"], older["periods"][0]["left"]) == ("6", "0")
    assert older["next_cursor"] is None


def test_what_rolls_over_has_a_grant_of_its_own(admin: Caller, org: str, gpu_type: str) -> None:
    """A capped rollover goes on for the time that it was given, and no longer."""
    path = f"/v1/accounts/{org}/budgets"
    terms = {"allowance": "50", "calendar": "month", "rollover": "capped", "rollover_cap": "10"}
    made = admin.made(path, {**terms, "rollover_seconds": 86_400})
    assert (made["rollover_cap"], made["rollover_seconds"]) == ("10", 86_400)
    spend(admin, org, gpu_type, 100)
    ends = datetime.fromisoformat(made["next_at"])
    now = datetime.fromisoformat(admin.instant())
    admin.advance(int((ends - now).total_seconds()) + 1)
    period = budget_of(admin, org)["period"]
    assert (period["rolled_in"], available(admin, org)) == ("10", "60")
    older = admin.read(f"{path}/default/periods")["periods"][1]
    assert (older["rolled_out"], older["used"], older["left"]) == ("10", "1", "0")
    admin.advance(86_400)
    assert available(admin, org) == "50"


def test_a_change_holds_from_the_next_period_on(admin: Caller, org: str) -> None:
    """The open period keeps its allowance; one that is ended runs out."""
    path = f"/v1/accounts/{org}/budgets"
    admin.made(path, {"allowance": "50", "calendar": "day"})
    admin.made(path, {"allowance": "70", "calendar": "day"})
    budget = budget_of(admin, org)
    assert (budget["allowance"], budget["period"]["issued"]) == ("70", "50")
    admin.advance(86_400)
    assert available(admin, org) == "70"
    ended = admin.call("DELETE", f"{path}/default").json()
    assert (ended["next_at"], available(admin, org)) == (None, "70")
    assert problem(admin.call("DELETE", f"{path}/default")) == (404, "limit_unknown")
    admin.advance(86_400)
    assert available(admin, org) == "0"
    assert budget_of(admin, org)["period"] is None
    assert problem(admin.get(f"{path}/monthly/periods")) == (404, "limit_unknown")


def test_replacing_budgets_is_one_act(admin: Caller, org: str) -> None:
    """PUT sets what is there and ends what is not, in one go and once for each key."""
    path = f"/v1/accounts/{org}/budgets"
    admin.made(path, {"allowance": "5", "calendar": "week", "name": "old"})
    ends = admin.instant(days=2)
    body = {
        "budgets": [
            {"allowance": "7", "calendar": "month", "name": "monthly"},
            {"allowance": "3", "ends_at": ends, "name": "once"},
        ]
    }
    answer = admin.call("PUT", path, body, key="budgets").json()
    assert [each["name"] for each in answer["budgets"]] == ["monthly", "once"]
    assert answer["ended"] == ["old"]
    assert available(admin, org) == "15"
    admin.made(path, {"allowance": "1", "calendar": "day", "name": "later"})
    assert admin.call("PUT", path, body, key="budgets").json() == answer
    assert available(admin, org) == "16"
    assert budget_of(admin, org, "later")["next_at"]
    wrong = {"budgets": [{"allowance": "1", "calendar": "day"}, {"allowance": "1"}]}
    assert problem(admin.call("PUT", path, wrong)) == (422, "limit_invalid")
    assert available(admin, org) == "16"


def test_a_month_is_the_zone_s(admin: Caller, org: str) -> None:
    """Periods end at local midnight of the first, whatever the clocks do there."""
    terms = {"allowance": "5", "calendar": "month", "zone": "America/Santiago"}
    made = admin.made(f"/v1/accounts/{org}/budgets", terms)
    following = datetime.fromisoformat(made["next_at"]).astimezone(UTC)
    assert (following.day, following.hour in (3, 4)) == (1, True)
    admin.advance(12 * MONTH_S)
    assert available(admin, org) == "5"
    periods = admin.read(f"/v1/accounts/{org}/budgets/default/periods")["periods"]
    assert len(periods) in (13, 14)
    assert {datetime.fromisoformat(each["ends_at"]).day for each in periods} == {1}
    assert {each["left"] for each in periods[1:]} == {"0"}


def test_a_budget_pays_for_those_below(admin: Caller, org: str, gpu_type: str) -> None:
    """An account whose budget has yet to start is the payer, and clears when it does."""
    starts = admin.instant(minutes=10)
    terms = {"allowance": "50", "calendar": "day", "starts_at": starts}
    admin.made(f"/v1/accounts/{org}/vision/budgets", terms)
    lease = {"account": f"{org}/vision/alice", "job_id": "j", "gpu_type": gpu_type}
    refused = admin.post("/v1/reservations", lease)
    assert problem(refused) == (402, "insufficient_credits")
    clears = datetime.fromisoformat(refused.json()["clears_at"])
    assert clears == datetime.fromisoformat(starts)
    admin.advance(601)
    assert admin.made("/v1/reservations", lease)["payer"] == f"{org}/vision"
