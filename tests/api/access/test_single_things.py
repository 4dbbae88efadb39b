"""One key and one grant, for those who may see it."""

from __future__ import annotations

from support.servers.http import Caller, fresh_name, problem


def test_a_key_sees_itself_and_nobody_else(admin: Caller, org: str) -> None:
    """Whatever its role, it is told who it is; it cannot ask about another that way."""
    for role in ("read-only", "agent", "member"):
        made = admin.made("/v1/keys", {"role": role, "scope": f"{org}/vision", "name": "mine"})
        secret, _ = made.pop("secret"), made.pop("note")
        caller = Caller(admin.http, secret)
        assert caller.read("/v1/keys/self") == made
        assert (made["scope"], made["expires_at"]) == (f"{org}/vision", None)
        assert problem(caller.get("/v1/keys")) == (403, "forbidden")
        assert problem(caller.get(f"/v1/keys/{made['key_id']}")) == (404, "not_found")
    assert admin.read("/v1/keys/self")["scope"] == ""


def test_a_grant_is_there_for_those_who_see_its_account(admin: Caller, org: str) -> None:
    """One grant as it stands now, for its tenant; for another, and for what is no grant, 404."""
    grant = admin.made("/v1/credits/issue", {"account": f"{org}/vision", "amount": "5"})
    path = f"/v1/grants/{grant['grant_id']}"
    assert admin.read(path) == grant
    other = fresh_name("org")
    admin.made("/v1/accounts", {"path": other})
    for scope in (other, f"{org}/vision/alice"):
        assert problem(admin.with_key("admin", scope).get(path)) == (404, "grant_unknown")
    assert admin.with_key("read-only", f"{org}/vision").read(path) == grant
    for wrong in (
        f"{path}z9",
        "/v1/grants/none",
        "/v1/grants/grt_zzzzzzz_1",
        "/v1/grants/grt_zzzzzz_1",
    ):
        assert problem(admin.get(wrong)) == (404, "grant_unknown")
    short = {"account": org, "amount": "5", "expires_at": admin.instant(seconds=60)}
    ending = admin.made("/v1/credits/issue", short)
    admin.advance(61)
    shown = admin.read(f"/v1/grants/{ending['grant_id']}")
    assert (shown["state"], shown["remaining"]) == ("ended", "0")
