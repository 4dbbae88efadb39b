"""The book of an org: loaded for a batch, and saved in one guarded statement.

Owns: which rows a command needs (needs), what the tables look like (tables, rows), reading them
(load, fill), writing what changed (save, changes) on a condition (guard), and the cache.
Must not: decide. The rules in core do.
"""
