"""What a power cut leaves, and that the library which notes the writes of a program sees them."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucredits.store.embedded.run_as import launch_environment
from support.engines.postgres import temporary_directory
from support.faults.disk import CannotMakeDiskError, Disk, Fault, disk
from support.faults.photograph import (
    NOTHING_KEPT,
    SECTOR,
    Fate,
    Kind,
    Losses,
    Record,
    inodes,
    photograph,
    read_journal,
)
from support.waiting import HANGS_S

PAGE = b"n" * 4 * SECTOR
ALL_TORN = Fate(0.0, 1.0)
# Writes with a sync, without, with a sync that comes before, and names with and without one.
PROGRAM = """
import os, sys
root = sys.argv[1] + "/"
def write(name, text, *, is_synced, flags=os.O_CREAT):
    handle = os.open(root + name, os.O_WRONLY | flags, 0o600)
    os.write(handle, text)
    if is_synced:
        os.fsync(handle)
    return handle
os.mkdir(root + "folder")
write("folder/synced", b"whole", is_synced=True)
tail = write("tail", b"certain", is_synced=True)
os.pwrite(tail, b"doubtful", 7)
write("old", b"o", is_synced=False, flags=0)
write("moving", b"moved", is_synced=True)
os.rename(root + "moving", root + "moved")
os.unlink(root + "gone")
write("last", b"synced", is_synced=True)
os.rename(root + "last", root + "renamed")
write("unsynced", b"nothing", is_synced=False)
"""
FAILING = """
import os, sys
handle = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT, 0o600)
sync = lambda: os.fsync(handle)
for call in (sync, lambda: os.write(handle, b"grows"), sync):
    try:
        call()
    except OSError as error:
        print(error.errno, end=" ")
    else:
        print("done", end=" ")
"""


def write(inode: int, data: bytes, offset: int = 0) -> Record:
    """A write."""
    return Record(Kind.WRITE, inode, offset, "", len(data), memoryview(data))


def act(kind: Kind, inode: int = 0, offset: int = 0, path: str = "") -> Record:
    """A call that writes nothing."""
    return Record(kind, inode, offset, path, 0, memoryview(b""))


def sync(inode: int, number: int = 1) -> list[Record]:
    """A sync that nothing comes between."""
    return [act(Kind.SYNC_BEGIN, inode, number), act(Kind.SYNC_END, inode, number)]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory with one file, whose inode is said to be 1."""
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "file").write_bytes(b"o" * len(PAGE))
    return folder


def left(base: Path, records: list[Record], fate: Fate = NOTHING_KEPT) -> dict[str, bytes]:
    """The files after a cut."""
    return cut(base, records, fate)[0]


def cut(base: Path, records: list[Record], fate: Fate) -> tuple[dict[str, bytes], Losses]:
    """The files after a cut, and what it took."""
    target = base.parent / "left"
    chance = random.Random(1)
    losses = photograph(base, {1: "file"}, records, target, fate=fate, chance=chance)
    files = [path for path in target.rglob("*") if path.is_file()]
    return {str(path.relative_to(target)): path.read_bytes() for path in files}, losses


def test_a_write_is_certain_once_it_was_synced(base: Path) -> None:
    """A sync of the file keeps the write."""
    assert left(base, [write(1, PAGE), *sync(1)]) == {"file": PAGE}


def test_a_write_without_a_sync_may_be_lost(base: Path) -> None:
    """Neither no sync, nor that of another file, nor one that began before, keeps the write."""
    began, ended = sync(1)
    records = [began, write(1, PAGE), ended, *sync(2, 2)]
    files, losses = cut(base, records, NOTHING_KEPT)
    assert files == {"file": b"o" * len(PAGE)}
    assert (losses.synced, losses.lost) == (0, 1)


def test_a_sync_that_did_not_end_keeps_nothing(base: Path) -> None:
    """Only its end tells that it was done."""
    assert left(base, [write(1, PAGE), sync(1)[0]]) == {"file": b"o" * len(PAGE)}


def test_a_torn_write_is_there_by_sectors(base: Path) -> None:
    """Each sector is the old or the new one, and of several both occur."""
    content = cut(base, [write(1, PAGE)], ALL_TORN)[0]["file"]
    sectors = {content[at : at + SECTOR] for at in range(0, len(content), SECTOR)}
    assert sectors == {b"o" * SECTOR, b"n" * SECTOR}


def test_a_file_that_grew_has_zeros_where_a_write_was_lost(base: Path) -> None:
    """A later write that is certain does not bring back an earlier one that is not."""
    records = [
        act(Kind.CREATE, 2, path="new"),
        write(2, b"x" * SECTOR, SECTOR),
        *sync(2),
        write(2, b"y"),
    ]
    assert left(base, records)["new"] == bytes(SECTOR) + b"x" * SECTOR


def test_names_are_certain_once_anything_was_synced(base: Path) -> None:
    """Changes of names up to the last sync are there, whichever file it was of."""
    records = [
        act(Kind.MKDIR, path="folder"),
        act(Kind.RENAME, path="file\0folder/moved"),
        *sync(9),
        act(Kind.UNLINK, path="folder/moved"),
    ]
    files, losses = cut(base, records, NOTHING_KEPT)
    assert files == {"folder/moved": b"o" * len(PAGE)}
    assert losses.names_lost == 1


def test_an_inode_that_is_used_again_is_another_file(base: Path) -> None:
    """What was written to the removed file does not come up in the new one."""
    records = [
        write(1, PAGE),
        act(Kind.UNLINK, path="file"),
        act(Kind.CREATE, 1, path="next"),
        write(1, b"own"),
        *sync(1),
    ]
    assert left(base, records) == {"next": b"own"}


@pytest.fixture
def watched() -> Iterator[Disk]:
    """A disk with a journal."""
    try:
        with disk(is_journaled=True) as made:
            yield made
    except CannotMakeDiskError as error:
        pytest.skip(f"not run: {error}")


def run_on(made: Disk, root: Path, program: str) -> str:
    """Run a program on the disk; what it says."""
    command = [sys.executable, "-S", "-c", program, str(root)]
    environment = launch_environment(made.environment(root))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    return done.stdout


def test_a_program_s_writes_are_seen(watched: Disk) -> None:
    """Of plain files written by a real program, the synced are there and the others are not."""
    with temporary_directory(on_disk=True) as folder:
        live, base, target = (folder / name for name in ("live", "base", "target"))
        for root in (live, base):
            root.mkdir()
            (root / "old").write_bytes(b"before")
            (root / "gone").write_bytes(b"away")
        known = inodes(live)
        run_on(watched, live, PROGRAM)
        assert watched.journal is not None
        records = list(read_journal(watched.journal))
        chance = random.Random(1)
        photograph(base, known, records, target, fate=NOTHING_KEPT, chance=chance)
        files = [path for path in target.rglob("*") if path.is_file()]
        assert {str(path.relative_to(target)): path.read_bytes() for path in files} == {
            "folder/synced": b"whole",
            "tail": b"certain",
            "old": b"before",
            "moved": b"moved",
            "last": b"synced",
        }


def test_a_disk_fails_as_often_as_it_is_told_to(watched: Disk) -> None:
    """One sync fails with EIO, a file that would grow finds no space, and then all is well."""
    with temporary_directory(on_disk=True) as root:
        watched.fail(Fault.DATA_SYNC, 1)
        watched.control.space = 0
        assert run_on(watched, root, FAILING) == "5 28 done "
    assert (watched.failed(Fault.DATA_SYNC), watched.control.full) == (1, 1)
