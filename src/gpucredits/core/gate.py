"""Gates: what each of the four says about a request, in numbers and in a sentence.

Owns: the report of one gate at one scope, and its words.
Must not: decide, or know how its numbers came about.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpucredits.core.money import be, count_of, format_credits, format_gpus
from gpucredits.core.period import instant_text

OVER_LIMIT: Final = "the request alone is over the limit"
ALMOST_A_SECOND_US = 999_999  # people are told the next full second, never one that is too early


class Gate(StrEnum):
    """The four gates, in the order in which a refusal names them."""

    BUDGET = "budget"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    FAIR_SHARE = "fair_share"


class GateUnit(StrEnum):
    """What a report's numbers count: micro-credits, thousandths of GPUs, jobs or requests."""

    CREDITS = "credits"
    GPUS = "GPUs"
    JOBS = "jobs"
    REQUESTS = "requests"


_STEPS: Final = {  # millionths in the smallest amount of each unit
    GateUnit.CREDITS: 1,
    GateUnit.GPUS: 1_000,
    GateUnit.JOBS: 1_000_000,
    GateUnit.REQUESTS: 1_000_000,
}


@dataclass(frozen=True, slots=True)
class ScopeShare:
    """The fair share of an org, project or user in a pool, and what it holds, in thousandths."""

    account: str
    fair: int
    held: int


@dataclass(frozen=True, slots=True)
class FairShareVerdict:
    """What fair share says of a request; whoever runs the pool makes it and passes it in.

    ``limit`` and ``current`` are the pool's; ``shares``, from the org down, are the tenants'.
    ``ceiling`` says what the whole pool has, if the request is larger than that.
    """

    passes: bool
    limit: int
    current: int
    requested: int
    sentence: str
    clears_at: int | None = None
    shares: tuple[ScopeShare, ...] = ()
    ceiling: str = ""


@dataclass(frozen=True, slots=True)
class GateReport:
    """One gate at one scope: it passes where ``current + requested <= limit``.

    Fair share differs: the limit is the tenant's share, and the pool says whose turn it is. A
    tenant that borrows passes above its share, and a full pool lets nobody in. ``clears_at`` is
    when it would pass if nothing else changed; None where that is now or where no instant is known.
    ``credit`` is how much of the limit is the credit limit of an account that has one. ``ceiling``
    is the verdict's. ``may_rise`` says that boosts to come raise the limit to the request alone.
    """

    gate: Gate
    scope: str
    account: str
    name: str
    unit: GateUnit
    limit: int
    current: int
    requested: int
    passes: bool
    clears_at: int | None = None
    told: str = ""
    credit: int | None = None
    ceiling: str = ""
    may_rise: bool = False

    @property
    def never_because(self) -> str | None:
        """Why waiting never opens the gate; None where it is open or may open.

        The limit of fair share is one's share: who asks for more may still get it, by borrowing.
        """
        if self.passes or self.clears_at is not None or self.gate is Gate.BUDGET:
            return None
        if self.gate is Gate.FAIR_SHARE:
            return self.ceiling or None
        return OVER_LIMIT if self.requested > self.limit and not self.may_rise else None

    @property
    def available(self) -> int:
        """What can still be taken, without the credit limit."""
        return self.limit - self.current - (self.credit or 0)

    @property
    def sentence(self) -> str:
        """The same for people, with the numbers and when it would clear."""
        if self.told:
            return self.told
        if self.passes:
            return self._passing()
        return f"{self._failing()} {self._clearing()}"

    def _passing(self) -> str:
        left = self._number(self.limit - self.current - self.requested)
        taken = self._number(self.current)
        return (
            f"{self.account} passes its {self.name}: {taken} of {self._count(self.limit)} "
            f"{be(taken)} taken, {self._number(self.requested)} "
            f"would be added and {left} would be left."
        )

    def _failing(self) -> str:
        limit, wanted = self._count(self.limit), self._number(self.requested)
        free = max(self.limit - self.current, 0)
        match self.gate:
            case Gate.BUDGET if self.credit is not None and self.available <= 0:
                return (
                    f"{self.account} has used {self._number(self.current)} of its credit limit of "
                    f"{self._number(self.credit)}, and {wanted} {be(wanted)} needed."
                )
            case Gate.BUDGET if self.credit is not None:
                return (
                    f"{self.account} has {self._count(self.available)} available and a credit "
                    f"limit of {self._number(self.credit)}, and {wanted} {be(wanted)} needed."
                )
            case Gate.BUDGET:
                return (
                    f"{self.account} has {self._count(free)} available, and {wanted} {be(wanted)} "
                    "needed."
                )
            case Gate.RATE_LIMIT:
                return (
                    f"{self.account} is spending too fast: {self._number(free)} of the {limit} "
                    f"that its {self.name} lets it draw at once {be(self._number(free))} there, "
                    f"and {wanted} {be(wanted)} needed."
                )
            case _:
                return (
                    f"{self.account} has taken {self._number(self.current)} of {limit}, "
                    f"its limit of {self.name}, and {wanted} more {be(wanted)} needed."
                )

    def _clearing(self) -> str:
        if self.clears_at is not None:
            return f"It would clear at {instant_text(self.clears_at + ALMOST_A_SECOND_US)}."
        if self.never_because:
            return f"It never clears: {self.never_because}."
        if self.gate is Gate.BUDGET:
            return "It clears when credits are added or holds are released."
        if self.gate is Gate.RATE_LIMIT:
            return "It clears when running work ends, or when the limit is raised."
        return "It clears when running work ends."

    def _count(self, value: int) -> str:
        return count_of(self._number(value), self.unit)

    def _number(self, value: int) -> str:
        return quantity(value, self.unit)


def quantity(amount: int, unit: GateUnit) -> str:
    """A number of credits, GPUs, jobs or requests as text."""
    match unit:
        case GateUnit.CREDITS:
            return format_credits(amount)
        case GateUnit.GPUS:
            return format_gpus(amount)
        case GateUnit.JOBS | GateUnit.REQUESTS:
            return str(amount)


def quantity_of(micros: int, unit: GateUnit) -> int:
    """A number with six decimals in the unit of a limit; ValueError says how fine that is."""
    number, rest = divmod(micros, _STEPS[unit])
    if rest and unit is GateUnit.GPUS:
        raise ValueError("must be a number of GPUs with at most 3 digits after the point")
    if rest:
        raise ValueError(f"must be a whole number of {unit}")
    return number
