"""Certificates of the test's own: authorities, a server, and nodes, as files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gpucredits.cli.node.certificates import Issued, Kind, issue_certificate, new_authority

DAYS = 2


@dataclass(frozen=True)
class CertificateFiles:
    """A certificate and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class TestAuthority:
    """An authority, and a folder for what it signs."""

    __test__ = False
    folder: Path
    issued: Issued

    @property
    def file(self) -> Path:
        """Its certificate, which others trust."""
        return self.folder / "ca.pem"

    def sign(self, kind: Kind, name: str, *, days_ago: int = 0) -> CertificateFiles:
        """A certificate; one that was made so many days ago may have expired."""
        now = datetime.now(UTC) - timedelta(days=days_ago)
        hosts = ("127.0.0.1",) if kind == "server" else ()
        made = issue_certificate(self.issued, kind, name, hosts=hosts, days=DAYS, now=now)
        files = CertificateFiles(
            self.folder / f"{kind}-{name}-{days_ago}.pem",
            self.folder / f"{kind}-{name}-{days_ago}.key",
        )
        files.certificate.write_bytes(made.certificate)
        files.key.write_bytes(made.key)
        files.key.chmod(0o600)
        return files

    def client(self, shown: CertificateFiles | None = None) -> ssl.SSLContext:
        """TLS settings of a client that trusts this authority and shows a certificate."""
        context = ssl.create_default_context(cafile=self.file)
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        return context


def make_authority(folder: Path) -> TestAuthority:
    """A new authority in a folder of its own."""
    folder.mkdir(exist_ok=True)
    made = TestAuthority(folder, new_authority(f"authority {folder.name}", days=DAYS))
    made.file.write_bytes(made.issued.certificate)
    return made
