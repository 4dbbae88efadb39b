"""The two clients: the same calls, sent by httpx while waiting or while others run.

Owns: connections. Must not: describe calls (``operations`` does) or judge replies (``attempts``).
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, Self, TypeVar

import httpx

from gpucredits.client.attempts import Attempts, Retry
from gpucredits.client.call import Call, Reply
from gpucredits.client.errors import Invalid
from gpucredits.client.leases import AsyncLease, Lease, Told, lease_fields
from gpucredits.client.methods import AsyncSender, Sender
from gpucredits.client.operations import Operations
from gpucredits.client.trust import ShownCertificate, trusted
from gpucredits.version import __version__

Answer = TypeVar("Answer")


class Client(Operations, Sender):
    """A client whose methods return when the server has answered.

    ``key`` is the API key; ``retry`` bounds how long one call may take in all. ``ca_file`` holds
    the certificates to trust at an https address, instead of SSL_CERT_FILE or the usual ones;
    ``shown`` is the certificate that the client shows, such as that of a node. Use the client as a
    context manager or call ``close``. Threads may share it.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        retry: Retry | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        shown: ShownCertificate | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retry = retry or Retry()
        self._http = httpx.Client(
            base_url=_checked(url),
            headers=_headers(key),
            verify=trusted(url, ca_file, shown),
            transport=transport,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def lease(
        self,
        *,
        account: str,
        gpu_type: str,
        gpus: Any = 1,
        job_id: str | None = None,
        on_drain: Told | None = None,
        **fields: Any,
    ) -> Lease:
        """A lease for a block of work: ``with client.lease(account=..., gpu_type=...)``.

        It is reported in the background and settled when the block is left. Other ``fields`` are
        those of ``reserve``.
        """
        return Lease(self, account, lease_fields(gpu_type, gpus, job_id, fields), on_drain)

    def close(self) -> None:
        """Give up the connections."""
        self._http.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Make a call, and only return its answer."""
        return self.fetch(call).value

    def fetch(self, call: Call[Answer]) -> Reply[Answer]:
        """Make a call: its answer, with the bytes as they came."""
        attempts = Attempts(call, self._retry)
        while True:
            try:
                response = self._http.send(attempts.request(self._http))
            except httpx.TransportError as error:
                pause_s = attempts.failed(error)
            else:
                reply = attempts.answered(response)
                if isinstance(reply, Reply):
                    return reply
                pause_s = reply
            time.sleep(pause_s)


class AsyncClient(Operations, AsyncSender):
    """A client whose methods are awaited.

    As ``Client``, but for an event loop: ``async with AsyncClient(url, key) as client``.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        retry: Retry | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        shown: ShownCertificate | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retry = retry or Retry()
        self._http = httpx.AsyncClient(
            base_url=_checked(url),
            headers=_headers(key),
            verify=trusted(url, ca_file, shown),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def lease(
        self,
        *,
        account: str,
        gpu_type: str,
        gpus: Any = 1,
        job_id: str | None = None,
        on_drain: Told | None = None,
        **fields: Any,
    ) -> AsyncLease:
        """A lease for a block of work: ``async with client.lease(account=..., gpu_type=...)``.

        It is reported in the background and settled when the block is left. Other ``fields`` are
        those of ``reserve``.
        """
        return AsyncLease(self, account, lease_fields(gpu_type, gpus, job_id, fields), on_drain)

    async def close(self) -> None:
        """Give up the connections."""
        await self._http.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Make a call, and only return its answer."""
        return (await self.fetch(call)).value

    async def fetch(self, call: Call[Answer]) -> Reply[Answer]:
        """Make a call: its answer, with the bytes as they came."""
        attempts = Attempts(call, self._retry)
        while True:
            try:
                response = await self._http.send(attempts.request(self._http))
            except httpx.TransportError as error:
                pause_s = attempts.failed(error)
            else:
                reply = attempts.answered(response)
                if isinstance(reply, Reply):
                    return reply
                pause_s = reply
            await asyncio.sleep(pause_s)


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Invalid(f"{url!r} is not an address ({error})", field="url") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise Invalid(f"{url!r} must be an address such as http://127.0.0.1:8437", field="url")
    return url.rstrip("/")


def _headers(key: str) -> dict[str, str]:
    if not key.isascii() or not key.isprintable() or not key.strip():
        raise Invalid("must be the text of an API key", field="key")
    return {"Authorization": f"Bearer {key.strip()}", "User-Agent": f"gpucredits/{__version__}"}
