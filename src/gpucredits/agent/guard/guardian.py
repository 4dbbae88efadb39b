"""The guardian: the parent of one job, which ends the job at the last known deadline.

It runs as a script of its own and imports nothing but Python's library, so that it stays small and
lives on when whoever started it dies. It takes orders, one on a line, and tells events:

    until SIGNAL_AT ENDS_AT   signal | - and deadline, in ms of the clock that counts suspended time
    pause, resume, kill, signal NUMBER
    done                      the bill is paid: nobody has to be started for it
    started AT PID START; ended AT STATUS; failed AT ERRNO; paused, slowed, resumed, signaled AT

Owns: the job's processes, and when they started, paused and ended.
Must not: speak to a server. When the launcher dies unpaid, it starts the settler (``--settle``).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
REAP_PAUSE_S: Final = 0.01
WRITE_AGAIN_S: Final = 5.0
THROTTLE_MS_MAX: Final = 30_000  # a command that takes longer has failed, and SIGSTOP follows
SHELL: Final = "/bin/sh"
FOREVER: Final = -1
LOOK_MS: Final = 500  # how often it is seen that a paused job stands still
STILL: Final = b"TtZXD"  # what waits for a disk stops when it has waited


def clock_ms() -> int:
    """Milliseconds since the machine started, suspended time included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def start_of(pid: int) -> int:
    """When a process started, in ticks since boot; with the pid, this identifies the process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def descendants() -> dict[int, bytes]:
    """The pids and states of all processes below this one, whatever their process groups."""
    parents: dict[int, tuple[int, bytes]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(place.name)] = int(fields[1]), fields[0]
    found: dict[int, bytes] = {}
    fresh = {os.getpid()}
    while fresh:
        fresh = {pid for pid, (parent, _) in parents.items() if parent in fresh} - found.keys()
        found |= {pid: parents[pid][1] for pid in fresh}
    return found


class Guardian:
    """One job, from its start to its end."""

    def __init__(self, link: socket.socket, terms: dict[str, Any]) -> None:
        self.link: socket.socket | None = link
        self.received = b""
        self.selector = selectors.DefaultSelector()
        self.log: int | None = None
        self.written = self.log_bytes = 0  # events that are on disk, and their bytes
        if terms.get("log"):
            self.log = os.open(terms["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.listener: socket.socket | None = None
        if terms.get("listen"):
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(terms["listen"])
            self.listener.listen(1)
        self.settle: dict[str, Any] | None = terms.get("settle")
        self.drain_signal = terms.get("signal", int(signal.SIGTERM))
        self.ends_at: int = terms["ends_at_ms"]
        self.signal_at = FOREVER
        self.is_signaled = False
        self.is_paused = False
        self.throttle: dict[str, str] | None = terms.get("throttle")
        self.throttling = 0  # the pid of a throttle command that runs
        self.throttle_ends_at = FOREVER
        self.is_slowed = False  # paused, and its time counts
        self.looks_at = FOREVER
        self.is_done = False
        self.used_ms = 0
        self.runs_since = 0
        self.events: list[bytes] = []
        self.group = 0  # the pid of the job's first process, and its group
        self.is_over = False

    def tell(self, *words: object) -> None:
        """Keep an event, write it down, and send it to the master if there is one."""
        line = (" ".join(map(str, words)) + "\n").encode()
        self.events.append(line)
        self.write_down()
        self.send(line)

    def write_down(self) -> None:
        """Write down what is not on disk yet; on a full disk, leave no torn line and go on."""
        if self.log is None or self.written == len(self.events):
            return
        data = b"".join(self.events[self.written :])
        with contextlib.suppress(OSError):
            if os.write(self.log, data) == len(data):
                os.fsync(self.log)
                self.written, self.log_bytes = len(self.events), self.log_bytes + len(data)
            else:
                os.ftruncate(self.log, self.log_bytes)

    def send(self, line: bytes) -> None:
        """Send a line. ``listen`` notices a reader that is gone."""
        if self.link is not None:
            try:
                self.link.sendall(line)
            except OSError:
                self.hang_up()

    def hang_up(self) -> None:
        """Forget a launcher that is gone."""
        if self.link is not None:
            with contextlib.suppress(KeyError):
                self.selector.unregister(self.link)
            self.link.close()
        self.link, self.received = None, b""

    def start(self, argv: list[str]) -> None:
        """Start the job in a process group of its own, or tell why it cannot start."""
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        own = os.getpid()

        def die_with_guardian() -> None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != own:
                os._exit(1)

        try:
            child = subprocess.Popen(  # noqa: S603  # the user's own command
                argv,
                process_group=0,
                preexec_fn=die_with_guardian,  # noqa: PLW1509  # there are no threads here
            )
        except OSError as error:
            self.tell("failed", clock_ms(), error.errno or errno.EIO)
            self.is_over = True
            return
        self.runs_since = clock_ms()
        self.group = child.pid
        child.returncode = 0  # it is reaped here, not by its object
        self.tell("started", self.runs_since, child.pid, start_of(child.pid))

    def broadcast(self, number: int) -> None:
        """Signal the job's process group, and processes of the job that left the group."""
        for pid in descendants():
            with contextlib.suppress(OSError):
                if os.getpgid(pid) != self.group:
                    os.kill(pid, number)
        with contextlib.suppress(OSError):
            os.killpg(self.group, number)

    def pause(self) -> None:
        """Stop the clock and the job, or slow the job down by the user's command."""
        if self.is_paused or self.is_signaled:
            return
        if self.throttle is None:
            self.stop()
            return
        self.is_paused = self.is_slowed = True
        self.tell("slowed", clock_ms())
        self.run_throttle(self.throttle["pause"])

    def stop(self) -> None:
        """Stop all processes of the job, and the clock."""
        self.broadcast(signal.SIGSTOP)
        self.is_paused, self.is_slowed = True, False
        now = clock_ms()
        self.used_ms += now - self.runs_since
        self.looks_at = now + LOOK_MS
        self.tell("paused", now)

    def look(self) -> None:
        """Stop a paused job again that somebody else lets go on; from here on its time counts."""
        self.looks_at = now = clock_ms()
        if any(state not in STILL for state in descendants().values()):
            self.broadcast(signal.SIGSTOP)
            if not self.is_slowed:
                self.is_slowed, self.runs_since = True, now
                self.tell("resumed", now)
                self.tell("slowed", now)
        self.looks_at += LOOK_MS

    def resume(self) -> None:
        """Let a paused job go on."""
        if not self.is_paused:
            return
        now = clock_ms()
        if self.is_slowed:
            self.used_ms += now - self.runs_since
        is_stopped = self.looks_at != FOREVER
        self.is_paused = self.is_slowed = False
        self.runs_since, self.looks_at = now, FOREVER
        self.tell("resumed", now)
        if is_stopped:
            self.broadcast(signal.SIGCONT)
        else:
            self.run_throttle((self.throttle or {})["resume"])

    def run_throttle(self, command: str) -> None:
        """Start a throttle command of the user; end the one before if it still runs."""
        self.end_throttle()
        env = {**os.environ, "GPUCREDITS_PID": str(self.group)}
        self.throttling = os.posix_spawn(SHELL, [SHELL, "-c", command], env, setsid=True)
        self.throttle_ends_at = clock_ms() + THROTTLE_MS_MAX

    def end_throttle(self) -> None:
        """End a throttle command that still runs."""
        if self.throttling:
            with contextlib.suppress(OSError):
                os.killpg(self.throttling, signal.SIGKILL)
        self.throttling, self.throttle_ends_at = 0, FOREVER

    def throttled(self, code: int) -> None:
        """Note the end of a throttle command; if the command failed, stop the job with SIGSTOP."""
        self.throttling, self.throttle_ends_at = 0, FOREVER
        if code and self.is_slowed and not self.is_over:
            self.stop()

    def drain(self) -> None:
        """Signal once that the job's end is near; resume a paused job, so that it can react."""
        self.is_signaled = True
        self.resume()
        self.tell("signaled", clock_ms())
        self.broadcast(self.drain_signal)

    def obey(self, line: bytes) -> None:
        """Carry out an order."""
        match line.decode().split():
            case ["until", signal_at, ends_at]:
                self.ends_at = int(ends_at)
                self.signal_at = FOREVER if signal_at == "-" else int(signal_at)
                if self.signal_at == FOREVER:
                    self.is_signaled = False
            case ["pause"]:
                self.pause()
            case ["resume"]:
                self.resume()
            case ["kill"]:
                self.broadcast(signal.SIGKILL)
            case ["signal", number]:
                self.resume()
                self.broadcast(int(number))
            case ["done"]:
                self.is_done = True
            case _:
                raise ValueError(f"{line!r} is no order")

    def listen(self, link: socket.socket) -> bool:
        """Read orders; at the end of the file, the launcher is gone."""
        data = b""
        with contextlib.suppress(OSError):
            data = link.recv(65_536)
        if not data:
            return False
        self.received += data
        *lines, self.received = self.received.split(b"\n")
        for line in lines:
            self.obey(line)
        return True

    def reap(self) -> None:
        """Reap processes that ended; the job has ended once its first process has."""
        while True:
            dead = None
            with contextlib.suppress(ChildProcessError):
                dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None:
                return
            if dead.si_pid == self.group:
                self.end()
                return
            code = os.waitstatus_to_exitcode(os.waitpid(dead.si_pid, 0)[1])
            if dead.si_pid == self.throttling:
                self.throttled(code)

    def end(self) -> None:
        """End what is left of the job, then write down its end."""
        with contextlib.suppress(OSError):  # its number is no other group's: it is not buried yet
            os.killpg(self.group, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.group, 0)[1])
        while left := descendants():
            for pid in left:
                with contextlib.suppress(OSError):
                    if os.getpgid(pid) != os.getpgrp():  # all of a group, however fast it forks
                        os.killpg(os.getpgid(pid), signal.SIGKILL)
                    os.kill(pid, signal.SIGKILL)
            time.sleep(REAP_PAUSE_S)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
        now = clock_ms()
        if not self.is_paused or self.is_slowed:
            self.used_ms += now - self.runs_since
        self.tell("ended", now, code)
        self.is_over = True

    def wait_s(self) -> float:
        """The seconds until the next deadline."""
        if self.is_over:
            return WRITE_AGAIN_S
        dues = [self.ends_at, self.throttle_ends_at, self.looks_at]
        dues += [self.signal_at] * (not self.is_signaled)
        return max(min(at for at in dues if at != FOREVER) - clock_ms(), 0) / 1_000

    def watch(self) -> None:
        """Look after the job until it is over and its bill is paid or taken over."""
        woken, wakes = socket.socketpair()
        woken.setblocking(False)
        wakes.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self.selector.register(woken, selectors.EVENT_READ)
        for each in (self.listener, self.link):
            if each is not None:
                self.selector.register(each, selectors.EVENT_READ)
        self.reap()
        while not self.may_go():
            for key, _ in self.selector.select(self.wait_s()):
                if key.fileobj is woken:
                    woken.recv(4_096)
                    if not self.is_over:
                        self.reap()
                elif key.fileobj is self.listener:
                    self.answer(self.listener)
                elif key.fileobj is self.link and not self.listen(self.link):
                    self.hang_up()
            self.enforce()

    def may_go(self) -> bool:
        """Whether the job is over and its bill is paid or taken over."""
        is_told = self.link is None and (self.log is None or self.written == len(self.events))
        return self.is_over and (self.is_done or is_told)

    def answer(self, listener: socket.socket) -> None:
        """Accept a new master: take its orders, and send it all events so far."""
        link, _ = listener.accept()
        self.hang_up()
        self.link = link
        self.selector.register(link, selectors.EVENT_READ)
        self.send(b"".join(self.events))

    def enforce(self) -> None:
        """Do what has become due."""
        if self.is_over:
            self.write_down()  # the disk may have room again
            return
        now = clock_ms()
        if now >= self.ends_at:
            self.broadcast(signal.SIGKILL)
            self.ends_at = now + 100  # and again, should something have been born meanwhile
        elif self.signal_at != FOREVER and now >= self.signal_at and not self.is_signaled:
            self.drain()
        if self.looks_at != FOREVER and now >= self.looks_at:
            self.look()
        if self.throttle_ends_at != FOREVER and now >= self.throttle_ends_at:
            self.end_throttle()
            self.throttled(1)

    def hand_over(self) -> None:
        """Become the settler if the launcher died before it paid the bill."""
        if self.settle and not self.is_done and self.group:
            bill = {**self.settle["bill"], "used_ms": self.used_ms}
            reader, writer = os.pipe()
            os.write(writer, json.dumps(bill).encode())
            os.dup2(reader, 0)  # the other end closes with this program
            os.execv(self.settle["argv"][0], self.settle["argv"])  # noqa: S606  # our own program


def main() -> None:
    """Read the terms from the launcher, then guard the job."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # a handler, so that the job has the default
    signal.signal(signal.SIGCHLD, lambda *_: None)
    link = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(link.fileno(), False)
    terms = b""
    while not terms.endswith(b"\n"):
        if not (data := link.recv(1 << 20)):
            return
        terms += data
    first, _, rest = terms.partition(b"\n")
    guardian = Guardian(link, json.loads(first))
    guardian.received = rest
    guardian.start(sys.argv[2:])
    guardian.watch()
    guardian.hand_over()


if __name__ == "__main__":
    main()
