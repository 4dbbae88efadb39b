"""The rules of the ledger, as pure functions over plain data.

Nothing here reads a clock, does I/O, draws a random number, logs or awaits: every function takes
the rows and the time it needs and changes only the rows it was given.
"""
