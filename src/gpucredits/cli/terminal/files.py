"""What people are told of a file, a folder or a socket that cannot be used.

Must not: decide what becomes of the command.
"""

from __future__ import annotations


def trouble(error: OSError) -> str:
    """The name of the file and why it cannot be used; the error's own words where it has none."""
    if error.filename is None or error.strerror is None:
        return str(error).rstrip(".")
    return f"{error.filename} cannot be used: {error.strerror}"


def is_about_a_file(error: OSError) -> bool:
    """Whether the error names what cannot be used, so that a trace would say no more."""
    return error.filename is not None and error.strerror is not None
