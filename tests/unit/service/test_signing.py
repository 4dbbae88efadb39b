"""Signing keys: their seal, and which of them signs, overlaps or has retired."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gpucredits.service.access.signing import (
    TOKEN_LIFE_US,
    OpenKey,
    seal,
    signer_at,
    states_at,
    unseal,
)
from gpucredits.store.access.signing_keys import SigningKeyRow
from gpucredits.wire.access.lease_token import thumbprint

SECRET = b"s" * 32
T = TOKEN_LIFE_US


def row(number: int, *, signs_from: int, revoked_at: int = 0) -> SigningKeyRow:
    """A stored key."""
    private = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    public = private.public_key().public_bytes_raw()
    return SigningKeyRow(
        key_id=thumbprint(public),
        public_key=public,
        sealed=seal(SECRET, private, signs_from=signs_from),
        created_at=0,
        signs_from=signs_from,
        revoked_at=revoked_at,
    )


def opened(*rows: SigningKeyRow) -> list[OpenKey]:
    """Keys as a server with the secret sees them."""
    return [OpenKey(each, unseal(SECRET, each)) for each in rows]


def test_a_seal_opens_with_its_secret_only() -> None:
    """The private half comes back; another secret opens nothing."""
    stored = row(1, signs_from=5)
    private = unseal(SECRET, stored)
    assert private is not None
    assert private.public_key().public_bytes_raw() == stored.public_key
    assert unseal(b"t" * 32, stored) is None


@pytest.mark.parametrize("part", ["public_key", "sealed", "signs_from", "key_id"])
def test_a_row_that_was_changed_opens_no_more(part: str) -> None:
    """Neither half, nor the instant, nor the id can be another's."""
    stored, other = row(1, signs_from=5), row(2, signs_from=6)
    assert unseal(SECRET, replace(stored, **{part: getattr(other, part)})) is None


@pytest.mark.parametrize("sealed", [b"", b"x" * 11, b"x" * 12, b"x" * 60])
def test_what_is_no_seal_opens_nothing(sealed: bytes) -> None:
    """Whatever somebody wrote there."""
    assert unseal(SECRET, replace(row(1, signs_from=5), sealed=sealed)) is None


def test_a_key_is_published_before_it_signs_and_after() -> None:
    """The next key is known before it signs; the last one is good for as long as a token lives."""
    keys = opened(row(1, signs_from=10), row(2, signs_from=100))
    states = {now: states_at(keys, now) for now in (9, 10, 99, 100, 99 + T, 100 + T)}
    assert states == {
        9: ["next", "next"],
        10: ["signing", "next"],
        99: ["signing", "next"],
        100: ["overlap", "signing"],
        99 + T: ["overlap", "signing"],
        100 + T: ["retired", "signing"],
    }
    assert [signer_at(keys, now) for now in (9, 10, 99, 100)] == [None, keys[0], keys[0], keys[1]]


def test_a_revoked_key_signs_nothing_and_no_older_one_comes_back() -> None:
    """A new key has to be made."""
    keys = opened(row(1, signs_from=10), row(2, signs_from=100, revoked_at=200))
    assert signer_at(keys, 300) is None
    assert states_at(keys, 300) == ["overlap", "revoked"]


def test_a_key_that_was_revoked_before_it_signed_changes_nothing() -> None:
    """The key before it goes on."""
    keys = opened(row(1, signs_from=10), row(2, signs_from=100, revoked_at=50))
    assert signer_at(keys, 300) == keys[0]
    assert states_at(keys, 300 + T) == ["signing", "revoked"]


def test_a_key_of_somebody_else_neither_signs_nor_ends_ours() -> None:
    """A row that the secret does not open, whoever wrote it."""
    rogue = replace(row(2, signs_from=100), sealed=b"x" * 60)
    keys = opened(row(1, signs_from=10), rogue)
    assert signer_at(keys, 300) == keys[0]
    assert states_at(keys, 300 + T) == ["signing", "sealed"]
