"""Checking lease tokens without asking a server, for schedulers and prologs.

Owns: ``verify_token``: a pure function of the token, the published keys and the time. It needs the
``cryptography`` package: pip install 'gpucredits[tokens]'.
Must not: ask anybody; a token that is good here may have been used before, or its lease may have
ended early. ``redeem_token`` of the client asks the server, which knows.
"""

from __future__ import annotations

from gpucredits.wire.access.tokens import LeaseClaims

__all__ = ["verify_token"]

LEEWAY_S = 5


def verify_token(  # the token, what to hold it against, and when
    token: str,
    jwks: bytes,
    *,
    now_s: int,
    reservation_id: str | None = None,
    node: str | None = None,
    leeway_s: int = LEEWAY_S,
) -> LeaseClaims:
    """What a good lease token says; ``TokenRefused`` for any other.

    ``jwks`` is the body of ``GET /v1/jwks``, and ``now_s`` the time in seconds since 1970.
    ``leeway_s`` forgives clocks that differ a little. ``reservation_id`` and ``node`` are what the
    token must be for: name the node that checks, or a token of another node is good.
    """
    from gpucredits.wire.access.lease_token import public_keys, verify  # noqa: PLC0415  # an extra

    return verify(
        token,
        public_keys(jwks),
        now_s=now_s,
        reservation_id=reservation_id,
        node=node,
        leeway_s=leeway_s,
    )
