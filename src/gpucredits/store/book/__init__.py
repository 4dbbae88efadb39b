"""The book of an org: loaded for a batch, and saved in one guarded statement.

Owns: which rows a command needs (needs), what the tables look like (tables, rows, table, codecs),
reading them (load, fill), what a server remembers between batches (book_cache, cached_book,
database_clock), and writing what changed (changes, spending_rows) on a condition (save).
Must not: decide. The rules in core do.
"""
