"""A slow, obviously right model: credits are single tokens, and every question replays everything.

It shares no code with the package. Each credit is one entry in a list, so that who pays, who is
repaid and who gets credits back can be read off the list operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SlowGrant:
    name: str
    amount: int
    start: int
    expiry: int


@dataclass
class SlowCharge:
    name: str | None
    amount: int
    time: int


@dataclass
class SlowRefund:
    name: str
    amount: int
    time: int


@dataclass
class SlowState:
    tokens: list[int] = field(default_factory=list)  # the grant of each credit at hand
    debt: int = 0
    windows: int = 0
    used: dict[int, list[int | None]] = field(default_factory=dict)  # charge -> grant or debt
    first_unfunded: tuple[str | None, int, int, int] | None = None
    audit: list[tuple[int, int, list[tuple[str, int]], int]] = field(default_factory=list)


class SlowHistory:
    """Events in order of arrival; `allows_debt` says what a charge does when credits are short."""

    def __init__(self, *, allows_debt: bool) -> None:
        self.allows_debt = allows_debt
        self.arrivals: list[SlowGrant | SlowCharge | SlowRefund] = []

    def replay(self, until: int) -> SlowState:
        """The state after everything at or before a time."""
        state = SlowState()
        for time, _, _, _, step, arrival in sorted(self._steps(), key=lambda row: row[:4]):
            if time > until:
                break
            getattr(self, f"_do_{step}")(state, arrival, time)
        return state

    def refundable(self, name: str) -> int | None:
        """What is left to refund of a charge, or None if it has not arrived."""
        for event in self.arrivals:
            if isinstance(event, SlowCharge) and event.name == name:
                return event.amount - self.refunded(name)
        return None

    def refunded(self, name: str) -> int:
        refunds = [e for e in self.arrivals if isinstance(e, SlowRefund) and e.name == name]
        return sum(refund.amount for refund in refunds)

    def _charge_of(self, refund: SlowRefund) -> int | None:
        for arrival, event in enumerate(self.arrivals):
            if isinstance(event, SlowCharge) and event.name == refund.name:
                return arrival
        return None

    def _steps(self) -> list[tuple[int, int, int, int, str, int]]:
        """Rows of time, rank, arrival, turn after that arrival, what to do, and with which."""
        rows = []
        for arrival, event in enumerate(self.arrivals):
            if isinstance(event, SlowGrant):
                if event.start < event.expiry:
                    rows.append((event.start, 1, arrival, 0, "add", arrival))
                    rows.append((event.expiry, 0, arrival, 0, "expire", arrival))
            elif isinstance(event, SlowCharge):
                rows.append((event.time, 3, arrival, 0, "charge", arrival))
            else:
                charge = self._charge_of(event)
                if charge is None:
                    continue
                charged = self.arrivals[charge]
                assert isinstance(charged, SlowCharge)
                if event.time <= charged.time:
                    rows.append((charged.time, 3, charge, 1 + arrival, "refund", arrival))
                else:
                    rows.append((event.time, 2, arrival, 0, "refund", arrival))
        return rows

    def _do_add(self, state: SlowState, arrival: int, _: int) -> None:
        grant = self.arrivals[arrival]
        assert isinstance(grant, SlowGrant)
        state.windows += 1
        for _ in range(grant.amount):
            self._give(state, arrival)

    def _give(self, state: SlowState, grant: int) -> None:
        if state.debt:
            state.debt -= 1
        else:
            state.tokens.append(grant)

    def _do_expire(self, state: SlowState, arrival: int, _: int) -> None:
        state.windows -= 1
        state.tokens = [token for token in state.tokens if token != arrival]

    def _rank(self, arrival: int) -> tuple[int, int, int]:
        grant = self.arrivals[arrival]
        assert isinstance(grant, SlowGrant)
        return grant.expiry, grant.start, arrival

    def _do_charge(self, state: SlowState, arrival: int, time: int) -> None:
        charge = self.arrivals[arrival]
        assert isinstance(charge, SlowCharge)
        short_by = charge.amount - len(state.tokens)
        if short_by > 0 and not self.allows_debt:
            if state.first_unfunded is None:
                state.first_unfunded = (charge.name, time, charge.amount, short_by)
            state.used[arrival] = []
            return
        queue = sorted(state.tokens, key=self._rank)
        paid, state.tokens = queue[: charge.amount], queue[charge.amount :]
        uncovered = charge.amount - len(paid)
        state.debt += uncovered
        state.used[arrival] = [*paid, *[None] * uncovered]
        taken: dict[int, int] = {}
        for token in paid:
            taken[token] = taken.get(token, 0) + 1
        rows = [(self._name(grant), count) for grant, count in taken.items()]
        state.audit.append((time, charge.amount, rows, uncovered))

    def _name(self, arrival: int) -> str:
        grant = self.arrivals[arrival]
        assert isinstance(grant, SlowGrant)
        return grant.name

    def _do_refund(self, state: SlowState, arrival: int, time: int) -> None:
        refund = self.arrivals[arrival]
        assert isinstance(refund, SlowRefund)
        charge = self._charge_of(refund)
        assert charge is not None
        used = state.used[charge]
        for _ in range(min(refund.amount, len(used))):
            token = used.pop()
            if token is None:
                state.debt = max(0, state.debt - 1)
                continue
            grant = self.arrivals[token]
            assert isinstance(grant, SlowGrant)
            if time < grant.expiry:
                self._give(state, token)
