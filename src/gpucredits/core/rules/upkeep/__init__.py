"""Bringing an account up to date: what the clock makes true, how lots and counters move."""
