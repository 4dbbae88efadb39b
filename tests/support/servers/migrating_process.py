"""A program that migrates a database, to be killed by a test half-way."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncpg

from gpucredits.store.database.migrate import migrate, read_schema


async def main(dsn: str, folder: Path) -> None:
    """Apply the folder's files as a session that they can recognise as slow."""
    settings = {"application_name": "slow"}
    connection = await asyncpg.connect(dsn, timeout=30, server_settings=settings)
    await migrate(connection, read_schema(folder))
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
