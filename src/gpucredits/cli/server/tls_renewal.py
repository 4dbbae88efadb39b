"""A server's certificate, read again when its files change: new connections get the new one.

Owns: noticing the change, and the way from whoever may read the files to whoever serves. These may
be two processes: the one that serves has no root, and may not read a private key. So the files
travel as descriptors of their content in memory.
Must not: end a connection, or use files that are no certificate with its key.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpucredits.api.transport.context import TlsFiles, TlsFilesError, server_context

POLL_S: Final = 2.0
FILES_MAX: Final = 3  # a certificate, its key, and whom clients are signed by
logger = logging.getLogger(__name__)


class TlsRenewal:
    """The TLS settings of a server that lives longer than its certificate."""

    def __init__(self, files: TlsFiles) -> None:
        self.context = server_context(files)
        self._files = files
        self._stamps = self._stamped()
        self._told, self._tells = socket.socketpair()  # of two processes, where root serves

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the files now and then; in the process that may read them."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(POLL_S):
                self.look()

        threading.Thread(target=watch, name="gpucredits-tls", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def look(self) -> bool:
        """Hand changed files over; whether they were. Broken ones are said once, and not used."""
        stamps = self._stamped()
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        with ExitStack() as opened:
            try:
                kept = [kept_in_memory(each, opened) for each in self._paths()]
                server_context(of_descriptors(self._files, kept))
            except (OSError, TlsFilesError) as error:
                logger.warning("the certificate is not renewed: %s", self._why(error))
                return False
            socket.send_fds(self._tells, [b"!"], kept)
        logger.warning("the certificate is renewed from %s", self._files.certificate)
        return True

    def follow(self, use: Callable[[ssl.SSLContext], None]) -> None:
        """Use what is handed over, from the event loop of the process that serves."""

        def take() -> None:
            _, kept, _, _ = socket.recv_fds(self._told, 1, FILES_MAX)
            with ExitStack() as opened:
                for handle in kept:
                    opened.callback(os.close, handle)
                use(server_context(of_descriptors(self._files, kept)))

        asyncio.get_running_loop().add_reader(self._told, take)

    def _paths(self) -> list[Path]:
        return [self._files.certificate, self._files.key, *filter(None, [self._files.client_ca])]

    def _stamped(self) -> list[tuple[int, int, int] | None]:
        """What changes with each file."""
        return [stamp(each) for each in self._paths()]

    def _why(self, error: Exception) -> str:
        if isinstance(error, TlsFilesError):
            return f"{self._files.certificate} with {self._files.key}: {error.__cause__}"
        return str(error)


def stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is written or replaced; None where it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def kept_in_memory(path: Path, opened: ExitStack) -> int:
    """A descriptor of a file's content as it is now."""
    handle = os.memfd_create("gpucredits-tls", os.MFD_CLOEXEC)
    opened.callback(os.close, handle)
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(path.read_bytes())
    return handle


def of_descriptors(files: TlsFiles, kept: Sequence[int]) -> TlsFiles:
    """The same settings, read from descriptors."""
    certificate, key, *authority = (Path(f"/proc/self/fd/{each}") for each in kept)
    client_ca = authority[0] if authority else None
    return replace(files, certificate=certificate, key=key, client_ca=client_ca)
