"""Pools, queues and dispatch cycles at rest."""
