"""API keys that end by themselves."""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.wire.scalars import parse_instant
from support.engines.postgres import sql
from support.servers.http import Caller, fresh_name, problem


def test_a_key_ends_when_it_was_told_to(admin: Caller, org: str) -> None:
    """It works until then, says until when, and is 401 with a reason of its own afterwards."""
    expires_at = admin.instant(hours=1)
    made = admin.made("/v1/keys", {"role": "read-only", "scope": org, "expires_at": expires_at})
    caller = Caller(admin.http, made["secret"])
    own = caller.read("/v1/keys/self")
    assert parse_instant(own["expires_at"]) == parse_instant(expires_at)
    assert own["expires_at"].endswith("Z")
    assert own == {name: value for name, value in made.items() if name not in ("secret", "note")}
    assert own in admin.with_key("admin", org).read("/v1/keys")["keys"]
    [act] = admin.read("/v1/audit", params={"account": org, "action": "key.create"})["audit"][1:]
    assert act["new"]["expires_at"] == own["expires_at"]
    admin.advance(3_600)
    late = caller.get("/v1/keys/self")
    assert problem(late) == (401, "key_expired")
    assert late.headers["www-authenticate"].startswith("Bearer")
    assert problem(caller.get("/v1/keys/self")) == (401, "key_expired")
    admin.made(f"/v1/keys/{made['key_id']}:revoke")
    assert problem(caller.get("/v1/keys/self")) == (401, "unauthenticated")


def test_a_key_that_would_have_ended_is_not_made(admin: Caller, org: str) -> None:
    """Not by the server's clock, in a dry run either; whoever made one in time is told so again."""
    name = fresh_name("key")
    body = {"role": "read-only", "scope": org, "name": name}
    for dry_run in ({}, {"dry-run": "true"}):
        now = admin.instant()
        refused = admin.post("/v1/keys", {**body, "expires_at": now}, headers=dry_run)
        assert problem(refused) == (422, "invalid_request")
        assert refused.json()["field"] == "expires_at"
        assert refused.json()["detail"] == "expires_at: must be later than now."
    assert name not in admin.with_key("admin", org).get("/v1/keys").text
    soon = {**body, "expires_at": admin.instant(minutes=1)}
    made = admin.made("/v1/keys", soon, key=name)
    admin.advance(60)
    again = admin.made("/v1/keys", soon, key=name)
    assert again == {**made, "secret": None, "note": again["note"]}


def test_a_replay_never_shows_the_secret_again(
    admin: Caller, database_of_server: str, org: str
) -> None:
    """The same call gets the key without its secret, and what to do; nothing at rest has it."""
    key = fresh_name("once")
    body = {"role": "read-only", "scope": org}
    made = admin.made("/v1/keys", body, key=key)
    assert made["note"] is None
    for caller in (admin, admin.with_key("admin")):
        again = caller.post("/v1/keys", body, key=key)
        assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
        assert again.json() == {**made, "secret": None, "note": again.json()["note"]}
        assert "shown once" in again.json()["note"]
        assert "make another" in again.json()["note"]
    stored = sql(
        database_of_server,
        "SELECT convert_from(outcome, 'UTF8') FROM idempotency WHERE key = $1",
        f":{key}",
    )
    assert made["secret"] not in str(stored)
    assert "seal" not in str(stored)
    Caller(admin.http, made["secret"]).read("/v1/keys/self")


def test_a_key_without_an_end_has_none(admin: Caller, org: str) -> None:
    """Absent and null are the same."""
    for end in ({}, {"expires_at": None}):
        made = admin.made("/v1/keys", {"role": "read-only", "scope": org, **end})
        assert made["expires_at"] is None


def test_a_key_ends_no_later_than_the_key_that_made_it(admin: Caller, org: str) -> None:
    """It ends with its maker unless it is told an earlier end; a later one is refused."""
    ends = admin.instant(hours=1)
    wanted = {"role": "admin", "scope": org}
    maker = Caller(admin.http, admin.made("/v1/keys", wanted | {"expires_at": ends})["secret"])
    later = maker.post("/v1/keys", wanted | {"expires_at": admin.instant(hours=2)})
    assert problem(later) == (422, "invalid_request")
    assert "must not be later than" in later.json()["detail"]
    assert "the end of this key" in later.json()["detail"]
    usual = maker.made("/v1/keys", wanted)
    assert parse_instant(usual["expires_at"]) == parse_instant(ends)
    soon = admin.instant(minutes=1)
    sooner = maker.made("/v1/keys", wanted | {"expires_at": soon})
    assert parse_instant(sooner["expires_at"]) == parse_instant(soon)
    below = Caller(admin.http, usual["secret"])  # nor does a key that such a key has made
    later = below.post("/v1/keys", wanted | {"expires_at": admin.instant(hours=2)})
    assert problem(later) == (422, "invalid_request")


def test_a_revoked_key_makes_no_other_while_a_server_remembers_it(
    admin: Caller, database_of_server: str, org: str
) -> None:
    """Another server has revoked the key a moment ago: this one looks before it makes a key."""
    made = admin.made("/v1/keys", {"role": "admin", "scope": org})
    thief = Caller(admin.http, made["secret"])
    thief.read("/v1/keys/self")
    name = fresh_name("key")
    revoke = "UPDATE api_keys SET revoked_at = ledger_now() WHERE org_id = $1 AND key_id = $2"
    sql(database_of_server, revoke, *ids.parse_id(ids.KEY, made["key_id"]))
    answer = thief.post("/v1/keys", {"role": "admin", "scope": org, "name": name})
    assert problem(answer) == (401, "unauthenticated")
    assert name not in admin.with_key("admin", org).get("/v1/keys").text
