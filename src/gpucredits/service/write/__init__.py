"""The one way into the ledger: commands and heartbeats wait, are decided in batches, and saved.

    ledger -> batch_queue -> batch_worker -> batch -> core.decide, store.book

Owns: the order of writes, retries, idempotency keys and what the audit log is told.
Must not: decide (core does) or speak SQL (store does).
"""
