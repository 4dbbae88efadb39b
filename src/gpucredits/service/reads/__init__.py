"""Reads beside the writes: balances, names, health, verification."""
