"""The Python client: typed answers, and retries that have one effect."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from gpucredits.client import ApiError, AsyncClient, Client, UnreachableError, calls
from gpucredits.client.operation import Retries
from support.http import Caller, RunningServer, fresh_name

HASTY = Retries(attempts_max=3, first_wait_s=0.001, wait_max_s=0.01, timeout_s=10)


def test_the_client_speaks_the_api(admin: Caller, server: RunningServer, gpu_type: str) -> None:
    """Calls give structs, refusals raise with their reason, batches and corrections included."""
    org = fresh_name("org")
    with Client(server.url, server.admin_secret) as client:
        client.send(calls.create_account(org, metadata={"a": "b"}))
        grant = client.send(calls.issue(org, "10.5", key="g1"))
        assert client.send(calls.issue(org, "10.5", key="g1")) == grant
        assert client.send(calls.balance(org)).available == "10.5"
        lease = client.send(calls.reserve(org, job_id="j", gpu_type=gpu_type, window_seconds=30))
        admin.advance(10)
        beats = [calls.Beat(lease.reservation_id, 1, 10_000)]
        (result,) = client.send(calls.heartbeats(beats, node="n")).results
        assert (result.decision, result.settled) == ("continue", "0.1")
        assert (
            client.send(calls.extend(lease.reservation_id, seq=2, used_ms=10_000)).settled == "0.1"
        )
        assert client.send(calls.settle(lease.reservation_id)).state == "settled"
        assert client.send(calls.refund(lease.reservation_id, "0.1")).amount == "0.1"
        assert client.send(calls.get_reservation(lease.reservation_id)).refunded == "0.1"
        with pytest.raises(ApiError) as refused:
            client.send(calls.transfer(org, org, 1))
        assert (refused.value.status, refused.value.reason) == (422, "same_account")


def test_the_async_client_is_the_same(server: RunningServer, org: str) -> None:
    """The same operations go through an event loop, many at once."""

    async def run() -> list[str]:
        async with AsyncClient(server.url, server.admin_secret) as client:
            await client.send(calls.issue(org, 20))
            paths = [f"{org}/p{number}" for number in range(5)]
            made = await asyncio.gather(*(client.send(calls.create_account(p)) for p in paths))
            await asyncio.gather(*(client.send(calls.transfer(org, each.path, 2)) for each in made))
            with pytest.raises(ApiError):
                await client.send(calls.balance("nowhere"))
            return [(await client.send(calls.balance(path))).available for path in paths]

    assert asyncio.run(run()) == ["2"] * 5


@contextmanager
def unreliable(target: str, *, lost: int) -> Iterator[str]:
    """A proxy that carries requests out but loses the first answers."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {
                name: self.headers[name]
                for name in ("authorization", "idempotency-key", "content-type")
            }
            answer = httpx.post(f"{target}{self.path}", content=body, headers=headers)
            seen.append(headers["idempotency-key"])
            if len(seen) <= lost:
                self.close_connection = True
                return
            assert len(set(seen)) == 1
            self.send_response(answer.status_code)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    server: RunningServer, admin: Caller, org: str
) -> None:
    """Two answers lost on the way, one effect."""
    with (
        unreliable(server.url, lost=2) as url,
        Client(url, server.admin_secret, retries=HASTY) as client,
    ):
        assert client.send(calls.issue(org, 7)).amount == "7"
    assert admin.read(f"/v1/accounts/{org}/balance")["available"] == "7"


def test_a_server_that_is_away_is_told_apart_from_a_refusal() -> None:
    """After the last attempt the caller gets the key, to try again later."""
    with (
        Client("http://127.0.0.1:9", "gck_x", retries=HASTY) as client,
        pytest.raises(UnreachableError) as unreachable,
    ):
        client.send(calls.issue("acme", 1))
    assert unreachable.value.key
