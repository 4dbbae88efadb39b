"""Lease tokens over HTTP: issued for live leases, good once, and refused and audited otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from gpucredits.client import LeaseClaims, TokenRefused, verify_token
from gpucredits.wire.access.lease_token import sign, thumbprint
from support.servers.http import Caller, fresh_name, problem
from support.waiting import until

REDEEM = "/v1/tokens:redeem"


@pytest.fixture
def funded(admin: Caller, org: str) -> str:
    """An org with credits."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "1000"})
    return org


@pytest.fixture
def reserve(admin: Caller, funded: str, gpu_type: str) -> Callable[..., Any]:
    """Makes leases on gpu-7."""

    def made(**fields: Any) -> Any:
        body = {"account": funded, "job_id": fresh_name("j"), "gpu_type": gpu_type}
        usual = {"gpu_count": "0.5", "node": "gpu-7", "window_seconds": 120}
        return admin.made("/v1/reservations", {**body, **usual, **fields})

    return made


def issue(caller: Caller, reservation_id: str) -> Any:
    """A token for a lease."""
    return caller.made(f"/v1/reservations/{reservation_id}:token")


def refusals(admin: Caller, resource: str, request_id: str = "") -> list[Any]:
    """What the audit log says of refused tokens."""
    rows = admin.read(f"/v1/audit?action=token.refuse&resource={resource}")["audit"]
    return [row["new"] for row in rows if request_id in ("", row["request_id"])]


def checked(admin: Caller, token: str, **other: Any) -> LeaseClaims:
    """What a verifier without a server's help finds, at the server's time."""
    jwks = admin.get("/v1/jwks").content
    now_s = int(_seconds(admin.instant()))
    return verify_token(token, jwks, now_s=now_s, **other)


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()


def test_a_token_says_what_its_lease_is(admin: Caller, reserve: Callable[..., Any]) -> None:
    """With the reserve or on demand, and everybody can check it with the published keys."""
    lease = reserve(token=True)
    again = issue(admin, lease["reservation_id"])
    for token in (lease["token"], again["token"]):
        claims = checked(admin, token, node="gpu-7", reservation_id=lease["reservation_id"])
        assert (claims.sub, claims.node) == (lease["reservation_id"], "gpu-7")
        assert (claims.gpu_count, claims.rate_per_hour) == ("0.5", "18")
        assert claims.exp - claims.iat in (119, 120)
    assert reserve()["token"] is None
    assert 0 < again["expires_in_ms"] <= 120_000


def test_published_keys_need_no_api_key(admin: Caller, reserve: Callable[..., Any]) -> None:
    """Anybody reads them, and nothing of them is private."""
    issue(admin, reserve()["reservation_id"])
    answer = admin.http.get("/v1/jwks")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=300"
    [*_, key] = answer.json()["keys"]
    assert set(key) == {"kid", "x", "kty", "crv", "alg", "use"}


def test_a_token_starts_one_job(admin: Caller, reserve: Callable[..., Any]) -> None:
    """The same request again is a replay of its answer; another is refused, and audited.

    A fresh token of the lease is refused as well: the lease has started its job.
    """
    lease = reserve(token=True)
    body = {"token": lease["token"], "reservation_id": lease["reservation_id"], "node": "gpu-7"}
    key = fresh_name("redeem")
    first = admin.made(REDEEM, body, key=key)
    assert (first["reservation_id"], first["gpu_count"]) == (lease["reservation_id"], "0.5")
    again = admin.post(REDEEM, body, key=key)
    assert again.headers["idempotency-replayed"] == "true"
    assert problem(admin.post(REDEEM, body)) == (409, "token_replayed")
    [row] = until(lambda: refusals(admin, lease["reservation_id"]))
    assert (row["reason"], row["count"]) == ("token_replayed", 1)
    fresh = issue(admin, lease["reservation_id"])["token"]
    assert problem(admin.post(REDEEM, {**body, "token": fresh})) == (409, "token_replayed")
    other = reserve(token=True)["token"]
    admin.made(REDEEM, {"token": other})


def test_of_many_who_redeem_a_token_one_does(admin: Caller, reserve: Callable[..., Any]) -> None:
    """However close they are, and whether or not each has a token of the lease for itself."""
    lease = reserve(token=True)
    tokens = [lease["token"], *(issue(admin, lease["reservation_id"])["token"] for _ in range(3))]

    def redeem(place: int) -> int:
        return admin.post(REDEEM, {"token": tokens[place % len(tokens)]}).status_code

    with ThreadPoolExecutor(8) as threads:
        told = sorted(threads.map(redeem, range(8)))
    assert told == [200, *[409] * 7]


@pytest.mark.parametrize("forge", ["signature", "claims", "key", "nonsense"])
def test_a_forged_token_is_refused_and_audited(
    admin: Caller, reserve: Callable[..., Any], forge: str
) -> None:
    """Signed by somebody else, changed, or no token at all."""
    lease = reserve(token=True)
    head, body, signature = lease["token"].split(".")
    claims = checked(admin, lease["token"])
    own = Ed25519PrivateKey.generate()
    kid = admin.read("/v1/jwks")["keys"][-1]["kid"]
    forged = {
        "signature": f"{head}.{body}.{'A' * len(signature)}",
        "claims": sign(structs.replace(claims, exp=claims.exp + 9_999), own, kid),
        "key": sign(claims, own, thumbprint(own.public_key().public_bytes_raw())),
        "nonsense": "a.b.c",
    }[forge]
    named = {"reservation_id": lease["reservation_id"]}
    assert problem(admin.post(REDEEM, {"token": forged, **named})) == (403, "token_invalid")
    [row] = until(lambda: refusals(admin, lease["reservation_id"]))
    assert (row["reason"], row["count"]) == ("token_invalid", 1)
    with pytest.raises(TokenRefused):
        checked(admin, forged)
    admin.made(REDEEM, {"token": lease["token"], **named})  # the control


def test_an_expired_token_is_refused_and_audited(
    admin: Caller, reserve: Callable[..., Any]
) -> None:
    """Even though its lease was renewed meanwhile; a new token is good."""
    lease = reserve(token=True)
    named = {"reservation_id": lease["reservation_id"]}
    admin.advance(100)
    admin.made("/v1/heartbeats", {"beats": [{**named, "seq": 1, "used_ms": 1_000}]})
    admin.advance(60)
    assert problem(admin.post(REDEEM, {"token": lease["token"], **named})) == (403, "token_expired")
    [row] = until(lambda: refusals(admin, lease["reservation_id"]))
    assert row["reason"] == "token_expired"
    with pytest.raises(TokenRefused, match="expired"):
        checked(admin, lease["token"])
    admin.made(REDEEM, {"token": issue(admin, lease["reservation_id"])["token"], **named})


def test_a_swapped_token_is_refused_and_audited(admin: Caller, reserve: Callable[..., Any]) -> None:
    """One lease's token does not start another lease's job, nor a job on another node."""
    one, other = reserve(token=True), reserve(token=True)
    swapped = {"token": one["token"], "reservation_id": other["reservation_id"]}
    assert problem(admin.post(REDEEM, swapped)) == (403, "token_mismatch")
    [row] = until(lambda: refusals(admin, other["reservation_id"]))
    assert row["reason"] == "token_mismatch"
    elsewhere = {"token": one["token"], "node": "gpu-8"}
    assert problem(admin.post(REDEEM, elsewhere)) == (403, "token_mismatch")
    admin.made(REDEEM, {"token": one["token"], "reservation_id": one["reservation_id"]})


def test_a_stolen_token_serves_its_node_only(
    admin: Caller, funded: str, reserve: Callable[..., Any]
) -> None:
    """Neither the key of another node nor one of another org uses it up."""
    lease = reserve(token=True)
    callers = {}
    for node in ("gpu-7", "gpu-8"):
        made = admin.made("/v1/keys", {"role": "agent", "scope": funded, "node": node})
        callers[node] = Caller(admin.http, made["secret"])
    body = {"token": lease["token"]}
    assert problem(callers["gpu-8"].post(REDEEM, body)) == (403, "wrong_node")
    other = fresh_name("org")
    admin.made("/v1/accounts", {"path": other})
    stranger = admin.with_key("member", other)
    answer = stranger.post(REDEEM, body)
    assert problem(answer) == (404, "reservation_unknown")
    request_id = answer.headers["x-request-id"]
    [row] = until(lambda: refusals(admin, "token", request_id))
    assert row["reason"] == "reservation_unknown"
    callers["gpu-7"].made(REDEEM, body)


def test_no_token_outlives_its_lease(admin: Caller, reserve: Callable[..., Any]) -> None:
    """A lease that has ended gets no token, and a token of it starts nothing."""
    lease = reserve(token=True)
    admin.made(f"/v1/reservations/{lease['reservation_id']}:settle")
    place = f"/v1/reservations/{lease['reservation_id']}:token"
    assert problem(admin.post(place)) == (409, "reservation_ended")
    assert problem(admin.post(REDEEM, {"token": lease["token"]})) == (409, "reservation_ended")


def test_keys_rotate_with_an_overlap(admin: Caller, reserve: Callable[..., Any]) -> None:
    """The new key is published before it signs; tokens of the old one stay good."""
    lease = reserve(token=True, window_seconds=600)
    old = issue(admin, lease["reservation_id"])
    made = admin.made("/v1/signing-keys:rotate", {"signs_in_seconds": 60})
    assert made["state"] == "next"
    kids = [each["kid"] for each in admin.read("/v1/jwks")["keys"]]
    assert kids[-1] == made["key_id"]
    assert issue(admin, lease["reservation_id"])["key_id"] == old["key_id"]
    admin.advance(61)
    new = issue(admin, lease["reservation_id"])
    assert new["key_id"] == made["key_id"]
    for token in (old, new):
        checked(admin, token["token"])
    listed = admin.read("/v1/signing-keys")["signing_keys"]
    assert [each["state"] for each in listed[:2]] == ["signing", "overlap"]
    admin.made(REDEEM, {"token": old["token"]})


def test_a_revoked_key_is_good_for_nothing(admin: Caller, reserve: Callable[..., Any]) -> None:
    """Its tokens are refused at once, and the next token has a new key."""
    lease = reserve(token=True)
    stolen = issue(admin, lease["reservation_id"])
    admin.made(f"/v1/signing-keys/{stolen['key_id']}:revoke")
    assert problem(admin.post(REDEEM, {"token": stolen["token"]})) == (403, "token_invalid")
    fresh = issue(admin, lease["reservation_id"])
    assert fresh["key_id"] != stolen["key_id"]
    kids = [each["kid"] for each in admin.read("/v1/jwks")["keys"]]
    assert stolen["key_id"] not in kids
    again = admin.post(f"/v1/signing-keys/{stolen['key_id']}:revoke")
    assert problem(again) == (404, "signing_key_unknown")
    admin.made(REDEEM, {"token": fresh["token"]})


def test_only_the_system_s_admins_rotate_keys(admin: Caller, org: str) -> None:
    """Neither an org's admin nor the system's staff; and nobody sees a private half."""
    for caller in (admin.with_key("admin", org), admin.with_key("operator")):
        assert problem(caller.post("/v1/signing-keys:rotate")) == (403, "forbidden")
        assert problem(caller.get("/v1/signing-keys")) == (403, "forbidden")
    made = admin.post("/v1/signing-keys:rotate", {"signs_in_seconds": 0})
    told = made.text + admin.get("/v1/signing-keys").text
    names = {name for each in admin.read("/v1/signing-keys")["signing_keys"] for name in each}
    assert "sealed" not in names
    assert "sealed" not in json.loads(made.text)
    assert "private" not in told
