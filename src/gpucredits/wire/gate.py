"""Gates on the wire: what each says of a request, in numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpucredits.core.gate import Gate, GateReport, GateUnit, quantity
from gpucredits.wire.documented import SCOPE, UNIT, doc
from gpucredits.wire.scalars import InstantText, format_instant

GateName = Literal["budget", "quota", "rate_limit", "fair_share"]
UnitName = Literal["credits", "GPUs", "jobs", "requests"]
QuantityText = Annotated[
    str, Meta(pattern=r"^-?\d+(\.\d{1,6})?$", description="A decimal string, in the unit given.")
]

_GATES: dict[Gate, GateName] = {
    Gate.BUDGET: "budget",
    Gate.QUOTA: "quota",
    Gate.RATE_LIMIT: "rate_limit",
    Gate.FAIR_SHARE: "fair_share",
}
_UNITS: dict[GateUnit, UnitName] = {
    GateUnit.CREDITS: "credits",
    GateUnit.GPUS: "GPUs",
    GateUnit.JOBS: "jobs",
    GateUnit.REQUESTS: "requests",
}


class GateAnswer(Struct, kw_only=True):
    """One gate at one scope: it passes where current and requested stay within the limit.

    For fair share, the limit is the tenant's share of the pool, and current is what it holds. The
    pool says whose turn it is: a tenant that borrows passes above its share. ``clears_at`` is when
    the gate would pass if nothing else changed; null if it passes now or the instant is unknown.
    ``never_because`` says why waiting does not help. An account that the caller's key does not see
    is ``an account above`` with a null limit and current.
    """

    gate: Annotated[GateName, doc("The gate: budget, quota, rate_limit or fair_share.")]
    scope: Annotated[str, SCOPE]
    account: Annotated[str, doc("The account that has the limit.")]
    name: Annotated[str, doc("The limit's name, for people.")]
    unit: Annotated[UnitName, UNIT]
    limit: Annotated[QuantityText | None, doc("The most that current plus requested may be.")]
    current: Annotated[
        QuantityText | None, doc("The amount that already counts against the limit.")
    ]
    requested: Annotated[QuantityText, doc("The amount that this request would add.")]
    passes: Annotated[bool, doc("Whether current plus requested is within the limit.")]
    clears_at: Annotated[
        InstantText | None,
        doc("When the gate would pass if nothing else changed; null if unknown."),
    ]
    never_because: Annotated[
        str | None,
        doc("Why waiting never opens the gate, such as: the pool has 8 GPUs. Null if it may."),
    ] = None
    sentence: Annotated[str, doc("The verdict in words.")]


def gates_to_wire(reports: Iterable[GateReport]) -> list[GateAnswer]:
    """Every report, in the order in which a refusal would name them."""
    return [
        GateAnswer(
            gate=_GATES[report.gate],
            scope=report.scope,
            account=report.account,
            name=report.name,
            unit=unit_name(report.unit),
            limit=format_quantity(report.limit, report.unit),
            current=format_quantity(report.current, report.unit),
            requested=format_quantity(report.requested, report.unit),
            passes=report.passes,
            clears_at=None if report.clears_at is None else format_instant(report.clears_at),
            never_because=report.never_because,
            sentence=report.sentence,
        )
        for report in reports
    ]


def unit_name(unit: GateUnit) -> UnitName:
    """The word for a unit."""
    return _UNITS[unit]


def format_quantity(value: int, unit: GateUnit) -> str:
    """A number of credits, GPUs, jobs or requests as text."""
    return quantity(value, unit)
