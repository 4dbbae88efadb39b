"""TLS between nodes and a real server: who is let in, as which node, and what is audited."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from cryptography import x509

from gpucredits.api.transport.context import TlsFiles, server_context
from gpucredits.cli.main import main
from gpucredits.client import Client, Invalid, Retry, ShownCertificate, Unavailable
from support.engines.postgres import TestServer, temporary_directory
from support.servers.certificates import CertificateFiles, TestAuthority, make_authority
from support.servers.http import Caller, RunningServer, fresh_name, problem, running_server
from support.waiting import HANGS_S, until


@dataclass
class Secured:
    """A server that speaks TLS and takes certificates of nodes, and whom it trusts."""

    server: RunningServer
    authority: TestAuthority
    stranger: TestAuthority
    org: str
    gpu_type: str

    @contextmanager
    def over(
        self, shown: CertificateFiles | None = None, secret: str | None = None
    ) -> Iterator[Caller]:
        """A caller that shows a certificate, or none."""
        context = self.authority.client(shown)
        url = self.server.url
        with httpx.Client(base_url=url, verify=context, timeout=HANGS_S) as http:
            yield Caller(http, secret or self.server.admin_secret)

    def key(self, role: str, **fields: str) -> str:
        """The secret of a new key of the org."""
        with self.over() as admin:
            made = admin.made("/v1/keys", {"role": role, "scope": self.org, **fields})
            return str(made["secret"])

    def lease(self, node: str) -> str:
        """A new lease on a node."""
        body = {"account": self.org, "job_id": fresh_name("j"), "gpu_type": self.gpu_type}
        with self.over() as admin:
            made = admin.made("/v1/reservations", {**body, "gpu_count": 1, "node": node})
            return str(made["reservation_id"])

    def audited(self, action: str, reason: str) -> list[Any]:
        """Rows of the audit log about refusals for a reason."""
        with self.over() as admin:
            rows = admin.read(f"/v1/audit?action={action}")["audit"]
        return [row for row in rows if reason in row["new"]["reason"]]


@pytest.fixture(scope="module")
def secured(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Such a server."""
    folder = tmp_path_factory.mktemp("tls")
    authority, stranger = make_authority(folder / "ours"), make_authority(folder / "theirs")
    shown = authority.sign("server", "server")
    tls = ("--tls-cert", shown.certificate, "--tls-key", shown.key, "--client-ca", authority.file)
    with (
        postgres.database() as dsn,
        temporary_directory() as data_dir,
        running_server(data_dir, "--database-url", dsn, *map(str, tls)) as server,
    ):
        made = Secured(server, authority, stranger, "acme", "h100")
        with made.over() as admin:
            admin.made("/v1/accounts", {"path": "acme"})
            admin.made("/v1/credits/issue", {"account": "acme", "amount": "1000"})
            admin.made("/v1/prices", {"gpu_type": "h100", "credits_per_gpu_hour": "36"})
        yield made


def beat(caller: Caller, lease: str, seq: int = 1) -> httpx.Response:
    """Report a lease."""
    report = {"reservation_id": lease, "seq": seq, "used_ms": 1}
    return caller.post("/v1/heartbeats", {"beats": [report]})


def test_a_node_reports_over_its_certificate(secured: Secured) -> None:
    """Its own lease is renewed; a lease of another node is not, whatever its key may."""
    own, other = secured.lease("gpu-7"), secured.lease("gpu-8")
    gpu_7 = secured.authority.sign("node", "gpu-7")
    for role, fields in (("agent", {}), ("agent", {"node": "gpu-7"}), ("operator", {})):
        with secured.over(gpu_7, secured.key(role, **fields)) as node:
            assert node.read("/v1/keys/self")["node"] == "gpu-7"
            assert beat(node, own).json()["results"][0]["decision"] == "continue"
            assert beat(node, other).json()["results"][0]["reason"] == "wrong_node"
            answer = node.post(f"/v1/reservations/{other}:settle")
            assert problem(answer) == (403, "wrong_node")
    rows = until(lambda: secured.audited("node.refuse", "wrong_node"))
    assert other in {row["resource"] for row in rows}
    with secured.over() as admin:
        assert admin.read(f"/v1/reservations/{other}")["seq"] == 0


def test_a_stolen_key_is_worth_nothing_without_its_node(secured: Secured) -> None:
    """Over another node's certificate, a person's, or none; every attempt is audited."""
    lease = secured.lease("gpu-9")
    stolen = secured.key("agent", node="gpu-9")
    thieves = {
        "wrong_node": secured.authority.sign("node", "gpu-6"),
        "certificate_required": None,
    }
    for reason, shown in thieves.items():
        with secured.over(shown, stolen) as thief:
            assert problem(beat(thief, lease)) == (403, reason)
        until(lambda: of_keys(secured, reason))  # noqa: B023  # it is asked at once
    person = secured.authority.sign("client", "mallory")
    with secured.over(person, stolen) as thief:
        assert problem(beat(thief, lease)) == (403, "certificate_required")
    free = secured.key("agent")
    with secured.over(None, free) as thief:
        assert problem(beat(thief, lease)) == (403, "certificate_required")
    with secured.over(secured.authority.sign("node", "gpu-9"), stolen) as node:
        assert beat(node, lease).json()["results"][0]["decision"] == "continue"


def of_keys(secured: Secured, reason: str) -> list[Any]:
    """Rows about keys that came from a wrong place."""
    rows = secured.audited("node.refuse", reason)
    return [row for row in rows if row["actor"] == row["resource"]]


def test_a_certificate_alone_opens_nothing(secured: Secured) -> None:
    """It says where a caller is, not who: without a key there is no way in."""
    with secured.over(secured.authority.sign("node", "gpu-7"), "gck_nobody") as node:
        assert problem(node.get("/v1/keys/self")) == (401, "unauthenticated")


def shut_out(secured: Secured, shown: CertificateFiles) -> None:
    """Expect that a client with such a certificate is not spoken to."""
    broken = (httpx.RemoteProtocolError, httpx.ReadError, httpx.ConnectError, httpx.WriteError)
    with secured.over(shown) as caller, pytest.raises(broken):
        caller.get("/healthz")


def test_a_wrong_authority_is_refused_and_audited(secured: Secured) -> None:
    """A certificate for the right name that somebody else signed; then the right one."""
    shut_out(secured, secured.stranger.sign("node", "gpu-7"))
    [row, *_] = until(lambda: secured.audited("tls.refuse", "unable to get local issuer"))
    assert (row["actor"], row["resource"]) == ("system:tls", "127.0.0.1")
    with secured.over(secured.authority.sign("node", "gpu-7")) as node:
        assert node.get("/healthz").status_code == 200


def test_an_expired_certificate_is_refused_and_audited(secured: Secured) -> None:
    """To the day; the same certificate of today is good."""
    shut_out(secured, secured.authority.sign("node", "gpu-7", days_ago=3))
    assert until(lambda: secured.audited("tls.refuse", "has expired"))


def test_a_server_s_certificate_is_not_a_node_s(secured: Secured) -> None:
    """Whoever stole the server's certificate is no node with it."""
    shut_out(secured, secured.authority.sign("server", "gpu-7"))
    assert until(lambda: secured.audited("tls.refuse", "unsuitable certificate purpose"))


def test_clients_trust_the_right_server_only(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another authority's file does not do; SSL_CERT_FILE does."""
    url, secret = secured.server.url, secured.server.admin_secret
    brief = Retry(deadline_s=0.2)
    with (
        Client(url, secret, retry=brief, ca_file=secured.stranger.file) as client,
        pytest.raises(Unavailable, match="is not trusted"),
    ):
        client.whoami()
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.authority.file))
    with Client(url, secret) as client:
        assert client.whoami().role == "admin"


def test_the_client_shows_a_certificate(secured: Secured) -> None:
    """Both as an argument and on the command line, where the environment names it as well."""
    files = secured.authority.sign("node", "gpu-7")
    lease, secret = secured.lease("gpu-7"), secured.key("agent", node="gpu-7")
    shown = ShownCertificate(files.certificate, files.key)
    ca_file = secured.authority.file
    with Client(secured.server.url, secret, ca_file=ca_file, shown=shown) as client:
        assert client.heartbeats([(lease, 1, 1)]).results[0].decision == "continue"
    words = ["heartbeat", lease, "--seq", "2", "--used", "0s", "--json"]
    env = {
        "GPUCREDITS_URL": secured.server.url,
        "GPUCREDITS_API_KEY": secret,
        "GPUCREDITS_CA_FILE": str(ca_file),
    }
    pair = {"GPUCREDITS_CERT": str(files.certificate), "GPUCREDITS_CERT_KEY": str(files.key)}
    run = CliRunner().invoke
    given = ["--cert", str(files.certificate), "--cert-key", str(files.key)]
    assert run(main, [*words, *given], env=env).exit_code == 0
    assert run(main, words, env={**env, **pair}).exit_code == 0
    without = run(main, words, env=env)
    assert (without.exit_code, json.loads(without.stdout)["reason"]) == (1, "certificate_required")


def test_a_certificate_that_cannot_be_shown_is_invalid(secured: Secured) -> None:
    """A file without its key, or an address without TLS."""
    files = secured.authority.sign("node", "gpu-7")
    other = secured.authority.sign("node", "gpu-8")
    for shown in (
        ShownCertificate(files.certificate),
        ShownCertificate(files.certificate, other.key),
        ShownCertificate(files.key.parent / "absent.pem"),
    ):
        with pytest.raises(Invalid, match="cert_file"):
            Client("https://127.0.0.1:1", "k", ca_file=secured.authority.file, shown=shown)
    with pytest.raises(Invalid, match="https"):
        Client("http://127.0.0.1:1", "k", shown=ShownCertificate(files.certificate, files.key))


def test_http_at_a_port_of_tls_is_told_what_to_write(secured: Secured) -> None:
    """The server says nothing to it, so the client does."""
    url = secured.server.url.replace("https:", "http:")
    said = f"speaks TLS, write {secured.server.url}"
    with (
        Client(url, "k", retry=Retry(deadline_s=0.5)) as client,
        pytest.raises(Unavailable, match=said),
    ):
        client.whoami()


def test_old_versions_of_tls_are_not_spoken(secured: Secured) -> None:
    """TLS 1.2 is the oldest, and it is spoken."""
    shown = secured.authority.sign("server", "server")
    context = server_context(TlsFiles(certificate=shown.certificate, key=shown.key))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    client = secured.authority.client()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with httpx.Client(verify=client) as http:
        assert http.get(f"{secured.server.url}/healthz").status_code == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tls-cert", "{cert}"], "--tls-cert and --tls-key go together"),
        (["--client-ca", "{ca}"], "--client-ca needs --tls-cert"),
        (["--tls-cert", "{cert}", "--tls-key", "{key}", "--require-client-cert"], "--client-ca"),
        (["--tls-cert", "{cert}", "--tls-key", "{ca}"], "is no certificate with its key"),
        (["--tls-cert", "{cert}", "--tls-key", "{key}", "--client-ca", "{key}"], "no certificate"),
    ],
)
def test_options_that_do_not_go_together_are_told(
    secured: Secured, options: list[str], said: str
) -> None:
    """Before anything is started."""
    shown = secured.authority.sign("server", "server")
    files = {"cert": shown.certificate, "key": shown.key, "ca": secured.authority.file}
    words = [each.format(**files) for each in options]
    result = CliRunner().invoke(main, ["serve", "--data-dir", "/nowhere", *words])
    assert result.exit_code != 0
    assert said in result.output


def test_a_renewed_certificate_is_used_without_a_restart(
    database: str, data_dir: Path, tmp_path: Path
) -> None:
    """Broken files change nothing; a new pair is shown to new connections, an old one lives on."""
    authority = make_authority(tmp_path / "ours")
    first, second = authority.sign("server", "first"), authority.sign("server", "second")
    cert, key = tmp_path / "live.pem", tmp_path / "live.key"
    cert.write_bytes(first.certificate.read_bytes())
    key.write_bytes(first.key.read_bytes())
    key.chmod(0o600)
    tls = ("--tls-cert", str(cert), "--tls-key", str(key), "--client-ca", str(authority.file))
    with running_server(data_dir, "--database-url", database, *tls) as server:
        where = ("127.0.0.1", httpx.URL(server.url).port or 0)

        def shown() -> str:
            with (
                socket.create_connection(where, timeout=HANGS_S) as plain,
                authority.client().wrap_socket(plain, server_hostname=where[0]) as secure,
            ):
                der = secure.getpeercert(binary_form=True)
            assert der is not None
            return x509.load_der_x509_certificate(der).subject.rfc4514_string()

        log = data_dir / "server.log"
        http = httpx.Client(base_url=server.url, verify=authority.client(), timeout=HANGS_S)
        with http as before:
            assert before.get("/healthz").status_code == 200
            assert shown() == "CN=first"
            key.write_bytes(second.key.read_bytes())  # the half of a renewal
            until(lambda: "is not renewed" in log.read_text())
            assert shown() == "CN=first"
            cert.write_bytes(second.certificate.read_bytes())
            until(lambda: shown() == "CN=second")
            assert before.get("/healthz").status_code == 200
