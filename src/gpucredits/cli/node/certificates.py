"""Certificates for trying TLS between nodes and a server: an authority, and what it signs.

Owns: what each kind of certificate may be used for. A node's certificate opens connections and
serves none; a server's the other way round; neither signs others. Keys are ECDSA on P-256.
Must not: write files; whoever asked decides where they go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED: Final = timedelta(minutes=5)  # for clocks that are a little behind
NODE_URI: Final = "urn:gpucredits:node:"
CLIENT_URI: Final = "urn:gpucredits:client:"
COMMON_NAME_LENGTH_MAX: Final = 64
Kind = Literal["server", "node", "client"]


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key, both in PEM form."""

    certificate: bytes
    key: bytes


def new_authority(name: str, *, days: int, now: datetime | None = None) -> Issued:
    """An authority that signs certificates of servers, nodes and people, and no other authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signed = (
        _begun(subject, subject, key.public_key(), days, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Issued(signed.public_bytes(serialization.Encoding.PEM), _pem(key))


def issue_certificate(  # one argument for each fact about the certificate
    authority: Issued,
    kind: Kind,
    name: str,
    *,
    hosts: Sequence[str] = (),
    days: int,
    now: datetime | None = None,
) -> Issued:
    """A certificate that an authority signs; ``hosts`` are the names and addresses of a server."""
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing_key = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(signing_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not an ECDSA key")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:COMMON_NAME_LENGTH_MAX])])
    is_server = kind == "server"
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if is_server else ExtendedKeyUsageOID.CLIENT_AUTH
    signed = (
        _begun(subject, signer.subject, key.public_key(), days, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(kind, name, hosts)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
        .sign(signing_key, hashes.SHA256())
    )
    chain = signed.public_bytes(serialization.Encoding.PEM)
    return Issued(chain, _pem(key))


def _names(kind: Kind, name: str, hosts: Sequence[str]) -> list[x509.GeneralName]:
    if kind != "server":
        prefix = NODE_URI if kind == "node" else CLIENT_URI
        return [x509.UniformResourceIdentifier(f"{prefix}{name}")]
    names: list[x509.GeneralName] = []
    for host in hosts or (name,):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    days: int,
    now: datetime | None,
) -> x509.CertificateBuilder:
    now = now or datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
