"""SQL for what an entry does to the buckets of its own account, from the pairs in core/entry.py."""

from __future__ import annotations

from gpucredits.core.entry import EntryType, direction


def entry_move(bucket: str, alias: str = "") -> str:
    """SQL for what an entry adds to a bucket; the table's alias ends with a dot."""
    added = [kind.value for kind in EntryType if direction(kind, bucket) > 0]
    taken = [kind.value for kind in EntryType if direction(kind, bucket) < 0]
    cases = [
        f"WHEN {alias}type IN ({', '.join(map(str, added))}) THEN {alias}amount",
        f"WHEN {alias}type IN ({', '.join(map(str, taken))}) THEN -{alias}amount",
    ]
    if direction(EntryType.TRANSFER, bucket):  # from one grant of an account to another
        cases.insert(0, f"WHEN {alias}other_id = {alias}account_id THEN 0")
    sign = "-" if direction(EntryType.RESERVE, bucket) < 0 else "+"
    reserve = f" {sign} {alias}reserve" if direction(EntryType.RESERVE, bucket) else ""
    return f"CASE {' '.join(cases)} ELSE 0 END{reserve}"
