"""Museum 18: every gate is wired. Each guard, taken out, makes its own scenario fail.

A scenario asserts what a guard is there for; with the guard it holds, without it it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpucredits.core.command import (
    AddBoost,
    Reserve,
    SetBudget,
    SetQuota,
    SetRateLimit,
    Sweep,
    UpdateAccount,
)
from gpucredits.core.gate import FairShareVerdict
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.limits import NO_CAP
from gpucredits.core.outcome import (
    AccountSaved,
    Boosted,
    BudgetSaved,
    QuotaSaved,
    RateLimitSaved,
    Reserved,
    Swept,
)
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Refused
from gpucredits.core.reservation import Exhaustion
from gpucredits.core.rules.credit import accounts
from gpucredits.core.rules.leases import heartbeats, renewals, reservations
from gpucredits.core.rules.limits import gates
from gpucredits.core.rules.upkeep import roll
from support.books.asking import alone
from support.books.ledger import CREDIT, SECOND, Ledger

ALICE = "acme/vision/alice"
A_WINDOW = 1_200_000
Scenario = Callable[[Ledger], None]
Guard = tuple[Any, str, Any, Scenario]


def quota(ledger: Ledger, dimension: Dimension, limit: int) -> int:
    """A quota of the org; windows are days."""
    window = dimension is Dimension.CREDITS_PER_WINDOW
    command = SetQuota(
        account="acme",
        dimension=dimension,
        limit=limit,
        calendar=Calendar.DAY if window else None,
    )
    return ledger.accept(command, QuotaSaved).quota.quota_id


def rate(ledger: Ledger, capacity: int) -> None:
    """A rate limit of the org without a refill."""
    command = SetRateLimit(account="acme", capacity=capacity, refill_per_hour=0)
    ledger.accept(command, RateLimitSaved)


def refused(ledger: Ledger, **fields: Any) -> None:
    """A request that must be refused."""
    given: dict[str, Any] = {
        "account": ALICE,
        "job_id": "j",
        "gpu_type": "h100",
        "milli_gpus": 1_000,
    }
    assert isinstance(ledger.do(Reserve(**given | fields)), Refused)


def admitted(ledger: Ledger, **fields: Any) -> int:
    """A request that must be admitted; its reservation."""
    given: dict[str, Any] = {
        "account": ALICE,
        "job_id": "j",
        "gpu_type": "h100",
        "milli_gpus": 1_000,
    }
    return ledger.accept(Reserve(**given | fields), Reserved).reservation.reservation_id


def told(ledger: Ledger, lease: int, seq: int, used_ms: int, decision: str) -> None:
    """A beat that must be answered so."""
    assert ledger.accept(Beat(lease, seq, used_ms), BeatResult).decision == decision


def no_credits(ledger: Ledger) -> None:
    """Work beyond the credits does not start."""
    refused(ledger, milli_gpus=1_000_000_000)


def full_quota(dimension: Dimension, limit: int) -> Scenario:
    """Work beyond a quota does not start."""

    def scenario(ledger: Ledger) -> None:
        quota(ledger, dimension, limit)
        refused(ledger)

    return scenario


def empty_bucket(ledger: Ledger) -> None:
    """A burst beyond the bucket does not start."""
    rate(ledger, 1)
    refused(ledger)


def no_turn(ledger: Ledger) -> None:
    """Work whose turn it is not does not start."""
    verdict = FairShareVerdict(passes=False, limit=0, current=0, requested=1, sentence="Not yet.")
    refused(ledger, fair_share=verdict)


def renewal_under(limit: Callable[[Ledger], object], decision: str) -> Scenario:
    """Running work that a limit no longer covers is told so."""

    def scenario(ledger: Ledger) -> None:
        limit(ledger)
        lease = admitted(ledger)
        ledger.wait(s=60)
        told(ledger, lease, 1, 60_000, decision)

    return scenario


def lowered(ledger: Ledger) -> None:
    """A lowered limit tells work to go."""
    quota(ledger, Dimension.CONCURRENT_GPUS, 1_000)
    lease = admitted(ledger)
    quota(ledger, Dimension.CONCURRENT_GPUS, 0)
    ledger.wait(s=10)
    told(ledger, lease, 1, 10_000, "drain")


def slot_comes_back(ledger: Ledger) -> None:
    """A lapsed lease frees its slot."""
    quota(ledger, Dimension.CONCURRENT_JOBS, 1)
    admitted(ledger)
    ledger.wait(s=120)
    admitted(ledger, job_id="next")


def slot_is_taken(ledger: Ledger) -> None:
    """A lease that runs has its slot."""
    quota(ledger, Dimension.CONCURRENT_JOBS, 1)
    admitted(ledger)
    refused(ledger, job_id="next")


def other_payer(ledger: Ledger) -> None:
    """A lapsed lease of another payer does not stand in the way."""
    ledger.grant(ALICE, 10 * CREDIT)
    quota(ledger, Dimension.CONCURRENT_GPUS, 1_000)
    admitted(ledger)
    ledger.wait(s=120)
    admitted(ledger, payer="acme")


def spending_counts(ledger: Ledger) -> None:
    """What was settled is spent in its window, and held no more in the next."""
    quota(ledger, Dimension.CREDITS_PER_WINDOW, A_WINDOW)
    lease = admitted(ledger, max_amount=A_WINDOW)
    ledger.wait(s=60)
    told(ledger, lease, 1, 0, "drain")
    ledger.wait(s=60)
    told(ledger, lease, 2, 120_000, "stop")
    refused(ledger)
    ledger.wait(s=86_400)
    admitted(ledger)


def boost_lapses(ledger: Ledger) -> None:
    """A boost that is over adds nothing."""
    number = quota(ledger, Dimension.CONCURRENT_GPUS, 0)
    boost = AddBoost(target_id=number, amount=1_000, ends_at=ledger.now + SECOND)
    ledger.accept(boost, Boosted)
    ledger.wait(s=1)
    refused(ledger)


def allowance_comes(ledger: Ledger) -> None:
    """A period's allowance is issued by the clock, whatever else fell due before."""
    account = ledger.open("acme/new").account_id
    ledger.grant("acme/new", 1, expires_at=ledger.now + SECOND)
    budget = SetBudget(
        account="acme/new",
        allowance=CREDIT,
        calendar=Calendar.DAY,
        starts_at=ledger.now + 5 * SECOND,
    )
    ledger.accept(budget, BudgetSaved)
    ledger.wait(s=1)
    ledger.accept(Sweep(account_id=account), Swept)
    ledger.wait(s=4)
    assert ledger.account("acme/new").available == CREDIT


def unpaid(ledger: Ledger) -> None:
    """A delinquent account starts nothing."""
    ledger.accept(UpdateAccount(path="acme", delinquent=True), AccountSaved)
    refused(ledger)


def stop_policy(ledger: Ledger) -> None:
    """A job that agreed to stop stops at the first renewal that is not full."""
    alone(ledger)
    ledger.grant(ALICE, A_WINDOW)
    lease = admitted(ledger, exhaustion=Exhaustion.STOP)
    ledger.wait(s=10)
    told(ledger, lease, 1, 10_000, "stop")


def overdraft_unearned(ledger: Ledger) -> None:
    """An overdraft that nobody allowed is not pinned."""
    refused(ledger, overdraft=1)


def passing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A gate that lets everything pass."""
    return lambda *args: replace(function(*args), passes=True)


def draining(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same renewal of a lease that agreed to nothing."""
    args[2].exhaustion = Exhaustion.DRAIN
    return args


def nothing(*_: object) -> None:
    """A step that is left out."""


def window_full(ledger: Ledger) -> object:
    """A window with room for little more than the first hold."""
    return quota(ledger, Dimension.CREDITS_PER_WINDOW, A_WINDOW + 1)


GUARDS: dict[str, Guard] = {
    "the budget at admission": (gates, "budget_report", passing(gates.budget_report), no_credits),
    "credits per job at admission": (
        *(gates, "quota_report", passing(gates.quota_report)),
        full_quota(Dimension.CREDITS_PER_JOB, 0),
    ),
    "concurrent GPUs at admission": (
        *(gates, "quota_report", passing(gates.quota_report)),
        full_quota(Dimension.CONCURRENT_GPUS, 0),
    ),
    "concurrent jobs at admission": (
        *(gates, "quota_report", passing(gates.quota_report)),
        full_quota(Dimension.CONCURRENT_JOBS, 0),
    ),
    "credits per window at admission": (
        *(gates, "quota_report", passing(gates.quota_report)),
        full_quota(Dimension.CREDITS_PER_WINDOW, 1),
    ),
    "the rate limit at admission": (
        *(gates, "rate_report", passing(gates.rate_report)),
        empty_bucket,
    ),
    "fair share at admission": (
        *(gates, "fair_share_report", passing(gates.fair_share_report)),
        no_turn,
    ),
    **{
        f"the quick look at {gate}": (reservations, "all_pass", lambda *_: True, scenario)
        for gate, scenario in {
            "a budget": no_credits,
            "credits per job": full_quota(Dimension.CREDITS_PER_JOB, 0),
            "concurrent GPUs": full_quota(Dimension.CONCURRENT_GPUS, 0),
            "concurrent jobs": full_quota(Dimension.CONCURRENT_JOBS, 0),
            "credits per window": full_quota(Dimension.CREDITS_PER_WINDOW, 1),
            "a rate limit": empty_bucket,
            "fair share": no_turn,
        }.items()
    },
    "the quick look at a renewal": (
        *(heartbeats, "pass_in_full", lambda *_: True),
        renewal_under(window_full, "drain"),
    ),
    "credits per window at renewal": (
        *(renewals, "window_room", lambda *_: NO_CAP),
        renewal_under(window_full, "drain"),
    ),
    "credits per job at renewal": (
        *(renewals, "job_cap", lambda *_: NO_CAP),
        renewal_under(
            lambda ledger: quota(ledger, Dimension.CREDITS_PER_JOB, A_WINDOW + 1), "drain"
        ),
    ),
    "the rate limit at renewal": (
        *(renewals, "slow_down", nothing),
        renewal_under(lambda ledger: rate(ledger, A_WINDOW), "throttle"),
    ),
    "a lowered limit at renewal": (renewals, "told_to_go", lambda *_: False, lowered),
    "taking slots": (reservations, "enter", nothing, slot_is_taken),
    "freeing slots": (roll, "leave", nothing, slot_comes_back),
    "lapsed leases of other payers": (reservations, "roll_due", nothing, other_payer),
    "counting what is settled": (heartbeats, "count_slice", nothing, spending_counts),
    "the end of a boost": (gates, "boosted", lambda limit, *_: limit + 1_000, boost_lapses),
    "issuing by the clock": (roll, "next_issue", lambda *_: NO_CAP, allowance_comes),
    "delinquency": (accounts, "note_suspension", nothing, unpaid),
    "the exhaustion policy": (
        *(heartbeats, "renewal", lambda *args: renewals.renewal(*draining(args))),
        stop_policy,
    ),
    "the bound of an overdraft": (
        *(reservations, "allowing", lambda funders, _: funders),
        overdraft_unearned,
    ),
}


@pytest.mark.as_source
@pytest.mark.parametrize(("place", "name", "without", "scenario"), GUARDS.values(), ids=GUARDS)
def test_a_guard_that_is_taken_out_is_missed(
    place: Any, name: str, without: Any, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the guard its scenario holds; without it the scenario fails."""
    scenario(prepared())
    monkeypatch.setattr(place, name, without)
    with pytest.raises(AssertionError):
        scenario(prepared())


def prepared() -> Ledger:
    """An org with plenty of credits."""
    ledger = Ledger()
    ledger.price("h100", 36 * CREDIT)
    for path in ("acme", "acme/vision", ALICE):
        ledger.open(path)
    ledger.grant("acme", 1_000 * CREDIT)
    return ledger
