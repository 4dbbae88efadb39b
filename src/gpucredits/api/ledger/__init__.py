"""Handlers of accounts, credits, leases, heartbeats and entries."""
