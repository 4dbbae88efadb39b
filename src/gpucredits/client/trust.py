"""Which certificates are trusted, which one the client shows, and the error for one that fails.

Owns: the TLS settings of the clients, and naming a certificate that fails them.
Must not: send anything.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import httpx

from gpucredits.client.errors import Invalid

CA_FILE_VARIABLE: Final = "SSL_CERT_FILE"
CA_FOLDER_VARIABLE: Final = "SSL_CERT_DIR"
_EXPIRED: Final = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_OTHER_NAMES: Final = frozenset({62, 64})  # X509_V_ERR_HOSTNAME_MISMATCH, ..._IP_ADDRESS_MISMATCH
_REFUSED: Final = frozenset(
    {
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    }
)
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """The certificate that a client shows, such as a node's, and the file of its private key.

    Without a file of the key, the certificate's file holds both.
    """

    cert_file: str | os.PathLike[str]
    cert_key_file: str | os.PathLike[str] | None = None


def shown_by(cert_file: str | None, cert_key_file: str | None) -> ShownCertificate | None:
    """The certificate that some settings name, if they name one."""
    if cert_file is None and cert_key_file is not None:
        raise Invalid("goes with the certificate that it belongs to", field="cert_key_file")
    return None if cert_file is None else ShownCertificate(cert_file, cert_key_file)


def trusted(
    url: str, ca_file: str | os.PathLike[str] | None, shown: ShownCertificate | None = None
) -> ssl.SSLContext:
    """The TLS settings for an address: what ``ca_file`` holds is trusted, or the usual."""
    if httpx.URL(url).scheme != "https":
        if shown is not None:
            raise Invalid(f"goes with an https address, and {url} is none", field="cert_file")
        if not ca_file:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it trusts nobody, and is not used
    context = _trusting(ca_file)
    if shown is not None:
        _show(context, shown)
    return context


def _show(context: ssl.SSLContext, shown: ShownCertificate) -> None:
    """Let a connection show a certificate; ``Invalid`` names the file that cannot be used."""
    try:
        context.load_cert_chain(shown.cert_file, shown.cert_key_file, password=_no_password)
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        said = error.strerror if isinstance(error, OSError) and error.errno else str(error)
        raise Invalid(
            f"{os.fspath(shown.cert_file)} is no certificate with its private key ({said}): name "
            "both as files in PEM form",
            field="cert_file",
        ) from error


def _no_password() -> str:
    raise ValueError("the private key is encrypted")


def _trusting(ca_file: str | os.PathLike[str] | None) -> ssl.SSLContext:
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
        if isinstance(cause, ssl.SSLError) and _is_about_us(cause):
            return (
                f"{address_of(error)} refused the client's certificate ({cause.reason}): name one "
                "that its authority signed with cert_file (--cert), or look at the server's audit "
                "log"
            )
    return None


def address_of(error: httpx.TransportError) -> str:
    """The address that a request which failed was for."""
    try:
        url = error.request.url
    except RuntimeError:  # it failed before there was a request
        return "its address"
    return f"{url.scheme}://{url.netloc.decode()}"


def _is_about_us(error: ssl.SSLError) -> bool:
    """Whether a server broke the connection off because of the certificate we showed, or not."""
    return (error.reason or "") in _REFUSED


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
