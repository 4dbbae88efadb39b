"""What a server remembers between batches: books, prices, the database's time, turns at orgs.

Must not: be believed. The guard compares versions before anything is saved.
"""
