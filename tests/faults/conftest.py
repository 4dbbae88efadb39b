"""Fixtures of the fault scenarios: how much to do, a line of figures for each, a proxy."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucredits.client import Client, Retry
from support.extent import Extent, Teller
from support.faulty_proxy import FaultyProxy, faulty_proxy
from support.http import RunningServer
from support.postgres import temporary_directory

LINES = pytest.StashKey[list[str]]()
CYCLES_DEFAULT = 8
QUICK = Retry(pause_s_first=0.01, pause_s_max=0.05, attempt_timeout_s=10.0, deadline_s=30.0)


@pytest.fixture(scope="session")
def extent() -> Extent:
    """FAULT_CYCLES and FAULT_SEED from the environment."""
    cycles = int(os.environ.get("FAULT_CYCLES", CYCLES_DEFAULT))
    seed = int(os.environ.get("FAULT_SEED", secrets.randbelow(10**6)))
    return Extent(cycles, seed)


@pytest.fixture
def tell(request: pytest.FixtureRequest, extent: Extent) -> Teller:
    """Write one line of figures; where a fault never bit, it says VOID and the test fails.

    ``bites`` are the things that must have happened at least once. A test that has found something
    says so with ``holds=False``, and fails by its own assertions.
    """
    again = f"replay: FAULT_CYCLES={extent.cycles} FAULT_SEED={extent.seed} make faults"
    lines = request.config.stash.setdefault(LINES, [again])

    def line(scenario: str, figures: str, *, holds: bool = True, **bites: int) -> None:
        blunt = [name for name, count in bites.items() if not count]
        bitten = ", ".join(f"{name} {count}" for name, count in bites.items())
        verdict = "OK" if holds else "FAILED"
        if blunt:
            verdict = f"VOID (never: {', '.join(blunt)})"
        figures = "; ".join(text for text in (figures, bitten) if text)
        lines.append(f"{scenario}: {verdict}: {figures}")
        if blunt:
            pytest.fail(lines[-1])

    return line


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines after the results."""
    for line in terminalreporter.config.stash.get(LINES, []):
        terminalreporter.write_line(line)


@pytest.fixture
def notes() -> Iterator[Path]:
    """A folder for histories, apart from the data directory."""
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
