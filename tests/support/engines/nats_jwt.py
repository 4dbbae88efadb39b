"""Credentials of NATS users: an operator, an account with JetStream, and files as of nsc."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3
SEED = 18 << 3
UNBOUND = dict.fromkeys(
    (
        *("subs", "data", "payload", "imports", "exports", "conn", "leaf"),
        *("mem_storage", "disk_storage", "streams", "consumer"),
    ),
    -1,
) | {"wildcards": True}
FILE = """-----BEGIN NATS USER JWT-----
{jwt}
------END NATS USER JWT------

************************* IMPORTANT *************************
-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""


def coded(raw: bytes) -> str:
    """Bytes with their checksum, as NATS writes keys."""
    summed = raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(summed).decode().rstrip("=")


@dataclass(frozen=True)
class Identity:
    """A key of somebody: an operator, an account or a user."""

    kind: int
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def name(self) -> str:
        """Its public half."""
        return coded(bytes([self.kind]) + self.key.public_key().public_bytes_raw())

    @property
    def seed(self) -> str:
        """Its private half."""
        head = bytes([SEED | self.kind >> 5, (self.kind & 31) << 3])
        return coded(head + self.key.private_bytes_raw())

    def says(self, subject: Identity, what: dict[str, Any]) -> str:
        """A JWT about somebody, signed by this one."""
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        claims = {"jti": subject.name, "iat": int(time.time()), "iss": self.name}
        claims |= {"name": "test", "sub": subject.name, "nats": {**what, "version": 2}}
        text = f"{packed(head)}.{packed(claims)}"
        return f"{text}.{unpadded(self.key.sign(text.encode()))}"


def packed(value: dict[str, Any]) -> str:
    """A part of a JWT."""
    return unpadded(json.dumps(value).encode())


def unpadded(raw: bytes) -> str:
    """Bytes as a JWT has them."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True)
class Tenancy:
    """An operator with an account whose users have JetStream, and one for the system."""

    operator: Identity = field(default_factory=lambda: Identity(OPERATOR))
    account: Identity = field(default_factory=lambda: Identity(ACCOUNT))
    system: Identity = field(default_factory=lambda: Identity(ACCOUNT))

    def settings(self) -> str:
        """What a server's configuration says of it."""
        terms = {"type": "account", "limits": UNBOUND}
        plain = {"type": "account", "limits": UNBOUND | {"mem_storage": 0, "disk_storage": 0}}
        known = {
            self.account.name: self.operator.says(self.account, terms),
            self.system.name: self.operator.says(self.system, plain),
        }
        operator = self.operator.says(self.operator, {"type": "operator"})
        preload = "\n".join(f"  {name}: {jwt}" for name, jwt in known.items())
        return (
            f"operator: {operator}\nsystem_account: {self.system.name}\nresolver: MEMORY\n"
            f"resolver_preload {{\n{preload}\n}}\n"
        )

    def credentials(self, *, signer: Identity | None = None) -> str:
        """The file of a new user; one that another account signed is nobody's."""
        user = Identity(USER)
        terms = {"type": "user", "subs": -1, "data": -1, "payload": -1}
        return FILE.format(jwt=(signer or self.account).says(user, terms), seed=user.seed)
