"""Connections to PostgreSQL: sessions, transactions, errors, durability, the schema."""
