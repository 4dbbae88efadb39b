"""``gpucredits simulate``: a simulated fleet against a real server of its own.

Owns: the options, the progress line, and how the summary looks.
Must not: know how the fleet works; ``gpucredits.simulation`` does.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from gpucredits.cli.drawing import picture_option
from gpucredits.cli.server.fleet_picture import draw
from gpucredits.cli.server.temporary_server import ServerFailedError, temporary_server
from gpucredits.cli.server.verify import check
from gpucredits.cli.server.verify import show as show_verification
from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.grammar import Command
from gpucredits.cli.terminal.progress import ProgressLine
from gpucredits.client import CallError, Client
from gpucredits.core.duration import format_ms
from gpucredits.core.money import count
from gpucredits.service.reads.verify import Verification
from gpucredits.simulation.fleet import Fleet, Terms
from gpucredits.simulation.opening import credits_text, open_world
from gpucredits.simulation.summary import Summary, summarise
from gpucredits.simulation.traces import TraceError, read_trace
from gpucredits.simulation.workload import JOBS_MAX, ORGS_MAX, Workload, made_up

WINDOW_INTERVALS: Final = 2  # a lease outlives one lost report
INTERVAL_S_MAX: Final = 12 * 3_600
WRONG_SHOWN: Final = 20


@click.command(cls=Command)
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Replay a published trace: Alibaba's GPU pods of 2023 (CSV) or Philly's jobs (JSON).",
)
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same fleet.")
@click.option(
    "--jobs",
    default=300,
    show_default=True,
    type=click.IntRange(1, JOBS_MAX),
    help="How many jobs to make up, or to take from the start of the trace.",
)
@click.option("--all", "all_jobs", is_flag=True, help="Replay every job of the trace.")
@click.option(
    "--hours",
    default=24,
    show_default=True,
    type=click.IntRange(1, 24 * 366),
    help="Over how many hours made-up jobs arrive.",
)
@click.option("--orgs", default=8, show_default=True, type=click.IntRange(1, ORGS_MAX))
@click.option(
    "--interval-seconds",
    default=None,
    type=click.IntRange(1, INTERVAL_S_MAX),
    help="Time between two reports of a node [default: 300, or 3600 for a trace].",
)
@click.option("--faults/--no-faults", default=True, show_default=True, help="Let things go wrong.")
@picture_option("Draw the summary into this SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def simulate(  # noqa: PLR0913  # one argument for each option
    *,
    trace: Path | None,
    seed: int,
    jobs: int,
    all_jobs: bool,
    hours: int,
    orgs: int,
    interval_seconds: int | None,
    faults: bool,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Run a simulated fleet on its own server; prove every bill.

    The server's clock is moved from event to event, so months take minutes. Nodes crash, lose
    their network, repeat old reports and have slow clocks. An oracle computes each bill from the
    nodes' own notes. The command ends with ``verify``, and exits with 1 if any bill is wrong.
    """
    if all_jobs and trace is None:
        raise click.UsageError("--all needs --trace: a made-up workload has no end.")
    workload = _workload(trace, seed=seed, orgs=orgs, jobs=None if all_jobs else jobs, hours=hours)
    interval_s = interval_seconds or (300 if trace is None else 3_600)
    terms = Terms(
        seed=seed,
        interval_s=interval_s,
        window_s=WINDOW_INTERVALS * interval_s,
        with_faults=faults,
    )
    began_s = time.monotonic()
    try:
        summary, verification = _play(workload, terms)
    except (ServerFailedError, CallError) as error:
        raise click.ClickException(str(error)) from error
    if picture is not None:
        picture.write_text(draw(summary), encoding="utf-8")
    if as_json:
        click.echo(json.dumps({**asdict(summary), "verified": verification.is_clean}))
    else:
        show(summary, round(1_000 * (time.monotonic() - began_s)))
        show_verification(verification)
        if picture is not None:
            click.echo(f"Picture: {picture}")
    if not (summary.is_right and verification.is_clean):
        raise SystemExit(output.EXIT_REFUSED)


def _workload(
    trace: Path | None, *, seed: int, orgs: int, jobs: int | None, hours: int
) -> Workload:
    if trace is None:
        return made_up(seed=seed, jobs=jobs or 1, hours=hours, orgs=orgs)
    try:
        whole = read_trace(trace, seed=seed, orgs=orgs)
    except (TraceError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error), param_hint="--trace") from error
    return whole if jobs is None else whole.first(jobs)


def _play(workload: Workload, terms: Terms) -> tuple[Summary, Verification]:
    """The whole simulation: a server, the world, the fleet, the summary, the books."""
    bound = ("--window-max-seconds", str(terms.window_s))
    with ProgressLine() as progress:
        progress("starting a server")
        with temporary_server(*bound) as server, Client(server.url, server.key) as client:
            progress("opening accounts")
            opening = open_world(client, workload, seed=terms.seed, interval_s=terms.interval_s)
            fleet = Fleet(client, workload, terms)
            fleet.play(_counting(progress, "jobs arriving"))
            tell = _counting(progress, "bills compared")
            summary = summarise(client, workload, opening, fleet.history, tell)
            progress("checking the books")
            return summary, asyncio.run(check(server.data_dir, None))


def _counting(progress: ProgressLine, step: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        progress.count(step, done, total)

    return tell


def show(summary: Summary, took_ms: int) -> None:
    """The summary as tables."""
    click.echo(
        f"{summary.jobs} jobs over {format_ms(summary.simulated_s * 1_000)} of simulated time, in "
        f"{format_ms(took_ms)}: {summary.attempts} leases, {summary.beats} heartbeats."
    )
    again = summary.attempts - (summary.jobs - summary.unleased)
    click.echo(
        f"Jobs without a lease (refused, or gave up waiting): {summary.unleased}. "
        f"Leases of jobs that were begun again: {again}."
    )
    click.echo(f"Source: {summary.source}.\n")
    rows = [
        [each.org, str(each.jobs), *map(credits_text, (each.granted, each.spent, each.expected))]
        for each in summary.tenants
    ]
    output.print_table(["org", ">jobs", ">granted", ">spent", ">oracle"], rows, empty="No orgs.")
    _counts("Leases ended", summary.ends)
    _counts("Jobs refused, by closed gate", summary.refusals)
    _counts("Faults", summary.faults)
    _counts("Jobs admitted from the queue, by longest wait", dict(summary.waits))
    click.echo(f"Jobs that gave up waiting: {summary.left}.\n")
    if not summary.wrong:
        equal = summary.attempts - summary.rounded
        click.echo(f"{count(equal, 'bill')} {'equals' if equal == 1 else 'equal'} the oracle's.")
        if summary.rounded:
            click.echo(
                f"{summary.rounded} leases were used to their last millisecond: their bills are "
                "up to one millisecond less."
            )
        return
    click.echo(f"{len(summary.wrong)} bills differ from the oracle's:")
    wrong = [
        [each.job, each.reservation_id, credits_text(each.billed), credits_text(each.expected)]
        for each in summary.wrong[:WRONG_SHOWN]
    ]
    output.print_table(["job", "lease", ">billed", ">oracle"], wrong, empty="")


def _counts(title: str, counts: dict[str, int]) -> None:
    said = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
    click.echo(f"{title}: {said}.")
