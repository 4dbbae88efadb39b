"""A program that supervises an embedded PostgreSQL, to be killed by a test.

Prints one JSON line when ready and stops in order on SIGTERM or when its input ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from gpucredits.store.embedded.server import EmbeddedPostgres


def main(data_dir: Path) -> None:
    """Serve until told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = {"shared_buffers": "32MB", "max_wal_size": "256MB"}
    with EmbeddedPostgres(data_dir, settings=settings) as server:
        ready = {"dsn": server.dsn(), "postmaster": server.pid, "uid": os.geteuid()}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
