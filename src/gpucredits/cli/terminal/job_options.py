"""The options that say what a job wants: the same for ``reserve`` and for ``explain``.

Owns: one option for each field of a reserve that people give by hand.
Must not: send anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_args

import click

from gpucredits.cli.terminal import values
from gpucredits.client.calls import ReserveFields
from gpucredits.core import bounds
from gpucredits.wire.ledger.reservation import JOB_PRIORITY_MAX, SEQ_MAX, ExhaustionName

_OPTIONS = [
    click.option(
        "--type",
        "gpu_type",
        type=values.gpu_type,
        required=True,
        help="The type of GPU, such as h100.",
    ),
    click.option(
        "--gpus",
        "gpu_count",
        type=values.gpus,
        default="1",
        show_default=True,
        metavar="NUMBER",
        help="How many GPUs, such as 2; or a part of one, such as 0.46.",
    ),
    click.option("--region", type=values.region, help="The region of the GPUs. Default: default."),
    click.option("--node", help="The node that the job runs on."),
    click.option(
        "--window",
        "window_ms",
        type=values.duration,
        help="How long the lease lasts without a report. Default: 2m.",
    ),
    click.option(
        "--escrow",
        "escrow_windows",
        type=click.IntRange(0, bounds.ESCROW_WINDOWS_MAX),
        help="More windows to hold, for a job that must outlive an outage.",
    ),
    click.option(
        "--max", "max_amount", type=values.amount, help="Never charge the job more than this."
    ),
    click.option(
        "--payer",
        type=values.account,
        help="Who pays. Default: the nearest account that may pay and can hold the window.",
    ),
    click.option(
        "--on-exhaustion",
        "exhaustion",
        type=click.Choice(get_args(ExhaustionName)),
        help="What happens when the lease cannot be renewed in full. Default: drain.",
    ),
    click.option(
        "--grace",
        "grace_ms",
        type=values.duration,
        help="The time from the signal to the end of the job.",
    ),
    click.option(
        "--overdraft", type=values.amount, help="How much the job may overdraw to end cleanly."
    ),
    click.option(
        "--label",
        "metadata",
        type=values.label,
        multiple=True,
        help="A label such as team=nlp. May be given many times.",
    ),
    click.option("--partial", "allow_partial", is_flag=True, help="Accept fewer GPUs."),
    click.option(
        "--priority",
        type=click.IntRange(-JOB_PRIORITY_MAX, JOB_PRIORITY_MAX),
        help="Within the queue, higher goes first. Default: 0.",
    ),
    click.option(
        "--expect",
        "expected_ms",
        type=values.duration,
        help="How long the job will run; helps it start early by backfill.",
    ),
    click.option(
        "--cpu",
        type=click.IntRange(0, SEQ_MAX),
        help="CPUs that the job needs, where its pool counts CPUs.",
    ),
    click.option(
        "--memory",
        type=click.IntRange(0, SEQ_MAX),
        help="Memory that the job needs, in the unit of its pool.",
    ),
    click.option(
        "--not-preemptible",
        "is_kept",
        is_flag=True,
        help="Never stop the job for others; for the system's staff only.",
    ),
]


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has a ``job_id`` the options of a job; they arrive as ``job``."""

    @functools.wraps(command)
    def with_job(*args: Any, **given: Any) -> None:
        resources = {name: given.pop(name) for name in ("cpu", "memory")}
        job: ReserveFields = {
            "job_id": given.pop("job_id"),
            "gpu_type": given.pop("gpu_type"),
            "gpu_count": given.pop("gpu_count"),
            "region": given.pop("region"),
            "node": given.pop("node"),
            "window_seconds": values.whole_seconds(given.pop("window_ms"), "--window"),
            "escrow_windows": given.pop("escrow_windows"),
            "max_amount": given.pop("max_amount"),
            "payer": given.pop("payer"),
            "exhaustion": given.pop("exhaustion"),
            "grace_seconds": values.whole_seconds(given.pop("grace_ms"), "--grace"),
            "overdraft": given.pop("overdraft"),
            "metadata": dict(given.pop("metadata")) or None,
            "allow_partial": given.pop("allow_partial") or None,
            "priority": given.pop("priority"),
            "expected_seconds": values.whole_seconds(given.pop("expected_ms"), "--expect"),
            "preemptible": False if given.pop("is_kept") else None,
            "resources": {name: each for name, each in resources.items() if each is not None}
            or None,
        }
        command(*args, job=job, **given)

    for option in reversed(_OPTIONS):
        with_job = option(with_job)
    return with_job
