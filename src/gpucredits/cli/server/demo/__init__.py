"""``gpucredits demo``: see it work, in seconds, with nothing left behind.

Owns: the order of the show: a server, the scene, the receipts, the check of the books.
Must not: use anything that a user of the package could not.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import click

from gpucredits.cli.server.demo.scene import Scene, SceneError
from gpucredits.cli.server.demo.screen import Screen
from gpucredits.cli.server.temporary_server import (
    ServerFailedError,
    TemporaryServer,
    temporary_server,
)
from gpucredits.cli.server.verify import check
from gpucredits.cli.server.verify import show as show_verification
from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.grammar import Command
from gpucredits.client import CallError, Client
from gpucredits.core.duration import format_ms

NEXT = """\
What to try next:
  {gpucredits} serve
and in another terminal, from the same folder:
  {gpucredits} account create acme
  {gpucredits} grant issue acme 1000 --expires 30d
  {gpucredits} price set h100 120
  {gpucredits} reserve acme --job train --type h100 --gpus 2
  {gpucredits} balance acme"""


@click.command(cls=Command)
def demo() -> None:
    """Run a few jobs on a server of its own, and check the books."""
    began = time.monotonic()
    click.echo("Starting a server with its own PostgreSQL in a temporary directory ...")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        with temporary_server() as server, Client(server.url, server.key) as client:
            show(server, client)
            click.echo("Stopping the server and removing its data ...")
    except (SceneError, ServerFailedError, CallError) as error:
        raise click.ClickException(str(error)) from error
    took_s = round(time.monotonic() - began, 1)
    click.echo(f"Done in {format_ms(round(took_s * 1_000))}.\n")
    click.echo(NEXT.format(gpucredits=own_command(Path(sys.executable), Path.cwd())))


def own_command(python: Path, here: Path) -> str:
    """How to run this very installation from ``here``: by its name, if the shell would find it."""
    script = python.with_name("gpucredits")
    found = shutil.which("gpucredits")
    if found is not None and (not script.exists() or script.samefile(found)):
        return "gpucredits"
    path, words = (script, []) if script.exists() else (python, ["-m", "gpucredits"])
    if path.is_relative_to(here):
        path = path.relative_to(here)
    return shlex.join([str(path), *words])


def _stop(number: int, frame: FrameType | None) -> None:
    """End as if nothing more had been asked, so that what was started is stopped and removed."""
    del frame
    raise SystemExit(128 + number)


def show(server: TemporaryServer, client: Client) -> None:
    """The scene, then what it cost whom, then whether the books are right."""
    click.echo(f"It listens on {server.url}; its clock can be moved.\n")
    with Screen(output.console()) as screen:
        scene = Scene(client, screen)
        scene.play()
    click.echo("\nReceipts:")
    show_receipts(client, scene)
    click.echo("\nThe books, checked in the database itself:")
    result = asyncio.run(check(server.data_dir, None))
    show_verification(result)
    if not result.is_clean:
        raise SceneError("the books do not hold")


def show_receipts(client: Client, scene: Scene) -> None:
    """What each job used, what it was charged, and which entries say so."""
    rows = []
    for job in scene.jobs:
        lease = client.reservation(job.lease.reservation_id)
        entries = list(client.entries(account=lease.payer, job_id=job.name))
        paid_by = sorted({entry.grant_id for entry in entries if entry.grant_id})
        rows.append(
            [
                job.name,
                lease.payer,
                f"{lease.gpu_count} x {lease.gpu_type}",
                format_ms(lease.used_ms),
                lease.settled,
                lease.state,
                str(len(entries)),
                " ".join(paid_by),
            ]
        )
    columns = ["job", "payer", "GPUs", ">used", ">charged", "state", ">entries", "paid by"]
    output.print_table(columns, rows, empty="No receipts.")
