"""The Python client: typed, with and without an event loop.

Owns: calling the HTTP API, asking again with the same key, and telling the four outcomes apart.
Must not: import the server, or read the environment, except for SSL_CERT_FILE and SSL_CERT_DIR,
which name the certificates that every program on a machine trusts.
"""

from gpucredits.client.attempts import Retry
from gpucredits.client.building import build_shapes
from gpucredits.client.call import Call, Reply
from gpucredits.client.errors import (
    Ambiguous,
    CallError,
    Invalid,
    Refused,
    Unavailable,
    Undecided,
    Untrusted,
)
from gpucredits.client.leases import AsyncLease, Lease
from gpucredits.client.tokens import verify_token
from gpucredits.client.transport import AsyncClient, Client
from gpucredits.client.trust import ShownCertificate
from gpucredits.wire.access.tokens import LeaseClaims, TokenRefused

__all__ = [
    "Ambiguous",
    "AsyncClient",
    "AsyncLease",
    "Call",
    "CallError",
    "Client",
    "Invalid",
    "Lease",
    "LeaseClaims",
    "Refused",
    "Reply",
    "Retry",
    "ShownCertificate",
    "TokenRefused",
    "Unavailable",
    "Undecided",
    "Untrusted",
    "verify_token",
]

build_shapes()  # whoever has imported the client may share it among threads
