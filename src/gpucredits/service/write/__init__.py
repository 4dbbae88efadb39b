"""The one way into the ledger: commands and heartbeats, gathered into batches, decided, saved.

Owns: group commit, retries, idempotency keys and what the audit log is told.
Must not: decide (core does) or speak SQL (store does).
"""
