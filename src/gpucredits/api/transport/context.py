"""The TLS settings of a server: its certificate, and whose client certificates it takes.

Must not: serve anything.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path


class TlsFilesError(Exception):
    """A file of certificates or keys cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Where certificates and keys are, and whether every client must show a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    everybody: bool = False


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """The settings, as the files are now. TLS 1.2 or newer, and no resumed sessions.

    A certificate of a node is thereby checked whenever the node connects.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        said = f"{files.certificate} with {files.key}"
        raise TlsFilesError(f"{said} is no certificate with its key: {_why(error)}") from error
    if files.client_ca is not None:
        try:
            context.load_verify_locations(cafile=files.client_ca)
        except OSError as error:
            why = _why(error)
            raise TlsFilesError(f"{files.client_ca} holds no certificate: {why}") from error
        context.verify_mode = ssl.CERT_REQUIRED if files.everybody else ssl.CERT_OPTIONAL
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to type a password")


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
