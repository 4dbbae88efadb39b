"""Somebody who keeps writing to a server, and remembers what was acknowledged and when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gpucredits.client import Client
from support.engines.postgres import sql
from support.servers.http import RunningServer

ACCOUNT = "acme"


@dataclass
class Writer:
    """The writes that were acknowledged: the number of each, and the log position after it."""

    acknowledged: dict[str, int] = field(default_factory=dict)

    def between(self, start_lsn: str, end_lsn: str) -> set[str]:
        """The numbers of writes whose log position is after the start and not after the end."""
        start, end = position(start_lsn), position(end_lsn)
        return {number for number, at in self.acknowledged.copy().items() if start < at <= end}


def position(lsn: str) -> int:
    """A place in the write-ahead log as a number."""
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


@contextmanager
def writing(server: RunningServer, address: str) -> Iterator[Writer]:
    """Grants, one after another, in a thread of their own, each with its number as a label."""
    writer, stop = Writer(), threading.Event()

    def write() -> None:
        with Client(server.url, server.admin_secret) as client:
            number = 0
            while not stop.is_set():
                number += 1
                client.issue(ACCOUNT, "1", metadata={"number": str(number)})
                lsn = sql(address, "SELECT pg_current_wal_flush_lsn()::text")
                writer.acknowledged[str(number)] = position(lsn)

    with Client(server.url, server.admin_secret) as client:
        client.create_account(ACCOUNT)
    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield writer
    finally:
        stop.set()
        thread.join()
