"""A primary and its standby, made with PostgreSQL's own tools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from gpucredits.store.embedded.cluster import ENVIRONMENT, ROLE, Layout, binaries
from gpucredits.store.embedded.server import DATABASE, EmbeddedPostgres
from support.engines.postgres import SMALL, sql, temporary_directory
from support.waiting import until

TIMEOUT_S = 120
ACCESS = "local all all trust\nlocal replication all trust\n"


class Pair:
    """Two servers, of which the first is the primary until the second is promoted."""

    def __init__(self, folder: Path, *, synchronous: bool) -> None:
        self.folders = (folder / "a", folder / "b")
        first = EmbeddedPostgres(self.folders[0], settings=SMALL)
        first.start()  # makes the cluster
        first.stop()
        wanted = {"synchronous_standby_names": "*"} if synchronous else {}
        self.primary = self._server(0, wanted)
        try:
            self.primary.start()
            self._copy()
            self.standby = self._server(1, {})
            self.standby.start()
            self._await_streaming()
        except BaseException:
            self.primary.stop()
            raise

    def address(self, *servers: EmbeddedPostgres) -> str:
        """One address for several servers, of which the primary is wanted."""
        hosts = ",".join(host_of(server) for server in servers)
        query = urlencode({"host": hosts, "target_session_attrs": "primary"})
        return f"postgresql://{ROLE}@/{DATABASE}?{query}"

    def cut_off_standby(self) -> None:
        """Let the standby hear no more; what the primary commits from here on is its alone."""
        dsn = self.standby.dsn()
        sql(dsn, "ALTER SYSTEM SET primary_conninfo = ''")
        sql(dsn, "SELECT pg_reload_conf()")
        count = "SELECT count(*) FROM pg_stat_replication"
        until(lambda: sql(self.primary.dsn(), count) == 0, timeout_s=TIMEOUT_S)

    def promote(self) -> None:
        """Make the standby a primary, on a timeline of its own.

        No query waits for the promotion: its snapshot could hold up the recovery before it.
        """
        dsn = self.standby.dsn()
        assert sql(dsn, "SELECT pg_promote(false)")
        until(lambda: sql(dsn, "SELECT NOT pg_is_in_recovery()"), timeout_s=TIMEOUT_S)

    def stop(self) -> None:
        """End both."""
        self.standby.stop()
        self.primary.stop()

    def _server(self, place: int, more: dict[str, str]) -> EmbeddedPostgres:
        layout = Layout(self.folders[place])
        if place == 0:
            access = layout.cluster / "access.conf"
            access.write_text(ACCESS)
            owner = layout.cluster.stat()
            os.chown(access, owner.st_uid, owner.st_gid)
        named = {"hba_file": str(layout.cluster / "access.conf")}
        return EmbeddedPostgres(self.folders[place], settings=SMALL | named | more)

    def _copy(self) -> None:
        target = Layout(self.folders[1])
        target.data_dir.mkdir(mode=0o711)
        host = host_of(self.primary)
        command = [
            str(binaries() / "pg_basebackup"),
            f"--host={host}",
            f"--username={ROLE}",
            f"--pgdata={target.cluster}",
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
        ]
        subprocess.run(command, env=ENVIRONMENT, check=True, timeout=TIMEOUT_S)
        target.cluster.chmod(0o700)

    def _await_streaming(self) -> None:
        state = "SELECT state FROM pg_stat_replication"
        until(lambda: sql(self.primary.dsn(), state) == "streaming", timeout_s=TIMEOUT_S)


def host_of(server: EmbeddedPostgres) -> str:
    """The directory of a server's socket."""
    return parse_qs(urlsplit(server.dsn()).query)["host"][0]


@contextmanager
def replicated(*, synchronous: bool = False) -> Iterator[Pair]:
    """A primary with a standby that streams from it."""
    with temporary_directory() as folder:
        folder.chmod(0o711)
        pair = Pair(folder, synchronous=synchronous)
        try:
            yield pair
        finally:
            pair.stop()
