"""The benchmark of reads: a short history that verify accepts, and every read answered."""

from __future__ import annotations

from gpucredits_bench.runs.reads import ReadOptions, measure_reads, reads_table

ENTRIES = 4_000
LEASES = 200
NO_ROWS = ("none", "balance", "person")  # of so short a history, or of any


def test_a_loaded_history_is_read_and_verifies() -> None:
    """Leases and entries that SQL made pass every rule, and reads find them."""
    options = ReadOptions(entries=ENTRIES, leases=LEASES, times=1, verifies=True, folder=None)
    figures = measure_reads(options, lambda _: None)
    assert figures.verified is True
    assert figures.leases == LEASES
    assert ENTRIES // 2 < figures.entries <= ENTRIES
    empty = {each.name for each in figures.reads if not each.rows}
    assert {name for name in empty if not any(word in name for word in NO_ROWS)} == set()
    assert f"{LEASES:,} leases" in reads_table(figures)
