"""What a power cut leaves of a directory: what was synced, and by chance some of what was not.

Owns: reading the journal of ``disk.c``, and rebuilding the directory from a copy that was whole and
the journal since then. The rules are those of a disk with sectors of 512 bytes under a file system
that journals its metadata in order, as ext4 and XFS do:

- Data is certain once a sync of its file has begun after it and ended.
- Other data is lost, kept, or torn: each of its sectors is there or is not.
- Names and sizes (create, rename, unlink, truncate) are certain once any sync has begun after them
  and ended. Of those that follow, the first ones are there, as many as chance says.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

MAGIC = 0x6B736964
HEADER = struct.Struct("=IIQQII")
SECTOR = 512


class Kind(IntEnum):
    """What a record tells of; the numbers are those of ``disk.c``."""

    CREATE = 1
    WRITE = 2
    ZEROS = 3
    EXTEND = 4
    TRUNCATE = 5
    SYNC_BEGIN = 6
    SYNC_END = 7
    RENAME = 8
    UNLINK = 9
    MKDIR = 10
    RMDIR = 11


DATA = frozenset({Kind.WRITE, Kind.ZEROS, Kind.EXTEND})
SYNC = frozenset({Kind.SYNC_BEGIN, Kind.SYNC_END})


@dataclass(frozen=True, slots=True)
class Record:
    """One call: ``offset`` is a size for EXTEND and TRUNCATE, and a number for syncs."""

    kind: Kind
    inode: int
    offset: int
    path: str
    length: int
    data: memoryview

    def content(self) -> memoryview:
        """The bytes that were written."""
        return self.data if self.kind is Kind.WRITE else memoryview(bytes(self.length))


@dataclass(slots=True)
class Losses:
    """What a cut took away, and what it could not."""

    synced: int = 0  # writes that were certain
    lost: int = 0
    torn: int = 0
    kept: int = 0  # writes that were not certain, and are there
    names_lost: int = 0

    def add(self, other: Losses) -> None:
        """Count another cut as well."""
        for name in ("synced", "lost", "torn", "kept", "names_lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True)
class Fate:
    """How likely a write without a sync is kept whole, and how likely the others are torn."""

    kept: float
    torn: float


NOTHING_KEPT = Fate(0.0, 0.0)
FATES = (NOTHING_KEPT, Fate(0.5, 0.3), Fate(0.9, 0.5), Fate(0.0, 1.0))


def read_journal(path: Path) -> Iterator[Record]:
    """Every record in order; the writers stand still."""
    text = memoryview(path.read_bytes())
    at = 0
    while at < len(text):
        magic, kind, inode, offset, path_bytes, length = HEADER.unpack_from(text, at)
        assert magic == MAGIC, f"the journal is broken at byte {at}"
        at += HEADER.size
        name = bytes(text[at : at + path_bytes]).decode()
        at += path_bytes
        data = text[at : at + length] if kind == Kind.WRITE else text[:0]
        at += len(data)
        yield Record(Kind(kind), inode, offset, name, length, data)


@dataclass(slots=True)
class Certain:
    """Up to which record what is certain: the data of each file, and all names."""

    data: dict[int, int] = field(default_factory=dict)  # by the file's number, as Files has it
    names: int = 0


@dataclass(slots=True)
class Files:
    """Names and contents while records are applied; a file has a number that is used once.

    An inode's number is used again after the file was removed.
    """

    base: Path
    names: dict[str, int]
    folders: set[str]
    sources: dict[int, Path]
    contents: dict[int, bytearray] = field(default_factory=dict)

    def content(self, number: int) -> bytearray:
        """The content of a file, read from the base when it is first changed."""
        if number not in self.contents:
            source = self.sources.get(number)
            self.contents[number] = bytearray(source.read_bytes() if source else b"")
        return self.contents[number]

    def place(self, number: int, offset: int, data: memoryview) -> None:
        """Write some bytes; what lies between the end and them is zeros."""
        content = self.content(number)
        if len(content) < offset + len(data):
            content.extend(bytes(offset + len(data) - len(content)))
        content[offset : offset + len(data)] = data

    def resize(self, number: int, size: int, *, may_shrink: bool) -> None:
        """Cut a file, or let it grow by zeros."""
        content = self.content(number)
        if len(content) < size:
            content.extend(bytes(size - len(content)))
        elif may_shrink:
            del content[size:]

    def rename(self, old: str, new: str) -> None:
        """Move a file or a folder with all that is in it."""
        if old in self.names:
            self.names[new] = self.names.pop(old)
            return
        inside = old + "/"
        moved = [name for name in self.names if name.startswith(inside)]
        self.names |= {new + name[len(old) :]: self.names.pop(name) for name in moved}
        within = {name for name in self.folders if name == old or name.startswith(inside)}
        self.folders = self.folders - within | {new + name[len(old) :] for name in within}

    def write_out(self, target: Path) -> None:
        """Make the directory."""
        target.mkdir(mode=0o700)
        for name in sorted(self.folders):
            (target / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, number in self.names.items():
            path = target / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if number in self.contents:
                path.write_bytes(self.contents[number])
                path.chmod(0o600)
            elif number in self.sources:
                shutil.copy2(self.sources[number], path)
            else:
                path.touch(mode=0o600)


def inodes(root: Path) -> dict[int, str]:
    """The inode of every file below a directory, and its name."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {path.stat().st_ino: str(path.relative_to(root)) for path in files}


def folders_of(root: Path) -> set[str]:
    """Every folder below a directory."""
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}


def photograph(
    base: Path,
    known: dict[int, str],
    records: list[Record],
    target: Path,
    *,
    fate: Fate,
    chance: random.Random,
) -> Losses:
    """Rebuild in ``target`` what a power cut after the last record would leave.

    ``base`` is what was there before the first record, and ``known`` the inodes that its files had
    where the records were made.
    """
    numbers = number_files(known, records)
    certain = find_certain(records, numbers)
    losses = Losses()
    began = list(known.values())
    files = Files(
        base=base,
        names={name: number for number, name in enumerate(began)},
        folders=folders_of(base),
        sources={number: base / name for number, name in enumerate(began)},
    )
    names_end = end_of_names(records, certain, losses, fate, chance)
    for at, record in enumerate(records):
        number = numbers[at]
        if record.kind in DATA:
            if at < certain.data.get(number, 0):
                losses.synced += 1
                apply_data(files, number, record)
            else:
                apply_by_chance(files, number, record, fate, chance, losses)
        elif record.kind not in SYNC and at < names_end:
            apply_name(files, number, record)
    files.write_out(target)
    return losses


def end_of_names(
    records: list[Record], certain: Certain, losses: Losses, fate: Fate, chance: random.Random
) -> int:
    """Up to which record changes of names and sizes are there."""
    named = [at for at, record in enumerate(records) if record.kind not in DATA | SYNC]
    doubtful = [at for at in named if at >= certain.names]
    if not doubtful:
        return certain.names
    kept = chance.randrange(len(doubtful)) if fate.kept else 0
    losses.names_lost = len(doubtful) - kept
    return doubtful[kept]


def number_files(known: dict[int, str], records: list[Record]) -> list[int]:
    """For each record the number of the file that it is about; -1 where it is about none."""
    current = {inode: number for number, inode in enumerate(known)}
    newest = len(known)
    numbers = []
    for record in records:
        if record.kind is Kind.CREATE or (record.inode and record.inode not in current):
            current[record.inode] = newest
            newest += 1
        numbers.append(current.get(record.inode, -1))
    return numbers


def find_certain(records: list[Record], numbers: list[int]) -> Certain:
    """What the syncs that ended make certain."""
    certain = Certain()
    begun: dict[int, int] = {}
    for at, record in enumerate(records):
        if record.kind is Kind.SYNC_BEGIN:
            begun[record.offset] = at
        elif record.kind is Kind.SYNC_END:
            since, number = begun.pop(record.offset), numbers[at]
            certain.data[number] = max(since, certain.data.get(number, 0))
            certain.names = max(since, certain.names)
    return certain


def apply_data(files: Files, number: int, record: Record) -> None:
    """Write what was written."""
    if record.kind is Kind.EXTEND:
        files.resize(number, record.offset, may_shrink=False)
    else:
        files.place(number, record.offset, record.content())


def apply_by_chance(
    files: Files, number: int, record: Record, fate: Fate, chance: random.Random, losses: Losses
) -> None:
    """Keep, tear or lose a write that no sync made certain."""
    if chance.random() < fate.kept:
        losses.kept += 1
        apply_data(files, number, record)
    elif record.kind is not Kind.EXTEND and chance.random() < fate.torn:
        losses.torn += 1
        content = record.content()
        at = 0
        while at < len(content):
            size = SECTOR - (record.offset + at) % SECTOR
            if chance.random() < 0.5:
                files.place(number, record.offset + at, content[at : at + size])
            at += size
    else:
        losses.lost += 1


def apply_name(files: Files, number: int, record: Record) -> None:
    """Do to names and sizes what was done."""
    match record.kind:
        case Kind.CREATE:
            files.names[record.path] = number
        case Kind.TRUNCATE:
            files.resize(number, record.offset, may_shrink=True)
        case Kind.RENAME:
            files.rename(*record.path.split("\0"))
        case Kind.UNLINK:
            files.names.pop(record.path, None)
        case Kind.MKDIR:
            files.folders.add(record.path)
        case Kind.RMDIR:
            files.folders.discard(record.path)
        case _:
            raise AssertionError(f"not about names: {record.kind}")
