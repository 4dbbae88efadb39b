"""A real server in a process of its own, and a plain HTTP caller for it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from gpucredits.client import AsyncClient, Call, Refused
from gpucredits_bench.processes import processes_of
from support.mornings import until_morning
from support.waiting import HANGS_S

STOP_TIMEOUT_S = HANGS_S
_numbers = itertools.count(1)


@dataclass(frozen=True)
class RunningServer:
    """Where a server listens, its admin's secret, and its process."""

    url: str
    admin_secret: str
    process: subprocess.Popen[str]
    data_dir: Path

    @property
    def serving_pid(self) -> int:
        """The process that serves HTTP: a child without root where root started the server."""
        return processes_of(self.process.pid)[0][-1]


@contextmanager
def running_server(
    data_dir: Path, *options: str, program: Sequence[str] = ("-m", "gpucredits"), port: int = 0
) -> Iterator[RunningServer]:
    """Start ``gpucredits serve``, or a program that does it in its own way; stop it in order."""
    log = (data_dir / "server.log").open("a")
    command = [sys.executable, *program, "serve", "--json", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--data-dir", str(data_dir), *options],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (data_dir / "server.log").read_text()
        facts = json.loads(line)
        assert "url" in facts, line
        secret = Path(facts["admin_key"]).read_text().strip()
        yield RunningServer(facts["url"], secret, process, data_dir)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            log.close()


@dataclass
class Caller:
    """Somebody with a key; every write gets a fresh idempotency key unless one is given."""

    http: httpx.Client
    secret: str
    answers: list[httpx.Response] = field(default_factory=list)

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send a request as it is given."""
        headers = {"authorization": f"Bearer {self.secret}"}
        if method not in ("GET", "HEAD"):
            headers["idempotency-key"] = options.pop("key", None) or f"k{next(_numbers)}"
        headers |= options.pop("headers", {})
        content = options.pop("content", None)
        if body is not None:
            content = json.dumps(body)
        if content is not None:
            headers.setdefault("content-type", "application/json")
        return self.http.request(method, path, content=content, headers=headers, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Write."""
        return self.call("POST", path, body, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Read."""
        return self.call("GET", path, **options)

    def made(self, path: str, body: Any = None, **options: Any) -> Any:
        """Write, and expect it to be done."""
        answer = self.post(path, body, **options)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def read(self, path: str, **options: Any) -> Any:
        """Read, and expect an answer."""
        answer = self.get(path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def with_key(self, role: str, scope: str | None = None) -> Caller:
        """Somebody else, with a new key."""
        body = {"role": role} if scope is None else {"role": role, "scope": scope}
        return Caller(self.http, self.made("/v1/keys", body)["secret"])

    def advance(self, seconds: int) -> None:
        """Let time pass on the server."""
        self.made("/v1/test/clock", {"advance_seconds": seconds})

    def pass_midnights(self) -> None:
        """Let a day begin on the server if one ends soon, in a zone that tests use."""
        self.advance(until_morning(self.instant()))

    def instant(self, **later: float) -> str:
        """The server's time, or some time later, in RFC 3339."""
        now = self.made("/v1/test/clock", {"advance_seconds": 0})["now"]
        return (datetime.fromisoformat(now) + timedelta(**later)).isoformat()


def fresh_name(prefix: str) -> str:
    """A name that no other test of this process uses."""
    return f"{prefix}{next(_numbers)}"


def problem(answer: httpx.Response) -> tuple[int, str]:
    """(status, reason) of an answer that is a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["title"]
    assert body["detail"]
    return answer.status_code, body["reason"]


async def reason_of(client: AsyncClient, call: Call[Any]) -> str:
    """How a call ended: an empty string when it was done, else the reason."""
    try:
        await client.send(call)
    except Refused as refused:
        return refused.reason
    return ""
