"""The invariants of the ledger as questions to the database: each names the rows that break it."""
