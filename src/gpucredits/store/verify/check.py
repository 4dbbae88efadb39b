"""A rule of the ledger as a question to the database."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """A rule: its name, what it claims, and the query for rows that break it."""

    name: str
    claim: str
    query: str
