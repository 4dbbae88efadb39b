"""How the scene is shown: live tables on a terminal, one line for each event elsewhere.

Owns: layout. Must not: know what happens; it is told.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Self

import click
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

ROWS_OF_TABLES: Final = 19  # what is left of a terminal's height is for events
EVENTS_SHOWN_MIN: Final = 2
TICK_PAUSE_S: Final = 0.25
SCENE_PAUSE_S: Final = 0.6

_COLOURS = {"continue": "green", "drain": "yellow", "stop": "red", "settled": "cyan"}


@dataclass(slots=True, kw_only=True)
class WalletRow:
    """One balance."""

    account: str
    available: str
    held: str
    spent: str


@dataclass(slots=True, kw_only=True)
class JobRow:
    """One job."""

    job: str
    account: str
    gpus: str
    used: str
    charged: str
    state: str


class Screen:
    """What the watcher sees. It waits between events only where somebody watches."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.is_live = console.is_terminal
        self._clock = ""
        self._wallets: list[WalletRow] = []
        self._jobs: list[JobRow] = []
        self._events: list[str] = []
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self.is_live:
            self._live = Live(self._layout(), console=self.console, refresh_per_second=12)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Something happened."""
        if self._live is None:
            click.echo(text)
            return
        self._events.append(text)
        self._live.update(self._layout())
        time.sleep(SCENE_PAUSE_S)

    def show(self, clock: str, wallets: list[WalletRow], jobs: list[JobRow]) -> None:
        """The state after a tick."""
        self._clock, self._wallets, self._jobs = clock, wallets, jobs
        if self._live is not None:
            self._live.update(self._layout())
            time.sleep(TICK_PAUSE_S)
            return
        balances = "; ".join(
            f"{row.account} available {row.available} held {row.held} spent {row.spent}"
            for row in wallets
        )
        click.echo(f"{clock}  {balances}")
        for job in jobs:
            click.echo(f"{clock}    {job.job}: {job.state}, used {job.used}, charged {job.charged}")

    def _layout(self) -> Group:
        wallets = Table(title="Balances", expand=True, border_style="dim")
        wallets.add_column("account")
        for name in ("available", "held", "spent"):
            wallets.add_column(name, justify="right")
        for row in self._wallets:
            wallets.add_row(row.account, row.available, row.held, row.spent)
        jobs = Table(title=f"Jobs {self._clock}", expand=True, border_style="dim")
        for name in ("job", "account", "GPUs", "used", "charged", "told"):
            jobs.add_column(name, justify="right" if name in ("used", "charged") else "left")
        for job in self._jobs:
            colour = _COLOURS.get(job.state.partition(" ")[0], "white")
            state = f"[{colour}]{job.state}[/{colour}]"
            jobs.add_row(job.job, job.account, job.gpus, job.used, job.charged, state)
        shown = max(EVENTS_SHOWN_MIN, self.console.size.height - ROWS_OF_TABLES)
        happened = "\n".join(escape(event) for event in self._events[-shown:])
        events = Panel(happened, title="What happens")
        return Group(wallets, jobs, events)
