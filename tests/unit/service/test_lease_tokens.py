"""Lease tokens: what is good, and every way in which one is no good."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from gpucredits.wire.access.lease_token import (
    ISSUER,
    LeaseClaims,
    TokenRefused,
    public_keys,
    published,
    sign,
    thumbprint,
    verify,
)

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
OTHER = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
RAW = KEY.public_key().public_bytes_raw()
KID = thumbprint(RAW)
KEYS = {KID: KEY.public_key()}
CLAIMS = LeaseClaims(
    iss=ISSUER,
    sub="rsv_1_9",
    jti="t1",
    iat=1_000,
    exp=1_120,
    node="gpu-7",
    account="acme/vision",
    job_id="train",
    gpu_type="h100",
    gpu_count="0.5",
    rate_per_hour="18",
)
TOKEN = sign(CLAIMS, KEY, KID)
HEAD, BODY, SIGNATURE = TOKEN.split(".")


def part(value: Any) -> str:
    """A part of a token, from bytes or from what JSON is made of."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(head: Any, body: Any = None, key: Ed25519PrivateKey = KEY) -> str:
    """A token with a header and claims of the test's own, properly signed."""
    text = f"{part(head)}.{BODY if body is None else part(body)}"
    return f"{text}.{part(key.sign(text.encode()))}"


def hs256(head: dict[str, str]) -> str:
    """A token whose MAC has the public key for its secret: algorithm confusion."""
    text = f"{part(head)}.{BODY}"
    return f"{text}.{part(hmac.digest(RAW, text.encode(), hashlib.sha256))}"


def good_head(**other: Any) -> dict[str, Any]:
    """The header of a good token, with other fields."""
    return {"alg": "EdDSA", "typ": "lease+jwt", "kid": KID, **other}


def claims(**other: Any) -> dict[str, Any]:
    """The claims of a good token, with other fields."""
    return {**structs.asdict(CLAIMS), **other}


def test_a_good_token_says_what_was_signed() -> None:
    """Until its last second, for its lease and its node."""
    for now_s in (1_000, 1_119):
        assert verify(TOKEN, KEYS, now_s=now_s) == CLAIMS
    assert verify(TOKEN, KEYS, now_s=1_001, reservation_id="rsv_1_9", node="gpu-7") == CLAIMS
    assert verify(signed(good_head()), KEYS, now_s=1_001) == CLAIMS  # the control of what follows


def test_tokens_are_those_of_the_standard() -> None:
    """The key, its thumbprint and the signature of RFC 8037, appendix A."""
    secret = base64.urlsafe_b64decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
    key = Ed25519PrivateKey.from_private_bytes(secret)
    raw = key.public_key().public_bytes_raw()
    assert thumbprint(raw) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert published([raw]).keys[0].x == "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    text = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    assert part(key.sign(text)) == (
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    )


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: "", id="nothing"),
        pytest.param(lambda: "a.b", id="two parts"),
        pytest.param(lambda: f"{TOKEN}.x", id="four parts"),
        pytest.param(lambda: f"{HEAD}.{BODY}.", id="no signature"),
        pytest.param(lambda: f"{TOKEN} ", id="a space"),
        pytest.param(lambda: f"{TOKEN}=", id="padding"),
        pytest.param(lambda: TOKEN.replace(".", "\uff0e"), id="dots that are none"),
        pytest.param(lambda: "a" * 9_000, id="too long"),
        pytest.param(lambda: f"{HEAD}.{part(claims(node='gpu-8'))}.{SIGNATURE}", id="other claims"),
        pytest.param(lambda: f"{part(good_head())}.{BODY}.{SIGNATURE}", id="other header"),
        pytest.param(lambda: signed(good_head(), key=OTHER), id="another's signature"),
        pytest.param(lambda: sign(CLAIMS, OTHER, thumbprint(b"x" * 32)), id="another's key"),
        pytest.param(lambda: f"{part(good_head(alg='none'))}.{BODY}.", id="alg none"),
        pytest.param(lambda: signed(good_head(alg="none")), id="alg none, signed"),
        pytest.param(lambda: hs256(good_head(alg="HS256")), id="MAC with the public key"),
        pytest.param(lambda: hs256(good_head()), id="MAC that says EdDSA"),
        pytest.param(lambda: signed(good_head(alg="eddsa")), id="alg in small letters"),
        pytest.param(lambda: signed(good_head(typ="JWT")), id="another type of token"),
        pytest.param(lambda: signed({"alg": "EdDSA", "kid": KID}), id="no type"),
        pytest.param(lambda: signed(good_head(crit=["b64"], b64=False)), id="critical fields"),
        pytest.param(lambda: signed(good_head(jwk={"kty": "OKP"})), id="a key of its own"),
        pytest.param(lambda: signed(good_head(jku="https://evil")), id="keys from elsewhere"),
        pytest.param(lambda: signed(b"\xff\xfe"), id="a header that is no text"),
        pytest.param(lambda: signed(good_head(), claims(iss="evil")), id="another issuer"),
        pytest.param(lambda: signed(good_head(), claims(exp="9999")), id="an end in words"),
        pytest.param(lambda: signed(good_head(), claims(exp=1e300)), id="an end beyond time"),
        pytest.param(lambda: signed(good_head(), {"sub": "rsv_1_9"}), id="no claims"),
        pytest.param(lambda: signed(good_head(), b"[" * 3_000), id="deep claims"),
        pytest.param(lambda: signed(good_head(), claims(iat=2_000, exp=3_000)), id="the future"),
    ],
)
def test_forged_tokens_are_refused(made: Callable[[], str]) -> None:
    """Whatever is not one of our tokens, bit by bit."""
    with pytest.raises(TokenRefused) as refused:
        verify(made(), KEYS, now_s=1_001)
    assert refused.value.reason == "token_invalid"


def test_every_changed_character_is_noticed() -> None:
    """No character of a token can be another one."""
    for place, character in enumerate(TOKEN):
        changed = f"{TOKEN[:place]}{'A' if character != 'A' else 'B'}{TOKEN[place + 1 :]}"
        with pytest.raises(TokenRefused):
            verify(changed, KEYS, now_s=1_001)


def test_an_expired_token_is_refused_to_the_second() -> None:
    """At its end and later; a leeway forgives clocks that differ."""
    for now_s in (1_120, 2_000):
        with pytest.raises(TokenRefused) as refused:
            verify(TOKEN, KEYS, now_s=now_s)
        assert refused.value.reason == "token_expired"
    assert verify(TOKEN, KEYS, now_s=1_124, leeway_s=5) == CLAIMS
    assert verify(TOKEN, KEYS, now_s=996, leeway_s=5) == CLAIMS


@pytest.mark.parametrize("other", [{"reservation_id": "rsv_1_a"}, {"node": "gpu-8"}, {"node": ""}])
def test_a_swapped_token_is_refused(other: dict[str, str]) -> None:
    """One for another lease or another node."""
    with pytest.raises(TokenRefused) as refused:
        verify(TOKEN, KEYS, now_s=1_001, **other)  # type: ignore[arg-type]
    assert refused.value.reason == "token_mismatch"


def test_published_keys_are_read_back() -> None:
    """Keys of other families, or under ids that are not theirs, are passed over."""
    ours = json.loads(json.dumps([{**vars_of(each)} for each in published([RAW]).keys]))
    strange = [
        {"kid": "rsa", "kty": "RSA", "n": "x", "e": "AQAB", "x": ""},
        {**ours[0], "kid": "chosen"},
        {**ours[0], "x": "AAAA"},
        {**ours[0], "alg": "HS256"},
        {**ours[0], "crv": "X25519"},
    ]
    found = public_keys(json.dumps({"keys": [*strange, *ours]}).encode())
    assert set(found) == {KID}
    assert verify(TOKEN, found, now_s=1_001) == CLAIMS
    assert public_keys(b'{"keys": []}') == {}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b"\xff", b'{"keys": [1]}', b'{"keys": [%s]}' % (b"{}," * 200)]
)
def test_what_is_no_set_of_keys_is_refused(text: bytes) -> None:
    """A file that holds something else is an error, not an empty set."""
    with pytest.raises(TokenRefused):
        public_keys(text)


def vars_of(each: Any) -> dict[str, Any]:
    """The fields of a struct."""
    return structs.asdict(each)
