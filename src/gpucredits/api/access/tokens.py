"""Handlers of lease tokens, and of the keys that sign them."""

from __future__ import annotations

import re
import time
from typing import Any

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, RefusedError
from gpucredits.api.http.reasons import NO_LEASE
from gpucredits.api.http.scope import act_of
from gpucredits.api.ledger.leases import lease_of
from gpucredits.core import ids
from gpucredits.core.bounds import SECOND_US
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Reservation, ReservationState
from gpucredits.service.access.permissions import Permission
from gpucredits.service.access.refusals import RefusedAct
from gpucredits.service.access.signing import SigningKeysFull, SigningKeyUnknown
from gpucredits.service.access.tokens import (
    LeaseClaims,
    TokenLease,
    TokenRefused,
    check,
    issue,
    redeem,
)
from gpucredits.service.reads.clock import read_clock
from gpucredits.wire.access.lease_token import key_text
from gpucredits.wire.access.tokens import (
    KEYS_CACHED_S,
    JwkSet,
    RedeemAnswer,
    RedeemRequest,
    RotateRequest,
    SigningKeyAnswer,
    SigningKeyList,
    TokenAnswer,
)
from gpucredits.wire.scalars import format_instant

SYSTEM = 0  # the org of what belongs to no org
BAD_TOKEN = ("token_invalid", "token_expired", "token_mismatch")
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

route = Routes("tokens")


@route("GET /v1/jwks", None, client="jwks()")
async def get_jwks(call: ApiRequest[None, NoQuery]) -> JwkSet:
    """Get the public keys of lease tokens, as a JSON Web Key Set.

    No API key is needed. Readers may keep the set for five minutes.
    """
    call.headers["cache-control"] = f"public, max-age={KEYS_CACHED_S}"
    return await call.services.signing.published()


@route(
    "POST /v1/reservations/{reservation}:token",
    Permission.BEAT,
    reasons=(*NO_LEASE, "reservation_ended"),
    is_question=True,
    client="lease_token(reservation_id)",
)
async def post_token(call: ApiRequest[None, NoQuery]) -> TokenAnswer:
    """Get a signed token for a live lease; the token expires at the lease's present end.

    Ask again after a heartbeat for a token that lasts longer. A token is a JWT; anybody can check
    it with the keys of ``GET /v1/jwks``.
    """
    org_id, lease, _ = await lease_of(call, call.params["reservation"])
    now = await call.services.run(read_clock)
    require_live(lease, now)
    return await issue(call.services.signing, TokenLease(org_id, lease, lease.account, now))


@route(
    "POST /v1/tokens:redeem",
    Permission.BEAT,
    reasons=(*NO_LEASE, "reservation_ended", *BAD_TOKEN, "token_replayed"),
    client="redeem_token(token)",
)
async def post_redeem(call: ApiRequest[RedeemRequest, NoQuery]) -> RedeemAnswer:
    """Redeem a lease token before its job starts.

    A lease starts one job, so one of its tokens can be redeemed, once. The token must be for the
    named lease and node, and for the caller's own node if the caller has one. Its lease must be
    live.
    """
    now = await call.services.run(read_clock)
    wanted = call.body.reservation_id
    node = call.body.node
    try:
        claims = await check(
            call.services.signing,
            call.body.token,
            now=now,
            reservation_id=None if wanted is None else str(wanted),
            node=None if node is None else str(node),
        )
    except TokenRefused as refused:
        raise _refuse(call, refused, None) from refused
    try:
        org_id, lease, _ = await lease_of(call, claims.sub)
    except RefusedError:
        _note(call, "reservation_unknown", "The token is for a lease out of the caller's scope.")
        raise
    require_live(lease, now)
    try:
        call.replayed = await call.services.run(redeem, act_of(call, org_id), claims)
    except TokenRefused as refused:
        raise _refuse(call, refused, claims) from refused
    return RedeemAnswer(
        token_id=claims.jti,
        reservation_id=claims.sub,
        account=claims.account,
        job_id=claims.job_id,
        node=claims.node,
        gpu_type=claims.gpu_type,
        gpu_count=claims.gpu_count,
        rate_per_hour=claims.rate_per_hour,
        expires_in_ms=max(lease.expires_at - now, 0) // 1_000,
    )


@route(
    "POST /v1/signing-keys:rotate",
    Permission.SIGN_TOKENS,
    reasons=("signing_keys_full",),
    status=201,
    is_body_optional=True,
    client="rotate_signing_key()",
)
async def post_rotate(call: ApiRequest[RotateRequest, NoQuery]) -> SigningKeyAnswer:
    """Make the key that signs lease tokens next.

    The key is published at once, and signs after ``signs_in_seconds``. Tokens of earlier keys stay
    valid until they expire.
    """
    signs_in_us = call.body.signs_in_seconds * SECOND_US
    act = act_of(call, SYSTEM)
    try:
        row, call.replayed = await call.services.signing.rotate(act, signs_in_us=signs_in_us)
    except SigningKeysFull as error:
        raise ProblemError("signing_keys_full", str(error)) from error
    return SigningKeyAnswer(
        key_id=row.key_id,
        state="next" if signs_in_us else "signing",
        public_key=key_text(row.public_key),
        created_at=format_instant(row.created_at),
        signs_from=format_instant(row.signs_from),
        revoked_at=None,
    )


@route("GET /v1/signing-keys", Permission.SIGN_TOKENS, client="signing_keys()")
async def get_signing_keys(call: ApiRequest[None, NoQuery]) -> SigningKeyList:
    """List the keys that sign or signed lease tokens, the latest first."""
    return await _listed(call)


@route(
    "POST /v1/signing-keys/{signing_key}:revoke",
    Permission.SIGN_TOKENS,
    reasons=("signing_key_unknown",),
    client="revoke_signing_key(signing_key_id)",
)
async def post_signing_key_revoke(call: ApiRequest[None, NoQuery]) -> SigningKeyList:
    """Revoke a stolen signing key at once: all of its tokens become invalid.

    If it is the key that signs now, the next token is signed with a new key.
    """
    key_id = call.params["signing_key"]
    if _KEY_ID.fullmatch(key_id) is None:
        raise unknown_signing_key()
    try:
        call.replayed = await call.services.signing.revoke(act_of(call, SYSTEM), key_id)
    except SigningKeyUnknown as error:
        raise unknown_signing_key() from error
    return await _listed(call)


async def _listed(call: ApiRequest[Any, Any]) -> SigningKeyList:
    now = await call.services.run(read_clock)
    rows = await call.services.signing.listed(now)
    return SigningKeyList(
        signing_keys=[
            SigningKeyAnswer(
                key_id=row.key_id,
                state=state,
                public_key=key_text(row.public_key),
                created_at=format_instant(row.created_at),
                signs_from=format_instant(row.signs_from),
                revoked_at=format_instant(row.revoked_at) if row.revoked_at else None,
            )
            for row, state in rows
        ]
    )


def unknown_signing_key() -> ProblemError:
    """The answer for a signing key that does not exist, or was revoked before."""
    return ProblemError("signing_key_unknown", "There is no such live signing key.")


def require_live(lease: Reservation, now: int) -> None:
    """Refuse a lease that has ended."""
    if lease.state is not ReservationState.ACTIVE or lease.expires_at <= now:
        raise RefusedError(Refused(Reason.RESERVATION_ENDED, "The reservation has ended."))


def _refuse(
    call: ApiRequest[RedeemRequest, NoQuery], refused: TokenRefused, claims: LeaseClaims | None
) -> ProblemError:
    """The problem for an invalid token, which is also noted for the audit log."""
    _note(call, refused.reason, str(refused), claims)
    return ProblemError(refused.reason, str(refused))


def _note(
    call: ApiRequest[RedeemRequest, NoQuery],
    reason: str,
    detail: str,
    claims: LeaseClaims | None = None,
) -> None:
    """Note a bad token for the audit log.

    An invalid token proves nothing. So the row names the lease that the caller named, if that is
    an id.
    """
    named = str(call.body.reservation_id or "") if claims is None else claims.sub
    call.services.refusals.add(
        RefusedAct(
            action="token.refuse",
            reason=reason,
            actor=call.actor,
            resource="token" if ids.lease_number(named) is None else named,
            org_id=call.principal.org_id,
        ),
        now=time.monotonic(),
        request_id=call.request_id,
        account=call.principal.scope if claims is None else claims.account,
        facts={"detail": detail, "node": call.principal.node},
    )
