"""Fair share, the fourth gate: whose work runs when a pool is scarce.

Each cycle freezes a :mod:`snapshot` of one pool, decides on it purely (:mod:`decide`) and leaves
applying to the caller. Nothing here reads a clock, does I/O or uses a float: shares are integers,
compared exactly, and ties break by id, so a dumped snapshot always replays to the same decision.
"""
