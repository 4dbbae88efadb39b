"""Pools with a capacity: the queue, the dispatch cycle, preemption."""
