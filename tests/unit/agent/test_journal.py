"""The journal of a node: what an agent knew, the next one knows."""

from __future__ import annotations

from pathlib import Path

from gpucredits.agent import journal
from gpucredits.agent.journal import NodeJournal


def start(name: str) -> dict[str, object]:
    """A lease that was taken."""
    return {"kind": "start", "id": name, "account": "acme", "devices": {"GPU-1": 500}}


def test_the_next_agent_knows_what_is_open(tmp_path: Path) -> None:
    """Leases with devices, last reports and ends that the node has set; paid ones are forgotten."""
    first = NodeJournal(tmp_path / "journal")
    for name in ("a", "b"):
        first.write(start(name))
    first.write({"kind": "beat", "beats": [("a", 3, 900), ("b", 3, 800), ("gone", 1, 1)]})
    drain = {"signal_at_ms": 1, "ends_at_ms": 2, "reason": "idle_gpus"}
    first.write({"kind": "drain", "id": "a", "drain": drain})
    first.write({"kind": "paid", "id": "b"})
    for _ in range(2):  # the second reads what the first has written anew
        again = NodeJournal(tmp_path / "journal")
        assert again.starts == {"a": {**start("a"), "drain": drain}}
        assert again.used == {"a": (3, 900)}


def test_the_journal_has_a_bound(tmp_path: Path) -> None:
    """It is written anew after so many records, and nothing that is open is lost."""
    kept = NodeJournal(tmp_path / "journal")
    kept.write(start("a"))
    for seq in range(journal.RECORDS_MAX // 500):
        kept.write({"kind": "beat", "beats": [("a", seq, seq)]})
    kept._count = journal.RECORDS_MAX
    kept.write({"kind": "beat", "beats": [("a", 77, 77)]})
    assert (tmp_path / "journal").stat().st_size < 300
    assert NodeJournal(tmp_path / "journal").used == {"a": (77, 77)}
