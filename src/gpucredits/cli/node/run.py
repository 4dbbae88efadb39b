"""``run``: any command under a lease."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import msgspec

from gpucredits.agent import local_api
from gpucredits.agent.devices import VISIBLE
from gpucredits.agent.job import Throttle
from gpucredits.agent.launcher import (
    FORWARDED,
    IMPATIENT,
    Interrupted,
    JobCommand,
    Launcher,
    ServerAddress,
    exit_code_of,
)
from gpucredits.agent.queue import NotAdmitted
from gpucredits.agent.receipt import Receipt, lines
from gpucredits.agent.run_time import SIGNALED
from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.job_options import job_options
from gpucredits.cli.terminal.session import Session, calls
from gpucredits.client.calls import ReserveFields
from gpucredits.core.money import MILLI_PER_GPU, format_gpus, parse_gpus

AGENT_SOCKET: Final = "agent.sock"


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.option("--account", type=values.account, required=True, help="The account of the job.")
@click.option("--job", "job_id", help="The job's id. Default: a new one.")
@job_options
@click.option("--wait", is_flag=True, help="Wait for capacity, credits or quota, in the queue.")
@click.option(
    "--until",
    "deadline",
    type=values.instant,
    help="When to stop waiting, such as 2h. Default: 7d.",
)
@click.option("--token", is_flag=True, help="Give the job a signed lease token, and renew it.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    help="The UUID of a GPU that the job may see; give one for each GPU.",
)
@click.option(
    "--signal",
    "drain_signal",
    default="TERM",
    show_default=True,
    help="The signal that tells the job to end.",
)
@click.option(
    "--throttle-command",
    "throttle",
    nargs=2,
    metavar="PAUSE RESUME",
    help="Two shell commands instead of SIGSTOP and SIGCONT; the time between them counts.",
)
@click.option(
    "--agent",
    "agent_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The state directory of the node's agent, which then looks after the job.",
)
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@calls
def run(  # noqa: PLR0913  # each is an option
    session: Session,
    account: str,
    *,
    job: ReserveFields,
    wait: bool,
    deadline: datetime | None,
    token: bool,
    devices: tuple[str, ...],
    drain_signal: str,
    throttle: tuple[str, str] | None,
    agent_dir: Path | None,
    words: tuple[str, ...],
) -> None:
    """Run COMMAND under a lease, from admission to receipt.

    Exits with the code of COMMAND.
    """
    if deadline is not None and not wait:
        raise click.UsageError("--until goes with --wait.")
    fields: dict[str, Any] = {**job}
    fields["job_id"] = fields["job_id"] or f"run-{secrets.token_hex(8)}"
    fields["token"] = token or None
    if wait:
        fields["deadline"] = deadline
    env = dict(os.environ)
    if devices:
        require_devices(devices, parse_gpus(str(job["gpu_count"])))
        env[VISIBLE] = ",".join(devices)
    if agent_dir is not None:
        message = local_api.RunMessage(
            account=account,
            fields={name: each for name, each in fields.items() if each is not None},
            argv=list(words),
            env=env,
            cwd=str(Path.cwd()),
            signal=signal_number(drain_signal),
            devices=list(devices),
            wait=wait,
            throttle=list(throttle or ()),
        )
        finish(*through_agent(agent_dir, message), as_json=session.as_json)
    command = JobCommand(
        argv=words,
        env=env,
        drain_signal=signal_number(drain_signal),
        throttle=Throttle(*throttle) if throttle else None,
    )
    launcher = Launcher(ServerAddress(**session.server()), command, say)
    try:
        exit_code, receipt = asyncio.run(launcher.run(account, fields, wait=wait))
    except Interrupted as interrupted:
        raise click.exceptions.Exit(interrupted.exit_code) from None
    except NotAdmitted as error:
        say(str(error))
        raise click.exceptions.Exit(output.EXIT_REFUSED) from None
    finish(exit_code, receipt, as_json=session.as_json)


def through_agent(agent_dir: Path, message: local_api.RunMessage) -> tuple[int, Receipt | None]:
    """Let the node's agent run the command; signals are passed on to the job."""
    times: dict[int, int] = {}

    def pass_signals(link: socket.socket) -> None:
        def passed(number: int, _frame: object) -> None:
            times[number] = times.get(number, 0) + 1
            is_last = number in IMPATIENT and times[number] > 1
            order = local_api.KillMessage() if is_last else local_api.SignalMessage(number=number)
            with suppress(OSError):
                link.send(msgspec.json.encode(order))

        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, passed)

    place = agent_dir / AGENT_SOCKET
    try:
        ended = local_api.run_at(place, message, pass_signals, say)
    except OSError as error:
        why = error.strerror or error
        raise click.ClickException(
            f"no agent answers at {place}: {why}. Start one with gpucredits agent serve "
            f"--state-dir {agent_dir}"
        ) from error
    if isinstance(ended, tuple):
        return ended
    if times:  # the request waited, and a signal took it back
        raise click.exceptions.Exit(SIGNALED + next(iter(times)))
    if ended.errno is not None:
        say(f"{ended.detail}; nothing was charged")
        raise click.exceptions.Exit(exit_code_of(ended.errno))
    raise click.ClickException(ended.detail or "refused")


def finish(exit_code: int, receipt: Receipt | None, *, as_json: bool) -> NoReturn:
    """Print the receipt, and exit as the job did."""
    if receipt is not None:
        show_receipt(receipt, as_json=as_json)
    raise click.exceptions.Exit(exit_code)


def show_receipt(receipt: Receipt, *, as_json: bool) -> None:
    """Print the receipt; stdout is the job's."""
    text = msgspec.json.encode(receipt).decode() if as_json else "\n".join(lines(receipt))
    if not as_json:
        say(f"job {receipt.job_id} ended with {receipt.exit_code}")
    echo(text)


def say(text: str) -> None:
    """Write a message to stderr; stdout is the job's."""
    echo(f"gpucredits: {text}")


def echo(text: str) -> None:
    """Write a line to stderr; go on if the terminal is gone, so that the bill gets paid."""
    try:
        output.say(text, err=True)
    except OSError:
        return


def require_devices(devices: tuple[str, ...], milli_gpus: int) -> None:
    """A job sees as many devices as it pays for: one for each GPU, and one for a part of one."""
    for each in devices:
        if not each or "," in each or each.split() != [each]:
            text = f"{each!r} is not the UUID of one GPU: repeat --device for each."
            raise click.BadParameter(text, param_hint="--device")
    wanted = -(-milli_gpus // MILLI_PER_GPU)
    if len(set(devices)) != wanted or len(devices) != wanted:
        raise click.UsageError(
            f"--device names {len(set(devices))} GPUs, and --gpus asks for "
            f"{format_gpus(milli_gpus)}: name {wanted}, each once."
        )


def signal_number(name: str) -> int:
    """The number of a signal such as USR1, SIGUSR1 or 10."""
    try:
        if name.isdecimal():
            return signal.Signals(int(name))
        return signal.Signals[f"SIG{name.upper().removeprefix('SIG')}"]
    except (KeyError, ValueError):
        text = f"{name!r} is no signal: write TERM or USR1."
        raise click.BadParameter(text, param_hint="--signal") from None
