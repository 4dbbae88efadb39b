"""A PostgreSQL of our own in a data directory: start, supervision, backup and restore."""
