"""Fixtures of the fault scenarios: how much to do, a line of figures for each, a proxy."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest

from gpucredits.client import Client, Retry
from support.engines.postgres import temporary_directory
from support.faults.crash_arena import TESTS
from support.faults.disk import CannotMakeDiskError, Disk, disk
from support.faults.extent import Extent, Teller
from support.faults.faulty_proxy import FaultyProxy, faulty_proxy
from support.servers.http import RunningServer

LINES = pytest.StashKey[list[str]]()
VERDICTS = pytest.StashKey[Counter[str]]()
CYCLES_DEFAULT = 8
QUICK = Retry(pause_s_first=0.01, pause_s_max=0.05, attempt_timeout_s=10.0, deadline_s=30.0)


@pytest.fixture(scope="session")
def extent() -> Extent:
    """FAULT_CYCLES and FAULT_SEED from the environment."""
    cycles = int(os.environ.get("FAULT_CYCLES", CYCLES_DEFAULT))
    seed = int(os.environ.get("FAULT_SEED", secrets.randbelow(10**6)))
    return Extent(cycles, seed)


@pytest.fixture(autouse=True)
def _own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of a scenario find the programs of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)


@pytest.fixture
def tell(request: pytest.FixtureRequest, extent: Extent) -> Teller:
    """Write one line of figures; where a fault never bit, it says VOID and the test fails.

    ``bites`` are the things that must have happened at least once. A test that has found something
    says so with ``holds=False``, and fails by its own assertions.
    """
    again = f"replay: FAULT_CYCLES={extent.cycles} FAULT_SEED={extent.seed} make faults"
    lines = request.config.stash.setdefault(LINES, [again])
    verdicts = request.config.stash.setdefault(VERDICTS, Counter())

    def line(scenario: str, figures: str, *, holds: bool = True, **bites: int) -> None:
        blunt = [name for name, count in bites.items() if not count]
        bitten = ", ".join(f"{name} {count}" for name, count in bites.items())
        verdict = "OK" if holds else "FAILED"
        if blunt:
            verdict = f"VOID (never: {', '.join(blunt)})"
        verdicts[verdict.partition(" ")[0]] += 1
        figures = "; ".join(text for text in (figures, bitten) if text)
        lines.append(f"{scenario}: {verdict}: {figures}")
        if blunt:
            pytest.fail(lines[-1])

    return line


@pytest.fixture
def not_run(request: pytest.FixtureRequest, tell: Teller) -> Callable[[str, str], NoReturn]:
    """Say of a scenario that this machine cannot run it, and why; it neither passes nor fails."""

    def say(scenario: str, why: str) -> NoReturn:
        request.config.stash[LINES].append(f"{scenario}: NOT RUN: {why}")
        request.config.stash[VERDICTS]["NOT RUN"] += 1
        pytest.skip(f"not run: {why}")

    return say


@pytest.fixture
def make_disk(not_run: Callable[[str, str], NoReturn]) -> Iterator[Callable[..., Disk]]:
    """Make the disk of a scenario, or say that the scenario is not run."""
    with ExitStack() as stack:

        def make(scenario: str, *, is_journaled: bool = False) -> Disk:
            try:
                return stack.enter_context(disk(is_journaled=is_journaled))
            except CannotMakeDiskError as error:
                not_run(scenario, str(error))

        yield make


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines after the results."""
    for line in terminalreporter.config.stash.get(LINES, []):
        terminalreporter.write_line(line)
    if counts := terminalreporter.config.stash.get(VERDICTS, None):
        told = ", ".join(f"{name} {counts[name]}" for name in ("OK", "FAILED", "VOID", "NOT RUN"))
        terminalreporter.write_line(f"lines in all: {told}")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data directory on a real disk."""
    with temporary_directory(on_disk=True) as folder:
        yield folder


@pytest.fixture
def notes() -> Iterator[Path]:
    """A folder for histories, apart from the data directory."""
    with temporary_directory(on_disk=True) as folder:
        yield folder


@pytest.fixture
def memory_dir() -> Iterator[Path]:
    """A data directory whose disk is the library of ``disk.c``: no real one is waited for."""
    with temporary_directory() as folder:
        yield folder


@pytest.fixture
def memory_notes() -> Iterator[Path]:
    """A folder for histories and photographs beside it."""
    with temporary_directory() as folder:
        yield folder


@pytest.fixture
def direct(server: RunningServer) -> Iterator[Client]:
    """A client that speaks to the server itself."""
    with Client(server.url, server.admin_secret, retry=QUICK) as client:
        yield client


@pytest.fixture
def proxy(server: RunningServer) -> Iterator[FaultyProxy]:
    """A faulty proxy before the server."""
    with faulty_proxy(server.url) as running:
        yield running
