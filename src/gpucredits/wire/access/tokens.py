"""Shapes of lease tokens and signing keys: what is asked, answered and published.

Must not: need the cryptography package; every client knows these shapes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.wire.documented import (
    CREATED_AT,
    GPU_TYPE,
    JOB_ID,
    NODE,
    RESERVATION_ID,
    doc,
)
from gpucredits.wire.scalars import InstantText, Name

TOKEN_LENGTH_MAX = 8_192
SIGNS_IN_SECONDS_MAX = 7 * 86_400
SIGNS_IN_SECONDS_DEFAULT = 600
KEYS_CACHED_S = 300  # how long a reader of the published keys may keep them


TokenReason = Literal["token_invalid", "token_expired", "token_mismatch", "token_replayed"]
_Text = Annotated[str, Meta(max_length=400)]
_Seconds = Annotated[int, Meta(ge=0, le=2**53)]


class TokenRefused(Exception):  # noqa: N818  # it states what happened
    """A token proves nothing; ``reason`` is a word for machines."""

    def __init__(self, reason: TokenReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: TokenReason = reason


class LeaseClaims(Struct, kw_only=True, frozen=True):
    """What a token says. ``sub`` is the reservation, ``jti`` the token's own id.

    Instants are seconds since 1970. ``rate_per_hour`` and ``gpu_count`` are exact decimals.
    """

    iss: _Text
    sub: _Text
    jti: _Text
    iat: _Seconds
    exp: _Seconds
    node: _Text
    account: _Text
    job_id: _Text
    gpu_type: _Text
    gpu_count: _Text
    rate_per_hour: _Text


class TokenAnswer(Struct, kw_only=True):
    """A signed token for one lease; the token expires at the lease's present end."""

    token: Annotated[str, doc("The token: a JWT, signed with EdDSA.")]
    token_id: Annotated[str, doc("The id of the token, its jti claim.")]
    key_id: Annotated[str, doc("The signing key, as GET /v1/jwks lists it.")]
    reservation_id: Annotated[str, RESERVATION_ID]
    node: Annotated[str, NODE]
    expires_at: Annotated[InstantText, doc("When the token expires.")]
    expires_in_ms: Annotated[int, doc("Time until the token expires.")]


class RedeemRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A token to start a job once, with the lease and the node that it must be for."""

    token: Annotated[
        Annotated[str, Meta(min_length=1, max_length=TOKEN_LENGTH_MAX)], doc("The lease token.")
    ]
    reservation_id: Annotated[
        Name | None, doc("The lease that the token must be for; absent means the token's own.")
    ] = None
    node: Annotated[
        Name | None, doc("The node that the token must be for; absent means the token's own.")
    ] = None


class RedeemAnswer(Struct, kw_only=True):
    """A token that was valid and is now redeemed: the job may start."""

    token_id: Annotated[str, doc("The id of the token, its jti claim.")]
    reservation_id: Annotated[str, RESERVATION_ID]
    account: Annotated[str, doc("The account of the job.")]
    job_id: Annotated[str, JOB_ID]
    node: Annotated[str, NODE]
    gpu_type: Annotated[str, GPU_TYPE]
    gpu_count: Annotated[str, doc("The number of GPUs.")]
    rate_per_hour: Annotated[str, doc("The job's exact cost per hour.")]
    expires_in_ms: Annotated[int, doc("Time until the lease lapses without another heartbeat.")]


class Jwk(Struct, kw_only=True, omit_defaults=True):
    """A public key as RFC 8037 writes it."""

    kid: Annotated[str, doc("The id of the key: the thumbprint of RFC 7638.")]
    x: Annotated[str, doc("The public key, in base64url.")]
    kty: Annotated[str, doc("The family of the key: OKP.")] = ""
    crv: Annotated[str, doc("The curve: Ed25519.")] = ""
    alg: Annotated[str, doc("The algorithm: EdDSA.")] = ""
    use: Annotated[str, doc("The use of the key: sig.")] = ""


class JwkSet(Struct, kw_only=True):
    """The public keys of valid lease tokens, and the key that signs next."""

    keys: Annotated[list[Jwk], doc("The public keys, the oldest first.")]


class RotateRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """When the new key begins to sign; until then readers of the published keys learn of it."""

    signs_in_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=SIGNS_IN_SECONDS_MAX)],
        doc("The time from publishing the new key to signing with it; 0 means at once."),
    ] = SIGNS_IN_SECONDS_DEFAULT


SigningState = Literal["next", "signing", "overlap", "retired", "revoked", "sealed"]


class SigningKeyAnswer(Struct, kw_only=True):
    """A signing key, without its private half."""

    key_id: Annotated[str, doc("The id of the key: the thumbprint of RFC 7638.")]
    state: Annotated[
        SigningState,
        doc(
            "next: published, and signs later. signing: signs now. overlap: signs no more; its"
            " tokens are valid until they expire. retired: all of its tokens have expired. revoked:"
            " its tokens are invalid. sealed: this server's secret cannot open the key."
        ),
    ]
    public_key: Annotated[str, doc("The public key, in base64url.")]
    created_at: Annotated[InstantText, CREATED_AT]
    signs_from: Annotated[InstantText, doc("When the key begins to sign.")]
    revoked_at: Annotated[InstantText | None, doc("When the key was revoked; null if it was not.")]


class SigningKeyList(Struct, kw_only=True):
    """Signing keys, the latest first."""

    signing_keys: Annotated[list[SigningKeyAnswer], doc("The signing keys.")]
