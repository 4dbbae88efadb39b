"""One module for each noun: what its commands do to a book.

Every rule validates everything first, in the order of ``Reason``, and only then changes rows.
"""
