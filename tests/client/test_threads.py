"""A client that is shared by threads, from its very first call on."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROCESSES = 60
# Each child has imported the client and used nothing of it; its threads then meet at a barrier.
PROGRAM = f"""
import os, pkgutil, sys, threading
from gpucredits import client
modules = {{f"gpucredits.client.{{each.name}}" for each in pkgutil.iter_modules(client.__path__)}}
assert modules <= sys.modules.keys()  # so that no shape is imported later
from gpucredits.client import (call, calls)
from gpucredits.wire.ledger.credit import IssueResults
from gpucredits.wire.ledger.reservation import ReserveResults

def child():
    sys.setswitchinterval(1e-6)
    barrier = threading.Barrier(8)
    failed = []

    def first_use(number):
        barrier.wait()
        try:
            calls.issue_all([{{"account": f"a/p{{number}}", "amount": "1"}}] * 50)
            calls.reserve_all([{{"account": "a", "job_id": "j", "gpu_type": "x"}}] * 50)
            call.decode(IssueResults, b'{{"results": [{{"status": 201}}]}}')
            call.decode(ReserveResults, b'{{"results": [{{"status": 201}}]}}')
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=first_use, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(1 if failed else 0)

codes = []
for _ in range({PROCESSES}):
    pid = os.fork()
    if not pid:
        child()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(sum(code != 0 for code in codes))
"""


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval"), reason="needs CPython's threads")
def test_threads_may_use_a_client_for_the_first_time_together() -> None:
    """In many fresh processes, eight threads at once describe and decode their first batches."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("0", 0), done.stderr
