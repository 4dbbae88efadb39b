"""Budget requests over HTTP: asked below, decided above, carried out once, all written down."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpucredits.core import request as rules
from support.servers.http import Caller, problem

WANT: dict[str, Any] = {"kind": "credits", "amount": "50", "reason": "the paper is due"}


@pytest.fixture
def member(admin: Caller, org: str) -> Caller:
    """A member of the org's project."""
    return admin.with_key("member", f"{org}/vision")


@pytest.fixture
def asked(member: Caller, org: str) -> dict[str, Any]:
    """An open request for credits."""
    answer: dict[str, Any] = member.made("/v1/requests", {"account": f"{org}/vision", **WANT})
    return answer


def acts_on(admin: Caller, account: str, action: str) -> list[dict[str, Any]]:
    """What the audit log says of an account."""
    rows: list[dict[str, Any]] = admin.read(
        "/v1/audit", params={"account": account, "action": action}
    )["audit"]
    return rows


def available(admin: Caller, account: str) -> str:
    """What an account has."""
    return str(admin.read(f"/v1/accounts/{account}/balance")["available"])


def test_a_request_is_asked_approved_and_carried_out(
    admin: Caller, member: Caller, org: str, asked: dict[str, Any]
) -> None:
    """Credits arrive on the approver's terms, and every step names its actor, old and new."""
    account = f"{org}/vision"
    assert (asked["state"], asked["asked"]["amount"]) == ("open", "50")
    where = f"/v1/requests/{asked['request_id']}"
    ends_at = admin.instant(days=3)
    terms = {"amount": "40", "ends_at": ends_at, "note": "40 must do"}
    done = admin.made(f"{where}:approve", terms)
    assert (done["state"], done["approved"]["amount"], done["note"]) == (
        "approved",
        "40",
        "40 must do",
    )
    assert member.read(where) == done
    assert available(admin, account) == "40"
    [grant] = admin.read("/v1/grants", params={"account": account})["grants"]
    assert grant["grant_id"] == done["result"]
    assert grant["expires_at"] == done["approved"]["ends_at"]
    [told] = acts_on(admin, account, "request.approve")
    assert (told["old"]["state"], told["new"]["state"]) == ("open", "approving")
    assert told["new"]["given_amount"] == "40"
    [applied] = acts_on(admin, account, "request.apply")
    assert applied["new"]["result"] == grant["grant_id"]
    assert told["actor"] == applied["actor"] == done["decided_by"]
    assert acts_on(admin, account, "request.ask")[0]["actor"] == asked["asked_by"]
    assert acts_on(admin, account, "credits.issue")[0]["actor"] == done["decided_by"]


def test_a_decided_request_stays_decided(
    admin: Caller, member: Caller, org: str, asked: dict[str, Any]
) -> None:
    """Declined with a note, it can be neither approved, nor declined again, nor canceled."""
    where = f"/v1/requests/{asked['request_id']}"
    assert problem(admin.post(f"{where}:decline", {"note": " "})) == (422, "invalid_request")
    declined = admin.made(f"{where}:decline", {"note": "not this month"})
    assert (declined["state"], declined["note"]) == ("declined", "not this month")
    for verb, body in (("approve", None), ("decline", {"note": "again"})):
        assert problem(admin.post(f"{where}:{verb}", body)) == (409, "request_state")
    assert problem(member.post(f"{where}:cancel")) == (409, "request_state")
    assert available(admin, f"{org}/vision") == "0"


def test_only_who_asked_cancels(admin: Caller, member: Caller, asked: dict[str, Any]) -> None:
    """Another key of the same scope, or staff, cannot take a request back for somebody."""
    where = f"/v1/requests/{asked['request_id']}"
    other = admin.with_key("member", asked["account"])
    for caller in (other, admin):
        assert problem(caller.post(f"{where}:cancel")) == (403, "forbidden")
    assert member.made(f"{where}:cancel")["state"] == "canceled"


def test_nobody_decides_about_their_own(
    admin: Caller, member: Caller, org: str, asked: dict[str, Any]
) -> None:
    """Not who asked, not a key for the very account, not a member, and no tenant makes credits."""
    where = f"/v1/requests/{asked['request_id']}"
    assert problem(member.post(f"{where}:approve")) == (403, "forbidden")
    same_scope = admin.with_key("operator", f"{org}/vision")
    assert problem(same_scope.post(f"{where}:approve")) == (403, "forbidden")
    assert problem(same_scope.post(f"{where}:decline", {"note": "n"})) == (403, "forbidden")
    tenant = admin.with_key("operator", org)
    assert problem(tenant.post(f"{where}:approve")) == (403, "forbidden")
    mine = admin.made("/v1/requests", {"account": org, **WANT})
    assert problem(admin.post(f"/v1/requests/{mine['request_id']}:approve")) == (403, "forbidden")
    assert tenant.made(f"{where}:decline", {"note": "wider scope may decline"})
    assert available(admin, org) == available(admin, f"{org}/vision") == "0"


def test_other_orgs_requests_do_not_exist(admin: Caller, org: str, asked: dict[str, Any]) -> None:
    """A stranger, and a neighbour's project, get the answer of a request that never was."""
    admin.made("/v1/accounts", {"path": f"{org}/audio"})
    admin.made("/v1/accounts", {"path": f"{org}x"})
    where = f"/v1/requests/{asked['request_id']}"
    for stranger in (admin.with_key("admin", f"{org}x"), admin.with_key("admin", f"{org}/audio")):
        assert problem(stranger.get(where)) == (404, "request_unknown")
        for verb, body in (("approve", None), ("decline", {"note": "n"}), ("cancel", None)):
            answer = stranger.post(f"{where}:{verb}", body)
            assert problem(answer) == (404, "request_unknown")
        assert stranger.read("/v1/requests")["requests"] == []
        ask = stranger.post("/v1/requests", {"account": f"{org}/vision", **WANT})
        assert problem(ask) == (404, "account_unknown")
        hidden = stranger.get("/v1/requests", params={"account": f"{org}/vision"})
        assert problem(hidden) == (404, "account_unknown")


def test_lists_by_scope_state_and_kind(admin: Caller, member: Caller, org: str) -> None:
    """A member sees the requests of their scope, an operator those below theirs, page by page."""
    for account in (f"{org}/vision", f"{org}/vision/alice"):
        for _ in range(2):
            member.made("/v1/requests", {"account": account, **WANT})
    admin.made("/v1/requests", {"account": org, **WANT})
    assert len(member.read("/v1/requests")["requests"]) == 4
    boss = admin.with_key("operator", org)
    listed = boss.read("/v1/requests", params={"limit": 3})
    rest = boss.read("/v1/requests", params={"cursor": listed["next_cursor"]})
    ids = [row["request_id"] for row in (*listed["requests"], *rest["requests"])]
    assert len(set(ids)) == 5
    first = boss.read("/v1/requests", params={"account": f"{org}/vision/alice"})["requests"][0]
    boss.made(f"/v1/requests/{first['request_id']}:decline", {"note": "no"})
    assert len(boss.read("/v1/requests", params={"state": "open"})["requests"]) == 4
    assert len(boss.read("/v1/requests", params={"state": "declined"})["requests"]) == 1
    assert boss.read("/v1/requests", params={"kind": "budget"})["requests"] == []


def test_requests_run_out(admin: Caller, member: Caller, asked: dict[str, Any]) -> None:
    """Nobody decided in time: it is expired at that instant, and cannot be approved any more."""
    where = f"/v1/requests/{asked['request_id']}"
    admin.advance(rules.OPEN_US // 1_000_000)
    assert member.read(where)["state"] == "expired"
    assert problem(admin.post(f"{where}:approve")) == (409, "request_state")
    assert member.read("/v1/requests", params={"state": "expired"})["requests"]
    assert member.read("/v1/requests", params={"state": "open"})["requests"] == []


def test_two_approvers_at_once_have_one_effect(
    admin: Caller, org: str, asked: dict[str, Any]
) -> None:
    """Of many who approve with other numbers at once one wins, and one grant is made."""
    others = [admin.with_key("operator") for _ in range(6)]

    def approve(number: int) -> int:
        body = {"amount": str(number + 1)}
        return others[number].post(f"/v1/requests/{asked['request_id']}:approve", body).status_code

    with ThreadPoolExecutor(6) as pool:
        codes = sorted(pool.map(approve, range(6)))
    assert codes == [200] + [409] * 5
    grants = admin.read("/v1/grants", params={"account": f"{org}/vision"})["grants"]
    assert len(grants) == 1
    row = admin.read(f"/v1/requests/{asked['request_id']}")
    assert row["approved"]["amount"] == grants[0]["amount"]


def test_a_repeated_approval_answers_the_same(
    admin: Caller, org: str, asked: dict[str, Any]
) -> None:
    """The same key gives the same answer, and does nothing more; so do asking and declining."""
    where = f"/v1/requests/{asked['request_id']}:approve"
    key = f"approve-{asked['request_id']}"
    first, again = (admin.post(where, {"amount": "7"}, key=key) for _ in range(2))
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert problem(admin.post(where, {"amount": "8"}, key=key)) == (409, "idempotency_key_reused")
    assert available(admin, f"{org}/vision") == "7"


def test_a_refused_approval_opens_the_request_again(
    admin: Caller, org: str, member: Caller
) -> None:
    """What the ledger refuses is told, also to a repeated call, and can be approved otherwise."""
    account = f"{org}/vision"
    items = [{"account": account, "amount": "1"}] * 1_000  # as many grants as an account may have
    admin.made("/v1/credits/issue:batch", {"items": items})
    asked = member.made("/v1/requests", {"account": account, **WANT})
    where = f"/v1/requests/{asked['request_id']}"
    key = f"full-{asked['request_id']}"
    for _ in range(2):
        assert problem(admin.post(f"{where}:approve", key=key)) == (409, "grants_full")
    assert member.read(where)["state"] == "open"
    [act] = acts_on(admin, account, "request.reopen")
    assert "1000 grants" in act["new"]["refusal"]
    admin.made("/v1/credits/transfer", {"from": account, "to": org, "amount": "500"})
    assert admin.made(f"{where}:approve")["state"] == "approved"
    assert problem(admin.post(f"{where}:approve", key=key)) == (409, "request_state")
    assert available(admin, account) == "550"


def test_an_orgs_own_staff_gives_of_what_it_has(
    admin: Caller, org: str, member: Caller, asked: dict[str, Any]
) -> None:
    """A tenant's operator makes no credits, but moves the org's to who asked, as far as they go."""
    tenant = admin.with_key("operator", org)
    where = f"/v1/requests/{asked['request_id']}:approve"
    short = tenant.post(where, {"take_from": org})
    assert problem(short) == (402, "insufficient_credits")
    admin.made("/v1/credits/issue", {"account": org, "amount": "80"})
    ended = {"take_from": org, "ends_at": admin.instant(days=1)}
    assert problem(tenant.post(where, ended)) == (422, "invalid_request")
    assert problem(tenant.post(where, {"take_from": f"{org}x"})) == (404, "account_unknown")
    same = tenant.post(where, {"take_from": asked["account"]})
    assert problem(same) == (422, "same_account")
    done = tenant.made(where, {"take_from": org, "amount": "30"})
    assert (done["taken_from"], done["result"][:3]) == (org, "trf")
    assert (available(admin, org), available(admin, asked["account"])) == ("50", "30")


def test_credits_that_move_are_not_said_to_end_as_asked(
    admin: Caller, org: str, member: Caller
) -> None:
    """They keep their windows: an end that was asked for is in no answer and no act about them."""
    granted = admin.made("/v1/credits/issue", {"account": org, "amount": "80"})
    account = f"{org}/vision/alice"
    wanted = {"account": account, **WANT, "ends_at": admin.instant(days=1)}
    asked = member.made("/v1/requests", wanted)
    admin.advance(2 * 86_400)
    where = f"/v1/requests/{asked['request_id']}:approve"
    done = admin.made(where, {"take_from": org})
    assert done["approved"]["ends_at"] is None
    [moved] = admin.read("/v1/grants", params={"account": account})["grants"]
    assert moved["expires_at"] is granted["expires_at"] is None
    acts = acts_on(admin, account, "request.approve") + acts_on(admin, account, "request.apply")
    assert {act["new"].get("given_ends_at") for act in acts} == {None}


def test_nobody_gives_what_they_do_not_see(admin: Caller, org: str, member: Caller) -> None:
    """An operator of a project cannot take the org's credits for a user of that project."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "80"})
    asked = member.made("/v1/requests", {"account": f"{org}/vision/alice", **WANT})
    lead = admin.with_key("operator", f"{org}/vision")
    answer = lead.post(f"/v1/requests/{asked['request_id']}:approve", {"take_from": org})
    assert problem(answer) == (404, "account_unknown")
    assert available(admin, org) == "80"


def test_dry_runs_change_nothing(admin: Caller, member: Caller, org: str) -> None:
    """Asking and approving can be tried out."""
    body = {"account": f"{org}/vision", **WANT}
    assert member.made("/v1/requests?dry_run=true", body)["state"] == "open"
    assert member.read("/v1/requests")["requests"] == []
    asked = member.made("/v1/requests", body)
    where = f"/v1/requests/{asked['request_id']}"
    assert admin.made(f"{where}:approve?dry_run=true")["state"] == "approved"
    assert member.read(where)["state"] == "open"
    assert available(admin, f"{org}/vision") == "0"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"reason": "a\u202eb"}, "reason"),
        ({"amount": "0"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "1e9"}, "amount"),
        ({"kind": "everything"}, "kind"),
        ({"quota_id": "qta_1_1"}, "quota_id"),
        ({"refill_per_hour": "5"}, "refill_per_hour"),
        ({"budget": "b"}, "budget"),
        ({"kind": "quota", "ends_at": "2099-01-01T00:00:00Z"}, "quota_id"),
        ({"kind": "rate_limit"}, "ends_at"),
        ({"extra": 1}, "extra"),
    ],
)
def test_what_does_not_fit_is_told_where(
    member: Caller, org: str, change: dict[str, Any], field: str
) -> None:
    """A request that makes no sense is refused and says which field is wrong."""
    answer = member.post("/v1/requests", {"account": f"{org}/vision", **WANT, **change})
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == field


def test_what_cannot_be_is_refused(admin: Caller, member: Caller, org: str) -> None:
    """An end that has passed, an account that is not there, and one open request too many."""
    account = f"{org}/vision"
    past = {"account": account, **WANT, "ends_at": admin.instant(seconds=-1)}
    assert problem(member.post("/v1/requests", past)) == (422, "window_ended")
    nobody = {"account": f"{org}/vision/nobody", **WANT}
    assert problem(member.post("/v1/requests", nobody)) == (404, "account_unknown")
    asked = member.made("/v1/requests", {"account": account, **WANT})
    late = {"ends_at": admin.instant(seconds=-1)}
    where = f"/v1/requests/{asked['request_id']}"
    assert problem(admin.post(f"{where}:approve", late)) == (422, "window_ended")
    for _ in range(rules.OPEN_MAX - 1):
        member.made("/v1/requests", {"account": account, **WANT})
    full = member.post("/v1/requests", {"account": account, **WANT})
    assert problem(full) == (409, "requests_full")
    member.made(f"{where}:cancel")
    member.made("/v1/requests", {"account": account, **WANT})
