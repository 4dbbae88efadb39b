"""Logging in to NATS: users, tokens, credentials files, and TLS.

Owns: the meaning of an address and its options. If TLS was asked for, a server without TLS is told
nothing; the NATS client by itself would go on without TLS.
Must not: connect.
"""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.aio.client import Client
from nats.errors import Error as NatsError

from gpucredits.metering.bus import BusSetupError

OPTIONS: Final = ("ca_file", "cert_file", "credentials", "key_file")
SEED_BYTES: Final = 36  # two of its kind, the seed, two of its checksum
SEED_KIND: Final = 18 << 3
JWT: Final = re.compile(r"-+BEGIN NATS USER JWT-+\s+(\S+)")
SEED: Final = re.compile(r"-+BEGIN USER NKEY SEED-+\s+(\S+)")


class NatsClient(Client):
    """A client that sends nothing before TLS is up, if TLS was asked for."""

    needs_tls = False

    def _connect_command(self) -> bytes:
        if self.needs_tls and not self._server_info.get("tls_required"):
            raise NatsError("the address asks for TLS, and the server offers none")
        return bytes(super()._connect_command())

    def hang_up(self) -> None:
        """Close the socket at once; a clean close of TLS would wait for the server."""
        for name in ("_io_writer", "_bare_io_writer"):
            writer = getattr(self._transport, name, None)
            if writer is not None:
                writer.transport.abort()


@dataclass(frozen=True, slots=True)
class NatsLogin:
    """The server's address without a password, and how to connect to it."""

    url: str
    needs_tls: bool = False
    tls: ssl.SSLContext | None = None
    credentials: Path | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def options(self) -> dict[str, Any]:
        """Options of the client; a credentials file is read anew for each connection."""
        found: dict[str, Any] = dict(self.secrets)
        if self.tls is not None:
            found["tls"] = self.tls
        if self.credentials is not None:
            jwt, key = read_credentials(self.credentials)
            found["user_jwt_cb"] = jwt.encode
            found["signature_cb"] = lambda nonce: base64.b64encode(key.sign(nonce.encode()))
        return found


def login_of(url: str, options: Mapping[str, str]) -> NatsLogin:
    """The login that an address describes; BusSetupError if the address cannot be used."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise BusSetupError("NATS needs one host and a port, such as nats://a:4222")
    secrets = {}
    if parts.username and parts.password is not None:
        secrets = {"user": unquote(parts.username), "password": unquote(parts.password)}
    elif parts.username:
        secrets = {"token": unquote(parts.username)}
    tls = tls_of(options)
    credentials = Path(options["credentials"]) if "credentials" in options else None
    if credentials is not None:
        read_credentials(credentials)
    shown = f"[{host}]" if ":" in host else host
    place = f"{shown}:{port}" if port else shown
    return NatsLogin(
        urlunsplit(parts._replace(netloc=place, query="")),
        needs_tls=parts.scheme == "tls" or tls is not None,
        tls=tls,
        credentials=credentials,
        secrets=secrets,
    )


def tls_of(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """TLS settings from the files that the address names; None means the system's settings."""
    ca_file, cert_file, key_file = (
        options.get(name) for name in ("ca_file", "cert_file", "key_file")
    )
    if key_file and not cert_file:
        raise BusSetupError("key_file needs cert_file")
    if not ca_file and not cert_file:
        return None
    try:
        tls = ssl.create_default_context(cafile=ca_file)
        if cert_file:
            tls.load_cert_chain(cert_file, key_file, password=no_password)
    except OSError as error:
        raise BusSetupError(
            f"TLS files {', '.join(filter(None, (ca_file, cert_file, key_file)))}: {error}"
        ) from error
    return tls


def no_password() -> str:
    """Refuse to ask for a key's password: an unattended server would stop."""
    raise BusSetupError("the key in key_file has a password: use a key without one")


def read_credentials(path: Path) -> tuple[str, Ed25519PrivateKey]:
    """A user's JWT and signing key, from a credentials file written by ``nsc``."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BusSetupError(f"credentials {path}: {error}") from error
    jwt, seed = JWT.search(text), SEED.search(text)
    if jwt is None or seed is None:
        raise BusSetupError(f"credentials {path}: the file must hold a user's JWT and its seed")
    return jwt[1], key_of(seed[1], path)


def key_of(seed: str, path: Path) -> Ed25519PrivateKey:
    """The signing key in a seed; the seed's checksum is compared."""
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except binascii.Error:
        raw = b""
    whole = len(raw) == SEED_BYTES and raw[0] & 0xF8 == SEED_KIND
    if not whole or binascii.crc_hqx(raw[:-2], 0) != int.from_bytes(raw[-2:], "little"):
        raise BusSetupError(f"credentials {path}: the seed is damaged")
    return Ed25519PrivateKey.from_private_bytes(raw[2:-2])
