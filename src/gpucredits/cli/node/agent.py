"""``agent``: the agent of a node, and whether a node is fit for it."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from gpucredits.agent import local_api
from gpucredits.agent.devices import NodeDevices
from gpucredits.agent.launcher import ServerAddress
from gpucredits.agent.meters.choice import AUTO, WORDS, open_meter, why_no_nvml
from gpucredits.agent.meters.reading import Meter, MeterError
from gpucredits.agent.node import INTERVAL_S, NodeAgent
from gpucredits.cli.node import doctor as checks
from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.session import Session, calls
from gpucredits.client import CallError, Retry

STATE_DIR: Final = Path("gpucredits-agent")
ASK_S: Final = 3.0
_STATE = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE_DIR,
    show_default=True,
    help="Where the agent keeps its journal, its readings, its socket and its jobs.",
)
_METER = click.option(
    "--meter", "meter_words", default=AUTO, show_default=True, help=f"What reads GPUs: {WORDS}."
)
_NODE = click.option("--node", help="The name of the node. Default: the host's name.")


@click.group(cls=Group)
def agent() -> None:
    """The agent of a node, which looks after all of its jobs."""


@agent.command("serve")
@_STATE
@_NODE
@click.option(
    "--interval",
    "interval_ms",
    type=values.duration,
    default=f"{INTERVAL_S:.0f}s",
    show_default=True,
    help="The longest time between two reports.",
)
@_METER
@click.option(
    "--type",
    "gpu_type",
    type=values.gpu_type,
    help="The type of the node's whole GPUs; jobs of other types are refused.",
)
@calls
def serve(
    session: Session,
    *,
    state_dir: Path,
    node: str | None,
    interval_ms: int,
    meter_words: str,
    gpu_type: str | None,
) -> None:
    """Look after the jobs of this node until SIGTERM; the next agent adopts jobs that still run."""
    name = node or checks.host_name()
    warning = warned_of_key(session, name)
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = state_dir / checks.SOCKET
    devices = NodeDevices(gpu_type=gpu_type or "")
    try:
        meter = open_meter(meter_words)
        if meter is not None:
            devices.know(meter.devices())
    except MeterError as error:
        raise click.ClickException(str(error)) from error
    try:
        local_api.lock(state_dir)
        listener = local_api.listen(place)
    except OSError as error:
        raise click.ClickException(f"{place} cannot be used: {error}") from error
    keeper = NodeAgent(
        ServerAddress(**session.server()),
        state_dir.resolve(),
        name,
        interval_ms / 1_000,
        _log,
        devices=devices,
        meter=meter,
    )
    _log(f"node {name}: jobs are started through {place}")
    _log(what_is_read(meter, devices))
    if warning:
        _log(warning)
    with suppress(asyncio.CancelledError):
        asyncio.run(_serve(keeper, listener))


def warned_of_key(session: Session, node: str) -> str:
    """The server's objection to the key; a key of another node is refused.

    An agent starts without a server as well: there may be jobs to adopt.
    """
    with session.client(Retry(attempts_max=1, deadline_s=ASK_S)) as client:
        try:
            key = client.whoami()
        except CallError as error:
            return f"the key is not checked: {error}"
    if problem := checks.bound_elsewhere(key, node):
        raise click.ClickException(problem)
    return checks.cannot_reserve(key)


def what_is_read(meter: Meter | None, devices: NodeDevices) -> str:
    """A line on the GPUs that the agent knows."""
    if meter is None:
        return f"GPUs are neither given to jobs nor read ({why_no_nvml() or '--meter none'})"
    return f"{len(devices.devices)} devices are given to jobs and read by {meter.name}"


async def _serve(keeper: NodeAgent, listener: socket.socket) -> None:
    own = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, own.cancel if own else loop.stop)
    with listener:
        async with asyncio.TaskGroup() as group:
            group.create_task(keeper.run())
            group.create_task(local_api.serve(keeper, listener))


def _log(text: str) -> None:
    output.say(f"gpucredits agent: {text}", err=True)


@agent.command("doctor")
@_STATE
@_METER
@click.option(
    "--node", help="The name of the node. Default: the running agent's, or else the host's."
)
@calls
def doctor(session: Session, *, state_dir: Path, meter_words: str, node: str | None) -> None:
    """Say whether this node can run jobs under leases; exit code 1 if it cannot."""
    rows = checks.examined(session, state_dir, meter_words, node)
    output.print_table(["check", "state", "detail"], rows, empty="")
    if any(row[1] == checks.BAD for row in rows):
        raise click.exceptions.Exit(output.EXIT_REFUSED)
