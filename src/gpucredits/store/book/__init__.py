"""The book of an org: loaded for a batch, and saved in one guarded statement.

Owns: which rows a command needs (needs), what the tables look like (tables, rows), reading them
(load, fill), what a server remembers (book_cache), and writing what changed (changes) on a
condition (save).
Must not: decide. The rules in core do.
"""
