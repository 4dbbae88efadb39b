"""Reaching the embedded PostgreSQL of a data directory from another process than its server's.

Owns: finding out whether a server runs there, and its address; starting one for a while if not.
Must not: stop a server that it did not start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from gpucredits.store import cluster
from gpucredits.store.embedded import DATABASE, EmbeddedPostgres
from gpucredits.store.run_as import EmbeddedPostgresError


@contextmanager
def attached(data_dir: Path) -> Iterator[str]:
    """The address of the data directory's database, running or started for the block."""
    layout = cluster.Layout(data_dir.absolute())
    if not (layout.cluster / "PG_VERSION").exists():
        raise EmbeddedPostgresError(f"there is no database in {data_dir}")
    folder = socket_directory(layout)
    if (folder / cluster.SOCKET_NAME).exists():
        yield f"postgresql://{cluster.ROLE}@/{DATABASE}?{urlencode({'host': str(folder)})}"
        return
    with EmbeddedPostgres(data_dir) as server:
        yield server.dsn()


def socket_directory(layout: cluster.Layout) -> Path:
    """Where the server's socket is while it runs."""
    try:
        return Path(layout.socket_note.read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        return layout.data_dir / "run"
