"""Connections to PostgreSQL: sessions, transactions, errors, durability, migrations."""
