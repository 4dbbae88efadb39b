"""Deciding a whole history in one sweep: sort once, cut into blocks, decide each event once.

Owns the bulk path. Must give exactly what recording the events one by one gives.
"""

from __future__ import annotations

from gpucredits.timeline.event import ADD, RANKS, REFUND, Events
from gpucredits.timeline.future import Future
from gpucredits.timeline.log import Log
from gpucredits.timeline.pool import Pool


def decide_all(events: Events, log: Log, future: Future, pool: Pool, pending: list[int]) -> int:
    """Merge what waits into the log and decide everything; return the number of events."""
    keys = [key for block in log.blocks for key in block.keys]
    placed = [event for block in log.blocks for event in block.events]
    last_key = max([*map(events.keys.__getitem__, pending), *keys[-1:]])
    kinds, links = events.kinds, events.links
    ending = future.take_all()
    ending += [(links[h], h) for h in pending if kinds[h] == ADD and events.has_window(h)]
    inside = [(expiry, grant) for expiry, grant in ending if expiry * RANKS <= last_key]
    future.fill([(expiry, grant) for expiry, grant in ending if expiry * RANKS > last_key])
    keys += [expiry * RANKS for expiry, _ in inside]
    placed += [~grant for _, grant in inside]
    log.replace(*arranged(events, keys, placed, pending))
    for index, block in enumerate(log.blocks):
        log.checkpoint(index, pool)
        decide = pool.decide
        balances, windows = [], []
        for event in block.events:
            decide(event)
            balances.append(pool.balance)
            windows.append(pool.windows)
        block.balances = balances
        block.windows = windows
    return len(keys) + len(pending)


def arranged(
    events: Events, keys: list[int], placed: list[int], pending: list[int]
) -> tuple[list[int], list[int]]:
    """Sort events into order of time; a refund no later than its charge follows it at once."""
    keys = keys + [events.keys[handle] for handle in pending]
    placed = placed + pending
    glued: dict[int, list[int]] = {}
    if events.refunds:
        keys, placed, glued = _refunds_last(events, keys, placed)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    keys = [keys[index] for index in order]
    placed = [placed[index] for index in order]
    if not glued:
        return keys, placed
    spread_keys, spread = [], []
    for key, event in zip(keys, placed, strict=True):
        spread_keys.append(key)
        spread.append(event)
        for refund in glued.get(event, ()):
            spread_keys.append(key)
            spread.append(refund)
    return spread_keys, spread


def _refunds_last(
    events: Events, keys: list[int], placed: list[int]
) -> tuple[list[int], list[int], dict[int, list[int]]]:
    """Put refunds last in order of arrival, and those that must follow their charge apart."""
    kinds = events.kinds
    refunds = sorted(event for event in placed if event >= 0 and kinds[event] == REFUND)
    others = [
        (key, event)
        for key, event in zip(keys, placed, strict=True)
        if event < 0 or kinds[event] != REFUND
    ]
    keys = [key for key, _ in others]
    placed = [event for _, event in others]
    glued: dict[int, list[int]] = {}
    for refund in refunds:
        if events.is_glued(refund):
            glued.setdefault(events.links[refund], []).append(refund)
        else:
            keys.append(events.keys[refund])
            placed.append(refund)
    return keys, placed, glued
