"""The client for event loops."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self, TypeVar

import httpx

from gpucredits.client import operation as shared
from gpucredits.client.errors import UnreachableError
from gpucredits.client.operation import Operation, Retries

Answer = TypeVar("Answer")


class AsyncClient:
    """``async with AsyncClient(url, secret) as client: await client.send(calls.balance("acme"))``.

    A write gets an idempotency key if it has none, and every attempt is sent with the same one.
    """

    def __init__(self, url: str, secret: str, *, retries: Retries | None = None) -> None:
        self.retries = retries or Retries()
        self._http = httpx.AsyncClient(
            base_url=url, headers=shared.headers_of(secret), timeout=self.retries.timeout_s
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def send(self, operation: Operation[Answer]) -> Answer:
        """Carry out a call; raises ApiError, or UnreachableError when it stayed undecided."""
        keyed = operation.with_key()
        answer: httpx.Response | None = None
        failure = ""
        for attempt in self.retries.attempts(keyed):
            if attempt:
                await asyncio.sleep(self.retries.wait_s(attempt - 1, answer))
            try:
                answer = await self._http.request(**shared.request_of(keyed))
            except httpx.TransportError as error:
                answer, failure = None, f"{type(error).__name__}: {error}"
                continue
            if shared.is_final(answer):
                return shared.read(keyed, answer)
        if answer is not None:
            return shared.read(keyed, answer)
        raise UnreachableError(f"no answer from {self._http.base_url}: {failure}", key=keyed.key)
