"""Who counts as demand: those whom every other gate would let in, as far as that is known.

Who has no credits, or is suspended, would take a share of a full pool from those who can pay, and
keep them waiting behind it. So where somebody lacks room the ledger is asked, without a trace, for
the first few of each account. Where one of these would not be let in, nothing of that account
counts before it was asked about. What has passed is believed for a while.

Owns: whom to ask about in a cycle, and who is left out of it.
Must not: ask (service.admitting does), or decide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpucredits.service.dispatch.admission import Rehearsal
from gpucredits.service.dispatch.snapshot import Room, granted, request_id
from gpucredits.store.dispatch.pool_rows import Key, OpenTicket, PoolRows
from gpucredits.store.dispatch.queue import QueueState

FRONT: Final = 2  # requests of each account, the next ones to start, that are always asked about
FURTHER: Final = 1  # and of those behind them, in a cycle
FURTHER_FAILED: Final = 100  # the same of accounts of which one would not be let in
ASKED_MAX: Final = 100  # in one round, but for those of accounts that failed
BEHIND_MAX: Final = 20  # so many are asked about before those behind the front are left for later
BELIEVED_US: Final = 10_000_000


class Passed:
    """Requests that the ledger would let in, and when it said so."""

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}

    def note(self, keys: Collection[Key], now: int) -> None:
        """The ledger would let these in now."""
        self._at = {key: at for key, at in self._at.items() if now < at + BELIEVED_US}
        self._at |= dict.fromkeys(keys, now)

    def __contains__(self, ticket: OpenTicket) -> bool:
        return ticket.key in self._at

    def forget(self, now: int) -> None:
        """What was said too long ago is not believed any more."""
        self.note((), now)


@dataclass(slots=True)
class Survey:
    """What one cycle has found out of those who wait, round by round."""

    picture: PoolRows
    passed: Passed
    found: Rehearsal = field(default_factory=Rehearsal)
    asked: set[Key] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def doubtful(self) -> dict[str, OpenTicket]:
        """Requests that are to be asked about next, in a pool where somebody lacks room."""
        looked: dict[str, int] = {}
        further: dict[str, int] = {}
        chosen: dict[str, OpenTicket] = {}
        usual = 0
        for ticket in self.picture.waiting:
            if ticket.state != QueueState.WAITING or ticket.held_by:
                continue
            account = ticket.account
            place = looked[account] = looked.get(account, 0) + 1
            if ticket.key in self.asked or ticket in self.passed:
                continue
            has_failed = account in self.failed
            if place > FRONT:
                further[account] = further.get(account, 0) + 1
                if further[account] > (FURTHER_FAILED if has_failed else FURTHER):
                    continue
            if not has_failed:
                usual += 1
                if usual > (ASKED_MAX if place <= FRONT else BEHIND_MAX):
                    continue
            chosen[request_id(ticket.key)] = ticket
        return chosen

    def learn(self, found: Rehearsal, asked: Collection[Key]) -> bool:
        """Take in what the ledger said; whether anybody would not be let in as it stands."""
        accounts = {ticket.key: ticket.account for ticket in self.picture.waiting}
        self.asked |= set(asked)
        self.passed.note(found.passed, self.picture.now)
        self.found.held.update(found.held)
        self.found.refused.update(found.refused)
        unfit = [key for key, row in found.held.items() if row.held_by] + list(found.refused)
        self.failed |= {accounts[key] for key in unfit if key in accounts}
        return bool(found.held or found.refused)

    def seen(self) -> PoolRows:
        """The picture without those of whom is known that they do not count, or nothing is."""
        held = self.found.held
        waiting = [
            ticket
            if (row := held.get(ticket.key)) is None
            else ticket._replace(held_by=row.held_by, gpus_max=row.gpus_max)
            for ticket in self.picture.waiting
            if ticket.key not in self.found.refused and not self._is_left_out(ticket)
        ]
        return replace(self.picture, waiting=waiting)

    @property
    def leaves_somebody_out(self) -> bool:
        """Whether somebody who does not wait has yet to be asked about."""
        return any(
            not ticket.is_patient and self._is_left_out(ticket) for ticket in self.picture.waiting
        )

    def _is_left_out(self, ticket: OpenTicket) -> bool:
        return (
            ticket.account in self.failed
            and ticket.state == QueueState.WAITING
            and not ticket.held_by
            and ticket.key not in self.asked
            and ticket not in self.passed
        )


def with_gangs(picture: PoolRows, named: Mapping[str, OpenTicket], free: Room) -> dict[Key, int]:
    """Requests and the gangs they speak for, with the GPUs that each would get."""
    waiting = [each for each in picture.waiting if each.state == QueueState.WAITING]
    gangs = {(each.account, each.gang) for each in named.values() if each.gang}
    members = [each for each in waiting if (each.account, each.gang) in gangs]
    return {each.key: granted(each, free) for each in (*named.values(), *members)}
