"""Keys that sign lease tokens: making, rotating and revoking them, and choosing the one that signs.

Owns: the seal on private halves, and the overlap of keys. A key signs from an instant until the
next key begins; its tokens stay valid until they expire. Servers of one database share the sealing
secret and so the keys. A row that the secret does not open signs nothing and is not published,
whoever wrote it.
Must not: show a private half, or store one unsealed.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gpucredits.core.bounds import HOUR_US
from gpucredits.metering.usage_message import prover_of
from gpucredits.service.write.acts import Act, perform
from gpucredits.store.access import signing_keys
from gpucredits.store.access.audit import SYSTEM, AuditNote
from gpucredits.store.access.signing_keys import SigningKeyRow
from gpucredits.store.database.connection import Connection, Pool
from gpucredits.store.database.connections import session
from gpucredits.wire.access.lease_token import KEYS_MAX, published, thumbprint
from gpucredits.wire.access.tokens import JwkSet, SigningState
from gpucredits.wire.scalars import format_instant

TOKEN_LIFE_US: Final = HOUR_US  # the longest that a token lives, however long its lease is
MEMORY_S: Final = 5.0
SECRET_BYTES: Final = 32
PUBLISHED: Final = frozenset({"next", "signing", "overlap"})
NONCE_BYTES: Final = 12
SIGNER: Final = f"{SYSTEM}signing"

logger = logging.getLogger(__name__)


class SigningKeysFull(Exception):  # noqa: N818  # it states what happened
    """The number of published signing keys has reached its bound."""


class SigningKeyUnknown(Exception):  # noqa: N818  # it states what happened
    """The signing key does not exist, or is revoked."""


@dataclass(frozen=True, slots=True)
class OpenKey:
    """A stored key with its private half, or with None if this server cannot open it."""

    row: SigningKeyRow
    private: Ed25519PrivateKey | None

    @property
    def has_begun(self) -> bool:
        """Whether the key has taken over, or will; false if it was revoked before that."""
        return self.private is not None and (
            not self.row.revoked_at or self.row.revoked_at > self.row.signs_from
        )


def seal(secret: bytes, private: Ed25519PrivateKey, *, signs_from: int) -> bytes:
    """Seal a private half. The seal is valid for this public half and this instant only."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    about = _about(private.public_key().public_bytes_raw(), signs_from)
    return nonce + AESGCM(secret).encrypt(nonce, private.private_bytes_raw(), about)


def unseal(secret: bytes, row: SigningKeyRow) -> Ed25519PrivateKey | None:
    """The private half of a stored key; None if this secret has not sealed it."""
    nonce, sealed = row.sealed[:NONCE_BYTES], row.sealed[NONCE_BYTES:]
    about = _about(row.public_key, row.signs_from)
    try:
        private = Ed25519PrivateKey.from_private_bytes(AESGCM(secret).decrypt(nonce, sealed, about))
    except (InvalidTag, ValueError):
        return None
    public = private.public_key().public_bytes_raw()
    is_whole = public == row.public_key and row.key_id == thumbprint(public)
    return private if is_whole else None


def signer_at(keys: Sequence[OpenKey], now: int) -> OpenKey | None:
    """The key that signs at an instant: the last that has begun, unless it is revoked.

    An earlier key never signs again.
    """
    begun = [each for each in keys if each.has_begun and each.row.signs_from <= now]
    return begun[-1] if begun and not begun[-1].row.revoked_at else None


def states_at(keys: Sequence[OpenKey], now: int) -> list[SigningState]:
    """The state of each key at an instant; ``keys`` are all keys in order."""
    states: list[SigningState] = []
    successor_at: int | None = None  # when the key after this one begins to sign
    for key in reversed(keys):
        states.append(state_of(key, successor_at, now))
        if key.has_begun:
            successor_at = key.row.signs_from
    return states[::-1]


def state_of(key: OpenKey, successor_at: int | None, now: int) -> SigningState:
    """The state of a key whose successor begins to sign at ``successor_at``, if it has one."""
    if key.row.revoked_at:
        return "revoked"
    if key.private is None:
        return "sealed"
    if key.row.signs_from > now:
        return "next"
    if successor_at is None or successor_at > now:
        return "signing"
    return "overlap" if now < successor_at + TOKEN_LIFE_US else "retired"


def published_of(keys: Sequence[OpenKey], now: int) -> list[OpenKey]:
    """The keys whose tokens are valid at an instant, or will be."""
    states = states_at(keys, now)
    return [key for key, state in zip(keys, states, strict=True) if state in PUBLISHED]


class SigningKeys:
    """The keys of a database as one server sees them, read again every few seconds."""

    def __init__(self, pool: Pool, secret: bytes) -> None:
        self._pool = pool
        self._secret = secret
        self._keys: tuple[OpenKey, ...] = ()
        self._read_until = 0.0
        self._published: JwkSet | None = None

    @property
    def prover(self) -> bytes:
        """The secret for proofs of measured use, which all servers of the database share."""
        return prover_of(self._secret)

    async def signer(self, now: int) -> OpenKey:
        """The key that signs at an instant; if there is none, it is made."""
        found = signer_at(await self._read(), now)
        if found is None:
            await self._make_first()
            found = signer_at(await self._read(), max(now, await self._now()))
        if found is None:
            raise SigningKeyUnknown
        return found

    async def public(self, now: int) -> dict[str, Ed25519PublicKey]:
        """The public keys whose tokens are valid at an instant, or will be, by id."""
        return {
            each.row.key_id: Ed25519PublicKey.from_public_bytes(each.row.public_key)
            for each in published_of(await self._read(), now)
        }

    async def published(self) -> JwkSet:
        """The public keys for everybody, renewed every few seconds."""
        if self._published is None or self._read_until <= time.monotonic():
            now = await self._now()
            await self.signer(now)  # a key is known before its first token is signed
            raws = await self.public(now)
            self._published = published(each.public_bytes_raw() for each in raws.values())
        return self._published

    async def listed(self, now: int) -> list[tuple[SigningKeyRow, SigningState]]:
        """Every key with its state, the latest first."""
        self._forget()
        keys = await self._read()
        states = states_at(keys, now)
        return [(key.row, state) for key, state in zip(keys, states, strict=True)][::-1]

    async def rotate(self, act: Act, *, signs_in_us: int) -> tuple[SigningKeyRow, bool]:
        """Make the key that signs next; also whether an earlier call has made it."""

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            await self._require_room(db)
            row = await self._insert(db, signs_in_us=signs_in_us)
            return msgspec.json.encode(replace(row, sealed=b"")), note_of(act, row)

        done = await perform(self._pool, act, work)
        self._forget()
        return msgspec.json.decode(done.answer, type=SigningKeyRow), done.is_replay

    async def revoke(self, act: Act, key_id: str) -> bool:
        """Revoke a key and its tokens at once; whether this is a replay."""

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            now = await signing_keys.ledger_now(db)
            if not await signing_keys.revoke(db, key_id, at=now):
                raise SigningKeyUnknown
            new = {"revoked_at": format_instant(now)}
            return b'"revoked"', act.note("signing_key.revoke", key_id, new=new)

        done = await perform(self._pool, act, work)
        self._forget()
        return done.is_replay

    async def _make_first(self) -> None:
        """Make a key that signs at once, unless another server has made one."""
        act = Act(org_id=0, actor=SIGNER)

        async def work(db: Connection) -> tuple[bytes, AuditNote | None]:
            keys = self._opened(await signing_keys.list_all(db))
            if signer_at(keys, await signing_keys.ledger_now(db)) is not None:
                return b"", None
            if shut := sum(each.private is None for each in keys):
                logger.warning(
                    "%d signing keys of this database do not open with this server's signing "
                    "secret, and a new one is made: servers of one database must share the file",
                    shut,
                )
            row = await self._insert(db, signs_in_us=0)
            return b"", note_of(act, row)

        await perform(self._pool, act, work)
        self._forget()

    async def _require_room(self, db: Connection) -> None:
        keys = self._opened(await signing_keys.list_all(db))
        if len(published_of(keys, await signing_keys.ledger_now(db))) >= KEYS_MAX:
            raise SigningKeysFull(
                f"{KEYS_MAX} signing keys are published, which is the most. Revoke one, or wait "
                f"until the tokens of one have expired."
            )

    async def _insert(self, db: Connection, *, signs_in_us: int) -> SigningKeyRow:
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        now = await signing_keys.ledger_now(db)
        row = SigningKeyRow(
            key_id=thumbprint(public),
            public_key=public,
            sealed=seal(self._secret, private, signs_from=now + signs_in_us),
            created_at=now,
            signs_from=now + signs_in_us,
        )
        await signing_keys.insert(db, row)
        return row

    async def _read(self) -> tuple[OpenKey, ...]:
        if self._read_until <= time.monotonic():
            async with session(self._pool) as db:
                self._keys = self._opened(await signing_keys.list_all(db))
            self._read_until = time.monotonic() + MEMORY_S
            self._published = None
        return self._keys

    async def _now(self) -> int:
        async with session(self._pool) as db:
            return await signing_keys.ledger_now(db)

    def _opened(self, rows: Sequence[SigningKeyRow]) -> tuple[OpenKey, ...]:
        known = {each.row: each for each in self._keys}
        return tuple(known.get(row) or OpenKey(row, unseal(self._secret, row)) for row in rows)

    def _forget(self) -> None:
        self._read_until = 0.0
        self._published = None


def note_of(act: Act, row: SigningKeyRow) -> AuditNote:
    """The audit row of a new key, with everything that gives the key its power."""
    new = {
        "public_key": row.public_key.hex(),
        "sealed": hash_of_seal(row.sealed),
        "created_at": format_instant(row.created_at),
        "signs_from": format_instant(row.signs_from),
    }
    return act.note("signing_key.create", row.key_id, new=new)


def hash_of_seal(sealed: bytes) -> str:
    """The hash of a sealed half for the audit log, which shows if the seal was replaced."""
    return hashlib.sha256(sealed).hexdigest()


def _about(public_key: bytes, signs_from: int) -> bytes:
    return b"gpucredits signing key" + public_key + signs_from.to_bytes(8, "big")
