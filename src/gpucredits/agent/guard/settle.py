"""The settler: pays the bill of a job whose launcher died.

The guardian starts it in its own place with the bill on stdin. Use of a lapsed lease is charged up
to the lease's end if it is reported within days (docs/run.md). So the settler repeats its call for
long.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

import msgspec

from gpucredits.client import CallError, Client, Refused, Retry
from gpucredits.client.trust import shown_by

PATIENCE_S: Final = 24 * 3_600.0


class OpenBill(msgspec.Struct, kw_only=True):
    """The lease and the use to settle, and the server."""

    url: str
    key: str
    ca_file: str | None
    reservation_id: str
    used_ms: int
    cert_file: str | None = None
    cert_key_file: str | None = None
    folder: str | None = None  # of the job's files, which its launcher could not remove


def main() -> int:
    """Settle the bill on stdin; a lease that was settled before is no error."""
    bill = msgspec.json.decode(sys.stdin.buffer.read(), type=OpenBill)
    let_go()
    if bill.folder:
        shutil.rmtree(bill.folder, ignore_errors=True)
    retry = Retry(deadline_s=PATIENCE_S, pause_s_max=60.0)
    shown = shown_by(bill.cert_file, bill.cert_key_file)
    with Client(bill.url, bill.key, retry=retry, ca_file=bill.ca_file, shown=shown) as client:
        try:
            client.settle(bill.reservation_id, used_ms=bill.used_ms)
        except Refused as refused:
            return 0 if refused.problem.reason == "reservation_ended" else _failed(bill, refused)
        except CallError as error:
            return _failed(bill, error)
    return 0


def let_go() -> None:
    """Close the job's pipes: their readers would otherwise wait until the server answers."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        if not os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def _failed(bill: OpenBill, error: CallError) -> int:
    sys.stderr.write(
        f"gpucredits: {bill.reservation_id} could not be settled ({error}): run "
        f"gpucredits settle {bill.reservation_id} --used {bill.used_ms / 1_000}s\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
