"""Several servers behind HAProxy, with the configuration that the documentation has."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from support.servers.http import Caller, RunningServer, fresh_name, running_server
from support.waiting import HANGS_S, until

CONFIGURATION = Path(__file__).resolve().parents[3] / "docs" / "haproxy.cfg"
HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
ORGS = 12

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")


@dataclass(frozen=True)
class Fleet:
    """Two servers on one database, and a caller who meets them through the balancer."""

    servers: dict[str, RunningServer]
    balancer: httpx.Client

    def admin(self) -> Caller:
        """Somebody with a key for the whole system."""
        return Caller(self.balancer, self.servers["a"].admin_secret)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def fleet(database: str, data_dir: Path) -> Iterator[Fleet]:
    """Start both, then the balancer, and wait until it has found both."""
    assert HAPROXY is not None
    with ExitStack() as running:
        servers = {}
        for name in ("a", "b"):
            server = running_server(data_dir, "--database-url", database)
            servers[name] = running.enter_context(server)
        port = free_port()
        places = {f"GPUCREDITS_{n.upper()}": urlsplit(s.url).netloc for n, s in servers.items()}
        process = subprocess.Popen(
            [HAPROXY, "-db", "-f", str(CONFIGURATION)],
            env={**os.environ, **places, "GPUCREDITS_LISTEN": f"127.0.0.1:{port}"},
            stderr=subprocess.DEVNULL,
        )
        running.callback(process.wait, HANGS_S)
        running.callback(process.terminate)
        http = running.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}"))
        fleet = Fleet(servers, http)
        until(lambda: server_of(http, "/healthz") is not None)
        yield fleet


def server_of(http: httpx.Client, path: str) -> str | None:
    """Which server answers, or None while none does."""
    try:
        answer = http.get(path)
    except httpx.TransportError:
        return None
    return answer.headers.get("x-served-by") if answer.status_code == 200 else None


def test_an_org_has_its_server(fleet: Fleet) -> None:
    """Keys and ids of an org lead to one server, orgs to both; a server that ends loses no call."""
    admin = fleet.admin()
    admin.made("/v1/prices", {"gpu_type": "h100", "credits_per_gpu_hour": "36"})
    places: dict[str, Caller] = {}
    homes: dict[str, str] = {}
    for _ in range(ORGS):
        org = fresh_name("org")
        admin.made("/v1/accounts", {"path": org})
        admin.made("/v1/credits/issue", {"account": org, "amount": "10"})
        member = admin.with_key("operator", org)
        job = {"account": org, "job_id": "j", "gpu_type": "h100"}
        answers = [member.post("/v1/reservations", {**job, "node": f"n{n}"}) for n in range(3)]
        answers += [member.get(f"/v1/accounts/{org}/balance") for _ in range(3)]
        lease = answers[0].json()["reservation_id"]
        answers.append(admin.post(f"/v1/reservations/{lease}:settle", {}))
        assert {answer.status_code for answer in answers} <= {200, 201}
        seen = {answer.headers["x-served-by"] for answer in answers}
        assert len(seen) == 1, (org, seen)
        places[org], homes[org] = member, seen.pop()
    assert set(homes.values()) == {"a", "b"}
    # Without an org in the key and the path, calls go anywhere: the control.
    anywhere = [admin.get("/v1/keys/self").headers["x-served-by"] for _ in range(10)]
    assert set(anywhere) == {"a", "b"}
    fleet.servers["b"].process.terminate()
    fleet.servers["b"].process.wait(HANGS_S)

    def answered(org: str) -> bool:
        answer = places[org].get(f"/v1/accounts/{org}/balance")
        return answer.status_code == 200 and answer.headers["x-served-by"] == "a"

    for org in places:
        until(lambda org=org: answered(org))  # type: ignore[misc]
