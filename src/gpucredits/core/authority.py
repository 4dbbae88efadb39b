"""Authority: at which scope the key stood that set a bound, and who may lift the bound again.

Owns: one rule. A bound is ended, raised, replaced or boosted by a key of the same scope or of a
wider one, never from below.
Must not: know keys or roles; whoever makes a command says at which scope its key stands.
"""

from __future__ import annotations

from enum import IntEnum

from gpucredits.core.reasons import Reason, Refused


class Authority(IntEnum):
    """The scope of a key, the widest first."""

    SYSTEM = 0
    ORG = 1
    PROJECT = 2
    USER = 3


def authority_of(scope: str) -> Authority:
    """The authority of a key for a path; an empty one is the whole system."""
    return Authority(scope.count("/") + 1 if scope else 0)


def scope_word(authority: Authority) -> str:
    """The word for a scope, on the wire and in sentences."""
    return authority.name.lower()


def refuse_from_below(
    by: Authority, set_by: Authority, account: str, bound: str, instead: str
) -> Refused | None:
    """Refuse a key that would lift a bound which was set above it; ``instead`` says what helps."""
    if by <= set_by:
        return None
    above, below = scope_word(set_by), scope_word(by)
    return Refused(
        Reason.LIMIT_SET_ABOVE,
        f"{bound} of {account} was set at {above} scope, and this key stands at {below} scope. "
        f"Only a key of {above} scope{' or above' if set_by else ''} may change it. {instead}",
        {"account": account, "set_by_scope": above, "key_scope": below},
    )
