"""The Python client: the same calls, blocking (Client) or not (AsyncClient)."""

from gpucredits.client.aio import AsyncClient
from gpucredits.client.errors import ApiError, UnreachableError
from gpucredits.client.sync import Client

__all__ = ["ApiError", "AsyncClient", "Client", "UnreachableError"]
