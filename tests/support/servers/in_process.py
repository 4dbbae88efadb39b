"""A server in the test's own process, so that its parts can be traced or taken out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import httpx

from gpucredits.app import Config, running


class Send(Protocol):
    """Sends one request with a fresh key, as the admin or ``by`` somebody else."""

    async def __call__(
        self, method: str, path: str, body: Any = None, *, by: str = ""
    ) -> httpx.Response:
        """The answer, whatever its status."""
        ...


@asynccontextmanager
async def server_in_process(
    dsn: str, folder: Path, opening: Sequence[tuple[str, str, Any]]
) -> AsyncIterator[Send]:
    """A server on a database, once it has accepted the requests of ``opening``."""
    async with running(Config(data_dir=folder, database_url=dsn)) as app:
        secret = app.config.admin_key_path.read_text().strip()
        transport = httpx.ASGITransport(cast("Any", app.api))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
            count = 0

            async def send(
                method: str, path: str, body: Any = None, *, by: str = ""
            ) -> httpx.Response:
                nonlocal count
                count += 1
                headers = {
                    "authorization": f"Bearer {by or secret}",
                    "idempotency-key": f"k{count}",
                }
                return await http.request(method, path, json=body, headers=headers)

            for request in opening:
                answer = await send(*request)
                assert answer.is_success, answer.text
            yield send
