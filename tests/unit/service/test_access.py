"""Namespaces of idempotency keys, without a server."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpucredits.service.access.permissions import Principal, Role
from gpucredits.service.write.acts import item_key

SCOPES = st.sampled_from(["", "acme", "acme/vision", "request", "anomaly", "queue", "system"])
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
MADE_BY_THE_SERVER = ("request ", "anomaly ", "queue ")


def kept(scope: str, key: str) -> str:
    """A caller's key as it is kept."""
    return Principal(key_id=1, org_id=1, role=Role.MEMBER, scope=scope).own(key)


@given(SCOPES, KEYS, SCOPES, KEYS)
def test_two_scopes_never_have_a_key_in_common(
    scope: str, key: str, other_scope: str, other_key: str
) -> None:
    """Whatever words they choose, colons and slashes included."""
    is_same = kept(scope, key) == kept(other_scope, other_key)
    assert is_same is ((scope, key) == (other_scope, other_key))


@given(SCOPES, KEYS)
def test_no_caller_names_a_key_that_the_server_makes(scope: str, key: str) -> None:
    """Neither one of the server's own acts, nor that of an item of a batch."""
    own = kept(scope, key)
    assert not own.startswith(MADE_BY_THE_SERVER)
    assert not item_key(own, b"hash", 1).startswith(MADE_BY_THE_SERVER)
    assert " " in item_key(own, b"hash", 1)
    assert " " not in own
