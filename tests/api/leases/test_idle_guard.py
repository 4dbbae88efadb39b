"""Idle guards over HTTP: inherited downwards, changed from above only, audited, bounded."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.http import Caller, problem


def at(account: str) -> str:
    """Where the guard of an account is."""
    return f"/v1/accounts/{account}/idle-guard"


def test_a_guard_is_off_and_holds_downwards_once_set(admin: Caller, org: str) -> None:
    """The nearest account with a guard of its own decides; ending it, the next one above does."""
    project, user = f"{org}/vision", f"{org}/vision/alice"
    usual = admin.read(at(user))
    assert (usual["window_seconds"], usual["source"], usual["set_by_scope"]) == (0, None, None)
    admin.call("PUT", at(org), {"window_seconds": 1_800})
    below = admin.read(at(user))
    assert (below["window_seconds"], below["source"], below["utilization_percent"]) == (
        1800,
        org,
        5,
    )
    admin.call("PUT", at(project), {"window_seconds": 0})
    assert (admin.read(at(user))["window_seconds"], admin.read(at(user))["source"]) == (0, project)
    ended = admin.call("DELETE", at(project)).json()
    assert (ended["window_seconds"], ended["source"]) == (1_800, org)


def test_a_change_keeps_what_it_does_not_name(admin: Caller, org: str) -> None:
    """Of the guard in force, be it inherited; null is the default, and PUT replaces all."""
    project = f"{org}/vision"
    admin.call("PUT", at(org), {"window_seconds": 1_800, "memory_percent": 30})
    changed = admin.call("PATCH", at(project), {"utilization_percent": 9}).json()
    assert (changed["source"], changed["window_seconds"]) == (project, 1_800)
    assert (changed["memory_percent"], changed["utilization_percent"]) == (30, 9)
    cleared = admin.call("PATCH", at(project), {"utilization_percent": None}).json()
    assert (cleared["memory_percent"], cleared["utilization_percent"]) == (30, 5)
    assert problem(admin.call("PATCH", at(org), {"window_seconds": 1})) == (422, "invalid_request")
    assert admin.call("PUT", at(project), {}).json()["window_seconds"] == 0


def test_what_was_set_above_stays(admin: Caller, org: str) -> None:
    """An org's own staff cannot switch off the guard of the system's staff, here or below."""
    operator = admin.with_key("operator", org)
    project = f"{org}/vision"
    assert operator.call("PUT", at(project), {"window_seconds": 600}).json()["source"] == project
    assert operator.call("DELETE", at(project)).json()["source"] is None
    assert problem(operator.call("PUT", at(org), {"window_seconds": 0})) == (403, "forbidden")
    admin.call("PUT", at(org), {"window_seconds": 600})
    for answer in (
        operator.call("PUT", at(project), {"window_seconds": 0}),
        operator.call("PATCH", at(project), {"window_seconds": 0}),
        operator.call("DELETE", at(project)),
    ):
        assert problem(answer) == (403, "limit_set_above")
        assert "set at system scope" in answer.json()["detail"]
    acts = admin.read("/v1/audit", params={"account": org, "action": "idle_guard.set"})["audit"]
    assert [act["new"]["window_ms"] for act in acts] == [600_000, 600_000]
    assert [act["new"]["set_by_scope"] for act in acts] == ["system", "org"]


def test_nobody_below_is_there_first(admin: Caller, org: str) -> None:
    """A guard that was switched off below gives way to one that a wider scope sets later."""
    project, user = f"{org}/vision", f"{org}/vision/alice"
    lead = admin.with_key("operator", project)
    off = {"window_seconds": 0}
    assert lead.call("PUT", f"/v1/accounts/{user}/idle-guard", off).status_code == 200
    tenant = admin.with_key("operator", org)
    for staff, account, window in ((tenant, project, 1_200), (admin, org, 600)):
        terms = {"window_seconds": window}
        assert staff.call("PUT", f"/v1/accounts/{account}/idle-guard", terms).status_code == 200
        held = admin.read(f"/v1/accounts/{user}/idle-guard")
        assert (held["window_seconds"], held["source"]) == (window, account)
    nearer = {"window_seconds": 1_800}
    assert admin.call("PUT", f"/v1/accounts/{project}/idle-guard", nearer).status_code == 200
    held = admin.read(f"/v1/accounts/{user}/idle-guard")
    assert (held["window_seconds"], held["source"]) == (1_800, project)


def test_agents_may_read_it_and_not_set_it(admin: Caller, org: str) -> None:
    """An agent's key sees the terms of its scope, without the name of an account above."""
    admin.call("PUT", at(org), {"window_seconds": 600})
    agent = admin.with_key("agent", f"{org}/vision")
    seen = agent.read(at(f"{org}/vision/alice"))
    assert (seen["window_seconds"], seen["source"]) == (600, "an account above")
    put = agent.call("PUT", at(f"{org}/vision/alice"), {"window_seconds": 0})
    assert problem(put) == (403, "forbidden")
    assert problem(agent.get(at(org))) == (404, "account_unknown")


@pytest.mark.parametrize(
    "body",
    [
        {"window_seconds": 59},
        {"window_seconds": -1},
        {"window_seconds": 86_401},
        {"window_seconds": 600, "utilization_percent": 0},
        {"window_seconds": 600, "utilization_percent": 101},
        {"window_seconds": 600, "memory_percent": 101},
        {"window_seconds": 600, "grace_seconds": "1h"},
        {"window_seconds": 600, "other": 1},
    ],
)
def test_odd_terms_are_refused(admin: Caller, org: str, body: dict[str, Any]) -> None:
    """Nothing is set."""
    assert problem(admin.call("PUT", at(org), body)) == (422, "invalid_request")
    assert admin.read(at(org))["source"] is None


def test_a_repeat_is_answered_as_before(admin: Caller, org: str) -> None:
    """The same key has one effect; an account that is not there is told so."""
    first = admin.call("PUT", at(org), {"window_seconds": 600}, key="once")
    admin.call("DELETE", at(org))
    again = admin.call("PUT", at(org), {"window_seconds": 600}, key="once")
    assert again.json() == first.json()
    assert admin.read(at(org))["source"] is None
    missing = admin.call("PUT", at(f"{org}/nobody"), {"window_seconds": 600})
    assert problem(missing) == (404, "account_unknown")
