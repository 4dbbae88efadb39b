"""The door of a server that speaks TLS: a connection passes it with a handshake, or is shut out.

Owns: accepting connections, how many handshakes are under way and how long one may take, and
telling of certificates that were refused. A handshake counts as a connection, in all and of its
address, from the moment it is accepted. uvicorn would count it when the handshake is over, and let
any number wait for that.
Must not: know HTTP; behind the door a BoundedConnection goes on as it does without TLS.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

from gpucredits.api.transport.bounds import Connected, ConnectionBounds

# What OpenSSL says where a client's certificate, or its absence, was the cause.
UNTRUSTED: Final = frozenset({"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE"})
NO_ROOM_S: Final = 0.1  # how long to rest when the process can open no more files
ShutOut = Callable[[str, str], None]
"""Told of a client whose certificate was refused: its address, and why."""


class TlsDoor:
    """A listening socket behind which every connection has made its handshake.

    It has the methods that uvicorn calls of a server of asyncio.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        *,
        bounds: ConnectionBounds,
        connected: Connected,
        shut_out: ShutOut,
    ) -> None:
        self._listener = listener
        self._context = context
        self._bounds = bounds
        self._connected = connected
        self._shut_out = shut_out
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    def renew(self, context: ssl.SSLContext) -> None:
        """Let connections that come from now on see other settings, such as a new certificate."""
        self._context = context

    def open(self, made: Callable[[], asyncio.Protocol]) -> None:
        """Begin to accept; ``made`` makes what a connection speaks behind the door."""
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(made), name="TlsDoor")

    def close(self) -> None:
        """Accept no more, and break off the handshakes under way."""
        for task in (self._accepting, *self._tasks):
            if task is not None:
                task.cancel()

    async def wait_closed(self) -> None:
        """Return when nobody is on the way in any more."""
        waited = [task for task in (self._accepting, *self._tasks) if task is not None]
        await asyncio.gather(*waited, return_exceptions=True)

    async def _accept(self, made: Callable[[], asyncio.Protocol]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(self._listener)
            except OSError:  # no more files, or the client has gone already
                await asyncio.sleep(NO_ROOM_S)
                continue
            address = str(peer[0]) if isinstance(peer, tuple) else ""
            if self._is_full(address):
                self._connected.turned_away += 1
                connection.close()  # nothing can be said before the handshake
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connected.handshakes += 1
            self._connected.enter(address)
            task = loop.create_task(self._greet(connection, address, made))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _is_full(self, address: str) -> bool:
        too_many = self._connected.handshakes >= self._bounds.handshakes
        return too_many or bool(self._connected.too_many(self._bounds, address))

    async def _greet(
        self, connection: socket.socket, address: str, made: Callable[[], asyncio.Protocol]
    ) -> None:
        """Make the handshake; the connection counts itself when it has begun."""
        is_counted = True

        def leave() -> None:
            nonlocal is_counted
            if is_counted:
                is_counted = False
                self._connected.handshakes -= 1
                self._connected.leave(address)

        def begin() -> asyncio.Protocol:
            protocol = made()
            inner = protocol.connection_made

            def connection_made(transport: asyncio.BaseTransport) -> None:
                leave()
                inner(transport)

            protocol.connection_made = connection_made  # type: ignore[method-assign]
            return protocol

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._bounds.handshake_s):
                await loop.connect_accepted_socket(
                    begin,
                    connection,
                    ssl=self._context,
                    ssl_handshake_timeout=self._bounds.handshake_s,
                    ssl_shutdown_timeout=self._bounds.goodbye_s,
                )
        except ssl.SSLError as error:
            if error.reason in UNTRUSTED:
                self._shut_out(address, said(error))
        except (OSError, TimeoutError):  # the client went away, or took too long
            pass
        finally:
            leave()


def said(error: ssl.SSLError) -> str:
    """Why a certificate was refused, in the words of OpenSSL."""
    told = getattr(error, "verify_message", "") or (error.reason or "").replace("_", " ").lower()
    return str(told)
