"""Reads of the ledger: accounts, grants, leases, entries, past balances, seals and events."""
