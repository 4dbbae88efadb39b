"""A batch's key: bound to its whole body before any item is begun, whatever happens after."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from gpucredits.api.routes import routes
from support.engines.postgres import sql
from support.rows import rows_of
from support.servers.http import Caller, fresh_name, problem, running_server
from support.waiting import HANGS_S, until

ISSUE, RESERVE = "/v1/credits/issue", "/v1/reservations"
REUSED = (409, "idempotency_key_reused")
GATE = 77_001  # the advisory lock at which grants of one org are held up

Item = Callable[[str, int], dict[str, Any]]


@pytest.fixture
def other(admin: Caller) -> str:
    """Another org."""
    name = fresh_name("org")
    admin.made("/v1/accounts", {"path": name})
    return name


@pytest.fixture(params=[ISSUE, RESERVE])
def form(
    request: pytest.FixtureRequest, admin: Caller, org: str, gpu_type: str
) -> tuple[str, Item]:
    """A write that has a batch form, and what makes an item of it."""
    admin.made(ISSUE, {"account": org, "amount": "1000"})
    if request.param == ISSUE:
        return ISSUE, lambda account, number: {"account": account, "amount": str(number)}
    return RESERVE, lambda account, number: {
        "account": account,
        "job_id": f"j{number}",
        "gpu_type": gpu_type,
    }


def statuses(answer: httpx.Response) -> list[int]:
    """The status of each item."""
    assert answer.status_code == 200, answer.text
    return [result["status"] for result in answer.json()["results"]]


def test_every_batch_of_the_api_is_tried_here() -> None:
    """A route with a batch form that is added is noticed."""
    batches = {route.path for route in routes() if route.path.endswith(":batch")}
    assert batches == {f"{ISSUE}:batch", f"{RESERVE}:batch"}


def test_another_body_under_the_key_of_a_batch_changes_nothing(
    admin: Caller, database_of_server: str, org: str, other: str, form: tuple[str, Item]
) -> None:
    """More, fewer, shifted, elsewhere, all or nothing, or singly: 409, and no row has moved."""
    path, item = form
    key = fresh_name("bound")
    batch = {"items": [item(org, 1), item(org, 2)]}
    first = admin.post(f"{path}:batch", batch, key=key)
    assert statuses(first) == [201, 201]
    before = [rows_of(database_of_server, each) for each in (org, other)]
    for body in (
        {"items": [item(org, 1), item(org, 2), item(org, 3)]},
        {"items": [item(org, 1)]},
        {"items": [item(org, 2), item(org, 1)]},
        {"items": [item(other, 1), item(org, 1), item(org, 2)]},
        {"items": [item(other, 1), item(other, 2)]},
        {**batch, "atomic": True},
    ):
        assert problem(admin.post(f"{path}:batch", body, key=key)) == REUSED, body
    assert problem(admin.post(f"{path}:batch?atomic=true", batch, key=key)) == REUSED
    assert problem(admin.post(path, item(org, 1), key=key)) == REUSED
    assert [rows_of(database_of_server, each) for each in (org, other)] == before
    again = admin.post(f"{path}:batch", batch, key=key)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"


def test_a_key_that_was_used_singly_is_not_taken_for_a_batch(
    admin: Caller, database_of_server: str, org: str, other: str, form: tuple[str, Item]
) -> None:
    """In whichever org of the batch it was used, nothing of the batch is begun."""
    path, item = form
    key = fresh_name("single")
    admin.made(path, item(org, 1), key=key)
    before = [rows_of(database_of_server, each) for each in (org, other)]
    for items in ([item(org, 1)], [item(other, 1), item(org, 2)]):
        assert problem(admin.post(f"{path}:batch", {"items": items}, key=key)) == REUSED
        assert problem(admin.post(f"{path}:batch", {"items": items[-1:]}, key=key)) == REUSED
    assert [rows_of(database_of_server, each) for each in (org, other)] == before


def test_no_key_of_a_caller_is_that_of_an_item(admin: Caller, org: str) -> None:
    """Whatever a caller names, the items of a batch are done and are its own."""
    key = fresh_name("batch")
    for named in (f"{key}#1", f"{key}#2"):
        admin.made(ISSUE, {"account": org, "amount": "1"}, key=named)
    batch = {"items": [{"account": org, "amount": "10"}] * 3}
    assert statuses(admin.post(f"{ISSUE}:batch", batch, key=key)) == [201] * 3
    answer = admin.post(ISSUE, {"account": org, "amount": "1"}, key=f"{key} 1")
    assert problem(answer) == (400, "idempotency_key_invalid")
    assert admin.read(f"/v1/accounts/{org}/balance")["available"] == "32"


def test_equal_keys_of_two_tenants_never_meet(
    admin: Caller, org: str, other: str, gpu_type: str
) -> None:
    """A tenant's batch knows nothing of what others did under the same words."""
    key = fresh_name("same")
    for number, account in enumerate((org, other)):
        admin.made(ISSUE, {"account": account, "amount": "100"})
        tenant = admin.with_key("operator", account)
        lease = {"account": account, "job_id": f"j{number}", "gpu_type": gpu_type}
        answer = tenant.post(f"{RESERVE}:batch", {"items": [lease]}, key=key)
        assert statuses(answer) == [201]


def test_a_key_whose_batch_is_forgotten_is_a_new_one(
    admin: Caller, database_of_server: str, org: str
) -> None:
    """Answers to items that are still remembered then stand in nobody's way."""
    key = fresh_name("old")
    one = {"account": org, "amount": "1"}
    admin.made(f"{ISSUE}:batch", {"items": [one]}, key=key)
    sql(database_of_server, "DELETE FROM idempotency WHERE key = $1", f":{key}")
    assert statuses(admin.post(f"{ISSUE}:batch", {"items": [one] * 3}, key=key)) == [201] * 3
    assert admin.read(f"/v1/accounts/{org}/balance")["available"] == "4"


def test_a_rehearsal_binds_no_key(admin: Caller, org: str) -> None:
    """A dry run under a key leaves the key free for any other batch."""
    key = fresh_name("dry")
    one = {"account": org, "amount": "1"}
    rehearsed = admin.post(f"{ISSUE}:batch?dry_run=true", {"items": [one] * 2}, key=key)
    assert statuses(rehearsed) == [201, 201]
    assert statuses(admin.post(f"{ISSUE}:batch", {"items": [one]}, key=key)) == [201]


def test_what_can_never_be_right_binds_no_key(admin: Caller, org: str, other: str) -> None:
    """After a 422 the batch may be mended and sent with its key."""
    key = fresh_name("mended")
    two = [{"account": each, "amount": "1"} for each in (org, other)]
    answer = admin.post(f"{ISSUE}:batch", {"items": two, "atomic": True}, key=key)
    assert problem(answer) == (422, "invalid_request")
    lease = {"account": org, "job_id": "j", "gpu_type": "x", "wait": True, "gang_size": 2}
    for atomic in (True, False):
        answer = admin.post(f"{RESERVE}:batch", {"items": [lease], "atomic": atomic}, key=key)
        assert problem(answer) == (422, "invalid_request")
    assert statuses(admin.post(f"{ISSUE}:batch", {"items": two}, key=key)) == [201, 201]


def test_of_two_batches_that_race_for_a_key_one_is_done_whole(
    admin: Caller, org: str, other: str
) -> None:
    """Copies of two bodies at once: all copies of one are answered, all of the other refused."""
    key = fresh_name("race")
    bodies = [
        {"items": [{"account": each, "amount": amount} for each in (org, other) for _ in range(3)]}
        for amount in ("1", "100")
    ]

    def send(number: int) -> tuple[int, int]:
        answer = admin.post(f"{ISSUE}:batch", bodies[number % 2], key=key)
        return number % 2, answer.status_code

    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(send, range(24)))
    assert answers in ({(0, 200), (1, 409)}, {(0, 409), (1, 200)})
    won = "3" if (0, 200) in answers else "300"
    for each in (org, other):
        assert admin.read(f"/v1/accounts/{each}/balance")["available"] == won


def test_of_forms_that_race_for_a_key_one_is_done(admin: Caller, org: str) -> None:
    """A single grant, a batch and an act that moves no money: one has the key, all others 409."""
    one = {"account": org, "amount": "1"}
    forms: list[tuple[str, dict[str, Any]]] = [
        (ISSUE, one),
        (f"{ISSUE}:batch", {"items": [one] * 3}),
        ("/v1/keys", {"role": "member", "scope": org}),
    ]
    for _ in range(5):
        key = fresh_name("forms")

        def send(number: int, key: str = key) -> tuple[int, int]:
            return number % 3, admin.post(*forms[number % 3], key=key).status_code

        with ThreadPoolExecutor(9) as threads:
            answers = set(threads.map(send, range(18)))
        assert len(answers) == 3
        assert sorted(status for _, status in answers)[1:] == [409, 409]


def test_an_item_for_the_queue_that_is_wrong_leaves_the_others_alone(
    admin: Caller, org: str, gpu_type: str
) -> None:
    """What can never be right is found before anything is begun; an unknown org has its place."""
    admin.made(ISSUE, {"account": org, "amount": "100"})
    lease = {"account": org, "job_id": "j", "gpu_type": gpu_type}
    wrong = {**lease, "wait": True, "gang_size": 2}
    answer = admin.post(f"{RESERVE}:batch", {"items": [lease, wrong]})
    assert problem(answer) == (422, "invalid_request")
    assert admin.read(f"/v1/accounts/{org}/balance")["reserved"] == "0"
    nowhere = {**lease, "account": fresh_name("nobody"), "wait": True}
    assert statuses(admin.post(f"{RESERVE}:batch", {"items": [lease, nowhere]})) == [201, 404]


class Gate:
    """Holds up grants of one org in the database until it is opened or they are cut off."""

    def __init__(self, dsn: str, org: str) -> None:
        self.dsn = dsn
        org_id = sql(dsn, "SELECT org_id FROM orgs WHERE path = $1", org)
        sql(
            dsn,
            "CREATE OR REPLACE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF NEW.org_id = {org_id} THEN PERFORM pg_advisory_xact_lock_shared({GATE}); END IF;"
            " RETURN NEW; END $$",
        )
        sql(
            dsn,
            "CREATE TRIGGER held_up BEFORE INSERT ON grants"
            " FOR EACH ROW EXECUTE FUNCTION held_up()",
        )

    def is_reached(self) -> bool:
        """Whether somebody is held up."""
        return bool(sql(self.dsn, f"SELECT count(*) FROM pg_locks WHERE {self._held_up}"))

    def cut(self) -> None:
        """End the connections of those who are held up; others may come after them."""
        sql(
            self.dsn,
            f"SELECT pg_terminate_backend(pid, 20000) FROM pg_locks WHERE {self._held_up}",
        )

    @property
    def _held_up(self) -> str:
        return f"locktype = 'advisory' AND objid = {GATE} AND NOT granted"


@contextmanager
def gate_at(dsn: str, org: str) -> Iterator[Gate]:
    """A gate that is shut; it is taken away afterwards."""
    with asyncio.Runner() as runner:
        holder = runner.run(asyncpg.connect(dsn, timeout=HANGS_S))
        runner.run(holder.execute(f"SELECT pg_advisory_lock({GATE})"))
        try:
            yield Gate(dsn, org)
        finally:
            runner.run(holder.close(timeout=HANGS_S))
            sql(dsn, "DROP TRIGGER IF EXISTS held_up ON grants")


def test_a_batch_that_is_done_in_part_says_so_and_goes_on_from_there(
    admin: Caller, database_of_server: str, org: str, other: str
) -> None:
    """Half of a batch loses its database: 503 that says it; the same again does the rest, once."""
    key = fresh_name("part")
    batch = {"items": [{"account": each, "amount": "1"} for each in (org, other) for _ in "ab"]}
    with gate_at(database_of_server, other) as gate, ThreadPoolExecutor(2) as threads:
        ahead = threads.submit(admin.post, ISSUE, {"account": other, "amount": "1"})
        until(gate.is_reached)  # so that this org's part of the batch waits behind it
        waiting = threads.submit(admin.post, f"{ISSUE}:batch", batch, key=key)
        until(lambda: admin.read(f"/v1/accounts/{org}/balance")["available"] == "2")
        while not waiting.done():
            gate.cut()
        answer = waiting.result()
        assert problem(ahead.result()) == (503, "unavailable")
    assert problem(answer) == (503, "batch_incomplete")
    assert answer.headers["retry-after"] == "1"
    assert "2 of 4" in answer.json()["detail"]
    assert admin.read(f"/v1/accounts/{other}/balance")["available"] == "0"
    assert problem(admin.post(f"{ISSUE}:batch", {"items": batch["items"][2:]}, key=key)) == REUSED
    assert statuses(admin.post(f"{ISSUE}:batch", batch, key=key)) == [201] * 4
    for each in (org, other):
        assert admin.read(f"/v1/accounts/{each}/balance")["available"] == "2"


def test_a_server_that_is_killed_in_the_middle_of_a_batch(database: str, data_dir: Path) -> None:
    """The key is bound before the first item: another body is 409, the same one does the rest."""
    options = ("--database-url", database)
    batch = {"items": [{"account": each, "amount": "1"} for each in ("acme", "beta") for _ in "ab"]}
    with (
        running_server(data_dir, *options) as first,
        ThreadPoolExecutor(2) as threads,
        httpx.Client(base_url=first.url, timeout=HANGS_S) as http,
    ):
        admin = Caller(http, first.admin_secret)
        for path in ("acme", "beta"):
            admin.made("/v1/accounts", {"path": path})
        with gate_at(database, "beta") as gate:
            ahead = threads.submit(admin.post, ISSUE, {"account": "beta", "amount": "1"})
            until(gate.is_reached)  # so that this org's part of the batch waits behind it
            waiting = threads.submit(admin.post, f"{ISSUE}:batch", batch, key="killed")
            until(lambda: admin.read("/v1/accounts/acme/balance")["available"] == "2")
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(HANGS_S)
            gate.cut()
        for each in (ahead, waiting):
            with pytest.raises(httpx.TransportError):
                each.result()
    with (
        running_server(data_dir, *options) as second,
        httpx.Client(base_url=second.url, timeout=HANGS_S) as http,
    ):
        admin = Caller(http, second.admin_secret)
        longer = {"items": [*batch["items"], {"account": "beta", "amount": "50"}]}
        assert problem(admin.post(f"{ISSUE}:batch", longer, key="killed")) == REUSED
        assert admin.read("/v1/accounts/beta/balance")["available"] == "0"
        assert statuses(admin.post(f"{ISSUE}:batch", batch, key="killed")) == [201] * 4
        for path in ("acme", "beta"):
            assert admin.read(f"/v1/accounts/{path}/balance")["available"] == "2"
