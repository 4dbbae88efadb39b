"""Pools with a capacity: the queue, the dispatch cycle, preemption.

A request is asked with ``QueueOptions``, waits as a ``QueuedRequest`` (store.dispatch.queue) and is
decided on as a ``WaitingRequest`` (core.fairshare.snapshot). ``cycle`` is the dispatcher's one
function of numbered steps; the other modules are its parts, or serve callers beside it (``queue``,
``pools``, ``dry_runs``). Nothing here decides who is let in: core.fairshare and the ledger do.
"""
