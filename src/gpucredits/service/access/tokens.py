"""Lease tokens: issuing one for a live lease, and redeeming it once.

Owns: the claims about a lease, and the rule that a lease starts one job, however many tokens it
has. Tokens are signed when a lease is made or on request, never with a heartbeat: a signature costs
more than a heartbeat.
Must not: know HTTP, or decide who may ask for a token.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from gpucredits.core import ids
from gpucredits.core.bounds import SECOND_US
from gpucredits.core.money import format_gpus
from gpucredits.core.reservation import Reservation
from gpucredits.service.access.signing import TOKEN_LIFE_US, SigningKeys
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access import audit
from gpucredits.store.access.audit import AuditNote
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.wire.access.lease_token import ISSUER, LeaseClaims, TokenRefused, sign, verify
from gpucredits.wire.access.tokens import TokenAnswer
from gpucredits.wire.ledger.reservation import format_hour_rate
from gpucredits.wire.scalars import format_instant

__all__ = ["LeaseClaims", "TokenLease", "TokenRefused", "check", "issue", "redeem"]

TOKEN_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class TokenLease:
    """The lease of a token, as of ``now``."""

    org_id: int
    lease: Reservation
    account: str
    now: int

    @property
    def reservation_id(self) -> str:
        """The id of the lease."""
        return ids.format_id(ids.RESERVATION, self.org_id, self.lease.reservation_id)


async def issue(keys: SigningKeys, of: TokenLease) -> TokenAnswer:
    """A token for a live lease; it expires at the lease's present end, or after an hour."""
    signer = await keys.signer(of.now)
    ends = min(of.lease.expires_at, of.now + TOKEN_LIFE_US)
    claims = claims_of(of, ends)
    assert signer.private is not None  # only what opens signs
    return TokenAnswer(
        token=sign(claims, signer.private, signer.row.key_id),
        token_id=claims.jti,
        key_id=signer.row.key_id,
        reservation_id=claims.sub,
        node=claims.node,
        expires_at=format_instant(claims.exp * SECOND_US),
        expires_in_ms=max(claims.exp * SECOND_US - of.now, 0) // 1_000,
    )


def claims_of(of: TokenLease, ends: int) -> LeaseClaims:
    """The claims of a token about a lease."""
    lease = of.lease
    return LeaseClaims(
        iss=ISSUER,
        sub=of.reservation_id,
        jti=secrets.token_urlsafe(TOKEN_ID_BYTES),
        iat=of.now // SECOND_US,
        exp=ends // SECOND_US,
        node=lease.node,
        account=of.account,
        job_id=lease.job_id,
        gpu_type=lease.gpu_type,
        gpu_count=format_gpus(lease.milli_gpus),
        rate_per_hour=format_hour_rate(lease.rate),
    )


async def check(
    keys: SigningKeys, token: str, *, now: int, reservation_id: str | None, node: str | None
) -> LeaseClaims:
    """The claims of a valid token of these servers; TokenRefused for any other."""
    known = await keys.public(now)
    now_s = now // SECOND_US
    return verify(token, known, now_s=now_s, reservation_id=reservation_id, node=node)


async def redeem(pool: Pool, act: Act, claims: LeaseClaims) -> bool:
    """Redeem a token of a lease; whether an earlier call with the same key has done so.

    Raises TokenRefused if another call has redeemed a token of the lease.
    """

    async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
        if await audit.is_redeemed(db, act.org_id, (claims.sub, claims.jti)):
            raise TokenRefused(
                "token_replayed",
                f"A token of {claims.sub} was used before, and a lease starts one job. Send the "
                "first call again with its Idempotency-Key, or reserve again.",
            )
        note = act.note(
            "token.redeem",
            claims.sub,  # an index on it holds that a lease has one
            old={"account": claims.account},
            new={"token_id": claims.jti, "node": claims.node},
        )
        return b'"redeemed"', note

    return (await perform(pool, act, work)).is_replay
