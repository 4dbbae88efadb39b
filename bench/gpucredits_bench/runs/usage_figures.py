"""The figures of a run of measured use, and the table for people.

Owns: their names and units.
"""

from __future__ import annotations

import msgspec

from gpucredits.compiled import is_compiled


class Intake(msgspec.Struct, kw_only=True):
    """Events a second until the sender had its answer, and until the last event was stored."""

    accepted_per_second: float
    stored_per_second: float


class UsageFigures(msgspec.Struct, kw_only=True):
    """A whole run."""

    fdatasync_us: float
    events: int
    events_per_post: int
    bytes_per_event: float
    direct: Intake
    bus: Intake
    bare: Intake
    verified: bool
    jobs_reconciled_per_second: float
    compiled: bool = msgspec.field(default_factory=is_compiled)

    @property
    def bus_ratio(self) -> float:
        """Ours through the bus, beside a bare JetStream that does nothing with the messages."""
        return self.bus.stored_per_second / self.bare.stored_per_second


def usage_table(figures: UsageFigures) -> str:
    """The contestants, one a line."""
    size = f"{figures.bytes_per_event:.0f} bytes each"
    rows = [
        f"{figures.events:,} events, {figures.events_per_post} a request, {size}",
        f"{'':34}{'accepted/s':>12}{'stored/s':>12}",
        *(
            f"{name:34}{intake.accepted_per_second:>12,.0f}{intake.stored_per_second:>12,.0f}"
            for name, intake in (
                ("HTTP, straight to PostgreSQL", figures.direct),
                ("HTTP, NATS, PostgreSQL", figures.bus),
                ("bare JetStream, the same bytes", figures.bare),
            )
        ),
        f"through the bus: {figures.bus_ratio:.2f}x a bare JetStream",
    ]
    rows.append(f"jobs reconciled: {figures.jobs_reconciled_per_second:,.0f}/s")
    rows.append(f"every event counted once, books {'hold' if figures.verified else 'BROKEN'}")
    return "\n".join(rows)
