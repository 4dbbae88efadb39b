"""Accounts, credits and leases on the wire."""
