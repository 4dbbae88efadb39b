"""Deciding a whole history in one sweep: sort once, cut into blocks, decide each event once.

Owns the bulk path. Must give exactly what recording the events one by one gives.
"""

from __future__ import annotations

from itertools import compress
from operator import not_

from gpucredits.library.timeline.event import ADD, RANKS, REFUND, Events
from gpucredits.library.timeline.future import Future
from gpucredits.library.timeline.log import Log
from gpucredits.library.timeline.pool import Pool


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
        block.balances, block.windows = pool.decide_run(block.events)
    return len(keys) + len(pending)


def arranged(
    events: Events, keys: list[int], placed: list[int], pending: list[int]
) -> tuple[list[int], list[int]]:
    """Sort events into order of time; a refund no later than its charge follows it at once."""
    kinds = events.kinds
    refunds = [handle for handle in pending if kinds[handle] == REFUND]
    loose = pending
    if refunds:
        loose = [handle for handle in pending if kinds[handle] != REFUND]
    if len(events.offsets) > len(refunds):
        keys, placed, others = _without_refunds(events, keys, placed)
        refunds += others
    refunds.sort()
    glued: dict[int, list[int]] = {}
    for refund in refunds:
        if events.is_glued(refund):
            glued.setdefault(events.links[refund], []).append(refund)
    loose = loose + [refund for refund in refunds if not events.is_glued(refund)]
    keys = keys + [events.keys[handle] for handle in loose]
    placed = placed + loose
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


def _without_refunds(
    events: Events, keys: list[int], placed: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """Take the refunds out of what is placed, and return them last."""
    kinds = events.kinds
    is_refund = [event >= 0 and kinds[event] == REFUND for event in placed]
    refunds = list(compress(placed, is_refund))
    is_other = list(map(not_, is_refund))
    return list(compress(keys, is_other)), list(compress(placed, is_other)), refunds
