"""Which PostgreSQL is the primary, and that it is the newest one this server has written to.

Owns: the timeline (PostgreSQL's number for a history; each promotion begins a new one) of the
newest primary that was seen, and what an address of several hosts has to ask for.
Must not: open connections or fail over; the driver and the operator's tools do.

An old primary that was not stopped when its standby was promoted still takes writes. Whatever is
written to it is lost, so a connection to it is refused, and those there are end as soon as a newer
primary has been seen.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from weakref import WeakKeyDictionary

import asyncpg

from gpucredits.store.database.errors import Unavailable
from gpucredits.store.embedded import private

logger = logging.getLogger(__name__)

SEEN = """
SELECT (SELECT system_identifier::text FROM pg_control_system()),
    ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer
"""
PRIMARY_ONLY = ("primary", "read-write")
NOTED = re.compile(rb"(\d{1,20}) (\d{1,10})\s*")
NOTE_BYTES = 32  # always as long, so that one write replaces the note as a whole


class DatabaseAddressError(Exception):
    """An address that leads to no database which can be written to; says what to change."""


def require_primary(url: str) -> None:
    """Raise unless an address of several hosts asks for the primary among them."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    hosts = query.get("host", [parts.netloc.rpartition("@")[2]])[-1]
    asked = query.get("target_session_attrs", [os.environ.get("PGTARGETSESSIONATTRS", "")])[-1]
    if "," in hosts and asked not in PRIMARY_ONLY:
        raise DatabaseAddressError(
            "the database address names several hosts, and any of them could be a standby: add "
            "target_session_attrs=primary to it"
        )


def socket_directory(url: str) -> Path | None:
    """The directory of the one socket that an address names (``host=/path``), if it does."""
    parts = urlsplit(url)
    hosts = parse_qs(parts.query).get("host", [""])
    is_path = len(hosts) == 1 and hosts[0].startswith("/") and "," not in hosts[0]
    return Path(hosts[0]) if is_path and not parts.netloc.rpartition("@")[2] else None


def through(url: str, folder: Path) -> str:
    """The same address with the socket in another directory."""
    parts = urlsplit(url)
    query = parse_qs(parts.query) | {"host": [str(folder)]}
    return parts._replace(query=urlencode(query, doseq=True)).geturl()


def open_note(path: Path) -> int:
    """A descriptor of the file that a server remembers the newest primary in."""
    return private.open_file(path, os.O_RDWR | os.O_CREAT)


class Primary:
    """The newest primary that was seen, kept in a file so that a restart does not forget it.

    ``note`` is a descriptor of the file: a process that gave root up cannot open what is root's.
    """

    def __init__(self, note: int | None = None) -> None:
        self.system = ""
        self.timeline = 0
        self._note = note
        self._seen: WeakKeyDictionary[asyncpg.Connection[Any], tuple[str, int]]
        self._seen = WeakKeyDictionary()
        if note is not None and (noted := NOTED.fullmatch(os.pread(note, 2 * NOTE_BYTES, 0))):
            self.system, self.timeline = noted[1].decode(), int(noted[2])

    async def admit(self, connection: asyncpg.Connection[Any]) -> None:
        """Take a new connection for one to the primary; raises Unavailable for an older one."""
        system, timeline = await connection.fetchrow(SEEN)
        if system == self.system and timeline < self.timeline:
            raise Unavailable(
                f"this is an old primary: its timeline is {timeline}, and {self.timeline} was seen "
                "before. Stop it, or make it a standby of the new one (pg_rewind)"
            )
        self._seen[connection] = (system, timeline)
        if (system, timeline) != (self.system, self.timeline):
            self._move(system, timeline)

    def _move(self, system: str, timeline: int) -> None:
        """A newer primary, or another database: connections to the previous one end now."""
        if self.system:
            logger.warning(
                "the database is another primary",
                extra={"fields": {"timeline": timeline, "before": self.timeline}},
            )
        self.system, self.timeline = system, timeline
        for connection, seen in list(self._seen.items()):
            if seen != (system, timeline):
                del self._seen[connection]
                if not connection.is_closed():
                    connection.terminate()
        self._write()

    def _write(self) -> None:
        """Note the primary; one that cannot be noted is forgotten with the process."""
        if self._note is None:
            return
        try:
            os.pwrite(self._note, f"{self.system} {self.timeline}".ljust(NOTE_BYTES).encode(), 0)
            os.fsync(self._note)
        except OSError as error:
            logger.warning(
                "the newest primary cannot be written down",
                extra={"fields": {"error": str(error)}},
            )
