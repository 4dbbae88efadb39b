"""A server that may lose what it acknowledged, so that a crash test can show that it would see it.

It runs ``gpucredits serve`` with commits that are answered before they are on disk. The product
refuses such a database; ``--unchecked`` takes that check out, in this process alone.
"""

from __future__ import annotations

import functools
import sys
from unittest.mock import patch

from gpucredits import app
from gpucredits.__main__ import main
from gpucredits.store import pool
from gpucredits.store.embedded import EmbeddedPostgres

UNSAFE = {"synchronous_commit": "off", "wal_writer_delay": "2s"}
UNCHECKED = "--unchecked"


async def accept_anything(*_: object, **__: object) -> None:
    """In place of the check for durability."""


if __name__ == "__main__":
    check = pool.require_durable
    if UNCHECKED in sys.argv:
        sys.argv.remove(UNCHECKED)
        check = accept_anything
    unsafe = functools.partial(EmbeddedPostgres, settings=UNSAFE)
    with patch.object(app, "EmbeddedPostgres", unsafe), patch.object(pool, "require_durable", check):
        main()
