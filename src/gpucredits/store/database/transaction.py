"""A transaction whose loss is told apart from its refusal.

Owns: begin, commit and roll back, with our exceptions for the driver's.
Must not: retry; whoever called it knows what may be run again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import DRIVER_ERRORS, driver_errors


@asynccontextmanager
async def transaction(connection: Connection) -> AsyncIterator[None]:
    """Commit what the block did, or roll it back when it raises.

    Raises ``Unavailable`` when the connection was lost: also during the commit, whose result is
    then unknown.
    """
    with driver_errors():
        await connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(*DRIVER_ERRORS):
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")
