"""``share``: who holds how much of a pool, and why; decisions that can be replayed."""

from __future__ import annotations

import json
from typing import Any, Final, TextIO

import click

from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.grammar import Group
from gpucredits.cli.terminal.pool_place import at_pool
from gpucredits.cli.terminal.session import Session, calls
from gpucredits.client import calls as client_calls
from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import dump_decisions, load
from gpucredits.core.money import be, count
from gpucredits.wire.dispatch.pool import SharesAnswer

BAR_WIDTH: Final = 20


@click.group(cls=Group)
def share() -> None:
    """Shares of a pool: what is fair, and what is held."""


@share.command("show")
@at_pool
@calls
def show(session: Session, place: tuple[str, str]) -> None:
    """Who may hold, holds, borrows and waits for how much of POOL."""
    session.run(client_calls.shares(*place), show_shares)


@share.command("dump")
@at_pool
@calls
def dump(session: Session, place: tuple[str, str]) -> None:
    """Print the last decision of POOL with all that it was made from, as JSON."""
    with session.client() as client:
        output.print_json(client.fetch(client_calls.snapshot(*place)).body)


@share.command("replay")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON.")
def replay(file: TextIO, *, as_json: bool) -> None:
    """Decide what was dumped into FILE once more; exit code 1 if the server decided otherwise."""
    try:
        document = json.load(file)
        told = document.get("decision") if "snapshot" in document else None
        decision = dump_decisions(decide(load(document.get("snapshot", document))))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise click.BadParameter(
            f"{file.name} does not hold a dumped snapshot: {error}.", param_hint="FILE"
        ) from error
    decision = json.loads(json.dumps(decision))
    if as_json:
        click.echo(json.dumps(decision))
    else:
        show_decision(decision)
    if told is not None and told != decision:
        click.echo("The server decided otherwise.", err=True)
        raise click.exceptions.Exit(output.EXIT_REFUSED)
    if told is not None and not as_json:
        click.echo("The server decided the same.", err=True)


def show_shares(answer: SharesAnswer) -> None:
    """Shares in a table, with a bar for what is held and a mark for what is fair."""
    output.say(
        f"{answer.gpu_type}/{answer.region}: {_totals(answer)}; {count(answer.waiting, 'request')}"
        f" {'waits' if answer.waiting == 1 else 'wait'} for"
        f" {count(str(answer.waiting_gpus), 'GPU')}."
    )
    if answer.capacity is None:
        return
    if answer.over:
        output.say(
            f"{answer.over} over: nothing new starts until what runs fits again. Work is stopped"
            " only for somebody who waits and is within its share."
        )
    output.print_table(
        ["account", ">weight", ">target", ">held", ">borrowed", ">waiting", "share"],
        [
            [
                f"{'  ' * row.account.count('/')}{row.account.rpartition('/')[2]}",
                str(row.weight),
                row.target,
                str(row.held),
                row.borrowed,
                str(row.waiting_gpus),
                bar(row.held_percent, row.target_percent),
            ]
            for row in answer.shares
        ],
        empty="Nobody holds or wants anything.",
    )


def _totals(answer: SharesAnswer) -> str:
    if answer.capacity is None:
        return "no capacity is set, so nobody waits for room and what runs is not counted"
    stopping = f"{answer.stopping} of them stopping"
    if answer.capacity == 0:
        held = f"{count(str(answer.held), 'GPU')} {be(str(answer.held))} still held, {stopping}"
        return f"drained, nobody new gets in until it has a capacity again; {held}"
    whole = count(str(answer.capacity), "GPU")
    return f"{answer.held} of {whole} held, {stopping}, {answer.free} free"


def bar(held_percent: str, target_percent: str) -> str:
    """What is held as a bar of the whole pool; ``|`` marks the target."""
    filled = round(float(held_percent) * BAR_WIDTH / 100)
    mark = min(round(float(target_percent) * BAR_WIDTH / 100), BAR_WIDTH)
    cells = ["#" if place < filled else "." for place in range(BAR_WIDTH)]
    cells.insert(mark, "|")
    return "".join(cells)


def show_decision(decision: dict[str, Any]) -> None:
    """What was decided, a line for each."""
    for row in decision["admissions"]:
        click.echo(f"admit   {row['request_id']}  {row['tenant']} ({row['basis']})")
    for row in decision["preemptions"]:
        click.echo(f"stop    {row['job_id']}  {row['tenant']} for {row['for_request']}")
    for row in decision["waiting"]:
        click.echo(f"wait    {row['request_id']}  {row['tenant']}: {row['sentence']}")
    if not (decision["admissions"] or decision["preemptions"] or decision["waiting"]):
        click.echo("Nothing was decided: nobody waited.")
