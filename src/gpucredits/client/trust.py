"""Whose certificates are trusted, and what is said of one that is not.

Owns: the TLS settings of the clients, and naming a certificate that fails them.
Must not: send anything.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

from gpucredits.client.errors import Invalid

CA_FILE_VARIABLE: Final = "SSL_CERT_FILE"
CA_FOLDER_VARIABLE: Final = "SSL_CERT_DIR"
_EXPIRED: Final = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_OTHER_NAMES: Final = frozenset({62, 64})  # X509_V_ERR_HOSTNAME_MISMATCH, ..._IP_ADDRESS_MISMATCH
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


def trusted(url: str, ca_file: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """The TLS settings for an address: what ``ca_file`` holds is trusted, or the usual."""
    if httpx.URL(url).scheme != "https" and not ca_file:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it trusts nobody, and is not used
    named = ca_file or os.environ.get(CA_FILE_VARIABLE)
    try:
        if named:
            return ssl.create_default_context(cafile=os.fspath(named))
        return httpx.create_ssl_context()  # SSL_CERT_DIR, or the certificates of certifi
    except OSError as error:  # an ssl.SSLError is one too
        said = "holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        field = "ca_file" if ca_file else CA_FILE_VARIABLE if named else CA_FOLDER_VARIABLE
        text = f"{os.fspath(named or '')} {'' if said is None else said}".strip()
        raise Invalid(f"{text}: name a file of certificates in PEM form", field=field) from error


def distrust_of(error: httpx.TransportError) -> str | None:
    """Why no TLS connection to this address will ever be trusted; None of any other failure."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _distrust(address_of(error), cause)
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            where = address_of(error)
            return f"{where} does not speak TLS: write {where.replace('https', 'http', 1)}"
    return None


def address_of(error: httpx.TransportError) -> str:
    """The address that a request which failed was for."""
    try:
        url = error.request.url
    except RuntimeError:  # it failed before there was a request
        return "its address"
    return f"{url.scheme}://{url.netloc.decode()}"


def _distrust(where: str, error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message.rstrip(".")
    if error.verify_code in _OTHER_NAMES:
        return f"the certificate of {where} is for another name ({said}): use the name it is for"
    if error.verify_code == _EXPIRED:
        return f"the certificate of {where} has expired: the server needs a new one"
    return (
        f"the certificate of {where} is not trusted ({said}): if the server is yours, name the "
        f"certificate of its authority with ca_file (--ca-file), or in {CA_FILE_VARIABLE}"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that led to it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
