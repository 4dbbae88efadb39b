"""The blocking client."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self, TypeVar

import httpx

from gpucredits.client import operation as shared
from gpucredits.client.errors import UnreachableError
from gpucredits.client.operation import Operation, Retries

Answer = TypeVar("Answer")


class Client:
    """``with Client(url, secret) as client: client.send(calls.balance("acme"))``.

    A write gets an idempotency key if it has none, and every attempt is sent with the same one.
    """

    def __init__(self, url: str, secret: str, *, retries: Retries | None = None) -> None:
        self.retries = retries or Retries()
        self._http = httpx.Client(
            base_url=url, headers=shared.headers_of(secret), timeout=self.retries.timeout_s
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def send(self, operation: Operation[Answer]) -> Answer:
        """Carry out a call; raises ApiError, or UnreachableError when it stayed undecided."""
        keyed = operation.with_key()
        answer: httpx.Response | None = None
        failure = ""
        for attempt in self.retries.attempts(keyed):
            if attempt:
                time.sleep(self.retries.wait_s(attempt - 1, answer))
            try:
                answer = self._http.request(**shared.request_of(keyed))
            except httpx.TransportError as error:
                answer, failure = None, f"{type(error).__name__}: {error}"
                continue
            if shared.is_final(answer):
                return shared.read(keyed, answer)
        if answer is not None:
            return shared.read(keyed, answer)
        raise UnreachableError(f"no answer from {self._http.base_url}: {failure}", key=keyed.key)
