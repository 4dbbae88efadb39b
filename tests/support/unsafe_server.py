"""A server that may lose what it acknowledged, so that a crash test can show that it would see it.

It runs ``gpucredits serve`` with commits that are answered before they are on disk. The product
refuses such a database; ``--unchecked`` takes that check out, in this process alone.
"""

from __future__ import annotations

import functools
import sys
from unittest.mock import patch

from gpucredits import app
from gpucredits.cli.main import main
from gpucredits.store.database import durability
from gpucredits.store.embedded.server import EmbeddedPostgres

UNSAFE = {"synchronous_commit": "off", "wal_writer_delay": "2s"}
UNCHECKED = "--unchecked"


async def accept_anything(*_: object, **__: object) -> None:
    """In place of the check for durability."""


if __name__ == "__main__":
    is_checked = UNCHECKED not in sys.argv
    sys.argv = [word for word in sys.argv if word != UNCHECKED]
    unsafe = functools.partial(EmbeddedPostgres, settings=UNSAFE)
    check = durability.require_durable if is_checked else accept_anything
    with (
        patch.object(app, "EmbeddedPostgres", unsafe),
        patch("gpucredits.store.database.connections.require_durable", check),
    ):
        main()
