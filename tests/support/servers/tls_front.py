"""TLS in front of a server that speaks none: certificates of the test's own, and a relay."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.waiting import HANGS_S

OPENSSL = shutil.which("openssl")
MADE_TIMEOUT_S = HANGS_S
JOIN_TIMEOUT_S = HANGS_S
CHUNK = 65_536


def make_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """(certificate, key) for one address, signed by itself."""
    assert OPENSSL is not None
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-subj", "/CN=test", "-addext", f"subjectAltName=IP:{address}", "-days", "2"]
    subprocess.run(
        [OPENSSL, *words, "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
        timeout=MADE_TIMEOUT_S,
    )
    return certificate, key


def make_authority(folder: Path, address: str) -> tuple[Path, Path, Path]:
    """(authority, certificate, key): the certificate is for one address, signed by the authority.

    The file of the certificate has the authority's after it, as servers send both.
    """
    assert OPENSSL is not None
    authority, authority_key = folder / "authority.pem", folder / "authority-key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    _openssl(
        "req", "-x509", *curve, "-subj", "/CN=authority of a test",
        "-addext", "keyUsage=critical,keyCertSign", "-keyout", authority_key, "-out", authority,
    )  # fmt: skip
    certificate, key = folder / "signed.pem", folder / "signed-key.pem"
    _openssl(
        "req", "-x509", *curve, "-subj", "/CN=test", "-CA", authority, "-CAkey", authority_key,
        "-addext", f"subjectAltName=IP:{address}", "-addext", "basicConstraints=critical,CA:FALSE",
        "-keyout", key, "-out", certificate,
    )  # fmt: skip
    certificate.write_text(certificate.read_text() + authority.read_text())
    return authority, certificate, key


def _openssl(*words: str | Path) -> None:
    command = [str(OPENSSL), *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, timeout=MADE_TIMEOUT_S)


@contextmanager
def tls_front(certificate: Path, key: Path, behind: Path | tuple[str, int]) -> Iterator[int]:
    """The port at which TLS is spoken for the server at a socket, or at a host and port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    is_over = threading.Event()
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)

        def accept() -> None:
            while not is_over.is_set():
                with suppress(TimeoutError):
                    near = listener.accept()[0]
                    serving = threading.Thread(target=serve, args=(near,), daemon=True)
                    threads.append(serving)
                    serving.start()

        def serve(plain: socket.socket) -> None:
            with plain, suppress(OSError):  # a client that trusts nobody hangs up
                plain.settimeout(JOIN_TIMEOUT_S)
                with context.wrap_socket(plain, server_side=True) as near:
                    relay(near, behind, is_over)

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            is_over.set()
            for thread in (accepting, *threads):
                thread.join(JOIN_TIMEOUT_S)


def relay(near: ssl.SSLSocket, behind: Path | tuple[str, int], is_over: threading.Event) -> None:
    """Pass on a request, then its answer, until either side ends: servers speak when spoken to."""
    family = socket.AF_UNIX if isinstance(behind, Path) else socket.AF_INET
    with socket.socket(family) as far:
        far.connect(str(behind) if isinstance(behind, Path) else behind)
        far.settimeout(0.02)
        near.settimeout(0.02)
        while not is_over.is_set():
            for source, sink in ((near, far), (far, near)):
                with suppress(TimeoutError):
                    data = source.recv(CHUNK)
                    if not data:
                        return
                    sink.sendall(data)
