"""A job's token and checkpoint: real jobs read the one, touch the other, and the server knows."""

from __future__ import annotations

import json
import signal
from datetime import datetime
from pathlib import Path

import pytest

from gpucredits.cli.server.temporary_server import TemporaryServer
from gpucredits.client import Client, verify_token
from gpucredits.client import calls as client_calls
from gpucredits.core import ids
from gpucredits.store.embedded.attach import address_in_use
from gpucredits.store.embedded.server import DATABASE
from gpucredits.wire.access.tokens import LeaseClaims
from support.engines.postgres import sql
from support.servers.launchers import Launchers, end
from support.waiting import HANGS_S, until

READS = """
import json, os, pathlib, stat, time
token, saved = (pathlib.Path(os.environ[f"GPUCREDITS_{n}_FILE"]) for n in ("TOKEN", "CHECKPOINT"))
modes = [stat.S_IMODE(each.stat().st_mode) for each in (token, saved, token.parent)]
first = token.read_text()
print(json.dumps([os.getpid(), str(token), modes, first]), flush=True)
saved.touch()
while token.read_text() == first:
    time.sleep(0.01)
print(json.dumps(token.read_text()), flush=True)
time.sleep(600)
"""
SAVES_AT_THE_END = """
import os, pathlib, signal, sys, time
def save(*_):
    pathlib.Path(os.environ["GPUCREDITS_CHECKPOINT_FILE"]).touch()
    sys.exit(3)
signal.signal(signal.SIGTERM, save)
print("TOKEN" in " ".join(name for name in os.environ if name.endswith("_FILE")), flush=True)
time.sleep(600)
"""


def words_of(launchers: Launchers, state: Path, how: str) -> list[str]:
    """The options of a job that the launcher looks after, or an agent, through the queue."""
    if how == "alone":
        return []
    launchers.agent(state, "--node", "gpu-7")
    return ["--agent", str(state), "--wait"]


def claims_of(client: Client, token: str) -> LeaseClaims:
    """What a token says to somebody who only has the published keys."""
    jwks = client.fetch(client_calls.jwks()).body
    now_s = int(datetime.fromisoformat(client.clock().now).timestamp())
    return verify_token(token, jwks, now_s=now_s)


def saved_ms(server: TemporaryServer, reservation_id: str) -> int | None:
    """The last checkpoint that the server was told of."""
    address = address_in_use(server.data_dir, DATABASE)
    assert address is not None
    org_id, number = ids.parse_id(ids.RESERVATION, reservation_id)
    query = "SELECT checkpoint_ms FROM checkpoints WHERE org_id = $1 AND reservation_id = $2"
    found: int | None = sql(address, query, org_id, number)
    return found


@pytest.mark.parametrize("how", ["alone", "agent"])
def test_a_job_has_a_fresh_token_and_tells_its_checkpoint(
    launchers: Launchers, server: TemporaryServer, client: Client, org: str, state: Path, how: str
) -> None:
    """Files of its user only; the token is replaced by one that lasts longer. Nothing stays."""
    words = words_of(launchers, state, how)
    launched = launchers.python(org, *words, "--token", "--window", "4s", script=READS)
    pid, place, modes, first = json.loads(launched.line())
    assert modes == [0o600, 0o600, 0o700]
    (lease,) = client.reservation_page(account=org).reservations
    before = claims_of(client, first)
    assert before.sub == lease.reservation_id
    assert before.node == ("gpu-7" if how == "agent" else "")
    after = claims_of(client, json.loads(launched.line()))
    assert (after.sub, after.exp >= before.exp, after.jti != before.jti) == (before.sub, True, True)
    told_ms = until(lambda: saved_ms(server, lease.reservation_id)) or 0
    end(pid)
    _, receipt, _ = launched.end()
    assert 0 < told_ms < receipt["used_ms"]
    assert not Path(place).exists()


@pytest.mark.parametrize("how", ["alone", "agent"])
def test_a_checkpoint_at_the_end_is_told_before_the_bill_is_paid(
    launchers: Launchers, server: TemporaryServer, org: str, state: Path, how: str
) -> None:
    """A job that saves because it has to end: the last checkpoint counts, not the one before."""
    launched = launchers.python(
        org, *words_of(launchers, state, how), "--window", "60s", script=SAVES_AT_THE_END
    )
    assert launched.line() == "False"  # a token is for those who ask for it
    launched.signal(signal.SIGTERM)
    exit_code, receipt, said = launched.end()
    assert exit_code == 3, said
    told_ms = saved_ms(server, receipt["reservation_id"])
    assert told_ms is not None
    assert 0 < told_ms <= receipt["used_ms"]


def test_an_adopted_job_keeps_its_files(
    launchers: Launchers, server: TemporaryServer, client: Client, org: str, state: Path
) -> None:
    """The next agent renews the token and tells the checkpoint that the last one did not see."""
    first = launchers.agent(state, "--node", "gpu-7")
    words = ("--agent", str(state), "--token", "--window", "30s")
    launched = launchers.python(org, *words, script=READS.replace("saved.touch()", ""))
    pid, place, _, token = json.loads(launched.line())
    end(first.pid)
    first.wait(HANGS_S)
    (Path(place).parent / "checkpoint").touch()
    launchers.agent(state, "--node", "gpu-7")
    (lease,) = client.reservation_page(account=org).reservations
    until(lambda: saved_ms(server, lease.reservation_id))
    until(lambda: Path(place).read_text() != token)
    end(pid)
    until(lambda: not Path(place).exists())  # the bill is paid
