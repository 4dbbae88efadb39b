"""Logging in to a real NATS server: users, tokens, credentials and TLS, and what is refused."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpucredits.metering.address import bus_at
from gpucredits.metering.bus import BusUnavailable, Message, Topic
from support.engines.nats_jwt import ACCOUNT, Identity, Tenancy
from support.engines.nats_server import NatsServer, nats_server
from support.servers.certificates import TestAuthority, make_authority
from support.waiting import HANGS_S

POOL: Any = None
GREETING = (
    b'INFO {"server_id":"x","version":"2.11.0","proto":1,"auth_required":true,'
    b'"headers":true,"max_payload":1048576}\r\n'
)
USERS = """
authorization { users: [
  {user: gpucredits, password: "p@ss:word"},
  {user: guest, password: guest, permissions: {publish: "other.>", subscribe: "_INBOX.>"}}
] }
"""


def carried(address: str) -> bytes:
    """A message that went over the bus and back."""

    async def act() -> bytes:
        bus = bus_at(address, POOL)
        try:
            await bus.publish(Topic.USAGE, [Message(1, "one", b"hello")])
            async with asyncio.timeout(HANGS_S):
                while not (found := await bus.read(Topic.USAGE, {1: 0}, limit=1)):
                    pass
            return found[0].body
        finally:
            await bus.close()

    return asyncio.run(act())


def refusal(address: str) -> str:
    """Why a bus cannot be used."""
    with pytest.raises(BusUnavailable) as raised:
        carried(address)
    assert "word" not in str(raised.value)
    return str(raised.value)


def tls_settings(authority: TestAuthority, *, verify: bool = False) -> str:
    """TLS with a certificate of an authority; clients show one too if they must."""
    shown = authority.sign("server", "nats")
    ca = f', ca_file: "{authority.file}", verify: true' if verify else ""
    return f'tls {{ cert_file: "{shown.certificate}", key_file: "{shown.key}"{ca} }}\n'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    """Whom the server's certificate is from."""
    return make_authority(tmp_path_factory.mktemp("certificates") / "ca")


@pytest.fixture(scope="module")
def guarded(authority: TestAuthority) -> Iterator[NatsServer]:
    """A server with users and TLS."""
    with nats_server(USERS + tls_settings(authority)) as server:
        yield server


def test_a_user_logs_in_over_tls(guarded: NatsServer, authority: TestAuthority) -> None:
    """The password is the one that the address spells with percent signs."""
    words = f"gpucredits:p%40ss%3Aword@127.0.0.1:{guarded.port}?ca_file={authority.file}"
    assert carried(f"tls://{words}") == b"hello"
    assert carried(f"nats://{words}") == b"hello"


def test_the_systems_authorities_are_those_of_the_environment(
    guarded: NatsServer, authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE is honoured where no file is named; control: without it nobody is trusted."""
    address = f"tls://gpucredits:p%40ss%3Aword@127.0.0.1:{guarded.port}"
    assert "certificate verify failed" in refusal(address)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    assert carried(address) == b"hello"


@pytest.mark.parametrize("who", ["gpucredits:wrong@", "nobody:p%40ss%3Aword@", ""])
def test_a_wrong_password_is_said(guarded: NatsServer, authority: TestAuthority, who: str) -> None:
    """So are an unknown user and none at all; nothing of the password is in it."""
    said = refusal(f"tls://{who}127.0.0.1:{guarded.port}?ca_file={authority.file}")
    assert f"NATS at tls://127.0.0.1:{guarded.port}" in said
    assert "Authorization Violation" in said


def test_a_wrong_authority_is_said(guarded: NatsServer, tmp_path: Path) -> None:
    """A server whose certificate is from somebody else is not spoken to."""
    other = make_authority(tmp_path / "other")
    words = f"gpucredits:p%40ss%3Aword@127.0.0.1:{guarded.port}?ca_file={other.file}"
    assert "certificate verify failed" in refusal(f"tls://{words}")


def test_missing_permissions_are_said(guarded: NatsServer, authority: TestAuthority) -> None:
    """A user who may not use JetStream hears which subject it may not use."""
    words = f"guest:guest@127.0.0.1:{guarded.port}?ca_file={authority.file}"
    said = refusal(f"tls://{words}").lower()
    assert "permissions violation" in said
    assert "$js.api" in said


def test_certificates_of_clients(authority: TestAuthority, tmp_path: Path) -> None:
    """A server that wants one gets it; without one, or with another's, it is refused."""
    ours = authority.sign("client", "gpucredits")
    others = make_authority(tmp_path / "other").sign("client", "gpucredits")
    with nats_server(tls_settings(authority, verify=True)) as server:
        place = f"tls://127.0.0.1:{server.port}?ca_file={authority.file}"
        shown = f"{place}&cert_file={ours.certificate}&key_file={ours.key}"
        assert carried(shown) == b"hello"
        assert refusal(place)
        assert refusal(f"{place}&cert_file={others.certificate}&key_file={others.key}")


@contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A server that greets without TLS, and what it is told."""
    told: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            link.settimeout(HANGS_S)
            with link:
                link.sendall(GREETING)
                told.append(link.recv(4_096))  # nothing where the client hangs up

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1], told
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(HANGS_S)


def test_no_password_goes_to_a_server_without_tls(authority: TestAuthority) -> None:
    """Where the address asks for TLS. Control: without that, the password is told."""
    with listening() as (port, told):
        said = refusal(f"tls://gpucredits:pw0@127.0.0.1:{port}")
        assert "the server offers none" in said
        assert "the server offers none" in refusal(
            f"nats://u:pw0@127.0.0.1:{port}?ca_file={authority.file}"
        )
        assert not any(b"pw0" in each for each in told)
        refusal(f"nats://gpucredits:pw0@127.0.0.1:{port}")
        assert any(b"pw0" in each for each in told)


@contextmanager
def staying(tls: ssl.SSLContext) -> Iterator[int]:
    """A server that refuses a login over TLS and never says farewell."""
    refused = threading.Event()

    def serve(listener: socket.socket) -> None:
        link, _ = listener.accept()
        link.settimeout(HANGS_S)
        link.sendall(GREETING.replace(b"auth_required", b"tls_required"))
        with link, tls.wrap_socket(link, server_side=True) as safe:
            safe.recv(4_096)
            safe.sendall(b"-ERR 'Authorization Violation'\r\n")
            refused.wait(HANGS_S)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            refused.set()
            thread.join(HANGS_S)


def test_a_refused_connection_is_closed_at_once(authority: TestAuthority) -> None:
    """Also where the server keeps its side open: no socket is left for the collector."""
    shown = authority.sign("server", "nats")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(shown.certificate, shown.key)
    with staying(tls) as port, warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        said = refusal(f"tls://gpucredits:pw0@127.0.0.1:{port}?ca_file={authority.file}")
        gc.collect()
    assert "Authorization Violation" in said
    assert not [each for each in left if issubclass(each.category, ResourceWarning)]


def test_a_token_logs_in() -> None:
    """A name without a password is a token."""
    with nats_server('authorization { token: "s3cr/et" }\n') as server:
        assert carried(f"nats://s3cr%2Fet@127.0.0.1:{server.port}") == b"hello"
        assert "Authorization Violation" in refusal(f"nats://other@127.0.0.1:{server.port}")


def test_a_credentials_file_logs_in(tmp_path: Path) -> None:
    """The JWT of an account's user, and a signature with its seed; another account's is refused."""
    tenancy = Tenancy()
    file = tmp_path / "user.creds"
    with nats_server(tenancy.settings()) as server:
        address = f"{server.url}?credentials={file}"
        file.write_text(tenancy.credentials())
        assert carried(address) == b"hello"
        file.write_text(tenancy.credentials(signer=Identity(ACCOUNT)))
        assert "Authorization Violation" in refusal(address)
