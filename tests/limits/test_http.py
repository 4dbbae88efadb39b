"""Request limits as a caller meets them: one real server whose keys have limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from support.engines.postgres import TestServer, sql, temporary_directory
from support.servers.http import Caller, RunningServer, fresh_name, problem, running_server
from support.waiting import HANGS_S

SLOW = {"refill_per_hour": 1}
HOUR_S = 3_600
HOSTILE = [
    "{acme}:key:1",
    "gpucredits:{beta}:org",
    "'; DROP TABLE request_buckets; --",
    "\\x7b*} KEYS[1] return 1",
    "名前 🚀",
]


@pytest.fixture(scope="module")
def dsn(postgres: TestServer) -> Iterator[str]:
    """The server's database."""
    with postgres.database() as address:
        yield address


@pytest.fixture(scope="module")
def server(dsn: str) -> Iterator[RunningServer]:
    """A server that limits only those it was told to."""
    with temporary_directory() as folder, running_server(folder, "--database-url", dsn) as running:
        yield running


@pytest.fixture(scope="module")
def admin(server: RunningServer) -> Iterator[Caller]:
    """The first administrator."""
    with httpx.Client(base_url=server.url, timeout=HANGS_S) as http:
        yield Caller(http, server.admin_secret)


@pytest.fixture
def org(admin: Caller) -> str:
    """A fresh org."""
    name = fresh_name("org")
    admin.made("/v1/accounts", {"path": name})
    return name


def limited(admin: Caller, scope: str, role: str = "member", **terms: Any) -> tuple[Caller, str]:
    """A new key with a limit, and its id."""
    made = admin.made("/v1/keys", {"role": role, "scope": scope})
    answer = admin.call("PUT", f"/v1/keys/{made['key_id']}/limit", {**SLOW, **terms})
    assert answer.status_code == 200, answer.text
    return Caller(admin.http, made["secret"]), made["key_id"]


def statuses(caller: Caller, path: str, tries: int) -> list[int]:
    """What some requests in a row are answered."""
    return [caller.get(path).status_code for _ in range(tries)]


def test_the_answer_to_one_request_too_many(admin: Caller, org: str) -> None:
    """429, rate_limited, when it clears, which limit; and what is left on every answer before."""
    caller, key_id = limited(admin, org, refill_per_hour=1, capacity=3)
    path = f"/v1/accounts/{org}/balance"
    left = []
    began = time.monotonic()
    for _ in range(3):
        answer = caller.get(path)
        assert answer.status_code == 200
        assert answer.headers["ratelimit-limit"] == "3"
        left.append(answer.headers["ratelimit-remaining"])
    assert left == ["2", "1", "0"]
    denied = caller.get(path)
    assert problem(denied) == (429, "rate_limited")
    passed_s = time.monotonic() - began + 1
    assert HOUR_S - passed_s <= int(denied.headers["retry-after"]) <= HOUR_S
    assert denied.headers["ratelimit-remaining"] == "0"
    assert 3 * HOUR_S - passed_s <= int(denied.headers["ratelimit-reset"]) <= 3 * HOUR_S
    body = denied.json()
    assert body["limit"] == {
        "holder": "key",
        "name": key_id,
        "unit": "requests",
        "capacity": 3,
        "refill_per_hour": 1,
    }
    wait_s = (instant(body["clears_at"]) - datetime.now(UTC)).total_seconds()
    assert HOUR_S - (time.monotonic() - began + 1) <= wait_s <= HOUR_S + 1
    assert key_id in body["detail"]


def test_a_denied_write_is_not_remembered(admin: Caller, org: str) -> None:
    """The same request with the same key is carried out, first, once there is a token."""
    caller, key_id = limited(admin, org, role="operator", capacity=1)
    caller.get("/v1/prices")
    body = {"path": f"{org}/vision"}
    assert problem(caller.post("/v1/accounts", body, key="same")) == (429, "rate_limited")
    assert admin.call("DELETE", f"/v1/keys/{key_id}/limit").status_code == 200
    done = caller.post("/v1/accounts", body, key="same")
    assert done.status_code == 201
    assert "idempotency-replayed" not in done.headers
    assert "ratelimit-limit" not in done.headers


def test_health_and_description_are_never_limited(admin: Caller, org: str) -> None:
    """Paths without a key answer whoever is out of tokens."""
    caller, _ = limited(admin, org, capacity=1)
    assert statuses(caller, "/v1/prices", 2) == [200, 429]
    assert statuses(caller, "/healthz", 3) == [200] * 3
    assert statuses(caller, "/v1/openapi.json", 3) == [200] * 3
    health = admin.read("/healthz")
    assert health["alarms"] == []
    held = {"home": "process", "state": "held", "passed_alone": 0, "let_through": 0}
    assert health["request_limits"] == held


def test_a_request_of_many_heartbeats_is_one_request(admin: Caller, org: str) -> None:
    """Beats are not counted, requests are."""
    caller, _ = limited(admin, org, role="agent", capacity=2)
    beats = [{"reservation_id": f"rsv_1_{n}", "seq": 1, "used_ms": 0} for n in range(1, 500)]
    found = [caller.post("/v1/heartbeats", {"beats": beats}).status_code for _ in range(3)]
    assert found == [200, 200, 429]


def test_what_is_forbidden_or_wrong_costs_a_token_too(admin: Caller, org: str) -> None:
    """Nobody gets past the limit by asking for what they may not have."""
    caller, _ = limited(admin, org, role="read-only", capacity=3)
    assert problem(caller.post("/v1/accounts", {"path": "x"})) == (403, "forbidden")
    assert problem(caller.get("/v1/accounts/nobody")) == (404, "account_unknown")
    assert problem(caller.get("/v1/prices?limit=0")) == (422, "invalid_request")
    assert problem(caller.post("/v1/accounts", {"path": "x"})) == (429, "rate_limited")


def test_a_wrong_secret_draws_from_nobody(admin: Caller, org: str) -> None:
    """Somebody who guesses cannot use up another's tokens."""
    caller, _ = limited(admin, org, capacity=2)
    for secret in ("gck_" + "x" * 43, caller.secret[:-1], "x"):
        stranger = Caller(admin.http, secret)
        assert problem(stranger.get("/v1/prices")) == (401, "unauthenticated")
    assert statuses(caller, "/v1/prices", 3) == [200, 200, 429]


def test_keys_of_an_org_share_its_limit(admin: Caller, org: str) -> None:
    """Making more keys makes no more requests; other orgs and the system's keys are not bound."""
    put = admin.call("PUT", f"/v1/accounts/{org}/request-limit", {**SLOW, "capacity": 4})
    assert put.json()["limit"] == {"capacity": 4, "refill_per_hour": 1}
    keys = [admin.with_key("member", org) for _ in range(3)]
    found = [key.get("/v1/prices") for key in keys for _ in range(2)]
    assert [answer.status_code for answer in found] == [200] * 4 + [429] * 2
    assert found[-1].json()["limit"]["holder"] == "org"
    assert found[-1].json()["limit"]["name"] == org
    assert admin.read(f"/v1/accounts/{org}/request-limit")["source"] == "own"
    other = fresh_name("org")
    admin.made("/v1/accounts", {"path": other})
    assert statuses(admin.with_key("member", other), "/v1/prices", 6) == [200] * 6


def test_the_overview_shows_the_orgs_limit_and_the_callers_own(admin: Caller, org: str) -> None:
    """The org's among the org's limits, the key's last; each caller sees its own key's only."""
    path = f"{org}/vision"
    admin.made("/v1/accounts", {"path": path})
    terms = {"refill_per_hour": 1, "capacity": 9}
    where = f"/v1/accounts/{path}/limits"
    assert admin.read(where)["limits"] == []
    for account in (org, path):
        quota = {"dimension": "concurrent_jobs", "limit": 4}
        admin.made(f"/v1/accounts/{account}/quotas", quota)
    admin.call("PUT", f"/v1/accounts/{org}/request-limit", terms)
    caller, key_id = limited(admin, path, refill_per_hour=1, capacity=5)
    began = time.monotonic()
    caller.get("/v1/prices")
    shown = caller.read(where)
    seen = [(each["kind"], each["scope"], each["account"]) for each in shown["limits"]]
    assert seen == [
        ("quota", "org", "an account above"),
        ("request_limit", "org", "an account above"),
        ("quota", "project", path),
        ("request_limit", "key", path),
    ]
    of_org, of_key = shown["limits"][1], shown["limits"][3]
    assert [of_org[name] for name in ("cap", "used", "left")] == [None] * 3
    assert [of_key[name] for name in ("unit", "cap", "used", "left")] == ["requests", "5", "2", "3"]
    full_in_s = (instant(of_key["resets_at"]) - instant(shown["as_of"])).total_seconds()
    assert 2 * HOUR_S - (time.monotonic() - began + 1) <= full_in_s <= 2 * HOUR_S + 1
    assert (of_org["name"], of_org["limit_id"]) == ("requests of all keys", None)
    assert (of_key["name"], of_key["limit_id"]) == (f"requests of {key_id}", key_id)
    by_staff = admin.read(where)["limits"]
    assert [each["left"] for each in by_staff if each["unit"] == "requests"] == ["7"]


def instant(text: str) -> datetime:
    """An instant of an answer."""
    return datetime.fromisoformat(text)


def test_a_default_is_shown_like_a_limit_that_was_set(postgres: TestServer) -> None:
    """Of a key of the whole system, and of an org that never made a request."""
    with postgres.database() as dsn, temporary_directory() as folder:
        defaults = ("--requests-per-second", "2", "--org-requests-per-second", "5")
        with (
            running_server(folder, "--database-url", dsn, *defaults) as server,
            httpx.Client(base_url=server.url, timeout=HANGS_S) as http,
        ):
            admin = Caller(http, server.admin_secret)
            admin.made("/v1/accounts", {"path": "acme"})
            of_org, of_key = admin.read("/v1/accounts/acme/limits")["limits"]
    assert [of_org[name] for name in ("cap", "used", "left", "resets_at")] == [
        "20",
        "0",
        "20",
        None,
    ]
    assert (of_key["scope"], of_key["account"], of_key["cap"]) == ("key", "", "8")


def test_limits_are_set_by_the_system_only(admin: Caller, org: str) -> None:
    """A tenant's admin sees the limits of its keys and changes none, its own least of all."""
    tenant, tenant_key = limited(admin, org, role="admin", refill_per_hour=3_600, capacity=100)
    key = f"/v1/keys/{tenant_key}/limit"
    account = f"/v1/accounts/{org}/request-limit"
    for path in (key, account):
        for method, body in (("PUT", {"refill_per_second": 1_000}), ("DELETE", None)):
            assert problem(tenant.call(method, path, body)) == (403, "forbidden")
    assert tenant.read(key)["limit"] == {"capacity": 100, "refill_per_hour": 3_600}
    assert tenant.read(account)["limit"] is None
    operator = admin.with_key("operator")
    assert operator.call("PUT", key, {"refill_per_second": 2}).json()["limit"]["capacity"] == 8


def test_limits_of_others_do_not_exist(admin: Caller, org: str) -> None:
    """Another org's keys and limits are 404, like those that never were."""
    other = fresh_name("org")
    admin.made("/v1/accounts", {"path": other})
    theirs = admin.made("/v1/keys", {"role": "agent", "scope": other})["key_id"]
    tenant = admin.with_key("admin", org)
    assert problem(tenant.get(f"/v1/keys/{theirs}/limit")) == (404, "key_unknown")
    assert problem(tenant.get(f"/v1/accounts/{other}/request-limit")) == (404, "account_unknown")
    for wrong in ("key_1_zzzz", "key_zzzzzz_1", "grt_1_1", "key_0_zzzzzzzzzzzz"):
        answer = admin.call("PUT", f"/v1/keys/{wrong}/limit", {"refill_per_second": 1})
        assert problem(answer) == (404, "key_unknown")


def test_a_change_is_done_once_and_written_down(admin: Caller, org: str) -> None:
    """The same key gives the same answer, a dry run changes nothing, the audit log has each."""
    key_id = admin.made("/v1/keys", {"role": "agent", "scope": org})["key_id"]
    path = f"/v1/keys/{key_id}/limit"
    body = {"refill_per_second": 5, "capacity": 9}
    dry = admin.call("PUT", path, body, params={"dry_run": "true"})
    assert dry.json()["limit"]["capacity"] == 9
    assert admin.read(path)["limit"] is None
    key = fresh_name("once-")
    first, second = (admin.call("PUT", path, body, key=key) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert problem(admin.call("PUT", path, {**body, "capacity": 8}, key=key))[0] == 409
    admin.call("DELETE", path)
    acts = admin.read("/v1/audit", params={"resource": key_id})["audit"]
    told = [(act["action"], act["old"], act["new"]) for act in acts if "limit" in act["action"]]
    terms = {"scope": org, "capacity": 9, "refill_per_hour": 18_000}
    assert told == [("request_limit.end", terms, None), ("request_limit.set", None, terms)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "refill_per_second"),
        ({"refill_per_second": 1, "refill_per_hour": 1}, "refill_per_second"),
        ({"refill_per_second": 0}, "refill_per_second"),
        ({"refill_per_second": 1.5}, "refill_per_second"),
        ({"refill_per_hour": 3_600_000_001}, "refill_per_hour"),
        ({"refill_per_hour": 1, "capacity": 0}, "capacity"),
        ({"refill_per_hour": 1, "capacity": 1_000_001}, "capacity"),
        ({"refill_per_hour": 1, "burst": 1}, "burst"),
    ],
)
def test_terms_that_cannot_be_are_422(admin: Caller, body: dict[str, Any], field: str) -> None:
    """The answer names the field."""
    answer = admin.call("PUT", "/v1/keys/key_0_1/limit", body)
    assert problem(answer) == (422, "invalid_request")
    assert answer.json()["field"] == field


def test_only_whole_orgs_have_limits(admin: Caller, org: str) -> None:
    """A project has none."""
    admin.made("/v1/accounts", {"path": f"{org}/vision"})
    path = f"/v1/accounts/{org}/vision/request-limit"
    assert problem(admin.get(path)) == (422, "invalid_request")
    word = {"path": f"{org}/request-limit"}  # which would make its path mean two things
    assert problem(admin.post("/v1/accounts", word)) == (422, "invalid_request")


def test_a_limit_holds_at_once_for_keys_in_use(admin: Caller, org: str) -> None:
    """A server that has just served a key applies what was set for it or its org since."""
    caller = admin.with_key("admin", org)
    assert statuses(caller, "/v1/prices", 3) == [200] * 3
    key_id = caller.read("/v1/keys")["keys"][0]["key_id"]
    body = {**SLOW, "capacity": 2}
    admin.call("PUT", f"/v1/keys/{key_id}/limit", body)
    assert statuses(caller, "/v1/prices", 3) == [200, 200, 429]
    admin.call("DELETE", f"/v1/keys/{key_id}/limit")
    assert statuses(caller, "/v1/prices", 3) == [200] * 3
    admin.call("PUT", f"/v1/accounts/{org}/request-limit", body)
    assert statuses(caller, "/v1/prices", 3) == [200, 200, 429]


def test_hostile_names_of_keys_are_names(admin: Caller, org: str) -> None:
    """A key's name is in no bucket's name: keys with odd names have buckets of their own."""
    secrets = []
    for name in HOSTILE:
        made = admin.made("/v1/keys", {"role": "member", "scope": org, "name": name})
        body = {**SLOW, "capacity": 2}
        assert admin.call("PUT", f"/v1/keys/{made['key_id']}/limit", body).status_code == 200
        secrets.append(made["secret"])
    for secret in secrets:
        assert statuses(Caller(admin.http, secret), "/v1/prices", 3) == [200, 200, 429]


def test_a_restart_gives_nobody_a_fresh_bucket(postgres: TestServer) -> None:
    """Levels are saved when the server stops, and the next server goes on from them."""
    with postgres.database() as dsn, temporary_directory() as folder:
        options = ("--database-url", dsn, "--requests-per-second", "1/3600", "--request-burst", "9")
        with (
            running_server(folder, *options) as first,
            httpx.Client(base_url=first.url, timeout=HANGS_S) as http,
        ):
            assert statuses(Caller(http, first.admin_secret), "/v1/prices", 6) == [200] * 6
        assert sql(dsn, "SELECT level FROM request_buckets") == 3
        with (
            running_server(folder, *options) as second,
            httpx.Client(base_url=second.url, timeout=HANGS_S) as http,
        ):
            caller = Caller(http, second.admin_secret)
            assert statuses(caller, "/v1/prices", 5) == [200] * 3 + [429] * 2
