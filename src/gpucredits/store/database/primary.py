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
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

import asyncpg

from gpucredits.store.database.errors import Unavailable

logger = logging.getLogger(__name__)

SEEN = """
SELECT (SELECT system_identifier::text FROM pg_control_system()),
    ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer
"""
PRIMARY_ONLY = ("primary", "read-write")


class DatabaseAddressError(Exception):
    """An address that could lead to a server which takes no writes; says what is missing."""


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


class Primary:
    """The newest primary that was seen, kept in a file so that a restart does not forget it."""

    def __init__(self, note: Path | None = None) -> None:
        self.system = ""
        self.timeline = 0
        self._note = note
        self._seen: WeakKeyDictionary[asyncpg.Connection[Any], tuple[str, int]]
        self._seen = WeakKeyDictionary()
        if note is not None and note.is_file():
            self.system, _, number = note.read_text(encoding="ascii").strip().partition(" ")
            self.timeline = int(number or 0)

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
        """A newer primary, or another database: connections to the one before end now."""
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
        if self._note is not None:
            self._note.write_text(f"{system} {timeline}\n", encoding="ascii")
