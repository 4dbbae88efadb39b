"""Handlers of pools, queues and shares."""
