"""The spool of readings: every use is sent once, whatever was torn, killed or not answered."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from gpucredits.agent import usage
from gpucredits.agent.usage import Reading, SentReading, UsageSpool, UseSoFar, halved
from support.waiting import HANGS_S


class Server:
    """What a server keeps: each seq of a lease once."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], SentReading] = {}

    def take(self, batch: list[SentReading]) -> None:
        """Store what is new; a seq that is sent again has to say the same."""
        for row in batch:
            assert self.stored.setdefault((row.reservation_id, row.seq), row) == row

    def used_ms(self, lease: str) -> int:
        """The use of a lease in all."""
        rows = [row for row in self.stored.values() if row.reservation_id == lease]
        return sum(row.end_ms - row.start_ms for row in rows)


def test_readings_tile_the_use(tmp_path: Path) -> None:
    """Each begins where the last one ended; a pause is left out, and no use is no reading."""
    spool = UsageSpool(tmp_path / "usage")
    for used_ms, at_ms in ((100, 120), (100, 300), (250, 900)):
        spool.add([UseSoFar("a", used_ms, at_ms, 50)])
    assert [(row.seq, row.start_ms, row.end_ms) for row in spool.batch()] == [
        (1, 20, 120),
        (2, 750, 900),
    ]
    assert spool.read_ms("a") == 250


def test_a_batch_is_the_same_until_it_is_done(tmp_path: Path) -> None:
    """New readings wait for the next batch; its seqs go on."""
    spool = UsageSpool(tmp_path / "usage")
    spool.add([UseSoFar("a", 10, 10, None)])
    first = list(spool.batch())
    spool.add([UseSoFar("a", 20, 20, None)])
    assert spool.batch() == first
    assert UsageSpool(tmp_path / "usage").batch() == first
    spool.done()
    assert [row.seq for row in spool.batch()] == [2]
    assert spool.waiting == 1


def test_use_is_counted_once_through_kills_tears_and_lost_answers(tmp_path: Path) -> None:
    """Whatever ends the agent at whichever record: the server has the use, exactly."""
    for seed in range(8):
        chance = random.Random(seed)
        path = tmp_path / f"usage-{seed}"
        spool, server = UsageSpool(path, waiting_max=12), Server()
        used = {"a": 0, "b": 0, "c": 0}
        at_ms = 0
        for _ in range(30):
            at_ms += 100
            for lease in used:
                used[lease] += chance.randrange(100)
            spool.add([UseSoFar(each, ms, at_ms, 10) for each, ms in used.items()])
            if chance.random() < 0.5 and (batch := spool.batch()):
                if chance.random() < 0.7:
                    server.take(batch)  # and the answer may be lost
                if chance.random() < 0.5 and all(
                    (row.reservation_id, row.seq) in server.stored for row in batch
                ):
                    spool.done()
            if chance.random() < 0.3:
                spool.close()
                with path.open("ab") as file:  # a record that was torn as it was written
                    file.write(bytes(chance.randrange(1, 9)))
                spool = UsageSpool(path, waiting_max=12)
        while batch := spool.batch():
            server.take(batch)
            spool.done()
        assert {each: server.used_ms(each) for each in used} == used
        spool.close()


def test_a_reading_whose_record_was_torn_is_read_again(tmp_path: Path) -> None:
    """Its use is part of the next reading: use is told in all, not in slices."""
    path = tmp_path / "usage"
    spool = UsageSpool(path)
    spool.add([UseSoFar("a", 10, 10, None)])
    spool.add([UseSoFar("a", 30, 30, None)])
    spool.close()
    path.write_bytes(path.read_bytes()[:-1])
    spool = UsageSpool(path)
    assert spool.read_ms("a") == 10
    spool.add([UseSoFar("a", 40, 40, None)])
    assert sum(row.end_ms - row.start_ms for row in spool.batch()) == 40


def test_a_full_spool_loses_resolution_and_no_use(tmp_path: Path) -> None:
    """Neighbours are merged in pairs, as often as needed; the bound holds."""
    spool = UsageSpool(tmp_path / "usage", waiting_max=10)
    for number in range(1, 100):
        spool.add([UseSoFar(each, number * 10, number * 10, number % 100) for each in "ab"])
        assert spool.waiting <= 12
    assert spool.halvings > 3
    rows = [row for row in spool.batch() if row.reservation_id == "a"]
    assert sum(row.end_ms - row.start_ms for row in rows) == 990
    assert [row.start_ms for row in rows[1:]] == [row.end_ms for row in rows[:-1]]


def test_merged_readings_keep_time_and_mean() -> None:
    """Utilisation is weighed by time; one that is not known has no weight."""
    rows = [Reading(0, 10, 100), Reading(10, 40, 0), Reading(50, 60, None), Reading(60, 80, 7)]
    assert halved([*rows, Reading(90, 91, 3)]) == [
        Reading(0, 40, 25),
        Reading(50, 80, 7),
        Reading(90, 91, 3),
    ]


def test_the_file_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written anew with what is open, and what is open is read from it."""
    monkeypatch.setattr(usage, "FILE_BYTES_MAX", 4_000)
    path = tmp_path / "usage"
    spool, server = UsageSpool(path, waiting_max=20), Server()
    for number in range(1, 200):
        spool.add([UseSoFar("a", number, number, None), UseSoFar("b", number, number, None)])
        if number == 100:
            server.take(spool.batch())
        assert path.stat().st_size < 6_000
    spool.close()
    spool = UsageSpool(path, waiting_max=20)
    assert spool.read_ms("b") == 199
    while batch := spool.batch():
        server.take(batch)
        spool.done()
    assert (server.used_ms("a"), server.used_ms("b")) == (199, 199)
    spool.forget(["a"])
    assert spool.known() == ["b"]


FULL = """
import resource, sys
from pathlib import Path
from gpucredits.agent.spool import Spool, read_records
path = Path(sys.argv[1])
spool = Spool(path)
spool.append({"kind": "first"})
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, -1))
try:
    spool.append({"kind": "x" * 100})
except OSError:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
spool.append({"kind": "later"})
print([each["kind"] for each in read_records(path.read_bytes())[0]])
"""


def test_a_full_disk_leaves_no_torn_record_behind(tmp_path: Path) -> None:
    """A record that did not fit is gone, and records after it can be read."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "journal")],
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["refused", "['first', 'later']"]
