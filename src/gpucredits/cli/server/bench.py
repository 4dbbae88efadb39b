"""``gpucredits bench``: measure this machine, as ratios within one run."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from gpucredits.bench.burst import BurstOptions, measure_burst
from gpucredits.bench.burst_figures import burst_table
from gpucredits.bench.exchange import ExchangeError
from gpucredits.bench.gated import measure_gated
from gpucredits.bench.gated_report import gated_table
from gpucredits.bench.heartbeats import measure, measure_in_process
from gpucredits.bench.options import WARM_UP_S, Options
from gpucredits.bench.report import listing, table
from gpucredits.cli.terminal.grammar import Group
from gpucredits.compiled import NOT_COMPILED, is_compiled
from gpucredits.store.embedded.run_as import EmbeddedPostgresError


@click.group(cls=Group)
def bench() -> None:
    """Measure what this machine carries."""
    if not is_compiled():
        progress(NOT_COMPILED)


@bench.command()
@click.option("--reservations", type=click.IntRange(100, 2_000_000), default=100_000)
@click.option("--orgs", type=click.IntRange(1, 100_000), default=1_000)
@click.option("--seconds", type=click.FloatRange(1.0, 3_600.0), default=10.0, show_default=True)
@click.option("--nodes", type=click.IntRange(1, 1_000), default=64, show_default=True)
@click.option("--beats-per-post", type=click.IntRange(1, 5_000), default=100, show_default=True)
@click.option("--growth", is_flag=True, help="Repeat ours at 10^4, 10^5 and 10^6 reservations.")
@click.option("--in-process", is_flag=True, help="Only ours, without HTTP: what the edge costs.")
@click.option("--gates", is_flag=True, help="Only ours, without limits and with all of them.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where its databases live while it runs; the temporary directory by default.",
)
def heartbeats(  # noqa: PLR0913  # one argument for each option
    *,
    reservations: int,
    orgs: int,
    seconds: float,
    nodes: int,
    beats_per_post: int,
    growth: bool,
    in_process: bool,
    gates: bool,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Heartbeats per second: the textbook's, ours through HTTP, and COPY of the same rows.

    Needs no server: it runs its own, on its own PostgreSQL, and removes everything afterwards.
    """
    options = Options(
        reservations=reservations,
        orgs=orgs,
        seconds=seconds,
        warm_up_s=min(WARM_UP_S, max(seconds, 1.0)),
        nodes=nodes,
        beats_per_post=beats_per_post,
        folder=data_dir,
    )
    try:
        if in_process:
            alone = measure_in_process(options, progress)
            click.echo(msgspec.json.encode(alone).decode() if as_json else listing(alone))
            return
        if gates:
            gated = measure_gated(options, progress)
            click.echo(msgspec.json.encode(gated).decode() if as_json else gated_table(gated))
            sys.exit(0 if gated.verified else 1)
        figures = measure(options, progress, growth=growth)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else table(figures))
    if not figures.verified:
        sys.exit(1)


@bench.command()
@click.option("--orgs", type=click.IntRange(1, 1_000), default=20, show_default=True)
@click.option(
    "--jobs-per-second",
    type=click.FloatRange(1.0, 10_000.0),
    default=40.0,
    show_default=True,
    help="Of all polite orgs together.",
)
@click.option(
    "--factor",
    type=click.FloatRange(1.0, 1_000.0),
    default=10.0,
    show_default=True,
    help="How many times that the hostile org offers.",
)
@click.option("--seconds", type=click.FloatRange(1.0, 3_600.0), default=10.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where its database lives while it runs; the temporary directory by default.",
)
def burst(
    *,
    orgs: int,
    jobs_per_second: float,
    factor: float,
    seconds: float,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """What polite orgs notice of one that bursts, and which gate absorbs its load."""
    options = BurstOptions(
        orgs=orgs,
        jobs_per_second=jobs_per_second,
        factor=factor,
        seconds=seconds,
        folder=data_dir,
    )
    try:
        figures = measure_burst(options, progress)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else burst_table(figures))
    if not figures.verified:
        sys.exit(1)


def progress(text: str) -> None:
    """Say what is being done, beside the figures."""
    click.echo(text, err=True)
