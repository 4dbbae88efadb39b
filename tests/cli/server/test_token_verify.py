"""``token verify`` and ``ca``: commands that ask no server."""

from __future__ import annotations

import json
import ssl
import stat
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import json as msgspec_json

from gpucredits.cli.main import main
from gpucredits.wire.access.lease_token import ISSUER, LeaseClaims, published, sign, thumbprint

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
RAW = KEY.public_key().public_bytes_raw()


@pytest.fixture
def jwks(tmp_path: Path) -> Path:
    """The published keys as a file."""
    path = tmp_path / "jwks.json"
    path.write_bytes(msgspec_json.encode(published([RAW])))
    return path


def token(**other: int) -> str:
    """A token for a lease on gpu-7."""
    now = int(time.time())
    claims = LeaseClaims(
        iss=ISSUER,
        sub="rsv_1_9",
        jti="t",
        iat=other.get("iat", now),
        exp=other.get("exp", now + 3_600),
        node="gpu-7",
        account="acme",
        job_id="train",
        gpu_type="h100",
        gpu_count="2",
        rate_per_hour="72",
    )
    return sign(claims, KEY, thumbprint(RAW))


def run(*words: str, stdin: str | None = None) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, list(words), input=stdin)


def test_a_prolog_checks_a_token_offline(jwks: Path) -> None:
    """Exit code 0 and what it is for; as an argument or on stdin."""
    for words, stdin in (([token()], None), (["-"], f"{token()}\n")):
        result = run("token", "verify", *words, "--jwks", str(jwks), "--node", "gpu-7", stdin=stdin)
        assert result.exit_code == 0, result.output
        assert "rsv_1_9" in result.stdout
        assert "72" in result.stdout
    told = run("token", "verify", token(), "--jwks", str(jwks), "--json")
    assert json.loads(told.stdout)["sub"] == "rsv_1_9"


def test_a_bad_token_has_exit_code_1(jwks: Path) -> None:
    """For another node or lease, expired, or changed; the reason is a word for scripts."""
    old = token(iat=1, exp=2)
    for words, reason in (
        ([token(), "--node", "gpu-8"], "token_mismatch"),
        ([token(), "--reservation", "rsv_1_a"], "token_mismatch"),
        ([old], "token_expired"),
        ([f"{token()[:-4]}AAAA"], "token_invalid"),
        (["nonsense"], "token_invalid"),
    ):
        result = run("token", "verify", *words, "--jwks", str(jwks), "--json")
        assert (result.exit_code, json.loads(result.stdout)["reason"]) == (1, reason)
        assert json.loads(result.stdout)["title"] == "Refused"
        said = run("token", "verify", *words, "--jwks", str(jwks)).stderr
        assert said.startswith(f"Refused ({reason}): ")
    at = ["--at", "1970-01-01T00:00:01Z"]
    assert run("token", "verify", old, "--jwks", str(jwks), *at).exit_code == 0


def test_an_authority_signs_servers_nodes_and_people(tmp_path: Path) -> None:
    """Its files can be used as they are; keys are for their owner's eyes, and stay."""
    place = ["--dir", str(tmp_path / "ca")]
    assert run("ca", "node", "gpu-7", *place).exit_code == 1  # there is no authority yet
    assert run("ca", "init", *place).exit_code == 0
    assert run("ca", "server", "localhost", "127.0.0.1", *place).exit_code == 0
    assert run("ca", "node", "gpu-7", *place).exit_code == 0
    assert run("ca", "client", "alice", *place).exit_code == 0
    for name in ("server", "node-gpu-7", "client-alice"):
        key = tmp_path / "ca" / f"{name}.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        context = ssl.create_default_context(cafile=tmp_path / "ca" / "ca.pem")
        context.load_cert_chain(tmp_path / "ca" / f"{name}.pem", key)
    again = run("ca", "init", *place)
    assert again.exit_code == 1
    assert "ca.pem and" in again.stderr
    assert "ca.key are there already: remove both first" in again.stderr
    (tmp_path / "ca" / "server.key").unlink()
    half = run("ca", "server", "localhost", *place)
    assert "server.pem is there already: remove it first" in half.stderr
    assert not (tmp_path / "ca" / "server.key").exists()


def test_scripts_hear_what_an_authority_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command prints one document that names the files by whole paths, and its failure too."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "ca"
    for words, name in (
        (["init"], "ca"),
        (["server", "localhost"], "server"),
        (["node", "gpu-7"], "node-gpu-7"),
        (["client", "alice"], "client-alice"),
    ):
        asked = ["ca", *words, "--dir", "ca", "--json"]
        made = run(*asked)
        assert (made.exit_code, made.stderr) == (0, "")
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        assert json.loads(made.stdout) == {"certificate": str(certificate), "key": str(key)}
        assert certificate.exists()
        again = run(*asked)
        assert (again.exit_code, again.stderr) == (1, "")
        told = json.loads(again.stdout)
        assert told["reason"] == "failed"
        assert f"{name}.key are there already" in told["detail"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", "ca", "x" * 201, "a\nb", "ü"])
def test_odd_names_of_nodes_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written outside the folder, or over the authority."""
    place = ["--dir", str(tmp_path)]
    run("ca", "init", *place)
    before = sorted(tmp_path.iterdir())
    assert run("ca", "node", *place, "--", name).exit_code == 2
    assert sorted(tmp_path.iterdir()) == before
