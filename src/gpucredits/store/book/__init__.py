"""The book of an org: loaded for a batch, and saved in one guarded statement.

Owns: which rows a command needs, how rows become plain data and back, and the guard.
Must not: decide. The rules in core do.
"""
