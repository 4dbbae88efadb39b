"""TLS on the way to a server: which certificates are trusted, and what is said of others."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import AsyncClient, Client, Invalid, Retry, Unavailable, Untrusted
from support.servers.tls_front import OPENSSL, make_authority, tls_front

BRIEF = Retry(deadline_s=0.1)
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="no openssl to make a certificate with")


@dataclass(frozen=True)
class Secured:
    """A server that is reached through TLS, and the authority that signed its certificate."""

    port: int
    authority: Path
    key: str

    @property
    def url(self) -> str:
        """Its address, with the name that its certificate is for."""
        return f"https://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def secured(server: TemporaryServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A real server behind TLS."""
    authority, certificate, key = make_authority(tmp_path_factory.mktemp("tls"), "127.0.0.1")
    behind = urlsplit(server.url)
    with tls_front(certificate, key, (behind.hostname or "", behind.port or 0)) as port:
        yield Secured(port, authority, server.key)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "GPUCREDITS_CA_FILE", "GPUCREDITS_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_a_file_of_certificates_is_trusted(secured: Secured) -> None:
    """With the authority's certificate both clients reach the server."""
    with Client(secured.url, secured.key, ca_file=secured.authority) as client:
        assert client.whoami().role == "admin"

    async def ask() -> str:
        ca_file = str(secured.authority)
        async with AsyncClient(secured.url, secured.key, ca_file=ca_file) as client:
            return (await client.whoami()).role

    assert asyncio.run(ask()) == "admin"


def test_the_environment_names_such_a_file_too(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE is honoured, as by other programs."""
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.authority))
    with Client(secured.url, secured.key) as client:
        assert client.whoami().role == "admin"


def test_an_untrusted_certificate_is_named_as_such(secured: Secured) -> None:
    """It is asked once, the message names address and remedy, and nothing can have been done."""
    with Client(secured.url, secured.key) as client, pytest.raises(Untrusted) as told:
        client.create_account("never")
    assert isinstance(told.value, Unavailable)
    for part in (
        f"the certificate of {secured.url} is not trusted",
        "self-signed certificate in certificate chain",
        "ca_file",
        "SSL_CERT_FILE",
        "asked once",
    ):
        assert part in str(told.value)

    async def ask() -> None:
        async with AsyncClient(secured.url, secured.key) as client:
            await client.whoami()

    with pytest.raises(Untrusted, match="is not trusted"):
        asyncio.run(ask())


def test_a_certificate_for_another_name_is_said_to_be_that(secured: Secured) -> None:
    """The remedy is another address, not another file."""
    url = f"https://localhost:{secured.port}"
    with (
        Client(url, secured.key, ca_file=secured.authority) as client,
        pytest.raises(Untrusted, match=f"the certificate of {url} is for another name"),
    ):
        client.whoami()


def test_a_server_without_tls_is_said_to_have_none(server: TemporaryServer) -> None:
    """An https address of an http server is not called an absent server."""
    url = server.url.replace("http", "https", 1)
    with (
        Client(url, server.key) as client,
        pytest.raises(Untrusted, match=f"{url} does not speak TLS: write {server.url}"),
    ):
        client.whoami()


def test_a_file_that_holds_no_certificate_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is the file, and it is named with where it was given."""
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for ca_file in (empty, tmp_path / "absent.pem"):
        with pytest.raises(Invalid, match=f"ca_file: {ca_file}.*PEM"):
            Client("https://127.0.0.1:1", "k", ca_file=ca_file)
    monkeypatch.setenv("SSL_CERT_FILE", str(empty))
    with pytest.raises(Invalid, match=f"SSL_CERT_FILE: {empty} holds no certificate"):
        Client("https://127.0.0.1:1", "k")
    Client("http://127.0.0.1:1", "k").close()  # where there is no TLS, nobody is to be trusted


def test_the_command_line_trusts_a_file(secured: Secured, tmp_path: Path) -> None:
    """--ca-file and SSL_CERT_FILE reach the server; without, exit code 3 and the remedy."""
    words = ["key", "whoami", "--url", secured.url, "--key", secured.key]
    run = CliRunner().invoke
    assert run(main, [*words, "--ca-file", str(secured.authority)]).exit_code == 0
    assert run(main, words, env={"SSL_CERT_FILE": str(secured.authority)}).exit_code == 0
    assert run(main, words, env={"GPUCREDITS_CA_FILE": str(secured.authority)}).exit_code == 0
    untrusted = run(main, words)
    assert untrusted.exit_code == 3
    assert untrusted.stderr.startswith(f"Unavailable: the certificate of {secured.url} is not")
    assert "--ca-file" in untrusted.stderr
    scripted = run(main, [*words, "--json"])
    assert (scripted.exit_code, scripted.stderr) == (3, "")
    assert json.loads(scripted.stdout)["reason"] == "untrusted_certificate"
    (tmp_path / "empty.pem").write_text("")
    empty = run(main, [*words, "--ca-file", str(tmp_path / "empty.pem"), "--json"])
    assert (empty.exit_code, json.loads(empty.stdout)["field"]) == (2, "--ca-file")


def test_a_server_that_is_away_is_only_away() -> None:
    """A connection that nobody takes says nothing of certificates."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with (
        Client(url, "k", retry=BRIEF) as client,
        pytest.raises(Unavailable, match="no server answers at") as told,
    ):
        client.whoami()
    assert not isinstance(told.value, Untrusted)
