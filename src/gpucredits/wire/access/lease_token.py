"""Lease tokens: signed proof that a lease lets a job run on a node until an instant.

Owns: the claims, and the one form that a token has: a compact JWS, signed with EdDSA over Ed25519,
of type ``lease+jwt``. A header never chooses the algorithm: one that names any other is refused.
Must not: read a clock, a file or the network; who calls says which keys are good, and the time.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gpucredits.wire.access.tokens import (
    TOKEN_LENGTH_MAX,
    Jwk,
    JwkSet,
    LeaseClaims,
    TokenRefused,
)

__all__ = [
    "LeaseClaims",
    "TokenRefused",
    "key_text",
    "public_keys",
    "published",
    "sign",
    "thumbprint",
    "verify",
]

ALGORITHM: Final = "EdDSA"
TYPE: Final = "lease+jwt"
ISSUER: Final = "gpucredits"
CURVE: Final = "Ed25519"
KEYS_MAX: Final = 100  # of a published set; more is no set of ours
PUBLIC_KEY_BYTES: Final = 32


class TokenHeader(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The head of a token. Other fields, such as a key of its own, are refused."""

    alg: str
    typ: str
    kid: str


PublicKeys = Mapping[str, Ed25519PublicKey]
_HEADER: Final = msgspec.json.Decoder(TokenHeader)
_CLAIMS: Final = msgspec.json.Decoder(LeaseClaims)
_SET: Final = msgspec.json.Decoder(JwkSet)


def sign(claims: LeaseClaims, key: Ed25519PrivateKey, key_id: str) -> str:
    """The token that carries some claims."""
    header = TokenHeader(alg=ALGORITHM, typ=TYPE, kid=key_id)
    signed = f"{_part(msgspec.json.encode(header))}.{_part(msgspec.json.encode(claims))}"
    return f"{signed}.{_part(key.sign(signed.encode('ascii')))}"


def verify(  # the token, what to hold it against, and when
    token: str,
    keys: PublicKeys,
    *,
    now_s: int,
    reservation_id: str | None = None,
    node: str | None = None,
    leeway_s: int = 0,
) -> LeaseClaims:
    """What a good token says; TokenRefused for any other.

    ``reservation_id`` and ``node`` are what the token must be for, where the caller knows it.
    """
    claims = _signed_claims(token, keys)
    if claims.iss != ISSUER:
        raise TokenRefused("token_invalid", "The token was issued for something else.")
    if claims.iat > now_s + leeway_s:
        ahead = claims.iat - now_s
        raise TokenRefused("token_invalid", f"The token is from {ahead} s ahead: check the clock.")
    if claims.exp + leeway_s <= now_s:
        late = now_s - claims.exp
        raise TokenRefused("token_expired", f"The token expired {late} s ago: ask for a new one.")
    if reservation_id is not None and claims.sub != reservation_id:
        raise TokenRefused("token_mismatch", f"The token is for {claims.sub}, another lease.")
    if node is not None and claims.node != node:
        place = claims.node or "no node"
        raise TokenRefused("token_mismatch", f"The token is for {place}, not for {node}.")
    return claims


def public_keys(published: bytes) -> dict[str, Ed25519PublicKey]:
    """The keys of a set as ``GET /v1/jwks`` publishes it; TokenRefused when it is no such set.

    Keys of other families are passed over: they sign no lease token. An id that is not the
    thumbprint of its key is passed over as well.
    """
    try:
        listed = _SET.decode(published).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TokenRefused("token_invalid", f"The keys cannot be read: {error}.") from error
    if len(listed) > KEYS_MAX:
        raise TokenRefused("token_invalid", f"There are more than {KEYS_MAX} keys.")
    found: dict[str, Ed25519PublicKey] = {}
    for each in listed:
        if (each.kty, each.crv) != ("OKP", CURVE) or each.alg not in ("", ALGORITHM):
            continue
        raw = _bytes(each.x)
        if raw is not None and len(raw) == PUBLIC_KEY_BYTES and thumbprint(raw) == each.kid:
            found[each.kid] = Ed25519PublicKey.from_public_bytes(raw)
    return found


def published(keys: Iterable[bytes]) -> JwkSet:
    """Public keys as they are published."""
    return JwkSet(
        keys=[
            Jwk(kid=thumbprint(raw), x=_part(raw), kty="OKP", crv=CURVE, alg=ALGORITHM, use="sig")
            for raw in keys
        ]
    )


def thumbprint(public_key: bytes) -> str:
    """The id of a key: the hash of what RFC 7638 says of it."""
    text = f'{{"crv":"{CURVE}","kty":"OKP","x":"{_part(public_key)}"}}'
    return _part(hashlib.sha256(text.encode("ascii")).digest())


def key_text(public_key: bytes) -> str:
    """A public key as it is written: base64url."""
    return _part(public_key)


def _signed_claims(token: str, keys: PublicKeys) -> LeaseClaims:
    """The claims of a token whose signature is that of a known key."""
    parts = token.split(".") if len(token) <= TOKEN_LENGTH_MAX and token.isascii() else []
    raw = [_bytes(each) for each in parts]
    if len(raw) != 3 or None in raw:
        raise TokenRefused("token_invalid", "This is not a token: three parts in base64url.")
    head, body, signature = (each or b"" for each in raw)
    try:
        header = _HEADER.decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TokenRefused("token_invalid", f"The token's header is wrong: {error}.") from error
    if header.alg != ALGORITHM or header.typ != TYPE:
        raise TokenRefused(
            "token_invalid", f"A lease token has alg {ALGORITHM} and typ {TYPE}, and no others."
        )
    key = keys.get(header.kid)
    if key is None:
        raise TokenRefused(
            "token_invalid",
            "No key of this id is known: it is not ours, has retired, or the keys must be read"
            " anew from GET /v1/jwks.",
        )
    try:
        key.verify(signature, f"{parts[0]}.{parts[1]}".encode("ascii"))
    except InvalidSignature as error:
        raise TokenRefused("token_invalid", "The token's signature is wrong.") from error
    try:
        return _CLAIMS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TokenRefused("token_invalid", f"The token's claims are wrong: {error}.") from error


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes | None:
    """The bytes of base64url without padding; None where it is written in any other way."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    return raw if _part(raw) == text else None
