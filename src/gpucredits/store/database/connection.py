"""The type of a connection: the driver's, whether it came from a pool or not."""

from __future__ import annotations

from typing import Any, TypeAlias

import asyncpg
import asyncpg.pool

Connection: TypeAlias = "asyncpg.Connection[Any] | asyncpg.pool.PoolConnectionProxy[Any]"
Pool: TypeAlias = "asyncpg.Pool[Any]"
