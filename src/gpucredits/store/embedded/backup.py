"""Backups of the embedded database, taken by PostgreSQL's own programs while it serves.

Owns: the layout of a backup, and running ``pg_basebackup`` and ``pg_verifybackup``. A backup is a
folder with the cluster, PostgreSQL's manifest of SHA-256 sums, the write-ahead log of the time in
which it was copied, and ``backup.json``, which is written last.
Must not: start or stop a server, or write to a data directory.
"""

from __future__ import annotations

import hashlib
import os
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from gpucredits.store.embedded import cluster
from gpucredits.store.embedded.run_as import RunAs, launch_environment
from gpucredits.version import __version__

FORMAT: Final = 1
INFO_FILE: Final = "backup.json"
CLUSTER_FOLDER: Final = "postgres"
KEY_FILE: Final = "admin.key"
MANIFEST_FILE: Final = "backup_manifest"
SILENCE_MAX_S: Final = 900.0  # the first checkpoint of a busy server may take minutes
SAID_LINES_MAX: Final = 20
READ_BYTES: Final = 65_536
_PROGRESS = re.compile(rb"(\d+)/(\d+) kB \(")

Tell = Callable[[str, int, int], None]
"""Hears of progress: the step in words, bytes done, bytes in all (0 while nobody knows)."""


class BackupError(Exception):
    """The backup cannot be taken or used; the message says why and what to do."""


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The facts in ``backup.json``."""

    format: int
    gpucredits_version: str
    postgres_version: str
    system_identifier: str
    started_at: str
    finished_at: str
    start_lsn: str
    end_lsn: str
    files: int
    bytes: int
    manifest_sha256: str
    admin_key_sha256: str | None = None


class _WalRange(msgspec.Struct):
    start: str = msgspec.field(name="Start-LSN")
    end: str = msgspec.field(name="End-LSN")


class _ManifestFile(msgspec.Struct):
    size: int = msgspec.field(name="Size")


class _Manifest(msgspec.Struct):
    system: int = msgspec.field(name="System-Identifier")
    files: list[_ManifestFile] = msgspec.field(name="Files")
    ranges: list[_WalRange] = msgspec.field(name="WAL-Ranges")


def take(
    address: str, target: Path, *, admin_key: Path | None, rate_mib_s: int | None, tell: Tell
) -> BackupInfo:
    """Copy a running server's cluster to a new folder, check the copy, and say what is in it.

    The folder gets its name when everything is in it and checked; until then it ends in
    ``.partial``.
    """
    partial = claim(target)
    try:
        started_at = now_text()
        copied = partial / CLUSTER_FOLDER
        command: list[str | Path] = [
            cluster.binaries() / "pg_basebackup",
            f"--dbname={address}",
            f"--pgdata={copied}",
            "--format=plain",
            "--wal-method=stream",
            "--checkpoint=fast",
            "--manifest-checksums=SHA256",
            "--label=gpucredits",
            "--no-password",
            "--sync-method=syncfs",  # once for all files: thousands of small ones are usual
            "--progress",
            *([f"--max-rate={rate_mib_s}M"] if rate_mib_s else []),
        ]
        run(command, step="copying", tell=tell)
        check(copied, tell=tell)
        key_sha256 = copy_key(admin_key, partial / KEY_FILE)
        info = describe(copied, started_at=started_at, key_sha256=key_sha256)
        write_durably(partial / INFO_FILE, msgspec.json.format(msgspec.json.encode(info)) + b"\n")
        cluster.sync_directory(partial)
        partial.rename(target)
        cluster.sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return info


def claim(target: Path) -> Path:
    """Make the folder that a backup is written to before it gets its name."""
    require_free(target)
    if target.exists():
        target.rmdir()
    partial = partial_of(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(mode=0o700)
    except OSError as error:
        raise BackupError(f"cannot make {partial}: {error.strerror}.") from error
    return partial


def require_free(target: Path) -> None:
    """Refuse a folder that has something in it or that another backup is being written to."""
    if target.is_symlink() or (target.exists() and not is_empty_folder(target)):
        raise BackupError(f"{target} already exists. Name a new folder for each backup.")
    partial = partial_of(target)
    if partial.exists():
        raise BackupError(
            f"{partial} exists: another backup to {target} is running, or one was killed. "
            f"If none is running, remove {partial}; or name another folder."
        )


def is_empty_folder(path: Path) -> bool:
    """Whether a path is a folder with nothing in it."""
    return path.is_dir() and not any(path.iterdir())


def partial_of(target: Path) -> Path:
    """The path of a backup until it is complete and checked."""
    return target.with_name(f"{target.name}.partial")


def check(folder: Path, *, tell: Tell) -> None:
    """Hold every file of a copied cluster against its checksum, and read its log to the end."""
    command: list[str | Path] = [cluster.binaries() / "pg_verifybackup", "--progress", folder]
    run(command, step="checking checksums", tell=tell)


def describe(folder: Path, *, started_at: str, key_sha256: str | None) -> BackupInfo:
    """What the manifest of a copied cluster says."""
    raw = (folder / MANIFEST_FILE).read_bytes()
    manifest = msgspec.json.decode(raw, type=_Manifest)
    return BackupInfo(
        format=FORMAT,
        gpucredits_version=__version__,
        postgres_version=(folder / "PG_VERSION").read_text(encoding="ascii").strip(),
        system_identifier=str(manifest.system),
        started_at=started_at,
        finished_at=now_text(),
        start_lsn=manifest.ranges[0].start,
        end_lsn=manifest.ranges[-1].end,
        files=len(manifest.files),
        bytes=sum(path.stat().st_size for path in files_in(folder)),
        manifest_sha256=hashlib.sha256(raw).hexdigest(),
        admin_key_sha256=key_sha256,
    )


def read_info(source: Path) -> BackupInfo:
    """What a backup says of itself, if it is one that this program can read."""
    path = source / INFO_FILE
    try:
        info = msgspec.json.decode(path.read_bytes(), type=BackupInfo)
    except (FileNotFoundError, NotADirectoryError):
        raise BackupError(
            f"{source} is not a finished backup: it has no {INFO_FILE}. "
            "Name a folder that `gpucredits backup` made."
        ) from None
    except OSError as error:
        raise BackupError(f"cannot read {path}: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        raise BackupError(f"{path} is damaged ({error}). Use another backup.") from None
    if info.format != FORMAT:
        raise BackupError(
            f"{source} has backup format {info.format} and this program reads format {FORMAT}. "
            f"Restore it with gpucredits {info.gpucredits_version}."
        )
    return info


def copy_key(admin_key: Path | None, copy: Path) -> str | None:
    """Copy the admin key for its owner's eyes only; its SHA-256, or None when there is none."""
    try:
        secret = admin_key.read_bytes() if admin_key else None
    except FileNotFoundError:
        secret = None
    if secret is None:
        return None
    write_durably(copy, secret)
    return hashlib.sha256(secret).hexdigest()


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def files_in(folder: Path) -> Iterator[Path]:
    """Every file below a folder."""
    for place, _, names in os.walk(folder):
        for name in names:
            yield Path(place, name)


def now_text() -> str:
    """The present instant in RFC 3339, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def run(command: list[str | Path], *, step: str, tell: Tell) -> None:
    """Run one of PostgreSQL's programs, and pass its progress on; ``BackupError`` if it fails."""
    tell(step, 0, 0)
    process = subprocess.Popen(  # noqa: S603 - our own programs
        RunAs().command(*command),
        cwd="/",
        env=launch_environment(cluster.ENVIRONMENT),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    said: list[str] = []
    try:
        for line in lines_of(process):
            if found := _PROGRESS.search(line):
                tell(step, int(found[1]) * 1_024, int(found[2]) * 1_024)
            elif line.strip():
                said = [*said, line.decode(errors="replace").strip()][-SAID_LINES_MAX:]
        code = process.wait(SILENCE_MAX_S)
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    if code:
        name = Path(command[0]).name
        raise BackupError("\n".join([f"{name} failed while {step}:", *said]))


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """The lines that a program prints to its error channel, until it closes the channel."""
    if process.stderr is None:
        return
    rest = b""
    last_s = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while True:
            if not selector.select(SILENCE_MAX_S):
                quiet_s = time.monotonic() - last_s
                raise BackupError(f"PostgreSQL's program said nothing for {quiet_s:.0f} s.")
            last_s = time.monotonic()
            part = os.read(process.stderr.fileno(), READ_BYTES)
            if not part:
                break
            *lines, rest = (rest + part).replace(b"\r", b"\n").split(b"\n")
            yield from lines
    yield rest
