"""The agent's journal: what was written is there, and a torn end takes nothing else with it."""

from __future__ import annotations

from pathlib import Path

from gpucredits.agent.spool import Spool, framed, read_records

RECORDS = [{"kind": "start", "id": f"rsv_1_{number}"} for number in range(3)]


def test_every_cut_leaves_the_whole_records(tmp_path: Path) -> None:
    """Cut at any byte, the journal has the records before the cut and takes new ones."""
    data = b"".join(map(framed, RECORDS))
    ends = [len(b"".join(map(framed, RECORDS[:count]))) for count in range(4)]
    for cut in range(len(data) + 1):
        whole = sum(each <= cut for each in ends) - 1
        path = tmp_path / "journal"
        path.write_bytes(data[:cut])
        spool = Spool(path)
        assert spool.records == RECORDS[:whole]
        spool.append({"kind": "more"})
        spool.close()
        assert read_records(path.read_bytes())[0] == [*RECORDS[:whole], {"kind": "more"}]


def test_a_flipped_bit_ends_the_journal() -> None:
    """A record that is not what was written is not read, and nothing behind it."""
    data = bytearray(b"".join(map(framed, RECORDS)))
    data[len(framed(RECORDS[0])) + 12] ^= 1
    assert read_records(bytes(data))[0] == RECORDS[:1]


def test_a_journal_can_be_written_anew(tmp_path: Path) -> None:
    """The new records stand in place of the old, and more can follow."""
    spool = Spool(tmp_path / "journal")
    for record in RECORDS:
        spool.append(record)
    spool.replace(RECORDS[2:])
    spool.append(RECORDS[0])
    spool.close()
    assert Spool(tmp_path / "journal").records == [RECORDS[2], RECORDS[0]]
