"""Serving HTTP without root: a child that gave root up, beside the process that has the data.

Owns: the two processes, how they find each other, and that neither outlives the other. The process
of root takes the port, runs or prepares the database, writes what lies in the data directory and
reads nothing that came over the network. The child is the user that the database runs as, or would
run as, with no way back: it gets the listening socket, and as descriptors the directory of the
database's socket and the note of the newest primary.
Must not: know how requests are served.

The child is forked before any thread or event loop is there, and imports what it needs while it
still is root: Python itself may be installed where the other user cannot read.
"""

from __future__ import annotations

import importlib
import os
import pwd
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

import click
import msgspec

from gpucredits.app import Config, database_for_another
from gpucredits.store.database.primary import through
from gpucredits.store.embedded import launch, server
from gpucredits.store.embedded.run_as import UNCHANGED, EmbeddedPostgresError, capabilities_held

Said = Callable[[Config], AbstractContextManager[None]]
"""Entered when the server listens, left when it no longer does."""
Serve = Callable[[Config, socket.socket, Said], None]

PR_SET_DUMPABLE: Final = 4
PR_SET_NO_NEW_PRIVS: Final = 38
MESSAGE_BYTES_MAX: Final = 1_024
HANDLES_MAX: Final = 2
NOWHERE: Final = Path("/")
READY: Final = b"!"
# Imported on first use by what we stand on, which the child could be unable to read then.
LATER: Final = (
    "encodings.idna",
    "gpucredits.cli.terminal.failure",
    "importlib.resources",  # by zoneinfo, to say that there is no such zone
    "uvicorn.lifespan.off",
    "uvicorn.protocols.websockets.auto",
)
LATER_WITH_BUS: Final = (
    "gpucredits.metering.nats_bus",
    "gpucredits.metering.kafka_bus",
    "nkeys",  # by the NATS client, for a file of credentials
)
LATER_WITH_REDIS: Final = ("gpucredits.service.limits.redis_limiter", "redis.asyncio")


class Handover(msgspec.Struct):
    """The user that the child becomes, and the descriptors that it inherits, in this order."""

    uid: int
    gid: int
    has_sockets: bool
    has_note: bool
    signing_secret: bytes


@dataclass(slots=True)
class Child:
    """The process that serves, and our end of the channel to it."""

    pid: int
    handle: int
    channel: socket.socket
    is_told: bool = False

    def tell(self, number: int, frame: FrameType | None = None) -> None:
        """Pass a signal on."""
        del frame
        self.is_told = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def wait(self) -> int:
        """Wait for its end: its exit code, or the number of a signal, negative."""
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def serve_apart(config: Config, listener: socket.socket, *, said: Said, serve: Serve) -> None:
    """Serve until told to stop: the database from this process, HTTP from a child without root."""
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    us = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        serve_without_root(config, listener, channel=theirs, parent=us, serve=serve)
        return
    theirs.close()
    listener.close()  # who connects after the child has stopped is refused, and does not wait
    child = Child(pid, os.pidfd_open(pid), ours)
    try:
        code = keep_database(config, child, said)
    except BaseException:
        child.tell(signal.SIGKILL)
        with suppress(ChildProcessError):  # it had ended, and the database could not be stopped
            child.wait()
        raise
    if code < 0 and not child.is_told:
        raise click.ClickException(
            f"the process that served HTTP was ended by signal {-code}; the database is stopped. "
            "Start the server again."
        )
    if code:
        raise click.exceptions.Exit(code if code > 0 else 128 - code)


def keep_database(config: Config, child: Child, said: Said) -> int:
    """Run the database for as long as the child serves; how the child ended."""
    with database_for_another(config) as lent:
        has_sockets, has_note = lent.sockets is not None, lent.note is not None
        message = Handover(lent.user.uid, lent.user.gid, has_sockets, has_note, lent.signing_secret)
        handles = [handle for handle in (lent.sockets, lent.note) if handle is not None]
        with passed_on(child):
            try:
                socket.send_fds(child.channel, [msgspec.json.encode(message)], handles)
                is_ready = child.channel.recv(len(READY)) == READY
            except ConnectionError:  # killed already, as its end will tell
                is_ready = False
            with said(config) if is_ready else nullcontext():
                return child.wait()


@contextmanager
def passed_on(child: Child) -> Iterator[None]:
    """Pass on to the child what tells us to stop."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, child.tell) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def serve_without_root(
    config: Config, listener: socket.socket, *, channel: socket.socket, parent: int, serve: Serve
) -> None:
    """Wait for the database, give up root, and serve; ends when the parent does."""
    die_with(parent)
    os.setsid()  # Ctrl-C in a terminal is for the parent, which passes it on
    of_redis = LATER_WITH_REDIS if config.redis_url else ()
    of_bus = LATER_WITH_BUS if config.bus else ()
    for name in (*LATER, *of_redis, *of_bus):
        with suppress(ModuleNotFoundError):  # an extra, whose absence is told later
            importlib.import_module(name)
    message, handles, _, _ = socket.recv_fds(channel, MESSAGE_BYTES_MAX, HANDLES_MAX)
    if not message:
        os._exit(1)  # the parent could not prepare the database, and has said so
    given = msgspec.json.decode(message, type=Handover)
    give_up_root(given)
    die_with(parent)  # the change of user has cleared it

    @contextmanager
    def told(_: Config) -> Iterator[None]:
        channel.sendall(READY)
        yield

    url = config.database_url or server.address(NOWHERE)
    if given.has_sockets:  # the descriptor leads through directories that this user cannot pass
        url = through(url, Path(f"/proc/self/fd/{handles[0]}"))
    note = handles[-1] if given.has_note else None
    own = replace(
        config,
        database_url=url,
        is_apart=True,
        primary_note=note,
        signing_secret=given.signing_secret,
    )
    serve(own, listener, told)


def give_up_root(user: Handover) -> None:
    """Become the user for good, out of reach of other processes of the same user."""
    launch.become(user.uid, user.gid, UNCHANGED)
    launch.prctl(PR_SET_NO_NEW_PRIVS, 1)
    launch.prctl(PR_SET_DUMPABLE, 0)  # nobody but root traces us or opens what we have open
    with suppress(KeyError):  # files of PostgreSQL's clients are looked for there
        os.environ["HOME"] = pwd.getpwuid(user.uid).pw_dir
    os.umask(0o077)
    os.chdir("/")
    if 0 in (*os.getresuid(), *os.getresgid()) or capabilities_held():
        raise EmbeddedPostgresError(
            "the process that serves HTTP cannot give up root here (securebits?). Start "
            "gpucredits as another user."
        )


def die_with(parent: int) -> None:
    """End when the parent ends, even if it is killed."""
    launch.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
