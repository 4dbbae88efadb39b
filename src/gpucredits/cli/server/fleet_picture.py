"""The summary of a simulation as a picture: credits by tenant, refusals by gate, waiting times.

Must not: compute figures; ``simulation.summary`` has them.
"""

from __future__ import annotations

from typing import Final

from gpucredits.cli.drawing import Bar, Chart, svg
from gpucredits.simulation.opening import MICROS
from gpucredits.simulation.summary import Summary

SPENT: Final = "#2f6fbb"
REFUSED: Final = "#c2553d"
WAITED: Final = "#3d8f6b"


def draw(summary: Summary) -> str:
    """The picture of a summary."""
    days = summary.simulated_s / 86_400
    title = (
        f"{summary.jobs:,} jobs over {days:,.1f} days: {summary.attempts:,} leases, "
        f"{summary.beats:,} heartbeats, {len(summary.wrong)} wrong bills"
    )
    spent = [
        Bar(
            each.org,
            each.spent / MICROS,
            f"{each.spent // MICROS:,} of {each.granted // MICROS:,}",
            behind=each.granted / MICROS,
        )
        for each in summary.tenants
    ]
    refused = [Bar(name, count, f"{count:,}") for name, count in sorted(summary.refusals.items())]
    waits = [Bar(name, count, f"{count:,}") for name, count in summary.waits]
    charts = [
        Chart("Credits spent of credits granted, by org", spent, SPENT),
        Chart("Jobs refused, by closed gate", refused, REFUSED),
        Chart("Jobs admitted from the queue, by longest wait", waits, WAITED),
    ]
    return svg(title, f"Source: {summary.source}", charts)
